"""The model's word on the whole way: off, on, slow or lying, certain rules lead to the same plan at the same time."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.diagnosis.diagnosis import DiagnosisSource
from agent.core.diagnosis.model_request import INCIDENT_CAP, Explanation
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Risk
from agent.ports.model import NoAnswer
from agent.ports.stage_context import Owner
from tests import model_server as servers
from tests import model_words as words

ROOT = Path(__file__).resolve().parents[2]
PROBE = "gemma4-26b-l4-startup-probe"
EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/events.jsonl"))


def settled(told):
    """Go on until the first incident is asked about or over."""
    return told.until(lambda i: i.ended or i.phase is Phase.ASKED)


def explained(told):
    return told.until(lambda i: i.model_request is not None and i.model_request.state is not Explanation.WANTED)


@pytest.mark.parametrize("example", EXAMPLES)
def test_model_off_on_slow_and_lying_make_the_same_plan(journey, example):
    """For every recorded example whose class is certain: same cause, same plan, to the byte; people are asked as early."""
    alone = settled(journey(example))
    if not alone.diagnosis.certain:
        pytest.skip("the rules are not certain of this one")
    for answer in (words.right, words.lie, words.nobody, lambda _: "{"):
        told = words.given(journey(example), words.Says(answer))
        with_model = settled(told)
        assert with_model.plan == alone.plan
        assert with_model.diagnosis.says == alone.diagnosis.says
        told.go(120, step=10)
        after = told.installation.store.load(alone.id)
        assert after.plan == alone.plan
        assert after.phase is alone.phase


def test_at_least_six_examples_are_certain(journey):
    """The promise above is not held by skipping."""
    assert sum(settled(journey(example)).diagnosis.certain for example in EXAMPLES) >= 6


@pytest.mark.parametrize(
    ("answer", "voice"),
    [
        (words.right, DiagnosisSource.BOTH),
        (words.lie, DiagnosisSource.DIFFER),
        (words.names("unknown"), DiagnosisSource.RULES),
    ],
)
def test_the_explanation_is_added_when_it_comes(journey, answer, voice):
    """People were asked already; the word comes after, with prompt, model and cost, and they are told again."""
    told = words.given(journey(PROBE), words.Says(answer))
    asked = settled(told)
    incident = explained(told)
    assert incident.phase is Phase.ASKED
    assert incident.plan == asked.plan
    assert incident.diagnosis.voice is voice
    word = incident.diagnosis.model_word
    assert word.prompt.startswith("diagnose.v1 ")
    assert (word.model, word.tokens, word.took_s) == ("stand-in", 980, 1.5)
    assert any("the model (stand-in) says" in e.what for e in told.installation.store.timeline(incident.id))


class Watching:
    """A notifier that writes down when people were told, beside when the model was asked."""

    def __init__(self, told):
        self.order = told

    def tell(self, incident, timeline, *, reference):
        self.order.append(
            ("told", incident.phase, incident.diagnosis is not None and incident.diagnosis.model_word is not None)
        )
        return "card"  # fmt: skip


def test_people_are_told_before_the_model_is_asked(journey):
    """The first word is committed and out before the first question, and the card is written again with the word."""
    order = []
    told = journey(PROBE)
    model = words.Says(words.right, before=lambda: order.append(("asked the model",)))
    worlds = told.installation.contexts
    worlds[Owner.INCIDENT] = replace(worlds[Owner.INCIDENT], notifiers={"watch": Watching(order)})
    words.given(told, model)
    explained(told)
    told.go(5)
    first_question = order.index(("asked the model",))
    assert any(entry[0] == "told" for entry in order[:first_question])
    assert order[-1] == ("told", Phase.ASKED, True)


def test_a_sleeping_model_is_asked_each_minute_and_dropped(journey):
    """At most a quarter of an hour, within the caps, and the approved plan ends resolved as ever."""
    told = words.given(journey(PROBE), words.Says(words.nobody))
    plan = settled(told).plan
    told.go(1200, step=20)
    incident = told.incidents()[0]
    assert incident.model_request.state is Explanation.DROPPED
    model = told.installation.contexts[Owner.INCIDENT].model
    assert 10 <= len(model.questions) <= 15
    assert incident.model_request.spent.within(INCIDENT_CAP)
    told.answer(plan.id)
    assert told.until(lambda i: i.ended).phase is Phase.RESOLVED


def test_a_model_that_wakes_late_is_heard(journey):
    """Nine tries in vain, then an answer: it is added to the open question."""
    tries = []

    def late(question):
        tries.append(1)
        return words.nobody(question) if len(tries) < 10 else words.right(question)

    told = words.given(journey(PROBE), words.Says(late))
    settled(told)
    told.go(800, step=10)
    incident = told.incidents()[0]
    assert incident.phase is Phase.ASKED
    assert incident.diagnosis.voice is DiagnosisSource.BOTH
    assert len(tries) == 10


def test_a_decision_does_not_wait_for_the_model(journey):
    """Approved while the model is thinking: the change goes on, and the late word only explains."""
    told = journey(PROBE)
    approved = []

    def approve():
        incident = told.incidents()[0]
        if not approved and incident.phase is Phase.ASKED:
            approved.append(told.answer(incident.plan.id))

    words.given(told, words.Says(words.lie, before=approve))
    ended = told.until(lambda i: i.ended)
    assert approved
    assert ended.phase is Phase.RESOLVED
    assert ended.diagnosis.voice is DiagnosisSource.DIFFER
    assert ended.plan.id == approved[0].plan


@pytest.mark.parametrize("when", ["uncertain", "never"])
def test_certain_rules_ask_nothing_where_that_is_wished(journey, when):
    """MODEL_ASK_WHEN=uncertain: not one call where a rule is certain."""
    model = words.Says(words.right)
    told = words.given(journey(PROBE), model, when=when)
    settled(told)
    told.go(120, step=10)
    assert model.questions == []
    assert told.incidents()[0].model_request is None


FAULTS = {
    name: servers.FAULTS[name]
    for name in (
        "silent", "reset", "reset in the middle", "a body that drips", "headers that drip", "endless stream", "HTML",
        "wrong schema", "half JSON", "ten megabytes", "HTTP 401", "HTTP 429", "HTTP 500",
    )
}  # fmt: skip


class Hasty:
    """The real adapter with a fraction of a second where it has a minute."""

    def __init__(self, inner):
        self._inner = inner
        self.unheard = 0

    def ask(self, question):
        try:
            return self._inner.ask(question.with_(limit_s=min(question.limit_s, 0.25)))
        except NoAnswer:
            self.unheard += 1
            raise

    def judged(self, reply, *, usable):
        self._inner.judged(reply, usable=usable)


@pytest.mark.parametrize("fault", [*FAULTS, "down"])
def test_a_broken_model_server_holds_nothing_up(journey, fault):
    """R15: the deterministic word and plan as without a model, nothing stuck, the breaker opens after five at most."""
    from agent.adapters.model.endpoint import parse_endpoint
    from agent.adapters.model.openai_chat import OpenAiChat

    alone = settled(journey(PROBE))
    with servers.Server(servers.answering(FAULTS.get(fault, servers.FAULTS["reset"]))) as server:
        if fault == "down":
            server.__exit__()
        chat = OpenAiChat([parse_endpoint(server.url)], headers=lambda _: {}, first_token_s=0.1, sleep=lambda _: None)
        told = words.given(journey(PROBE), Hasty(chat))
        asked = settled(told)
        assert asked.plan == alone.plan
        told.go(1000, step=50)
        incident = told.incidents()[0]
        assert incident.model_request.state is Explanation.DROPPED
        assert incident.model_request.spent.within(INCIDENT_CAP)
        assert len(server.questions) <= 5
        told.answer(asked.plan.id)
        assert told.until(lambda i: i.ended).phase is Phase.RESOLVED


def test_wrong_twice_is_no_answer(journey):
    """One retry with the error shown, then the rules alone."""
    model = words.Says(lambda _: json.dumps({"verdict": "bad"}))
    told = words.given(journey(PROBE), model)
    settled(told)
    incident = explained(told)
    assert incident.model_request.state is Explanation.DROPPED
    assert len(model.questions) == 2
    assert "your last answer was not used" in model.questions[1].user
    assert model.usable == [False, False]
    assert incident.diagnosis.model_word is None
    assert incident.diagnosis.voice is DiagnosisSource.RULES
    assert incident.plan.risk in set(Risk)
