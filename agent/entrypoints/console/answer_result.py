"""What came of an answer, for the person who gave it: taken, too late, somebody was faster, or the wrong person."""

from datetime import datetime

from agent.core.decision.decision import Choice, Decision
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.value import Value
from agent.errors import DependencyFailed, InputRejected, NotFound, PolicyRefused, SreError, StateConflict
from agent.ports.decide import NoResponse
from agent.presentation.changes import changed_so_far
from agent.presentation.phase_words import Tone
from agent.presentation.plan_end import PlanEnd, ended_says, outcome, plan_end
from agent.presentation.standing import moment, next_step, standing
from agent.stages.plan_to_decision import DecisionRequest

NOTHING_FOLLOWED = "Your answer was not taken, and nothing follows from it."
_ANSWERED = frozenset({Phase.APPROVED, Phase.REJECTED})
_BEFORE_A_VERDICT = frozenset({Phase.APPROVED, Phase.APPLYING, Phase.VERIFYING})


class Result(Value):
    """One page after an answer.

    Attributes:
        status: The HTTP status.
        moving: Whether something happens now that is worth watching.
    """

    status: int
    label: str
    title: str
    says: str
    hint: str = ""
    tone: Tone
    moving: bool = False


def taken(plan: Plan, end: PlanEnd | None, incident: Incident, now: datetime) -> Result | None:
    """Return the page of an answer that was recorded, or None where nobody answered the plan.

    Args:
        plan: The plan that was answered.
        end: How the asking ended.
        incident: The incident as it is now, which may be much later than the answer.
        now: The time, UTC.
    """
    if end is None or end.phase not in _ANSWERED:
        return None
    follows = next_step(incident, plan.id, now)
    moving = not incident.ended
    if end.phase is Phase.REJECTED:
        why = f"Reason given: {end.why}" if end.why else ""
        says = f"{ended_says(end.with_(why=''))} This remedy is not offered again. {follows}"
        return Result(
            status=200, label="Rejected", title="Rejected", says=says, hint=why, tone=Tone.QUIET, moving=moving
        )
    title = "Assigned to you" if plan.by_person else "Approved"
    says = f"{ended_says(end, outcome(plan, incident))} {follows}"
    undone = not plan.by_person and incident.phase in _BEFORE_A_VERDICT and _carries_out(plan, incident)
    hint = "If it does not help, the state before it is put back; the approval covers that." if undone else ""
    return Result(status=200, label="Approved", title=title, says=says, hint=hint, tone=Tone.GOOD, moving=moving)


def _carries_out(plan: Plan, incident: Incident) -> bool:
    return incident.plan is not None and incident.plan.id == plan.id


def failed(  # noqa: PLR0911 - one page for each thing that stands in the way
    error: SreError,
    decision_request: DecisionRequest,
    plan: Plan,
    *,
    incident: Incident,
    timeline: tuple[Event, ...],
    now: datetime,
    barred: bool,
) -> Result:
    """Return the page of an answer that was not recorded, named by what stands in its way.

    Args:
        error: Why the stage did not take it.
        decision_request: What was said.
        plan: The plan that it was about.
        incident: The incident as it is after the attempt.
        timeline: Its timeline after the attempt.
        now: The time, UTC.
        barred: Whether it is the person whose word does not count.
    """
    end = plan_end(plan, incident, timeline)
    if end is not None and _theirs(
        decision_request, incident.decision
    ):  # its answer was lost, or the button pressed twice
        return taken(plan, end, incident, now) or not_recorded(error)
    if isinstance(error, DependencyFailed):
        return not_recorded(error)
    if end is not None:
        faster = end.phase in _ANSWERED
        return _faster(end, decision_request.answer, incident, now) if faster else not_taken(plan, end, incident, now)
    if now >= plan.expires_at:
        return _expired(plan, incident, now)
    if incident.plan is not None and incident.plan.id != plan.id:
        return _changed(f"Plan {incident.plan.ordinal} has taken the place of plan {plan.ordinal}.")
    if isinstance(error, InputRejected | PolicyRefused):
        why, hint = (f"{words[:1].upper()}{words[1:]}." for words in (error.why, error.hint))
        if barred:
            return wrong_person(why, hint=hint)
        return _refused("Not taken", "Your answer was not taken", why, hint)
    return not_recorded(error)


