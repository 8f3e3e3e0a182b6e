"""What a webhook event holds: the forms that are sent, and that docs/webhook-events.schema.json is made from."""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from agent.core.decision.decision import Channel, Choice
from agent.core.incident.impact import Severity
from agent.core.incident.phase import Phase
from agent.core.plan.action import Difference
from agent.core.plan.plan import Risk
from agent.core.plan.proof import Proof
from agent.core.value import Moment, Value
from agent.presentation.event_types import EVENT_TYPES

TEST: Final = "notification.test"


class MemoryFigures(Value):
    """The memory of one configuration, bytes per device; null is what the arithmetic could not say.

    Attributes:
        total_bytes: What the device has.
        required_bytes: What the configuration needs at its highest.
        weights_bytes: Of it the weights.
        kv_cache_bytes: Of it the KV cache.
        shortfall_bytes: What is missing; 0 where it fits.
    """

    total_bytes: int | float | None
    required_bytes: int | float | None
    weights_bytes: int | float | None
    kv_cache_bytes: int | float | None
    shortfall_bytes: int | float | None


class CurrentApprovals(Value):
    """How far a plan that needs approval has come.

    Attributes:
        needed: How many people must approve.
        given: Who approved so far, by name.
        frozen_by: The freeze windows in which it cannot be approved.
    """

    needed: int
    given: tuple[str, ...]
    frozen_by: tuple[str, ...]


class Current(Value):
    """How the incident stands while the event is sent, which may be later than the event.

    Attributes:
        cause: The failure class.
        plan: The plan of now.
        approvals: While a plan is asked about.
        title: What is wrong, in a sentence for a lock screen.
        impact: What still serves.
        evidence: The key log line, without secrets; text of a server, so data and nothing else.
        owner: From services.toml, such as ``slack:#llm``; empty where it names nobody.
        routing_key: ``routing_key`` of services.toml, by which a receiver routes; null where it has none.
        url: The incident in the console.
    """

    phase: Phase
    cause: str
    root_cause: str | None
    plan: str | None
    plan_digest: str | None
    approvals: CurrentApprovals | None
    title: str
    severity: Severity
    impact: str
    evidence: str | None
    owner: str
    routing_key: str | None
    url: str


class EventData(Value):
    """What every event about an incident or a request has.

    Attributes:
        incident: Its id; of a request one that begins with ``rq-``.
        run: ``live``, or the id of a replay.
        phase: After this step.
        what: The step in a sentence.
        by: ``agent``, ``policy``, or who did it.
        cause: The failure class as it was known then.
        plan: The plan of then, with ``plan_digest``.
    """

    incident: str
    service: str
    run: str
    phase: Phase
    what: str
    by: str
    cause: str | None
    plan: str | None
    plan_digest: str | None
    current: Current


class PlanEventData(EventData):
    """What an event about a plan has too: the plan as it was made; absent where it is not at hand any more.

    Attributes:
        why: Why this change and no other.
        difference: Every setting that would change.
        takes_away: What it takes away from what runs now, in one line.
        memory_before: Null where nothing was computed.
        memory_after: Null where nothing was computed.
        fits: Whether its memory suffices by the arithmetic; null where that cannot tell.
        proof: How it is known that the memory suffices.
        cost_before_usd_per_h: Null where the price is unknown.
        cost_after_usd_per_h: Null where the price is unknown.
        undo: How it is undone.
        expires_at: Until when it can be answered.
    """

    why: str = ""
    difference: tuple[Difference, ...] = ()
    takes_away: str = ""
    memory_before: MemoryFigures | None = None
    memory_after: MemoryFigures | None = None
    fits: bool | None = None
    proof: Proof = Proof.NONE
    cost_before_usd_per_h: float | None = None
    cost_after_usd_per_h: float | None = None
    risk: Risk = Risk.HIGH
    undo: str = ""
    expires_at: Moment | None = None


class DecisionSaid(Value):
    """An answer to a plan; ``channel`` is absent where it is not known any more."""

    answer: Choice
    who: str
    channel: Channel | None = None


class DecidedEventData(PlanEventData):
    """What ``plan.decided`` has too."""

    decision: DecisionSaid


class RequestSaid(Value):
    """A change that somebody asked for.

    Attributes:
        verified: Whether the channel proved who asked.
        why: In the asker's words.
        kinds: Of its actions.
        supersedes: The requests whose place it took.
        waits_for: What it waits for; null where for nothing.
    """

    asker: str
    verified: bool
    channel: Channel
    why: str
    kinds: tuple[str, ...]
    supersedes: tuple[str, ...]
    waits_for: str | None


class RequestEventData(EventData):
    """What an event about a request has too."""

    request: RequestSaid


class TestMessage(Value):
    """What the event of ``sre-agent notify test`` has."""

    what: str


Data = TypeVar("Data", bound=Value)


class WebhookEvent(Value, Generic[Data]):
    """An event as it is sent; ``type`` says which form ``data`` has."""

    type: str
    timestamp: Moment
    data: Data


def data_form(kind: str) -> type[EventData]:
    """Return the form of an event's data by the event's type; every type but that of the test."""
    if kind == "plan.decided":
        return DecidedEventData
    if kind.startswith("plan."):
        return PlanEventData
    return RequestEventData if kind.startswith("request.") else EventData


def memory_figures(report: Mapping[str, object] | None) -> MemoryFigures | None:
    """Return the figures of one configuration; None where they were not computed."""
    if not report:
        return None
    known = {name: value for name in MemoryFigures.model_fields if isinstance(value := report.get(name), int | float)}
    return MemoryFigures.model_validate(dict.fromkeys(MemoryFigures.model_fields) | known)


FORMS: Final[dict[str, type[Value]]] = {kind: data_form(kind) for kind in sorted(EVENT_TYPES)} | {TEST: TestMessage}
"""The form of ``data`` by type, of every event that is sent."""
