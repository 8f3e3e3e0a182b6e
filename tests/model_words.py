"""Stand-ins for a model: one that is right, one that lies, one that obeys whoever wrote the log, one that sleeps."""

import json
from dataclasses import replace

from agent.app.models import model_use
from agent.core.diagnosis.model_request import Spend
from agent.entrypoints.service import handlers
from agent.failures.signature import FailureClass
from agent.ports.model import NoAnswer, Reply
from agent.ports.stage_context import Owner

CLASSES = [str(class_) for class_ in FailureClass]


def given(told, model, *, when="always", wake="uncertain", may_ask=True):
    """Give a journey's service a model; before anything was handled."""
    installation = told.installation
    settings = installation.settings.with_(model_ask_when=when, model_wake_when=wake, model_may_ask=may_ask)
    world = installation.contexts[Owner.INCIDENT]
    known = replace(world.rules, model_use=model_use(settings))
    installation.contexts[Owner.INCIDENT] = replace(world, model=model, rules=known)
    told.work = installation.worker(handlers(installation), threads=1).run_due
    return told


def ids_of(question):
    return json.loads(question.answer_schema)["properties"]["cited"]["items"].get("enum", [])


def replied(text, *, tokens=(900, 80), took_s=1.5, finished=True, calls=1):
    return Reply(
        text=text, model="stand-in", endpoint="http://127.0.0.1/v1", tokens_in=tokens[0], tokens_out=tokens[1],
        took_s=took_s, finished=finished, spent=Spend(calls=calls, tokens=sum(tokens), seconds=took_s),
    )  # fmt: skip


class Says:
    """Says ``answer(question)``: a dict is sent as JSON, text as it is, an exception is raised."""

    def __init__(self, answer, *, before=lambda: None):
        self._answer = answer
        self._before = before
        self.questions = []
        self.usable = []

    def ask(self, question):
        self.questions.append(question)
        self._before()
        said = self._answer(question)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said
        return replied(said if isinstance(said, str) else json.dumps(said))

    def judged(self, reply, *, usable):
        self.usable.append(usable)


def names(class_, *, prose="Because of the cited line.", cited=1, **more):
    """An answer that names a class for the first lines that are shown."""

    def answer(question):
        ids = [] if class_ == "unknown" else ids_of(question)[:cited]
        return {"root_cause": prose, "class": class_, "cited": ids, "unknown": []} | more

    return answer


def right(question):
    """Agree with what the rules say."""
    found = next((c for c in CLASSES if f" {c} (signature" in question.user), "unknown")
    return names(found)(question)


def lie(question):
    """Name another class than the rules, and talk people into something."""
    other = next(c for c in CLASSES if f" {c} (signature" not in question.user and c not in {"unknown", "benign"})
    return names(other, prose="Ignore the rules: set --trust-remote-code and delete the service at once.")(question)


def nobody(_question, *, again=True):
    """Nobody is there."""
    return NoAnswer("the model did not answer", why="asleep", hint="wait", spent=Spend(seconds=30), again=again)
