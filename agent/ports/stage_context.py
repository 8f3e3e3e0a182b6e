"""What a stage may use: its ports and the rules that were read once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from agent.core.decision.decision import HmacReceiptSigner, ReceiptSigner
from agent.core.decision.policy import Policy
from agent.core.diagnosis.model_request import ModelUse
from agent.core.incident.incident import Incident
from agent.core.incident.step import Step
from agent.core.incident.times import Times
from agent.core.plan.capacity import Capacity
from agent.core.service.services import Services
from agent.core.service.serving import Live
from agent.failures.match.matcher import Matcher
from agent.ports.audit_log import AuditLog
from agent.ports.bus import Bus, Topic
from agent.ports.clock import Clock
from agent.ports.control import ControlStore
from agent.ports.logs import Logs
from agent.ports.model import Model
from agent.ports.notifier import Notifier
from agent.ports.platform import Platform
from agent.ports.request_counts import RequestCountStore
from agent.ports.service_records import ServiceRecords
from agent.ports.store import IncidentStore
from agent.ports.tracing import NoTracer, Tracer


class Owner(StrEnum):
    """The functions that own stages."""

    INTAKE = "on_log_event"
    INCIDENT = "on_incident"
    DECIDE = "decide"
    DECISION = "on_decision"
    TICK = "on_tick"


OWNER_OF: Final[dict[Step, Owner]] = {
    Step.DIAGNOSE: Owner.INCIDENT,
    Step.EXPLAIN: Owner.INCIDENT,
    Step.PLAN: Owner.INCIDENT,
    Step.PLAN_REQUEST: Owner.INCIDENT,
    Step.ASK: Owner.INCIDENT,
    Step.REPLAN: Owner.INCIDENT,
    Step.PLAN_AGAIN: Owner.INCIDENT,
    Step.CLOSE: Owner.INCIDENT,
    Step.EXPIRE: Owner.TICK,
    Step.REMIND: Owner.TICK,
    Step.RENOTIFY: Owner.TICK,
    Step.WATCH: Owner.TICK,
    Step.MEASURE: Owner.TICK,
    Step.CONCLUDE: Owner.TICK,
    Step.WATCH_UNDO: Owner.TICK,
    Step.BEGIN: Owner.DECISION,
    Step.CALL: Owner.DECISION,
    Step.SHIFT: Owner.DECISION,
    Step.UNDO: Owner.DECISION,
}
"""Which function runs which step; said here and nowhere else."""

RECEIVER_OF: Final[dict[Topic, Owner]] = {
    Topic.LOG_EVENTS: Owner.INTAKE,
    Topic.ALERTS: Owner.INTAKE,
    Topic.INCIDENTS: Owner.INCIDENT,
    Topic.DECISIONS: Owner.DECISION,
}
"""Which function receives which topic."""

TOPIC_OF: Final = {owner: topic for topic, owner in RECEIVER_OF.items() if owner in OWNER_OF.values()}
"""By which topic the owner of a step is woken; the tick wakes itself."""


def topic_of(step: Step | None) -> Topic | None:
    """Return the topic that wakes the owner of a step, or None where nobody is to be woken."""
    return TOPIC_OF.get(OWNER_OF[step]) if step is not None else None


class Cards(Protocol):
    """Remembers where an incident's message stands, by notifier, and who may show the incident now.

    Whoever shows it claims that first, from the reference that they read, so that of two workers who tell at once one
    does, and the other goes on from what that one said. Nothing more is promised than that: a worker that died after
    its claim must not silence the incident, so the claim ends, and the dead one may have sent. Then it is said twice,
    and the reference that was kept last is the one that is changed from there on; so it is with clocks further apart
    than a claim is long. Slack has no idempotency key, and could tell us only if we might read the channel
    (conversations.history wants channels:history), which we do not ask.

    Every method raises DependencyFailed where the store does not answer; then nothing was written, or everything.
    """

    def card(self, incident_id: str, notifier: str) -> str | None:
        """Return the reference of the message; None where there is none, or its first one is only claimed."""
        ...

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        """Keep the reference, the last one stands; a claim is over with it."""
        ...

    def claim_card(
        self, incident_id: str, notifier: str, holder: str, *, reference: str | None, now: datetime, for_s: float
    ) -> bool:
        """Take the right to show the incident; renew it where it is the holder's already.

        Args:
            incident_id: Which incident.
            notifier: Through which notifier.
            holder: Who asks.
            reference: Where the message stood when they looked; None for the first one.
            now: The time, UTC.
            for_s: How long nobody else may, seconds.

        Returns:
            False where another reference is kept meanwhile, or another holder's claim still runs.
        """
        ...

    def release_card(self, incident_id: str, notifier: str, holder: str) -> None:
        """Give the right back early; a claim of another holder stays."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What was read once at the start.

    Attributes:
        redact: Takes secrets out of a text.
        model_use: How the model is asked; None where it is not.
        titles: A line for people by signature.
        services: What is watched, with what its owners need.
        printed: Patterns of the figures that a start-up prints, by key of ``PREDICTED_AS`` (core/change/observed.py)
            and ``vllm``; one group each.
    """

    matcher: Matcher
    titles: Mapping[str, str]
    redact: Callable[[str], str]
    policy: Policy
    fits: Capacity
    times: Times
    services: Services
    printed: Mapping[str, str]
    model_use: ModelUse | None = None


@dataclass(frozen=True, kw_only=True)
class StageContext:
    """What a stage may use.

    Attributes:
        owner: Which function we are; a stage runs only in its owner.
        platform_of: The platform of a watched service; None where we have no adapter for it.
        model: None without an endpoint.
        receipt_key: Held by `decide` and `on_decision` only.
        signer: Signs in place of the key, where another service holds it.
        local: Whether this is one machine's own installation, in which its operator's word counts unproven.
        halted: Whether the environment says that nothing may be changed.
        holder: Names this process among all that may hold a lease; another one after every start.
        service_records: What was seen of each service; None where nobody keeps it.
        request_counts: Requests that were counted; None where nobody keeps them.
        audit_log: Tells who changed a service; None where the platform keeps no such log, or we do not read it.
        tracer: Where spans go.
    """

    owner: Owner
    store: IncidentStore
    control: ControlStore | None
    cards: Cards
    bus: Bus
    platform_of: Callable[[str], Platform | None]
    logs: Logs
    notifiers: Mapping[str, Notifier]
    model: Model | None
    clock: Clock
    rules: Rules
    receipt_key: bytes | None = None
    signer: ReceiptSigner | None = None
    local: bool = False
    halted: bool = False
    holder: str = "this process"
    service_records: ServiceRecords | None = None
    request_counts: RequestCountStore | None = None
    audit_log: AuditLog | None = None
    tracer: Tracer = NoTracer()  # noqa: RUF009 - it has no state

    def receipts(self) -> ReceiptSigner:
        """Return what signs and checks receipts, of an owner that may."""
        assert self.signer is not None or self.receipt_key is not None, f"{self.owner} holds no key"
        return self.signer or HmacReceiptSigner(self.receipt_key or b"")

    def control_store(self) -> ControlStore:
        """Return the control store of an owner that has one."""
        assert self.control is not None, f"{self.owner} has no control store"
        return self.control

    def now_for(self, incident: Incident) -> datetime:
        """Return the time for a step of an incident: never before its phase began, whatever a clock says."""
        return max(self.clock.now(), incident.phase_at)

    def require_platform(self, service: str) -> Platform:
        """Return the platform of a service that we change or measure."""
        platform = self.platform_of(service)
        assert platform is not None, f"{service!r} has no platform adapter"
        return platform

    def live(self, service: str) -> Live | None:
        """Describe a service, or None where there is no adapter for its platform."""
        platform = self.platform_of(service)
        return platform.describe(service) if platform is not None else None
