"""The draft of a postmortem: what the record of one incident says, and nothing else."""

from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from agent.core.value import Value


class Hardware(Value):
    """What one instance of the service runs on, and whence that is known."""

    accelerator: str
    count: int


class Times(Value):
    """When it began and ended, and how long each part took, seconds; None where it has not come to it, or nobody knows.

    Attributes:
        began_at: The first sign of trouble; where the signals are older records, the opening of the incident.
        over_at: When it ended in health.
    """

    began_at: AwareDatetime
    detected_at: AwareDatetime
    over_at: AwareDatetime | None = None
    detect_s: float | None = None
    diagnose_s: float | None = None
    decide_s: float | None = None
    recover_s: float | None = None


class Cost(Value):
    """What the outage cost; None where it cannot be told, and ``basis`` says why or from what it was worked out."""

    gpu_hours: float | None = None
    usd: float | None = None
    basis: str


class Cause(Value):
    """What broke, by which rule or model."""

    class_: str
    signature: str | None
    root_cause: str
    certain: bool
    provisional: bool
    source: str


class Quote(Value):
    """A line of the log or of an event as it was written, and where it stands."""

    line: str
    place: str
    decisive: bool


class FigureRow(Value):
    """A figure that was read from the log."""

    name: str
    value: str
    source: str


class Entry(Value):
    """One line of the timeline."""

    at: AwareDatetime
    by: str
    says: str


class Tried(Value):
    """One plan: what it would do, and what became of it, step by step."""

    plan: str
    title: str
    steps: tuple[str, ...]


class Setting(Value):
    """One setting, before and after; None where it was absent."""

    path: str
    before: str | None
    after: str | None


class Checked(Value):
    """What was measured after the change."""

    check: str
    judgement: str
    says: str


class Fix(Value):
    """What ended it, or that nothing has yet.

    Attributes:
        says: One sentence.
        settings: The exact difference of the change that stands.
    """

    says: str
    settings: tuple[Setting, ...] = ()
    checked: tuple[Checked, ...] = ()
    takes_away: str = ""


class Memory(Value):
    """What the arithmetic says of one configuration's memory; ``report`` has the keys of `sre-agent fit --json`."""

    when: Literal["before", "after"]
    says: str
    report: dict[str, object] | None = None


class ActionItem(Value):
    """Something to do, for a ticket."""

    kind: str
    text: str


class SummaryBy(StrEnum):
    """Who worded the summary."""

    RECORD = "record"  # sentences made from the record
    MODEL = "model"  # a model worded them anew; the facts below are the record's


class Postmortem(Value):
    """The whole draft; times are UTC.

    Attributes:
        format: The name and version of this form.
        made_at: When the draft was made; the incident may have gone on since.
        record_summary: The record's own sentences, where ``summary`` was worded by a model.
        summary_model: Which model worded the summary, by which prompt; empty where none did.
        ended: Whether the incident is over; a draft of one that is not says so.
        notes: What a reader must know first: a replay, a rehearsal, a draft before the end.
        url: The incident in the console.
    """

    format: Literal["sre-agent/incident-report/1"] = "sre-agent/incident-report/1"
    incident: str
    url: str
    made_at: AwareDatetime
    title: str
    service: str
    platform: str
    revision: str | None
    run: str
    phase: str
    ended: bool
    severity: str
    impact: str
    summary: tuple[str, ...]
    summary_by: SummaryBy = SummaryBy.RECORD
    summary_model: str = ""
    record_summary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    times: Times
    cost: Cost
    cause: Cause | None
    evidence: tuple[Quote, ...] = ()
    figures: tuple[FigureRow, ...] = ()
    timeline: tuple[Entry, ...]
    tried: tuple[Tried, ...] = ()
    fix: Fix
    memory: tuple[Memory, ...] = ()
    unknown: tuple[str, ...] = ()
    actions: tuple[ActionItem, ...] = ()
    follows: str | None = None
