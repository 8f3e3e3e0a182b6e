"""Configuration drift in words: what differs, who changed it when, and the command that makes it as declared."""

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from agent.core.change.asked_settings import AskedSettings
from agent.core.change.config_drift import ConfigChange, Drift, ServiceRecord, State
from agent.core.change.way_back import way_back
from agent.core.plan.action import Difference
from agent.core.text.safe_text import shortened
from agent.presentation.plan_title import number_in

SHORTLY: Final = timedelta(hours=24)
SHOWN_CHANGES: Final = 3
SHOWN_ROWS: Final = 4
_VALUE_CHARS: Final = 80
_NAMES: Final = {
    "max_instances": "the most instances",
    "min_instances": "the fewest instances",
    "concurrency": "the requests per instance",
    "memory_mib": "memory (MiB)",
    "cpu": "CPU",
    "accelerator_count": "the number of accelerators",
}
_BY_HAND: Final = ("startup_probe ", "liveness_probe ", "volume ")


def drift_line(row: Drift) -> str:
    """Return such as ``--max-num-seqs is 32, declared is 8``."""
    live = "is not set" if row.live is None else f"is {_value(row.live)}"
    wanted = "nothing" if row.wanted is None else _value(row.wanted)
    return f"{_name(row.path)} {live}, {row.against} is {wanted}"


def change_text(change: ConfigChange) -> str:
    """Return such as ``--max-num-seqs was raised from 8 to 32 by ada@example.com``."""
    rows = "; ".join(_row(row) for row in change.rows[:SHOWN_ROWS])
    more = f" and {len(change.rows) - SHOWN_ROWS} more" if len(change.rows) > SHOWN_ROWS else ""
    who = "an approved change of the agent" if change.ours else change.by or "somebody unknown"
    return f"{rows}{more} by {who}"


def change_line(change: ConfigChange, *, before: datetime) -> str:
    """Return such as ``--max-num-seqs was raised from 8 to 32 by ada@example.com 40 minutes before``."""
    return f"{change_text(change)} {_ago(before - change.at)} before"


def changes_before(record: ServiceRecord | None, at: datetime) -> tuple[str, ...]:
    """Return what was changed in the day before a time, the newest first; at most a few lines."""
    changes = record.changes if record is not None else ()
    recent = [c for c in reversed(changes) if timedelta(0) <= at - c.at <= SHORTLY]
    return tuple(change_line(change, before=at) for change in recent[:SHOWN_CHANGES])


def as_declared(service: str, rows: tuple[Drift, ...], state: State) -> tuple[str, ...]:
    """Return what makes a service as it was declared: one change request, and what only a person can do.

    Args:
        service: Its name.
        rows: The drift.
        state: What runs; see :func:`agent.core.change.way_back.way_back`.
    """
    asked, manual = way_back(rows, state)
    words = [word for option, value in _options(asked) for word in (option, value)]
    said = [shlex.join(["sre-agent", "change", service, *words, "--why", "as declared"])] if words else []
    return (*said, *(f"by hand: {_name(row.path)} to {_value(row.wanted or 'nothing')}" for row in manual))


def _options(asked: AskedSettings) -> Iterator[tuple[str, str]]:
    for name in ("set_flag", "unset_flag", "set_env", "scale", "concurrency", "resources", "accelerator"):
        given = getattr(asked, name)
        for value in (given,) if isinstance(given, str) and given else given:
            yield f"--{name.replace('_', '-')}", value


def _row(row: Difference) -> str:
    name = _name(row.path)
    if row.after is None:
        return f"{name} was removed (it was {_value(row.before or '')})"
    if row.before is None:
        return f"{name} was turned on" if row.after == "" else f"{name} was set to {_value(row.after)}"
    old, new = number_in(row.before), number_in(row.after)
    verb = "changed" if old is None or new is None else "raised" if new > old else "lowered"
    return f"{name} was {verb} from {_value(row.before)} to {_value(row.after)}"


def _name(path: str) -> str:
    if path.startswith(_BY_HAND):
        return path.replace("_", " ")
    return _NAMES.get(path, path.removeprefix("flag ").removeprefix("env "))


def _value(value: str) -> str:
    return shortened(value, _VALUE_CHARS) or "on"


def _ago(passed: timedelta) -> str:
    minutes = int(passed.total_seconds() // 60)
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{minutes // 60} hours"
