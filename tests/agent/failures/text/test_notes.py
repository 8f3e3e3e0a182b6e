"""Notes: what says of itself that nothing is wrong, line by line and record by record."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import log_lines
from agent.failures.text.notes import is_mild_of_vllm, last_entry, notes_of, only_info
from tests.agent.failures.log_changes import BANNER, ENGINE

RECORD = '{"level":"info","msg":"the lamp is lit","ts":1}'


@pytest.mark.parametrize(
    "said", ['  File "/srv/lamp.py", line 3, in light', "Traceback (most recent call last):", "    light(lamp)"]
)
def test_a_traceback_that_somebody_logs_as_notes_is_no_mere_note(said: str) -> None:
    """TorchServe and launchers pass on what a worker prints as notes of their own; the exception may be cut off."""
    notes = [f"INFO worker - {said}", 'INFO worker -   File "/srv/lamp.py", line 4, in burn']
    assert only_info(notes) is False
    assert only_info(["INFO worker - lamp is lit", "INFO worker - lamp burns"]) is True


def test_the_fields_of_a_record_are_of_the_level_that_stands_among_them() -> None:
    lines = log_lines(f"{RECORD}\n{RECORD.replace('info', 'error')}")
    assert notes_of(lines) == {0, 1, 2}
    assert only_info(lines[:3])
    assert not only_info(lines)
    assert last_entry(lines) == lines[3:]
    assert last_entry(["INFO: the lamp is lit"]) == ["INFO: the lamp is lit"]


def test_a_note_of_vllm_has_its_date_and_its_place() -> None:
    assert is_mild_of_vllm("(APIServer pid=1) INFO 05-06 07:08:09 [lamp.py:3] lit")
    assert not is_mild_of_vllm("(APIServer pid=1) ERROR 05-06 07:08:09 [lamp.py:3] dark")
    assert not is_mild_of_vllm("INFO lit")


def test_many_waits_and_nothing_else_are_no_proof_that_all_is_well(matcher: Matcher) -> None:
    """A start that loads may say nothing else for a minute, and neither may one that stands still."""
    waits = [
        f"(APIServer pid=1) DEBUG 05-06 07:08:{second:02} [utils.py:7] Waiting for 1 local, 0 remote core engine proc(s) to start."
        for second in range(0, 60, 10)
    ]
    note = "(APIServer pid=1) INFO 05-06 07:08:59 [utils.py:7] Using max model len 8192"
    for lines, class_ in (
        (waits, "unknown"),
        ([note, *waits * 5, note], "unknown"),
        (waits[:3], "benign"),
        ([*BANNER, *ENGINE, *waits], "benign"),
    ):
        assert matcher.classify("\n".join(lines), whole_log=True, platform=None).class_ == class_
