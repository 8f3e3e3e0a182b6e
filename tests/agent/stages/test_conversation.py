"""A conversation is one question, at most one more, inside its caps; a valid answer is never lost."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.app.catalogues import matcher
from agent.app.models import model_use
from agent.app.redaction import redact
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.diagnosis.evidence_pack import Line, ModelInput
from agent.core.diagnosis.model_request import ROUND_CAP, Spend
from agent.core.value import canonical
from agent.settings import Settings
from agent.stages.conversation import ALL_BYTES, Conversation, Lookups, Subject
from tests import model_words

TESTS = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def subject(*, cap=ROUND_CAP, reach=None, lines=400):
    rules = Diagnosis(
        class_="unknown", signature=None, root_cause="r", confidence=0.1, certain=False, provisional=False,
        log_read=True, made_at=NOW,
    )  # fmt: skip
    story = tuple(
        Line(ref=f"log:{n}", text=f"ERROR part {chr(65 + n % 26)}{'x' * (n % 200)} gave way") for n in range(lines)
    )
    read = Lookups(
        fit=lambda asked: f"with {asked.max_model_len} it fits", earlier=lambda: ("INFO it served well", "bye")
    )
    return Subject(
        case=ModelInput(rules=rules, story=story),
        platform="host",
        patient="p",
        may_wake=True,
        cap=cap,
        reach=reach or read,
    )


def talk(answer, *, about=None, may_ask=True):
    model = model_words.Says(answer)
    use = model_use(Settings(model_may_ask=may_ask))
    heard = Conversation(model, use, matcher=matcher(), redact=redact).about(about or subject())
    return heard, model


def in_turn(*answers):
    left = list(answers)
    return lambda question: left.pop(0)(question)  # noqa: PLW0108 - each question takes the next


def test_one_usable_answer_is_one_question():
    """Cited lines become evidence, the cost is told."""
    heard, model = talk(model_words.names("host_oom", cited=2))
    assert heard.word.class_ == "host_oom"
    assert [line.signal for line in heard.lines] == list(heard.word.cited)
    assert heard.spent == Spend(calls=1, tokens=980, seconds=1.5)
    assert model.usable == [True]


@pytest.mark.parametrize(
    ("wish", "shown"),
    [
        ({"want": "fit", "max_model_len": 4096}, "fit with max_model_len 4096: with 4096 it fits"),
        ({"want": "earlier_log"}, "INFO it served well"),
        ({"want": "lines_around", "id": "e1"}, "lines of the log"),
    ],
)
def test_what_is_asked_for_is_shown_once(wish, shown):
    """The second question holds it, and may not ask again."""
    heard, model = talk(in_turn(model_words.names("unknown", more=[wish]), model_words.names("host_oom")))
    assert heard.word.class_ == "host_oom"
    assert len(model.questions) == 2
    assert shown in model.questions[1].user
    assert "more" not in json.loads(model.questions[1].answer_schema)["properties"]


def test_asking_can_be_switched_off():
    """Then an answer that asks is none, and the schema does not offer it."""
    heard, model = talk(model_words.names("host_oom", more=[{"want": "earlier_log"}]), may_ask=False)
    assert heard.word is None
    assert heard.misbehaved == 2
    assert "more" not in json.loads(model.questions[0].answer_schema)["properties"]


@pytest.mark.parametrize("second", [lambda _: "{", model_words.nobody], ids=["garbage", "nobody"])
def test_a_valid_answer_is_not_lost_for_a_bad_second(second):
    """The first answer stands."""
    first = model_words.names("host_oom", more=[{"want": "earlier_log"}])
    heard, _ = talk(in_turn(first, second))
    assert heard.word.class_ == "host_oom"
    assert heard.spent.calls >= 1


def test_a_wrong_answer_gets_one_retry_with_its_error_inside_the_fence():
    """What was wrong is told as data, then the good answer counts."""
    heard, model = talk(in_turn(lambda _: "Sure!", model_words.names("host_oom")))
    assert heard.word.class_ == "host_oom"
    assert (len(model.questions), heard.misbehaved) == (2, 1)
    assert "your last answer was not used" in model.questions[1].user.partition("<<<EVIDENCE")[2]


def test_both_questions_together_stay_below_the_promised_bytes():
    """P8: whatever the log, what is sent for an incident is bounded."""
    for lines in (0, 1, 5, 400):
        _, model = talk(lambda _: "no", about=subject(lines=lines))
        sent = sum(len(canonical([q.system, q.user])) + len(q.answer_schema) + 400 for q in model.questions)
        assert sent <= ALL_BYTES
        assert len(model.questions) == 2


def test_no_second_question_on_credit():
    """Calls, seconds or tokens that are used up end it after the first."""
    for cap in (Spend(calls=1, tokens=8000, seconds=60), Spend(calls=3, tokens=8000, seconds=2)):
        heard, model = talk(lambda _: "no", about=subject(cap=cap))
        assert len(model.questions) == 1
        assert heard.word is None
    _, model = talk(lambda _: "no", about=subject(cap=Spend(calls=3, tokens=5000, seconds=60)))
    assert [q.limit_tokens for q in model.questions] == [5000, 4020]


def test_secrets_do_not_reach_the_model_and_do_not_come_back():
    """Neither through the log, nor through a fact, nor through prose that the model makes up."""
    token = "hf" + "_" + "aBcDeFgHiJkLmNoPqRsT" + "uVwXyZaBcDeFgH"
    case = ModelInput(
        rules=subject().case.rules,
        story=(Line(ref="log:1", text=f"ERROR token {token} was refused"),),
        facts=(("configuration now", f"vllm serve --hf-token {token}"),),
    )
    about = Subject(case=case, platform="host", patient="p", may_wake=True, cap=ROUND_CAP)
    heard, model = talk(model_words.names("host_oom", prose=f"The token {token} is wrong."), about=about)
    assert all(token not in text for q in model.questions for text in (q.user, q.system, *q.shorter))
    assert token not in heard.word.root_cause
