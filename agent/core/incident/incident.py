"""An incident is a trouble that we work on, or a change that a person asked for, and the rules of its life."""

from datetime import datetime
from typing import Any, TypeVar

from pydantic import AwareDatetime

from agent.core.change.execution import Effect, EffectKind, Execution
from agent.core.change.request import CHANGE_REQUESTED, REQUEST_PREFIX, ChangeRequest
from agent.core.change.verification import Verification
from agent.core.decision.approvals import Approvals
from agent.core.decision.decision import Decision, PersonAct
from agent.core.decision.roll_back import RollBackDecision
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.diagnosis.model_request import ModelRequest
from agent.core.incident.phase import ENDS, NEXT, NEXT_OF_REQUEST, EventKind, Phase
from agent.core.intake.signal import LIVE
from agent.core.plan.plan import Plan
from agent.core.plan.printed_memory import Printed
from agent.core.service.serving import Serves, ServingConfig
from agent.core.value import Value, short_id

_T = TypeVar("_T")

KEPT_SIGNALS = 64  # joined signals named on the incident itself; the rest stand in sub-documents


class CorrelatedSignal(Value):
    """A signal that belongs to the incident, and why.

    Attributes:
        line: The line that was recognised in it, or its first; untrusted text.
        reason: Such as ``consequence of s12: exit after exception``.
    """

    signal: str
    at: AwareDatetime
    class_: str
    signature: str | None = None
    revision: str | None = None
    line: str
    reason: str


INVALID = "INVALID"  # the platform refused the change before it was made
TAKEN_BACK = "TAKEN_BACK"  # a person decided to roll it back, whatever was measured


class Remedy(Value):
    """A remedy that was tried for a cause, and how it ended.

    Attributes:
        ended: A phase, a verdict, INVALID or TAKEN_BACK.
        applied: Whether the agent changed the service for it; None in remedies from before this was kept.
        restored: Whether the state before it was put back and compared; None where nothing was applied.
    """

    proposal: str
    cause: str
    ended: str
    at: AwareDatetime
    incident: str
    applied: bool | None = None
    restored: bool | None = None


class Event(Value):
    """One line of the timeline, append-only; it stays true when the incident has moved on.

    Attributes:
        cause: The failure class as it was known then; empty in lines that were written before this was kept.
        plan: The plan that the incident had then, with ``plan_digest``; None where it had none, or was not kept.
        by_person: Whether that plan was a task for a person; None where there was no plan, or it was not kept.
        kind: What happened, where the phase does not say it.
    """

    at: AwareDatetime
    phase: Phase
    what: str
    by: str = "agent"
    cause: str = ""
    plan: str | None = None
    plan_digest: str | None = None
    by_person: bool | None = None
    kind: EventKind | None = None


