"""A model, or rules and model together, as a classifier of recorded logs: accuracy figures outside any incident."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from agent.app.catalogues import matcher, titles
from agent.app.models import model_of, model_use
from agent.app.redaction import redact
from agent.core.diagnosis.diagnosing import LogText, diagnose, story
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.diagnosis.evidence_pack import Line, ModelInput
from agent.core.diagnosis.model_request import ROUND_CAP, ModelUse, Spend, When, start_request
from agent.core.diagnosis.rules_and_model import combine
from agent.errors import DependencyFailed
from agent.failures.finding import EvidenceLine, Finding
from agent.failures.signature import FailureClass
from agent.ports.model import Model
from agent.settings import read_settings

if TYPE_CHECKING:
    from agent.stages.conversation import ModelReply

_START = datetime(2026, 1, 1, tzinfo=UTC)  # recorded text has an order, and times of its own that do not matter here


class Log(Protocol):
    """A recorded log to classify."""

    @property
    def log(self) -> str:
        """The text, out of its envelope."""
        ...

    @property
    def platform(self) -> str | None:
        """Where it ran, if known."""
        ...

    @property
    def whole_log(self) -> bool:
        """Whether it is an instance's own log from its start."""
        ...


class ModelClassifier:
    """Classifies by the model's word alone (``model``), or as incidents are diagnosed (``both``)."""

    def __init__(self, which: str, model: Model, use: ModelUse) -> None:
        self._which = which
        self._model = model
        self._use = use
        self._asked = self._usable = self._misbehaved = 0
        self._spent = Spend()

    def __call__(self, record: Log) -> Finding:
        """Classify one record; where the model brings nothing: the rules' word (``both``), ``unknown`` (``model``)."""
        lines = tuple((_START + timedelta(seconds=n), text) for n, text in enumerate(redact(record.log).splitlines()))
        log = LogText(lines=lines, complete=record.whole_log)
        platform = record.platform or "unknown"
        alone = matcher().classify(record.log, whole_log=record.whole_log, platform=record.platform)
        rules = diagnose((), log, platform=platform, matcher=matcher(), titles=titles(), now=_START)
        rules = rules.with_(certain=alone.certain and rules.class_ == alone.class_)
        story_lines = tuple(Line(ref=t.ref, text=t.line) for t in story((), log))
        reply = self._ask(ModelInput(rules=rules, story=story_lines), platform)
        if self._which == "model":
            return _finding(_alone(rules, reply))
        held = start_request(None, rules, when=When.ALWAYS, wake=When.ALWAYS, plan_from=_START, now=_START)
        said = held.answered(reply.word, reply.lines) if held is not None and reply.word is not None else None
        joined = combine(rules, said, self._use.fixes)
        stands = alone.certain or alone.benign or joined.class_ in {alone.class_, "unknown"}
        return alone if stands else _finding(joined)

    def figures(self) -> dict[str, object]:
        """Return what the model cost, and how often its answer could not be used."""
        asked = max(1, self._asked)
        return {
            "records": self._asked,
            "usable": self._usable,
            "schema_failures": self._misbehaved,
            "calls": self._spent.calls,
            "tokens": self._spent.tokens,
            "seconds": round(self._spent.seconds, 1),
            "tokens_per_record": round(self._spent.tokens / asked),
            "seconds_per_record": round(self._spent.seconds / asked, 2),
            "prompt": self._use.prompt.label,
        }

    def _ask(self, case: ModelInput, platform: str) -> "ModelReply":
        from agent.stages.conversation import Conversation, Subject

        talk = Conversation(self._model, self._use, matcher=matcher(), redact=redact)
        reply = talk.about(Subject(case=case, platform=platform, patient="", may_wake=True, cap=ROUND_CAP))
        self._asked += 1
        self._usable += reply.word is not None
        self._misbehaved += reply.misbehaved
        self._spent = self._spent.plus(reply.spent)
        return reply


def model_classifier(which: str) -> ModelClassifier:
    """Return a classifier with the model of the settings.

    Raises:
        DependencyFailed: No endpoint is configured.
        SettingsRejected: The settings are wrong.
    """
    settings = read_settings()
    model = model_of(settings)
    if model is None:
        raise DependencyFailed(
            f"the corpus was not scored with {which!r}",
            why="no model endpoint configured",
            hint="set MODEL_ENDPOINTS (a base URL, or recorded:FILE), or use --with rules",
        )
    return ModelClassifier(which, model, model_use(settings))


def _alone(rules: Diagnosis, reply: "ModelReply") -> Diagnosis:
    """The model's word as if there were no rules."""
    unsaid = rules.with_(
        class_="unknown", signature=None, certain=False, confidence=0.1, fields={}, fix_actions=(), evidence=()
    )
    if reply.word is None or reply.word.class_ == "unknown":
        return unsaid
    return unsaid.with_(class_=reply.word.class_, confidence=0.5, evidence=reply.lines)


def _finding(diagnosis: Diagnosis) -> Finding:
    class_ = FailureClass(diagnosis.class_)
    return Finding(
        class_=class_,
        signature=diagnosis.signature,
        confidence=diagnosis.confidence,
        certain=diagnosis.certain,
        benign=class_ is FailureClass.BENIGN,
        fields=diagnosis.fields,
        evidence=tuple(EvidenceLine(index=n, text=e.line) for n, e in enumerate(diagnosis.evidence)),
        fix_actions=diagnosis.fix_actions,
    )
