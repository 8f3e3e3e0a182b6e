"""What came of an answer, for the person who gave it: taken, too late, somebody was faster, or the wrong person."""

from datetime import datetime

from agent.core.decision import Answer, Decision
from agent.core.incident import Event, Incident
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.value import Value
from agent.entrypoints.decide_client import Unheard
from agent.entrypoints.web.fate import Fate, fate_of
from agent.entrypoints.web.wording import Tone
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError
from agent.stages.plan_to_decision import Word

_ANSWERED = frozenset({Phase.APPROVED, Phase.REJECTED})


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
    mend: str = ""
    tone: Tone
    moving: bool = False


def taken(plan: Plan, fate: Fate | None) -> Result | None:
    """Return the page of an answer that was recorded, or None where nobody answered the plan."""
    if fate is None:
        return None
    who = fate.by + (" (not verified)" if fate.verified is False else "")
    if fate.phase is Phase.APPROVED and plan.by_person:
        says = f"Taken on by {who} at {_time(fate.at)}. We change nothing and watch for a healthy sign."
        return Result(status=200, label="Approved", title="You have it", says=says, tone=Tone.GOOD, moving=True)
    if fate.phase is Phase.APPROVED:
        says = f"Approved by {who} at {_time(fate.at)}. It is looked at once more, applied, and measured."
        mend = "If it does not help, the state before it is put back; that is part of what was approved."
        return Result(status=200, label="Approved", title="Approved", says=says, mend=mend, tone=Tone.GOOD, moving=True)
    if fate.phase is Phase.REJECTED:
        says = f"Rejected by {who} at {_time(fate.at)}. Nothing was changed, and this remedy is not offered again."
        why = f"Reason given: {fate.why}" if fate.why else ""
        return Result(status=200, label="Rejected", title="Rejected", says=says, mend=why, tone=Tone.QUIET, moving=True)
    return None


def failed(  # noqa: PLR0911 - one page for each thing that stands in the way
    error: SreError,
    word: Word,
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
        word: What was said.
        plan: The plan that it was about.
        incident: The incident as it is after the attempt.
        timeline: Its timeline after the attempt.
        now: The time, UTC.
        barred: Whether it is the person whose word does not count.
    """
    fate = fate_of(plan, incident, timeline)
    if fate is not None and _theirs(word, incident.decision):  # its answer was lost, or the button pressed twice
        return taken(plan, fate) or not_recorded(error)
    if isinstance(error, DependencyFailed):
        return not_recorded(error)
    if fate is not None:
        return _faster(fate, word.answer) if fate.phase in _ANSWERED else not_taken(plan, fate)
    if now >= plan.expires_at:
        return _expired(plan)
    if incident.plan is not None and incident.plan.id != plan.id:
        return _changed(f"Plan {incident.plan.ordinal} has taken the place of plan {plan.ordinal}.")
    if isinstance(error, InputRejected | PolicyRefused):
        why, mend = (f"{words[:1].upper()}{words[1:]}." for words in (error.why, error.mend))
        return wrong_person(why, mend=mend) if barred else _not_now(why, mend)
    return not_recorded(error)


def not_taken(plan: Plan, fate: Fate) -> Result:
    """Return the page of a plan that ended without an answer."""
    if fate.phase is Phase.EXPIRED:
        return _expired(plan)
    if fate.phase is Phase.SUPERSEDED:
        return _changed(f"More was learned, so this plan was withdrawn at {_time(fate.at)}.")
    says = f"The service recovered by itself at {_time(fate.at)}. Nothing was changed by us."
    return Result(status=409, label="Recovered", title="It is not needed any more", says=says, tone=Tone.GOOD)


def wrong_person(why: str, *, mend: str = "") -> Result:
    """Return the page of somebody whose word does not count here."""
    return Result(
        status=403,
        label="Not allowed",
        title="Your answer does not count here",
        says=f"{why} Nothing was decided and nothing was changed.",
        mend=mend,
        tone=Tone.BAD,
    )


def _not_now(why: str, mend: str) -> Result:
    """Return the page of somebody whose word counts, and to which something else stands in the way."""
    return Result(
        status=403,
        label="Not taken",
        title="Your answer was not taken",
        says=f"{why} Nothing was decided and nothing was changed.",
        mend=mend,
        tone=Tone.BAD,
    )


def not_recorded(error: SreError) -> Result:
    """Return the page of an answer that may have been lost: pressing again is safe."""
    if isinstance(error, Unheard):
        return Result(
            status=503,
            label="Not known",
            title="Nobody knows whether your answer was recorded",
            says=f"{error.what}: {error.why}.",
            mend="Look at the plan, or press again; a plan takes one answer only, however often it is pressed.",
            tone=Tone.BAD,
        )
    return Result(
        status=503,
        label="Not recorded",
        title="Your answer was not recorded",
        says=f"{error.what}: {error.why}. Nothing was changed.",
        mend="Press again in a moment; a plan takes one answer only, however often it is pressed.",
        tone=Tone.BAD,
    )


def stale_form(why: str) -> Result:
    """Return the page of a form that is not ours, or not for this plan, person or browser any more."""
    return Result(
        status=403,
        label="Not taken",
        title="This answer did not come from a fresh page of ours",
        says=f"It was not taken: {why}. Nothing was decided and nothing was changed.",
        mend="Open the plan again and answer there.",
        tone=Tone.BAD,
    )


def missing(what: str) -> Result:
    """Return the page of something that does not exist."""
    return Result(
        status=404,
        label="Not found",
        title=f"There is no such {what}",
        says="The address names nothing that we know.",
        mend="It may belong to another installation, or to a state folder that was removed.",
        tone=Tone.QUIET,
    )


def _theirs(word: Word, decision: Decision | None) -> bool:
    """Whether what is recorded is this very answer of this very person."""
    said = (word.plan, word.answer, word.who.casefold(), word.channel)
    return decision is not None and said == (
        decision.plan,
        decision.answer,
        decision.who.casefold(),
        decision.channel,
    )


def _faster(fate: Fate, answer: Answer) -> Result:
    did = "approved" if fate.phase is Phase.APPROVED else "rejected"
    same = (did == "approved") == (answer is Answer.APPROVE)
    through = f" through {fate.channel.replace('_', ' ')}" if fate.channel else ""
    return Result(
        status=409,
        label="Already answered",
        title=f"{fate.by} was faster",
        says=f"{fate.by} {did} this plan{through} at {_time(fate.at)}. "
        + ("You wanted the same." if same else "Your answer was not taken."),
        tone=Tone.QUIET if same else Tone.WAITING,
        moving=did == "approved",
    )


def _expired(plan: Plan) -> Result:
    return Result(
        status=410,
        label="Expired",
        title="This plan has expired",
        says=f"It could be answered until {_time(plan.expires_at)}. Nothing was decided and nothing was changed.",
        mend="If the trouble goes on, a new plan is made; look at the incident.",
        tone=Tone.BAD,
    )


def _changed(what: str) -> Result:
    return Result(
        status=409,
        label="Plan changed",
        title="This is not the plan any more",
        says=f"{what} Your answer covers the plan that you saw, so it was not taken. Nothing was changed.",
        mend="Look at what is offered now and answer that.",
        tone=Tone.WAITING,
    )


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