class Incident(Value):
    """One trouble of one service, or one change of it that a person asked for.

    Attributes:
        version: Counts the stored states; a writer names the one it read.
        revision: The revision in trouble that we did not make; None until a signal names one.
        episode: The first trouble of a revision is 1, a recurrence the next.
        quiet_since: When the last signal that mattered came, UTC.
        model_request: How far the model's word about the diagnosis has come; None where none is wanted.
        received: How often something new was received; ``diagnosed_count`` is how much of it the diagnosis rests on.
        due_at: When time alone will make something due; None when only a signal or a person can.
        logged_config: The configuration that the server's own log tells, for platforms that nobody describes to us.
        printed: What the engine printed about its memory at the start that failed; None where it printed nothing of it.
        linked_to: The incident this one follows (recurrence, or the revision before).
        live_replay: Whether a replay may change services (``--live``); meaningless for the live run.
        notify: Whether people are told.
        request: The change that a person asked for; None of a trouble. Its life is that of a request.
        approvals: How its present plan is asked about; None where it was asked about by an earlier version, or not yet.
        serves: What answered requests when the service was described last; None where nobody could describe it.
        acknowledged: Who saw it first and said so.
        assignee: Who takes care of it, as people call them; empty where nobody was named.
        comments: How many a person wrote; they stand in the timeline.
        task_done: Who says that the present plan, a person's task, is done.
        replan: Who asks for another plan than those that were tried; None once it is made, or none is left.
        replanned: Who asked for another plan last; from then on policy approves nothing of this incident by itself.
        roll_back: The signed decision of a person to put the present plan's change back.
        closed: Who closed it; None where nobody did.
        stuck: Why the agent cannot go on with it as things are, told to people once; empty where it can.
        renotify_at: When people are told again, if nobody reacts until then; None where nobody is to be told.
        renotified: How often they were told again since its phase began.
        traceparent: The span in which it was opened, as W3C Trace Context says it; empty where nothing was traced.
    """

    id: str
    version: int = 0
    run: str = LIVE
    service: str
    platform: str
    revision: str | None = None
    episode: int = 1
    phase: Phase = Phase.OPEN
    opened_at: AwareDatetime
    phase_at: AwareDatetime
    quiet_since: AwareDatetime
    due_at: AwareDatetime | None = None
    signal_count: int = 0
    received: int = 0
    diagnosed_count: int = 0
    correlated: tuple[CorrelatedSignal, ...] = ()
    alerts_open: tuple[str, ...] = ()
    healthy_at: AwareDatetime | None = None
    diagnosis: Diagnosis | None = None
    model_request: ModelRequest | None = None
    plan: Plan | None = None
    plans_made: int = 0
    decision: Decision | None = None
    execution: Execution | None = None
    verification: Verification | None = None
    remedies: tuple[Remedy, ...] = ()
    logged_config: ServingConfig | None = None
    printed: Printed | None = None
    linked_to: str | None = None
    ended_why: str = ""
    live_replay: bool = False
    notify: bool = True
    started_by: str | None = None
    request: ChangeRequest | None = None
    approvals: Approvals | None = None
    serves: Serves | None = None
    acknowledged: PersonAct | None = None
    assignee: str = ""
    comments: int = 0
    task_done: PersonAct | None = None
    replan: PersonAct | None = None
    replanned: PersonAct | None = None
    roll_back: RollBackDecision | None = None
    closed: PersonAct | None = None
    stuck: str = ""
    renotify_at: AwareDatetime | None = None
    renotified: int = 0
    traceparent: str = ""

    def move(self, phase: Phase, *, now: datetime, **changes: Any) -> "Incident":
        """Return the incident in its next phase.

        Raises:
            AssertionError: The table has no such edge; a bug, never a matter of input.
        """
        table = NEXT if self.request is None else NEXT_OF_REQUEST
        assert phase in table.get(self.phase, ()), f"no edge {self.phase} -> {phase}"
        entered = {"phase": phase, "phase_at": max(now, self.phase_at), "renotify_at": None, "renotified": 0}
        return self.with_(**entered | {"stuck": "", "replan": None} | changes)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it, unless a person asks for more."""
        return self.phase in ENDS and self.replan is None

    @property
    def wakes_at(self) -> datetime | None:
        """When time alone brings something on: a step while it is open, or people are told again of what waits."""
        due = None if self.ended else self.due_at
        return min((at for at in (due, self.renotify_at) if at is not None), default=None)

    @property
    def may_change(self) -> bool:
        """Whether this run may change a service at all."""
        return self.run == LIVE or self.live_replay

    @property
    def cause(self) -> str:
        """The failure class it is about; of a request, that a change was asked for."""
        if self.request is not None:
            return CHANGE_REQUESTED
        return self.diagnosis.class_ if self.diagnosis else "unknown"

    @property
    def answer_due_at(self) -> datetime | None:
        """When time alone makes something due while its plan needs an answer: a reminder, a question, its expiry."""
        if self.plan is None:
            return None
        due = self.plan.expires_at if self.model_request is None else self.model_request.wake_at(self.plan.expires_at)
        reminder = self.approvals.next_escalation if self.approvals is not None else None
        return due if reminder is None else min(due, reminder.at)

    def effect(self, kind: EffectKind) -> Effect | None:
        """Return the effect of that kind, or None where it was never intended."""
        return self.execution.effect(kind) if self.execution is not None else None

    def require_effect(self, kind: EffectKind) -> Effect:
        """Return the effect of that kind, in a step that follows it."""
        return self._require(self.effect(kind), f"effect {kind}")

    def with_effect(self, kind: EffectKind, **changes: Any) -> "Incident":
        """Return the incident with changes to the effect of that kind, in a step that follows it."""
        changed = self.require_effect(kind).with_(**changes)
        return self.with_(execution=self.require_execution().with_effect(changed))

    def require_request(self) -> ChangeRequest:
        """Return the request, of an incident whose id begins with ``rq-``."""
        return self._require(self.request, "request")

    def require_model_request(self) -> ModelRequest:
        """Return what the model is asked, where that is due."""
        return self._require(self.model_request, "model request")

    def require_diagnosis(self) -> Diagnosis:
        """Return the diagnosis, from DIAGNOSED on."""
        return self._require(self.diagnosis, "diagnosis")

    def require_plan(self) -> Plan:
        """Return the plan, from PLANNED on."""
        return self._require(self.plan, "plan")

    def require_decision(self) -> Decision:
        """Return the decision, from APPROVED on."""
        return self._require(self.decision, "decision")

    def require_execution(self) -> Execution:
        """Return the execution, from APPLYING on."""
        return self._require(self.execution, "execution")

    def require_verification(self) -> Verification:
        """Return the verification, from VERIFYING on."""
        return self._require(self.verification, "verification")

    def _require(self, value: _T | None, what: str) -> _T:
        """What a phase promises is there, or a bug put the incident into it."""
        assert value is not None, f"incident {self.id!r} is {self.phase} and has no {what}"
        return value


def incident_id(run: str, service: str, revision: str | None, episode: int) -> str:
    """Return the id: derived, so that two workers who open one incident open the same."""
    return short_id("inc", {"run": run, "service": service, "revision": revision or "", "episode": episode})


def plan_id(incident: str, ordinal: int) -> str:
    """Return the id of an incident's nth plan; a new plan has a new id."""
    if incident.startswith(REQUEST_PREFIX):
        return f"p-{incident}-{ordinal}"
    return f"{incident.replace('inc-', 'p-', 1)}-{ordinal}"
