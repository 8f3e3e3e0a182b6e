"""The steps of an incident in sentences made from state, for every timeline and for webhooks."""

from collections.abc import Iterator, Sequence

from pydantic import AwareDatetime

from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.plan import Plan
from agent.core.value import Value
from agent.presentation.phase_words import OF_REQUEST, OF_TASK, WORDS
from agent.presentation.plan_title import as_sentence
from agent.presentation.standing import class_words, standing


class Step(Value):
    """One line of a timeline as people read it.

    Attributes:
        says: The step in a sentence, made from state; further notes of the same step are told as they were written.
        note: What was written down at the time, where it says more than ``says``; a quotation, which may be outdated.
    """

    at: AwareDatetime
    phase: Phase
    by: str
    says: str
    note: str = ""


def steps(timeline: Sequence[Event], incident: Incident) -> Iterator[Step]:
    """Yield the lines of a timeline as people read them, one for each event.

    An answer is told as it was recorded: by whom, through which channel and why, which the incident forgets with the
    next plan.

    Args:
        timeline: The whole timeline, in order.
        incident: The incident as it is now.
    """
    plans = {} if incident.plan is None else {incident.plan.id: incident.plan}
    before = ""
    for event in timeline:
        says = event_text(event, incident, plans.get(event.plan or ""))
        noted = as_sentence(event.what)
        again = says == before or event.phase in _ANSWERS or event.kind is not None
        yield Step(
            at=event.at, phase=event.phase, by=event.by, says=noted if again else says, note="" if again else noted
        )
        before = says


_ANSWERS = frozenset({Phase.APPROVED, Phase.REJECTED})


def event_text(event: Event, incident: Incident, plan: Plan | None) -> str:
    """Return what a line of the timeline stands for, true also when it is read long after its moment.

    The words that a stage wrote are not repeated: they may quote what was believed at the time.

    Args:
        event: The line.
        incident: The incident as it is now; its end, reason and answer are read from it.
        plan: The plan that the event names, as it was made; None where there is none or it is not at hand.
    """
    if event.kind is not None:
        return as_sentence(event.what)  # a fact of its moment, in our own words
    of_request = OF_REQUEST.get(event.phase)
    if incident.request is not None and event.plan is None and of_request is not None and of_request.event:
        return of_request.event.format(by=event.by) + _reason(event, incident)
    if event.phase is Phase.ESCALATED and not _is_present(event, incident):
        return "The agent did no more, and a person had to take over."
    if event.phase in ENDS:
        return _end(event, incident)
    if event.phase is Phase.DIAGNOSED:
        return _diagnosis(event, incident)
    by_person = event.by_person if event.by_person is not None else plan is not None and plan.by_person
    form = (OF_TASK.get(event.phase) if by_person else None) or WORDS[event.phase]
    name = f"plan {event.plan}" if event.plan else "the plan"
    said = form.event.format(plan=name[:1].upper() + name[1:], name=name, by=event.by)
    return said + _reason(event, incident)


def _is_present(event: Event, incident: Incident) -> bool:
    """Whether the incident still stands where the line says; a person may have led it on since."""
    return incident.phase is event.phase and event.at >= incident.phase_at and incident.replan is None


def _end(event: Event, incident: Incident) -> str:
    """An end is final, so the present state is the state of then."""
    says = standing(incident.with_(phase=event.phase), event.at).says
    if event.phase is Phase.RESOLVED or not incident.ended_why:
        return says
    return f"{says} Reason: {as_sentence(incident.ended_why)}"


def _diagnosis(event: Event, incident: Incident) -> str:
    diagnosis = incident.diagnosis
    if diagnosis is not None and event.cause == diagnosis.class_:
        return f"Diagnosis: {as_sentence(diagnosis.root_cause)}"
    if event.cause in {"", "unknown"}:
        return "The cause is not known yet."
    return f"Diagnosis: {class_words(event.cause)}."


def _reason(event: Event, incident: Incident) -> str:
    """Why, as long as the incident still holds it: the words of a rejection, or the reason of its present phase."""
    decision = incident.decision
    if event.phase is Phase.REJECTED and decision is not None and decision.plan == event.plan:
        why = decision.why
    elif event.phase is Phase.REFUSED and incident.phase is Phase.REFUSED:
        why = incident.ended_why
    else:
        why = ""
    return f" Reason: {as_sentence(why)}" if why else ""
