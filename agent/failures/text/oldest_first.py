"""A log that was printed newest first, in the order in which it was written."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

FALLS = 3
"""So many times that fall, and hardly any that rise, are no chance."""

RISES_ONE_IN = 20
"""Programs that write into one log at once swap lines of the same moment."""

TIMED_ONE_IN = 4
"""Fewer lines with a time are a table that somebody shows in a log."""

HEAD_CHARS = 80

_MONTHS = {name: f"{number:02}" for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
)}  # fmt: skip
_TIME = re.compile(
    r"(?P<year>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<at>\d\d:\d\d:\d\d)(?P<part>[.,]\d{1,9})?"
    r"|\b(?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?P<hour>\d\d:\d\d:\d\d)\b"
    r"|\b(?P<short>\d\d-\d\d \d\d:\d\d:\d\d)\b"
)
_RECORD = "---"
"""``gcloud logging read`` writes it above each record, and the time below the words."""


def oldest_first(lines: Sequence[str]) -> Sequence[str]:
    """The lines in the order in which they were written; what has no time stays below the line that it follows."""
    starts = [at for at, line in enumerate(lines) if line.rstrip() == _RECORD]
    if starts[:1] == [0]:
        ends = [*starts[1:], len(lines)]
        times = [next(filter(None, map(_time_of_field, lines[a:b])), "") for a, b in zip(starts, ends, strict=True)]
        return _turned(lines, starts, times)
    first = next((at for at, line in enumerate(lines) if _time_of(line)), len(lines))
    last = next((at for at in range(len(lines) - 1, first, -1) if _time_of(lines[at])), first)
    if first == last or _time_of(lines[first]) < _time_of(lines[last]):  # most logs: two times decide
        return lines
    timed = [(at, time) for at, line in enumerate(lines) if (time := _time_of(line))]
    if len(timed) * TIMED_ONE_IN < sum(1 for line in lines if line.strip()):
        return lines
    return _turned(lines, [at for at, _ in timed], [time for _, time in timed])


def oldest_entries_first(entries: Sequence[object]) -> Sequence[object]:
    """Entries of Cloud Logging in the order of their times; it reads the newest first unless it is asked otherwise."""
    times = [str(entry.get("timestamp") or "") if isinstance(entry, Mapping) else "" for entry in entries]
    return entries[::-1] if all(times) and _fall(times) else entries


def _turned(lines: Sequence[str], starts: Sequence[int], times: Sequence[str]) -> Sequence[str]:
    if not _fall(times):
        return lines
    ends = [*starts[1:], len(lines)]
    blocks = [lines[first:last] for first, last in zip(starts, ends, strict=True)]
    return [*lines[: starts[0]], *(line for block in reversed(blocks) for line in block)]


def _fall(times: Sequence[str]) -> bool:
    pairs = [(one[:least], other[:least]) for one, other in pairwise(times) for least in [min(len(one), len(other))]]
    falls = sum(one > other for one, other in pairs)
    return falls >= FALLS and falls >= RISES_ONE_IN * sum(one < other for one, other in pairs)


def _time_of(line: str) -> str:
    """The time at the head of a line, so that later ones are greater; empty where it has none."""
    found = _TIME.search(line, 0, HEAD_CHARS)
    if found is None:
        return ""
    if found["month"]:
        month = _MONTHS.get(found["month"], "")
        return month and f"{month}-{found['day'].replace(' ', '0')} {found['hour']}"
    if found["short"]:
        return found["short"]
    return f"{found['year'].replace('/', '-')} {found['at']}{(found['part'] or '').replace(',', '.')}"


def _time_of_field(line: str) -> str:
    return _time_of(line) if line.startswith(("timestamp:", "TIMESTAMP:")) else ""
