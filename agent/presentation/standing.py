"""Where an incident stands: its label, one sentence of what happens now, and what has been changed, from its state."""

from datetime import datetime
from enum import StrEnum

from agent.core.change.execution import Change, EffectKind, EffectState, present_change
from agent.core.change.verification import Verdict
from agent.core.diagnosis.diagnosis import DiagnosisSource
from agent.core.incident.incident import Incident
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.plan import Rollout
from agent.core.value import Value
from agent.presentation.changes import changed_so_far
from agent.presentation.freeze_text import approvals_text
from agent.presentation.measured import how_checked
from agent.presentation.request_text import REQUEST_LABELS, REQUEST_SENTENCES


class Tone(StrEnum):
    """How a state is coloured; colour never stands alone, the label is always there."""

    WAITING = "waiting"
    MOVING = "moving"
    GOOD = "good"
    BAD = "bad"
    QUIET = "quiet"


class Standing(Value):
    """Where an incident stands.

    Attributes:
        label: One to three words.
        now: What is being done, or was done last; one or two sentences.
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
_LABELS: dict[Phase, tuple[str, Tone]] = {
    _P.OPEN: ("Detected", Tone.MOVING),
    _P.DIAGNOSED: ("Diagnosed", Tone.MOVING),
    _P.PLANNED: ("Planned", Tone.MOVING),
    _P.ASKED: ("Needs approval", Tone.WAITING),
    _P.APPROVED: ("Approved", Tone.MOVING),
    _P.APPLYING: ("Applying", Tone.MOVING),
    _P.VERIFYING: ("Verifying", Tone.MOVING),
    _P.RESOLVED: ("Resolved", Tone.GOOD),
    _P.ROLLING_BACK: ("Rolling back", Tone.MOVING),
    _P.ROLLED_BACK: ("Rolled back", Tone.BAD),
    _P.REFUSED: ("Refused", Tone.BAD),
    _P.REJECTED: ("Rejected", Tone.QUIET),
    _P.EXPIRED: ("Expired", Tone.BAD),
    _P.SUPERSEDED: ("Withdrawn", Tone.QUIET),
    _P.ESCALATED: ("Escalated", Tone.BAD),
    _P.SELF_RECOVERED: ("Recovered", Tone.GOOD),
    _P.WITHDRAWN: ("Taken back", Tone.QUIET),
    _P.CLOSED: ("Closed", Tone.QUIET),
}
_PERSON_LABELS = {
    _P.ASKED: "Needs a person",
    _P.APPROVED: "Assigned",
    _P.VERIFYING: "Assigned",
    _P.ROLLING_BACK: "No success seen",
    _P.ROLLED_BACK: "No success seen",
}

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
    """Where one step of the way stands."""

    DONE = "done"
    NOW = "now"
    TODO = "todo"


class WayStep(Value):
    """One step of the way from detection to the end."""

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
    """Return where an incident stands; a plan that nobody may answer any more does not wait."""
    phase = presented_phase(incident, now)
    label, tone = _LABELS[phase]
    if _by_person(incident):
        label = _PERSON_LABELS.get(phase, label)
    if incident.request is not None:
        label = REQUEST_LABELS.get(phase, label)
    changed = "" if phase in _SAY_IT_THEMSELVES else changed_so_far(incident)
    return Standing(label=label, tone=tone, now=_now(incident, phase, now), changed=changed)


def presented_phase(incident: Incident, now: datetime) -> Phase:
    """Return the phase that people are shown: a plan whose time is over has expired, whether or not that is stored."""
    return Phase.EXPIRED if _ran_out(incident, now) else incident.phase


def label_of(phase: Phase) -> str:
    """Return the short label of a phase."""
    return _LABELS[phase][0]


def tone_of(phase: Phase) -> Tone:
    """Return the tone of a phase."""
    return _LABELS[phase][1]


def way(incident: Incident) -> tuple[WayStep, ...]:
    """Return the steps of the way, with the one that the incident is at; empty for one that has ended."""
    if incident.ended:
        return ()
    if incident.phase in ENDS:  # another plan is asked for, and not made yet
        return ()
    at = next(n for n, (_, phases) in enumerate(_WAY) if incident.phase in phases)
    states = [StepState.DONE if n < at else StepState.NOW if n == at else StepState.TODO for n in range(len(_WAY))]
    renamed = _PERSON_WAY if _by_person(incident) else _REQUEST_WAY if incident.request is not None else {}
    return tuple(
        WayStep(label=renamed.get(label, label), state=state) for (label, _), state in zip(_WAY, states, strict=True)
    )


def moves(incident: Incident, now: datetime) -> bool:
    """Whether the page changes soon without anybody doing anything; a plan that needs approval does not."""
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


def _ran_out(incident: Incident, now: datetime) -> bool:
    return incident.phase is Phase.ASKED and incident.plan is not None and now >= incident.plan.expires_at


def _now(incident: Incident, phase: Phase, now: datetime) -> str:
    if incident.stuck:
        return f"The agent cannot go on: {incident.stuck}. A person must look at the service."
    own = REQUEST_SENTENCES.get(phase) if incident.request is not None else None
    make = own or _SENTENCES.get(phase)
    return make(incident) if make is not None else _approved(incident, now)


def _open(_: Incident) -> str:
    return "Signals have arrived; the cause is being looked for."


def _diagnosed(incident: Incident) -> str:
    provisional = incident.diagnosis is not None and incident.diagnosis.provisional
    return "The diagnosis is provisional; a plan follows." if provisional else "A plan is being made."


def _planned(_: Incident) -> str:
    return "A plan is ready and is about to be shown."


def _asked(incident: Incident) -> str:
    plan = incident.plan
    if plan is None:
        return "A plan needs an answer."
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
    if incident.due_at is not None and incident.due_at > now:
        return f"The plan waits for its turn until {moment(incident.due_at)}."
    return "The plan is checked once more, then applied."


def _applying(incident: Incident) -> str:
    applied = incident.execution.effect(EffectKind.APPLY) if incident.execution is not None else None
    if applied is None or applied.state is EffectState.INTENDED:
        return "The change is ordered; it may have been made already."
    return f"The change was made; revision {applied.revision} is coming up."


def _verifying(incident: Incident) -> str:
    verification = incident.verification
    if _by_person(incident):
        return _task(incident)
    if verification is None:
        return "The change is applied; whether it helped is about to be measured."
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
    return f"{_who(incident)} has this task. The agent changes nothing and watches for a healthy signal{until}."


def _resolved(incident: Incident) -> str:
    if _by_person(incident):
        return "The service is healthy again while a person had the task. The agent changed nothing."
    return f"The change helped: {how_checked(incident.verification)}. The change stays in place."


def _rolling_back(incident: Incident) -> str:
    if _by_person(incident):
        return "No healthy signal came in time. The agent changed nothing, so there is nothing to put back."
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
    if _by_person(incident):
        return "No healthy signal came in time. The agent changed nothing. What to do next is being decided."
    if present_change(incident.execution) is Change.PUT_BACK:
        return "The state before the change is back. What to do next is being decided."
    return f"{_NEVER_MADE}. What to do next is being decided."


def _refused(_: Incident) -> str:
    return "The plan was approved and then refused at the final check, so it was not applied."


def _rejected(_: Incident) -> str:
    return "The plan was rejected. Whether another plan is left is being checked."


def _expired(incident: Incident) -> str:
    plan = incident.plan
    return f"Nobody answered the plan by {moment(plan.expires_at)}." if plan is not None else "Nobody answered in time."


def _superseded(_: Incident) -> str:
    return "More became known, so the plan was withdrawn before anybody answered."


def _escalated(incident: Incident) -> str:
    if incident.replan is not None:
        return f"{incident.replan.shown} asked for another plan; it is being made."
    return "A person must take over: the agent does nothing more here."


def _closed(incident: Incident) -> str:
    if incident.request is not None:
        return REQUEST_SENTENCES[_P.CLOSED](incident)
    return "A person closed the incident; the agent does nothing more here."


def _self_recovered(_: Incident) -> str:
    return "The service is healthy again; the agent does nothing more here."


_NEVER_MADE = "The change was never made"
_VERDICT_SAYS = {
    Verdict.RECOVERED: "The change helped",
    Verdict.NOT_RECOVERED: "The change did not help",
    Verdict.INCONCLUSIVE: "Whether the change helped could not be measured, which does not count as success",
}
_SENTENCES = {
    _P.OPEN: _open,
    _P.DIAGNOSED: _diagnosed,
    _P.PLANNED: _planned,
    _P.ASKED: _asked,
    _P.APPLYING: _applying,
    _P.VERIFYING: _verifying,
    _P.RESOLVED: _resolved,
    _P.ROLLING_BACK: _rolling_back,
    _P.ROLLED_BACK: _rolled_back,
    _P.REFUSED: _refused,
    _P.REJECTED: _rejected,
    _P.EXPIRED: _expired,
    _P.SUPERSEDED: _superseded,
    _P.ESCALATED: _escalated,
    _P.SELF_RECOVERED: _self_recovered,
    _P.WITHDRAWN: REQUEST_SENTENCES[_P.WITHDRAWN],
    _P.CLOSED: _closed,
}


def _who(incident: Incident) -> str:
    decision, plan = incident.decision, incident.plan
    if decision is None or (plan is not None and decision.plan != plan.id):
        return "Somebody"
    return decision.shown + ("" if decision.verified else " (not verified)")
