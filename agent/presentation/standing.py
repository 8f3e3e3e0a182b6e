"""An incident's status: a label, a sentence on what happens now, and what the agent has changed."""

from datetime import datetime
from enum import StrEnum

from agent.core.change.execution import Change, EffectKind, EffectState, present_change
from agent.core.change.verification import Verdict
from agent.core.decision.decision import shown_name
from agent.core.diagnosis.diagnosis import DiagnosisSource
from agent.core.incident.command import Command, impossible
from agent.core.incident.incident import Incident
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.plan import Rollout
from agent.core.value import Value
from agent.presentation.changes import changed_so_far
from agent.presentation.freeze_text import approvals_text
from agent.presentation.measured import how_checked
from agent.presentation.phase_words import Tone, phase_words
from agent.presentation.plan_title import plan_title


class Standing(Value):
    """An incident's status, for people.

    Attributes:
        label: One to three words.
        now: What happens now, or happened last; one or two sentences.
        changed: What the agent has changed so far; empty where ``now`` says it already.
    """

    label: str
    tone: Tone
    now: str
    changed: str = ""

    @property
    def says(self) -> str:
        """Both sentences."""
        return " ".join(part for part in (self.now, self.changed) if part)


_P = Phase

SOURCES: dict[DiagnosisSource, str] = {
    DiagnosisSource.RULES: "rules",
    DiagnosisSource.MODEL: "model; no rule recognised it",
    DiagnosisSource.BOTH: "rules and model, which agree",
    DiagnosisSource.DIFFER: "rules; the model differs",
}

ROLLOUTS: dict[Rollout, str] = {
    Rollout.IN_PLACE: "in place: the new revision takes over as soon as it is ready",
    Rollout.STAGED: "staged: a new revision without traffic first, then the traffic",
    Rollout.BY_PERSON: "by a person; the agent only watches",
}


class StepState(StrEnum):
    """Whether a step is over, under way or still to come."""

    DONE = "done"
    NOW = "now"
    TODO = "todo"


class WayStep(Value):
    """One step between the detection of an incident and its end."""

    label: str
    state: StepState


_WAY: tuple[tuple[str, frozenset[Phase]], ...] = (
    ("Detected", frozenset({_P.OPEN})),
    ("Diagnosed", frozenset({_P.DIAGNOSED, _P.PLANNED})),
    ("Asked", frozenset({_P.ASKED, _P.REJECTED, _P.EXPIRED, _P.SUPERSEDED, _P.WITHDRAWN})),
    ("Approved", frozenset({_P.APPROVED, _P.REFUSED})),
    ("Applied", frozenset({_P.APPLYING})),
    ("Verified", frozenset({_P.VERIFYING, _P.ROLLING_BACK, _P.ROLLED_BACK})),
)
_REQUEST_WAY = {"Detected": "Requested", "Diagnosed": "Planned"}
_PERSON_WAY = {"Approved": "Assigned", "Applied": "Done by a person"}


def standing(incident: Incident, now: datetime) -> Standing:
    """Return an incident's status at a time, UTC; a plan that can no longer be answered counts as expired."""
    phase = presented_phase(incident, now)
    words = phase_words(phase, incident)
    changed = "" if phase in _SAY_IT_THEMSELVES else changed_so_far(incident)
    return Standing(label=words.label, tone=words.tone, now=_now(incident, phase, now), changed=changed)


def presented_phase(incident: Incident, now: datetime) -> Phase:
    """Return the phase that people see: EXPIRED once a plan can no longer be answered, even before that is stored."""
    return Phase.EXPIRED if _ran_out(incident, now) else incident.phase


def way(incident: Incident) -> tuple[WayStep, ...]:
    """Return the steps from detection to the end, the current one marked; empty once the incident has ended."""
    if incident.ended:
        return ()
    if incident.phase in ENDS:  # another plan is asked for, and not made yet
        return ()
    at = next(n for n, (_, phases) in enumerate(_WAY) if incident.phase in phases)
    at -= _is_undone_task(incident)
    states = [StepState.DONE if n < at else StepState.NOW if n == at else StepState.TODO for n in range(len(_WAY))]
    renamed = _PERSON_WAY if _by_person(incident) else _REQUEST_WAY if incident.request is not None else {}
    return tuple(
        WayStep(label=renamed.get(label, label), state=state) for (label, _), state in zip(_WAY, states, strict=True)
    )


