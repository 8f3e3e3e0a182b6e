"""From the record of an incident to the draft of its postmortem: every sentence is made from state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from agent.core.change.execution import Change, present_change
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.incident.durations import durations
from agent.core.incident.impact import Impact, impact_of, severity_of
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.core.plan.action import Restart
from agent.core.plan.plan import Plan
from agent.core.text.field_labels import field_label
from agent.failures.follow_up import FollowUp
from agent.presentation.event_text import Step, steps
from agent.presentation.evidence import field_source, place_of
from agent.presentation.impact_text import SEVERITY_WORDS, impact_text, span
from agent.presentation.incident_title import trouble_of
from agent.presentation.measured import judgement_text
from agent.presentation.plan_title import as_sentence, plan_title
from agent.presentation.report.follow_ups import action_items, loses
from agent.presentation.report.postmortem import (
    Cause,
    Checked,
    Cost,
    Entry,
    FigureRow,
    Fix,
    Hardware,
    Memory,
    Postmortem,
    Quote,
    Setting,
    Times,
    Tried,
)
from agent.presentation.standing import SOURCES, moment, standing

RECORDED_AFTER: Final = timedelta(hours=1)
"""A signal that is older than its incident by more than this was recorded before; it says nothing about detection."""
_OVER: Final = frozenset({Phase.RESOLVED, Phase.SELF_RECOVERED})
_OFFER: Final = frozenset({Phase.PLANNED, Phase.ASKED})
_PLANS: Final = frozenset(Phase) - {Phase.OPEN, Phase.DIAGNOSED}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What the draft is made from.

    Attributes:
        timeline: The whole timeline, in order.
        follow_ups: What to do after an incident of a class, from the catalogue.
        hardware: What one instance runs on; None where nobody knows.
        console_url: Where the console stands, such as ``https://sre.example.com``.
    """

    incident: Incident
    timeline: Sequence[Event]
    now: datetime
    follow_ups: Mapping[str, tuple[FollowUp, ...]] = field(default_factory=dict)
    hardware: Hardware | None = None
    console_url: str = ""


def postmortem(record: Record) -> Postmortem:
    """Return the draft; true in every phase, and of a requested change too."""
    incident, now = record.incident, record.now
    lines = tuple(steps(record.timeline, incident))
    times = _times(record)
    return Postmortem(
        incident=incident.id,
        url=f"{record.console_url.rstrip('/')}/incidents/{incident.id}",
        made_at=now,
        title=f"{incident.service}: {trouble_of(incident)}",
        service=incident.service,
        platform=incident.platform,
        revision=incident.revision,
        run=incident.run,
        phase=standing(incident, now).label,
        ended=incident.ended,
        severity=SEVERITY_WORDS[severity_of(incident)],
        impact=impact_text(incident),
        summary=tuple(_summary(record, times)),
        notes=tuple(_notes(incident)),
        times=times,
        cost=_cost(record, times),
        cause=_cause(incident.diagnosis),
        evidence=tuple(_evidence(incident)),
        figures=tuple(_figures(incident)),
        timeline=tuple(_entries(record, lines)),
        tried=tuple(_tried(record, lines)),
        fix=_fix(incident, now),
        memory=tuple(_memory(incident.plan)),
        unknown=tuple(_unknown(incident)),
        actions=action_items(incident, record.timeline, record.follow_ups),
        follows=incident.linked_to,
    )


def _times(record: Record) -> Times:
    incident = record.incident
    took = durations(incident, record.timeline)
    recorded = took.detect_s is None or took.detect_s > RECORDED_AFTER.total_seconds()
    detect_s = None if recorded else took.detect_s
    over = incident.phase_at if incident.phase in _OVER else None
    return Times(
        began_at=incident.opened_at - timedelta(seconds=detect_s or 0),
        detected_at=incident.opened_at,
        over_at=over,
        detect_s=detect_s,
        diagnose_s=took.diagnose_s,
        decide_s=took.decide_s,
        recover_s=took.recover_s,
    )


