"""Recorded logs are served like an instance's own, with the times that their lines tell."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.logs.file import FileLogs, timed_lines
from agent.ports.logs import InstanceLog, LogLine, Logs

START = datetime(2026, 5, 30, 1, 45, 0, tzinfo=UTC)


def recorded(
    count: int = 3, *, revision: str | None = "r1", instance: str | None = "i1", at: datetime = START
) -> InstanceLog:
    lines = tuple(LogLine(at=at + timedelta(seconds=n), text=f"line {n}") for n in range(count))
    return InstanceLog(service="s", revision=revision, instance=instance, lines=lines, complete=True)


def served(*logs: InstanceLog) -> Logs:
    return FileLogs(lambda service: tuple(log for log in logs if log.service == service))


LATER = START + timedelta(days=1)


def test_the_log_of_a_revision_is_found() -> None:
    """By revision, by instance, or by the service alone; another revision's log is not served for it."""
    logs = served(recorded(), recorded(revision="r2", instance="i2", at=START + timedelta(hours=1)))
    assert logs.instance_log("s", revision="r1", instance=None, until=LATER).instance == "i1"
    assert logs.instance_log("s", revision=None, instance="i2", until=LATER).revision == "r2"
    assert logs.instance_log("s", revision=None, instance=None, until=LATER).revision == "r2"
    assert logs.instance_log("s", revision="r3", instance=None, until=LATER) is None
    assert logs.instance_log("other", revision=None, instance=None, until=LATER) is None


def test_a_recording_without_a_revision_fits_each() -> None:
    """A bare file has neither revision nor instance."""
    logs = served(recorded(revision=None, instance=None))
    assert logs.instance_log("s", revision="r9", instance="i9", until=LATER) is not None


def test_nothing_after_the_event_is_read() -> None:
    """What was written later could not have been known."""
    log = served(recorded(10)).instance_log("s", revision=None, instance=None, until=START + timedelta(seconds=4))
    assert [line.text for line in log.lines] == [f"line {n}" for n in range(5)]


@pytest.mark.parametrize(("limit", "first", "last"), [(4, [0, 1], [8, 9]), (5, [0, 1, 2], [8, 9]), (1, [0], [])])
def test_of_too_many_lines_both_ends_are_kept(limit: int, first: list[int], last: list[int]) -> None:
    """The start tells the phase, the end the cause."""
    log = served(recorded(10)).instance_log("s", revision=None, instance=None, until=LATER, limit=limit)
    assert [line.text for line in log.lines] == [f"line {n}" for n in first + last]


def test_lines_tell_their_times_in_three_ways() -> None:
    """A LogEntry, an ISO time, vLLM's own stamp; a line without one has that of the line above."""
    entry = json.dumps({"timestamp": "2026-05-30T01:45:05.5Z", "textPayload": "from an entry"})
    text = "\n".join(
        [
            "before any time",
            entry,
            "2026-05-30T01:45:06Z from an iso time",
            "(EngineCore pid=1) ERROR 05-30 01:45:07 [core.py:1] from vLLM",
            '  File "core.py", line 1',
            "",
            json.dumps({"timestamp": "2026-05-30T01:45:08Z", "jsonPayload": {"message": "from a payload"}}),
        ]
    )
    lines = timed_lines(text, since=START)
    assert [(line.at - START).total_seconds() for line in lines] == [0, 5.5, 6, 7, 7, 8]
    assert [line.text for line in lines][1:3] == ["from an entry", "from an iso time"]
    assert lines[3].text.startswith("(EngineCore pid=1) ERROR 05-30")
    assert lines[5].text == "from a payload"


@pytest.mark.parametrize(
    "line",
    [
        "{not json",
        '{"timestamp": 5, "textPayload": "x"}',
        '{"timestamp": "yesterday", "textPayload": "x"}',
        "2026-13-45T99:99:99Z text",
        "INFO 02-30 25:61:00 [x.py:1] text",
        "{" * 5000,
        "\x00\x1b[31mred",
    ],
)
def test_a_hostile_line_is_only_a_line(line: str) -> None:
    """No time in it that can be read: it has the time of the line above, and the log goes on."""
    lines = timed_lines(f"2026-05-30T01:45:06Z one\n{line}\n2026-05-30T01:45:09Z two", since=START)
    assert [(x.at - START).total_seconds() for x in lines] == [6, 6, 9]


def test_times_never_run_backwards() -> None:
    """Two processes write into one log; the order of the text is the order of the log."""
    lines = timed_lines("2026-05-30T01:45:09Z a\n2026-05-30T01:45:06Z b", since=START)
    assert lines[0].at == lines[1].at
