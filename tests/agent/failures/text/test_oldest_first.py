"""A log that was printed newest first is put in order; any other stays as it is."""

import json

import pytest

from agent.failures.text.entry_text import log_lines
from agent.failures.text.oldest_first import oldest_first

RECORDS = ["begins", "loads", "Traceback:", "serves", "ends"]


def iso(n: int) -> str:
    return f"2031-05-06T07:08:{n:02}.{n}Z"


@pytest.mark.parametrize(
    "time",
    [iso, lambda n: f"May  6 07:08:{n:02} web lamp[4]:", lambda n: f"INFO 05-06 07:08:{n:02} [lamp.py:1]"],
    ids=["iso", "syslog", "vllm"],
)
def test_times_that_fall_turn_the_log_and_lines_without_a_time_stay_below_theirs(time) -> None:
    written = [f"{time(n)} {said}" for n, said in enumerate(RECORDS)]
    block = [written[2], '  File "lamp.py"', "LampError"]
    newest = [*written[:2:-1], *block, *written[1::-1]]
    assert list(oldest_first(newest)) == [*written[:2], *block, *written[3:]]
    assert list(oldest_first(written)) == written


@pytest.mark.parametrize(
    "lines",
    [
        [],
        RECORDS,
        [f"{iso(n)} lamp" for n in (5, 4, 6, 7, 8)],
        [f"{iso(n)} lamp" for n in (9, 8)],
        [*(f"{iso(n)} lamp.txt" for n in (9, 8, 7, 6)), *["a lamp"] * 20],
        [*(f"2031-12-31 23:59:5{n} lamp" for n in range(9)), *(f"2032-01-01 00:00:0{n} lamp" for n in range(9))],
    ],
    ids=["nothing", "no times", "times that rise", "too few", "a table", "a new year"],
)
def test_other_logs_stay_as_they_are(lines: list[str]) -> None:
    assert list(oldest_first(lines)) == lines


def test_records_of_cloud_logging_are_read_from_the_oldest() -> None:
    entries = [{"textPayload": said, "timestamp": iso(n)} for n, said in enumerate(RECORDS)]
    assert log_lines(json.dumps(entries[::-1])) == log_lines(json.dumps(entries)) == RECORDS
    yaml = [f"---\ntextPayload: {said}\ntimestamp: '{iso(n)}'" for n, said in enumerate(RECORDS)]
    assert log_lines("\n".join(yaml[::-1])) == "\n".join(yaml).split("\n")