def not_taken(plan: Plan, end: PlanEnd, incident: Incident, now: datetime) -> Result:
    """Return the page of a plan that ended without an answer."""
    if end.phase is Phase.EXPIRED:
        return _expired(plan, incident, now)
    if end.phase is Phase.SUPERSEDED:
        return _changed(f"More became known, so this plan was withdrawn at {moment(end.at)}.")
    says = f"{ended_says(end)} {changed_so_far(incident)}"
    return Result(status=409, label="Recovered", title="It is not needed any more", says=says, tone=Tone.GOOD)


def wrong_person(why: str, *, hint: str = "") -> Result:
    """Return the page for somebody who may not decide here."""
    return _refused("Not allowed", "Your answer does not count here", why, hint)


def _refused(label: str, title: str, why: str, hint: str) -> Result:
    return Result(status=403, label=label, title=title, says=f"{why} {NOTHING_FOLLOWED}", hint=hint, tone=Tone.BAD)


def not_recorded(error: SreError) -> Result:
    """Return the page of an answer that may have been lost: pressing again is safe."""
    if isinstance(error, NoResponse):
        return _not_known(503, f"{error.cause}.")
    return Result(
        status=503,
        label="Not recorded",
        title="Your answer was not recorded",
        says=f"{error.cause}. Nothing follows from it.",
        hint="Press again in a moment; a plan takes one answer only, however often it is pressed.",
        tone=Tone.BAD,
    )


def failed_here(*, posted: bool) -> Result:
    """Return the page of a mistake of ours; what was posted may have been recorded before it."""
    says = "This page failed; the log of the service says why."
    if posted:
        return _not_known(500, says)
    return Result(
        status=500, label="Not shown", title="The page was not shown", says=says, hint="Try again.", tone=Tone.BAD
    )


def _not_known(status: int, says: str) -> Result:
    return Result(
        status=status,
        label="Not known",
        title="Nobody knows whether your answer was recorded",
        says=says,
        hint="Look at the plan, or press again; a plan takes one answer only, however often it is pressed.",
        tone=Tone.BAD,
    )


def status_of(error: SreError) -> int:
    """Return the HTTP status of an error, by its kind."""
    kinds = ((StateConflict, 409), (PolicyRefused, 403), (NotFound, 404), (InputRejected, 400), (DependencyFailed, 503))
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)


def stale_form(why: str) -> Result:
    """Return the page of a form that is not ours, or not for this plan, person or browser any more."""
    return Result(
        status=403,
        label="Not taken",
        title="This answer did not come from a fresh page of ours",
        says=f"It was not taken: {why}. Nothing follows from it.",
        hint="Open the plan again and answer there.",
        tone=Tone.BAD,
    )


def missing(what: str) -> Result:
    """Return the page of something that does not exist."""
    return Result(
        status=404,
        label="Not found",
        title=f"There is no such {what}",
        says="This page does not exist.",
        hint="It may belong to another installation, or to a state folder that was removed.",
        tone=Tone.QUIET,
    )


def _theirs(decision_request: DecisionRequest, decision: Decision | None) -> bool:
    """Whether what is recorded is this very answer of this very person."""
    if decision is None or (decision.plan, decision.answer) != (decision_request.plan, decision_request.answer):
        return False
    said = (decision_request.by.who.casefold(), decision_request.by.channel)
    words = [(decision.who, decision.channel), *((vote.who, vote.channel) for vote in decision.votes)]
    return said in [(who.casefold(), channel) for who, channel in words]


def _faster(end: PlanEnd, answer: Choice, incident: Incident, now: datetime) -> Result:
    did = "approved" if end.phase is Phase.APPROVED else "rejected"
    same = (did == "approved") == (answer is Choice.APPROVE)
    through = f" through {end.channel.replace('_', ' ')}" if end.channel else ""
    said = "You wanted the same." if same else "Your answer was not taken."
    return Result(
        status=409,
        label="Already answered",
        title=f"{end.by} was faster",
        says=f"{end.by} {did} this plan{through} at {moment(end.at)}. {said} {standing(incident, now).says}",
        tone=Tone.QUIET if same else Tone.WAITING,
        moving=did == "approved" and not incident.ended,
    )


def _expired(plan: Plan, incident: Incident, now: datetime) -> Result:
    return Result(
        status=410,
        label="Expired",
        title="This plan has expired",
        says=f"It could be answered until {moment(plan.expires_at)}. {NOTHING_FOLLOWED}",
        hint=next_step(incident, plan.id, now),
        tone=Tone.BAD,
    )


def _changed(what: str) -> Result:
    return Result(
        status=409,
        label="Plan changed",
        title="This is not the plan any more",
        says=f"{what} Your answer covers the plan that you saw. {NOTHING_FOLLOWED}",
        hint="Look at what is offered now and answer that.",
        tone=Tone.WAITING,
    )
