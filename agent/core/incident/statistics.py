"""Figures over many incidents: how many of each class, how long each part took, what came of the changes."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median

from agent.core.change.verification import Verdict
from agent.core.diagnosis.model_request import Spend
from agent.core.incident.durations import Durations
from agent.core.incident.impact import Impact, impact_of
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.value import Value

Measured = tuple[Incident, Durations]
"""An incident with how long each part of its life took."""


_JUDGED = frozenset({Phase.RESOLVED, Phase.ROLLING_BACK, Phase.ROLLED_BACK})
"""Where the present change has its verdict; a remedy is kept of it with the last of the steps there, or after them."""


class ClassRow(Value):
    """The incidents of one class; medians in seconds, None where no incident came so far."""

    class_: str
    count: int
    still_open: int
    recovered: int
    escalated: int
    detect_s: float | None
    diagnose_s: float | None
    decide_s: float | None
    recover_s: float | None


class Outage(Value):
    """How long a service answered nothing, by its incidents alone, and what of its error budget that used.

    Attributes:
        down_s: Seconds of the window in which an incident stood where nothing served.
        objective: The share of the time in which it is to answer.
        budget_s: Seconds that the objective allows in the window.
    """

    service: str
    incidents: int
    down_s: float
    objective: float
    budget_s: float

    @property
    def used(self) -> float:
        """The share of the budget that is used; more than 1 where the objective is missed."""
        return self.down_s / self.budget_s if self.budget_s > 0 else float(self.down_s > 0)


class Statistics(Value):
    """Figures over the incidents of a window; change requests are left out."""

    classes: tuple[ClassRow, ...]
    every: ClassRow
    verdicts: dict[Verdict, int]
    model: Spend
    model_incidents: int
    outages: tuple[Outage, ...]


def statistics_of(
    found: Sequence[Measured], *, since: datetime, now: datetime, objective: Callable[[str], float]
) -> Statistics:
    """Return the figures.

    Args:
        found: The incidents; requests among them are left out.
        since: The beginning of the window, UTC.
        now: Its end.
        objective: The share of the time in which a service of that name is to answer, between 0 and 1.
    """
    troubles = [(i, took) for i, took in found if i.request is None]
    by_class: dict[str, list[Measured]] = {}
    for incident, took in troubles:
        by_class.setdefault(incident.cause, []).append((incident, took))
    rows = sorted((_row(class_, of) for class_, of in by_class.items()), key=lambda row: (-row.count, row.class_))
    verdicts = Counter(v for i, _ in troubles for v in verdicts_of(i))
    spent = [i.model_request.spent for i, _ in troubles if i.model_request is not None and i.model_request.spent.calls]
    return Statistics(
        classes=tuple(rows),
        every=_row("", troubles),
        verdicts=dict(verdicts),
        model=_sum(spent),
        model_incidents=len(spent),
        outages=_outages(troubles, since=since, now=now, objective=objective),
    )


def _row(class_: str, of: Sequence[Measured]) -> ClassRow:
    phases = Counter(i.phase for i, _ in of)
    return ClassRow(
        class_=class_,
        count=len(of),
        still_open=sum(not i.ended for i, _ in of),
        recovered=phases[Phase.RESOLVED] + phases[Phase.SELF_RECOVERED],
        escalated=phases[Phase.ESCALATED],
        detect_s=_median(took.detect_s for _, took in of),
        diagnose_s=_median(took.diagnose_s for _, took in of),
        decide_s=_median(took.decide_s for _, took in of),
        recover_s=_median(took.recover_s for _, took in of),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def verdicts_of(incident: Incident) -> tuple[Verdict, ...]:
    """Return the verdict of each change of an incident: of earlier ones as they ended, of the present as measured."""
    own = [remedy for remedy in incident.remedies if remedy.incident == incident.id]
    earlier = tuple(Verdict(remedy.ended) for remedy in own if remedy.ended in set(Verdict))
    plan, present = incident.plan, incident.verification
    if plan is None or present is None or present.verdict is None or incident.phase not in _JUDGED:
        return earlier
    kept = any(remedy.proposal == plan.proposal and remedy.at >= present.since for remedy in own)
    return earlier if kept or incident.roll_back is not None else (*earlier, present.verdict)


def _sum(spent: Iterable[Spend]) -> Spend:
    total = Spend()
    for one in spent:
        total = total.plus(one)
    return total


def _outages(
    found: Sequence[Measured], *, since: datetime, now: datetime, objective: Callable[[str], float]
) -> tuple[Outage, ...]:
    down: dict[str, list[tuple[datetime, datetime]]] = {}
    counts: Counter[str] = Counter()
    for incident, took in found:
        counts[incident.service] += 1
        spans = down.setdefault(incident.service, [])
        if impact_of(incident) is Impact.NOTHING_SERVES:
            spans.append((max(incident.opened_at, since), min(_end(incident, took, now), now)))
    window_s = (now - since).total_seconds()
    rows = (
        Outage(
            service=name,
            incidents=counts[name],
            down_s=_covered(spans),
            objective=objective(name),
            budget_s=window_s * (1 - objective(name)),
        )
        for name, spans in down.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.down_s, row.service)))


def _end(incident: Incident, took: Durations, now: datetime) -> datetime:
    """When it was over; what a person took over is counted to then, because nobody tells when they ended it."""
    if took.recover_s is not None:
        return incident.opened_at + timedelta(seconds=took.recover_s)
    return incident.phase_at if incident.ended else now


def _covered(spans: Iterable[tuple[datetime, datetime]]) -> float:
    """Return the seconds that spans cover together; where they overlap a second counts once."""
    covered, reached = 0.0, None
    for start, end in sorted(spans):
        begins = start if reached is None else max(start, reached)
        if end > begins:
            covered += (end - begins).total_seconds()
            reached = end
    return covered