def _cost(record: Record, times: Times) -> Cost:
    """The accelerators of one instance for as long as it lasted: what was held, which need not be what was billed."""
    incident, hardware = record.incident, record.hardware
    impact = impact_of(incident)
    if impact is Impact.NONE:
        return Cost(basis="A requested change; there was no outage.")
    if impact is Impact.OLDER_REVISION_SERVES:
        return Cost(basis="None: an older revision answered all the while.")
    if times.over_at is None and incident.ended:
        return Cost(basis="Not known: the record ends before the service was healthy again.")
    if hardware is None:
        return Cost(basis="Not known: nothing here says which accelerators the service runs on.")
    hours = ((times.over_at or record.now) - times.began_at).total_seconds() / 3600
    price = incident.plan.cost_before_usd_per_h if incident.plan is not None else None
    so_far = "" if times.over_at is not None else " so far"
    cards = f"{hardware.count} {hardware.accelerator}"
    what = f"{cards} of one instance for {span(hours * 3600)}{so_far}; what was billed may differ."
    return Cost(
        gpu_hours=round(hours * hardware.count, 3),
        usd=round(hours * price, 2) if price is not None else None,
        basis=what if impact is Impact.NOTHING_SERVES else f"{what} Meanwhile: {impact_text(incident)}.",
    )


def _summary(record: Record, times: Times) -> Iterator[str]:
    incident = record.incident
    where = f" (revision {incident.revision})" if incident.revision else ""
    seen = f"On {moment(times.detected_at)} the agent"
    if incident.request is not None:
        yield f"{seen} was asked to change {incident.service}: {as_sentence(incident.request.why)}"
    elif incident.diagnosis is None:
        yield f"{seen} saw signals of trouble from {incident.service}{where}; the cause is not known yet."
    else:
        yield f"{seen} detected a failure of {incident.service}{where}: {as_sentence(incident.diagnosis.root_cause)}"
        yield f"Impact: {impact_text(incident)}."
    yield standing(incident, record.now).says
    if incident.ended and incident.phase not in _OVER and incident.ended_why:
        yield f"Reason: {as_sentence(incident.ended_why)}"
    if times.over_at is not None and incident.request is None:
        first = "its first sign" if times.detect_s is not None else "detection"
        yield f"From {first} to recovery it took {span((times.over_at - times.began_at).total_seconds())}."


def _notes(incident: Incident) -> Iterator[str]:
    if not incident.ended:
        yield "The incident is not over; this draft says how it stands now."
    if incident.run != LIVE:
        yield f"This is a replay ({incident.run}) of recorded events: its times are those of the replay."
    if _rehearsed(incident):
        yield (
            "The change was rehearsed on a simulated platform with compressed time: durations and costs are those of "
            "the rehearsal."
        )


def _rehearsed(incident: Incident) -> bool:
    """Whether what the platform did was played from a record or from the arithmetic."""
    measured = incident.verification.measurements if incident.verification is not None else ()
    effects = incident.execution.effects if incident.execution is not None else ()
    said = (*(m.says for m in measured), *(e.message for e in effects))
    return any(not m.real for m in measured) or any("(rehearsal" in text for text in said)


def _cause(diagnosis: Diagnosis | None) -> Cause | None:
    if diagnosis is None:
        return None
    return Cause(
        class_=diagnosis.class_,
        signature=diagnosis.signature,
        root_cause=as_sentence(diagnosis.root_cause),
        certain=diagnosis.certain,
        provisional=diagnosis.provisional,
        source=SOURCES[diagnosis.voice],
    )


def _evidence(incident: Incident) -> Iterator[Quote]:
    if incident.diagnosis is None:
        return
    decisive = incident.diagnosis.decisive
    ordered = sorted(incident.diagnosis.evidence, key=lambda e: e is not decisive)
    for evidence in ordered:
        place = place_of(evidence.signal, incident.platform)
        yield Quote(line=evidence.line, place=place, decisive=evidence is decisive)


def _figures(incident: Incident) -> Iterator[FigureRow]:
    diagnosis = incident.diagnosis
    if diagnosis is None:
        return
    for name, value in diagnosis.fields.items():
        source = field_source(diagnosis, name, incident.platform)
        yield FigureRow(name=field_label(name), value=str(value), source=source)