def task_holder(incident: Incident) -> str:
    """Return who has taken on the present plan's task; empty where nobody has, or the plan is no open task."""
    under_way = incident.phase in {_P.APPROVED, _P.APPLYING, _P.VERIFYING}
    return _who(incident) if _by_person(incident) and under_way else ""


def moves(incident: Incident, now: datetime) -> bool:
    """Return whether the incident goes on without a person, and its page refreshes; not while it needs approval."""
    waits = incident.phase is Phase.ASKED and incident.plan is not None and now < incident.plan.expires_at
    return not incident.ended and not waits


def class_words(class_: str) -> str:
    """Return a failure class, a channel or a platform for people."""
    return class_.replace("_", " ")


def moment(at: datetime) -> str:
    """Return a time for people."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


_SAY_IT_THEMSELVES = frozenset({_P.APPLYING, _P.VERIFYING, _P.ROLLING_BACK, _P.ROLLED_BACK, _P.RESOLVED})


def _by_person(incident: Incident) -> bool:
    return incident.plan is not None and incident.plan.by_person


def _is_undone_task(incident: Incident) -> bool:
    """Whether a person has a task, and neither they nor the service say that it is done."""
    verification = incident.verification
    open_ = incident.phase is Phase.VERIFYING and (verification is None or verification.verdict is None)
    return _by_person(incident) and open_ and incident.task_done is None


def _ran_out(incident: Incident, now: datetime) -> bool:
    return incident.phase is Phase.ASKED and incident.plan is not None and now >= incident.plan.expires_at


def _now(incident: Incident, phase: Phase, now: datetime) -> str:
    """Return what the state says of a phase, else the sentence of the table."""
    if incident.stuck:
        return f"The agent cannot go on: {incident.stuck}. A person must look at the service."
    said = _approved(incident, now) if phase is Phase.APPROVED else _FROM_STATE.get(phase, _nothing)(incident)
    return said or phase_words(phase, incident).now


def _nothing(_: Incident) -> str:
    return ""


def _open(incident: Incident) -> str:
    waits_for = incident.request.waits_for if incident.request is not None else None
    return f"It waits until {waits_for} is over; then its plan is made." if waits_for is not None else ""


def _diagnosed(incident: Incident) -> str:
    provisional = incident.diagnosis is not None and incident.diagnosis.provisional
    return "The diagnosis is provisional; a plan follows." if provisional else ""


def _asked(incident: Incident) -> str:
    plan = incident.plan
    if plan is None:
        return ""
    until = f"until {moment(plan.expires_at)}"
    if plan.by_person:
        return f"This is a task for a person; somebody can take it on {until}."
    if not incident.may_change:
        return f"This is a replay, so its plan can be rejected and not approved, {until}."
    several = approvals_text(incident.approvals)
    if several:
        return f"A plan needs approval {until}. {several}"
    return f"A plan needs your approval {until}."


def _approved(incident: Incident, now: datetime) -> str:
    if _by_person(incident):
        return f"{_who(incident)} took the task on; the agent begins to watch."
    waits = incident.due_at is not None and incident.due_at > now
    return f"The plan waits for its turn until {moment(incident.due_at)}." if waits and incident.due_at else ""


def _applying(incident: Incident) -> str:
    applied = incident.execution.effect(EffectKind.APPLY) if incident.execution is not None else None
    made = applied is not None and applied.state is not EffectState.INTENDED
    return f"The change was made; revision {applied.revision} is coming up." if made and applied else ""


def _verifying(incident: Incident) -> str:
    verification = incident.verification
    if _by_person(incident):
        return _task(incident)
    if verification is None:
        return ""
    staged = incident.plan is not None and incident.plan.rollout is Rollout.STAGED
    if verification.verdict is Verdict.RECOVERED:
        following = "the traffic is being moved to it" if staged else "the incident is being closed"
        return f"The new revision passed its checks; {following}."
    if verification.verdict is not None:
        return f"{_VERDICT_SAYS[verification.verdict]}; it is about to be put back."
    if present_change(incident.execution) is Change.FAILED:
        return "The change was made and its rollout failed; it is about to be put back."
    where = "The new revision runs without traffic" if staged else "The change is applied"
    return f"{where}; whether it works is being measured until {moment(verification.until)}."


def _task(incident: Incident) -> str:
    until = f" until {moment(incident.verification.until)}" if incident.verification is not None else ""
    if incident.task_done is not None:
        said = f"{incident.task_done.shown} says that the task is done"
        return f"{said}; whether the service works is being checked{until}."
    task = plan_title(incident.require_plan()).rstrip(".")
    return f"{_who(incident)} has this task: {task}. The agent changes nothing and watches for a healthy signal{until}."


def _resolved(incident: Incident) -> str:
    if _by_person(incident) and incident.request is None:
        return ""
    helped = "helped" if incident.request is None else "works"
    return f"The change {helped}: {how_checked(incident.verification)}. The change stays in place."


def _rolling_back(incident: Incident) -> str:
    if _by_person(incident):
        return ""
    verdict = incident.verification.verdict if incident.verification is not None else None
    why = _VERDICT_SAYS[verdict] if verdict is not None else "The change did not help"
    if incident.roll_back is not None:
        why = f"{incident.roll_back.by.shown} decided to roll the change back"
    if present_change(incident.execution) is Change.NONE:
        return f"{_NEVER_MADE}, so there is nothing to put back."
    if present_change(incident.execution) is Change.PUT_BACK:
        return f"{why}. The state before it is back."
    return f"{why}; the state before it is being put back."


def _rolled_back(incident: Incident) -> str:
    back = present_change(incident.execution) is Change.PUT_BACK
    if incident.request is not None:
        nothing = f"{_NEVER_MADE}, so there is nothing to put back."
        return "The state before the change is back." if back else nothing
    if _by_person(incident):
        return ""
    stands = "The state before the change is back" if back else _NEVER_MADE
    return f"{stands}. What to do next is being decided."


def _expired(incident: Incident) -> str:
    return f"Nobody answered the plan by {moment(incident.plan.expires_at)}." if incident.plan is not None else ""


def _escalated(incident: Incident) -> str:
    return f"{incident.replan.shown} asked for another plan; it is being made." if incident.replan is not None else ""


_NEVER_MADE = "The change was never made"
_VERDICT_SAYS = {
    Verdict.RECOVERED: "The change helped",
    Verdict.NOT_RECOVERED: "The change did not help",
    Verdict.INCONCLUSIVE: "Whether the change helped could not be measured, which does not count as success",
}
_FROM_STATE = {
    _P.OPEN: _open,
    _P.DIAGNOSED: _diagnosed,
    _P.ASKED: _asked,
    _P.APPLYING: _applying,
    _P.VERIFYING: _verifying,
    _P.RESOLVED: _resolved,
    _P.ROLLING_BACK: _rolling_back,
    _P.ROLLED_BACK: _rolled_back,
    _P.EXPIRED: _expired,
    _P.ESCALATED: _escalated,
}


def _who(incident: Incident) -> str:
    decision, plan = incident.decision, incident.plan
    if decision is None or (plan is not None and decision.plan != plan.id):
        return "Somebody"
    return shown_name(decision.shown, verified=decision.verified)


def responders_text(incident: Incident) -> str:
    """Return who acknowledged the incident, who it is assigned to and who has its task; or when the reminder is due.

    Empty where nobody acted and no reminder is due.
    """
    if incident.renotify_at is not None:
        return f"not acknowledged; reminder at {incident.renotify_at:%H:%M} UTC"
    act = incident.acknowledged
    said = [f"acknowledged by {act.shown} at {act.at:%Y-%m-%d %H:%M} UTC"] if act is not None else []
    said += [f"assigned to {incident.assignee}"] if incident.assignee else []
    said += [f"task taken on by {holder}"] if (holder := task_holder(incident)) else []
    return "; ".join(said)


def owner_text(owner: str) -> str:
    """Return an owner of services.toml for people, such as ``#llm (slack)``."""
    channel, _, place = owner.partition(":")
    return f"{place} ({channel})" if place else channel


def next_step(incident: Incident, plan: str, now: datetime) -> str:
    """Return a sentence on what happens after a plan was answered or expired.

    Args:
        incident: The incident as it is now.
        plan: The plan's id, which may be an earlier one than the incident's present plan.
        now: The time, UTC.
    """
    present = incident.plan
    if incident.ended:
        unless = " unless somebody asks for one" if impossible(incident, Command.REPLAN) is None else ""
        return f"{standing(incident, now).says} {_ended_why(incident)}".rstrip() + f" No further plan comes{unless}."
    if present is not None and present.id != plan:
        asked = incident.phase is Phase.ASKED and now < present.expires_at
        newer = f"Plan {present.id} has taken its place"
        return f"{newer} and needs an answer." if asked else f"{newer}. {standing(incident, now).says}"
    return standing(incident, now).says


def _ended_why(incident: Incident) -> str:
    why = incident.ended_why.rstrip(".")
    return f"Reason: {why}." if why else ""
