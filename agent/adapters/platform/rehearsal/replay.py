"""The logs of a rehearsed revision: a recorded start, replayed with the revision's own time and name."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from agent.adapters.platform.rehearsal.scenario import Recording, Result, Scenario, moment
from agent.adapters.platform.rehearsal.state_file import RevisionRow
from agent.core.value import digest
from agent.ports.logs import InstanceLog

AFTERWARDS_S = 30  # what a platform and a server still say of a start after its end


def log_of(scenario: Scenario, row: RevisionRow, *, now: datetime, compression: float) -> InstanceLog | None:
    """Return the log of a revision's instance as far as it is written, or None where none is on record.

    The revision that stood when the rehearsal opened keeps the times of the record.
    """
    recording = _recording(scenario, row)
    if recording is None or recording.log is None:
        return None
    lines = scenario.lines(recording)
    if not row.initial:
        shift = _Shift(recording, row, compression)
        lines = tuple(line.with_(at=shift(line.at)) for line in lines if _belongs(row, recording, line.at))
        lines = tuple(line for line in lines if line.at <= now)
    instance = scenario.live.instance if row.initial else instance_of(row.name)
    return InstanceLog(service=row.service, revision=row.name, instance=instance, lines=lines, complete=True)


def entries_of(
    scenario: Scenario, row: RevisionRow, *, compression: float
) -> Iterator[tuple[str, datetime, dict[str, Any]]]:
    """Yield the LogEntry objects that a sink will let through: an id, the time from which it can be read, the entry.

    Alerts that stand among them are left out: they belong to the incident that was recorded.
    """
    recording = _recording(scenario, row)
    if recording is None:
        return
    shift = _Shift(recording, row, compression)
    for number, entry in enumerate(scenario.events(recording)):
        if "timestamp" not in entry or not _belongs(row, recording, moment(entry)):
            continue
        at = shift(moment(entry))
        entry_id = digest([row.name, number])[:20]
        yield entry_id, at, _renamed(entry, recording, row, at, entry_id)


def instance_of(revision: str) -> str:
    """Return the id of the one instance that a rehearsed revision has."""
    return digest(["instance", revision])


def _belongs(row: RevisionRow, recording: Recording, at: datetime) -> bool:
    """Whether a moment is of the start; what a healthy revision met later in its life is not acted out again."""
    if row.fate.result != Result.CAME_UP or row.fate.crashes_after_s is not None:
        return True
    return (at - recording.began_at).total_seconds() <= row.fate.after_s + AFTERWARDS_S


class _Shift:
    """Moves a time of the record to the revision's own, compressed."""

    def __init__(self, recording: Recording, row: RevisionRow, compression: float) -> None:
        self._from, self._to, self._compression = recording.began_at, row.began_at, compression

    def __call__(self, at: datetime) -> datetime:
        return self._to + timedelta(seconds=max(0.0, (at - self._from).total_seconds()) / self._compression)


def _recording(scenario: Scenario, row: RevisionRow) -> Recording | None:
    start = scenario.start(row.fate.outcome)
    return start.recording if start is not None else None


def _renamed(
    entry: dict[str, Any], recording: Recording, row: RevisionRow, at: datetime, entry_id: str
) -> dict[str, Any]:
    text = json.dumps(entry)
    if recording.revision:
        text = text.replace(recording.revision, row.name)
    entry_fields: dict[str, Any] = json.loads(text)  # not strict: written two lines above
    stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    entry_fields |= {"timestamp": stamp, "receiveTimestamp": stamp, "insertId": entry_id}
    labels = dict(entry_fields.get("labels") or {})
    if "instanceId" in labels:
        labels["instanceId"] = instance_of(row.name)
    return entry_fields | {"labels": labels}


_TIMES = ("timestamp", "receiveTimestamp", "TimeGenerated")  # of a LogEntry, and of a row of Azure Monitor


def persons_entries(
    scenario: Scenario, task: str, *, taken_at: datetime, compression: float
) -> Iterator[tuple[str, datetime, dict[str, Any]]]:
    """Yield what a sink lets through after a person took a task on: an id, the time it can be read, the entry.

    Nothing where no record tells what a person did. The lines are those of the recorded start that the scenario names,
    whatever the task said; each says that it is a rehearsal.

    Args:
        scenario: The record.
        task: The plan's id; the same task is acted out once.
        taken_at: When it was taken on, UTC.
        compression: Divides the time that the recorded start took.
    """
    outcome = next((o for o in scenario.outcome if o.name == scenario.by_person), None)
    if outcome is None or outcome.recording is None:
        return
    began = outcome.recording.began_at
    for number, entry in enumerate(scenario.events(outcome.recording)):
        after_s = max((moment(entry) - began).total_seconds(), 1.0)
        at = taken_at + timedelta(seconds=after_s / compression)
        entry_id = digest([scenario.service, task, number])[:20]
        stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        entry_fields = {**entry, **{name: stamp for name in _TIMES if name in entry}}
        yield entry_id, at, entry_fields | ({"insertId": entry_id} if "insertId" in entry else {})