def _entries(record: Record, lines: Sequence[Step]) -> Iterator[Entry]:
    for event, step in zip(record.timeline, lines, strict=True):
        if not _repeats_signal(event):
            yield Entry(at=step.at, by=step.by, says=step.says)


def _tried(record: Record, lines: Sequence[Step]) -> Iterator[Tried]:
    """Yield the plans in the order they were made; of earlier ones the record keeps the reason and the steps."""
    current = record.incident.plan
    for plan in dict.fromkeys(e.plan for e in record.timeline if e.plan is not None and e.phase in _PLANS):
        own = [(e, s) for e, s in zip(record.timeline, lines, strict=True) if e.plan == plan and e.phase in _PLANS]
        made = next((e.what for e, _ in own if e.phase is Phase.PLANNED), "")
        known = current if current is not None and current.id == plan else None
        title = plan_title(known) if known is not None else made.removeprefix(f"plan {plan}: ")
        first = {e.phase: s.says for e, s in reversed(own) if not _repeats_signal(e)}
        says = [
            first[phase] for phase in dict.fromkeys(e.phase for e, _ in own) if phase in first and phase not in _OFFER
        ]
        yield Tried(plan=plan, title=title.rstrip(".") or "Its title is not kept", steps=tuple(says))


def _repeats_signal(event: Event) -> bool:
    """Whether a line only tells that one more signal came; the evidence has what they say."""
    return event.what.startswith("signal: ")


def _fix(incident: Incident, now: datetime) -> Fix:
    plan, stands = incident.plan, present_change(incident.execution) is Change.APPLIED
    by_us = plan is not None and not plan.by_person and stands
    return Fix(
        says=_fixed(incident, now),
        settings=tuple(Setting(path=d.path, before=d.before, after=d.after) for d in plan.difference)
        if plan is not None and by_us
        else (),
        checked=tuple(_checked(incident)),
        takes_away=plan.takes_away if plan is not None and incident.phase is Phase.RESOLVED and loses(plan) else "",
    )


def _fixed(incident: Incident, now: datetime) -> str:
    plan = incident.plan
    if incident.phase is Phase.RESOLVED and plan is not None:
        if plan.by_person:
            return f"{standing(incident, now).says} The task was: {as_sentence(plan_title(plan))}"
        return f"This change fixed it: {as_sentence(plan_title(plan))}"
    if incident.phase is Phase.SELF_RECOVERED:
        return "Nothing that the agent did: the service was healthy again by itself, or by somebody else's hand."
    if incident.ended:
        return "Nothing in this record fixed it."
    return "Nothing yet: the incident is not over."


def _checked(incident: Incident) -> Iterator[Checked]:
    if incident.verification is None:
        return
    newest = {m.check: m for m in incident.verification.measurements}
    for measurement in newest.values():
        check = measurement.check.value.replace("_", " ")
        yield Checked(check=check, judgement=judgement_text(measurement), says=measurement.says)


def _memory(plan: Plan | None) -> Iterator[Memory]:
    if plan is None:
        return
    if plan.fit_before.report is not None:
        yield Memory(when="before", says=plan.fit_before.sentence, report=plan.fit_before.report)
    if plan.fit_after.report is not None and plan.fit_after != plan.fit_before:
        yield Memory(when="after", says=plan.fit_after.sentence, report=plan.fit_after.report)


def _unknown(incident: Incident) -> Iterator[str]:
    diagnosis = incident.diagnosis
    if incident.request is not None:
        return
    if diagnosis is None:
        yield "The cause."
        return
    yield from map(as_sentence, diagnosis.unknown)
    if not diagnosis.certain:
        yield f"Whether the cause is the right one: the diagnosis has a confidence of {diagnosis.confidence:.0%}."
    if not diagnosis.log_read:
        yield "What the server's own log says: it was not read."
    plan = incident.plan
    if plan is not None and any(isinstance(action, Restart) for action in plan.actions):
        yield "What ended the server: a fresh start clears the state and leaves the cause."
    if plan is not None:
        yield from (f"For the plan: {as_sentence(text)}" for text in plan.proof_missing)
