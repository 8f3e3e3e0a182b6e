"""A person's work in a rehearsal: what somebody did on record is acted out when a task is taken on."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from agent.adapters.platform.rehearsal.scenario import Scenario, moment
from agent.core.value import digest

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
        told = {**entry, **{name: stamp for name in _TIMES if name in entry}}
        yield entry_id, at, told | ({"insertId": entry_id} if "insertId" in entry else {})
