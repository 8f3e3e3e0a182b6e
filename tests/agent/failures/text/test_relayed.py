"""What a launcher passes on is read as its server wrote it."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.relayed import unrelayed
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS

OOM = "(EngineCore pid=71) ERROR 05-06 07:10:01 [core.py:7] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."
HEADS = [
    "2031-05-06 07:08:09,123 - launcher - INFO - ",
    "INFO:launcher:",
    "2031-05-06T07:08:09Z INFO launcher: ",
    "[INFO] launcher: ",
    "INFO  [launcher] ",
    "2031-05-06 07:08:09.123 | INFO     | lamp.launch:run:12 - ",
]


@pytest.mark.parametrize("head", HEADS)
def test_a_failure_that_a_launcher_passes_on_as_a_note_is_one(matcher: Matcher, head: str) -> None:
    for lines, class_ in (([*HEALTHY_START, OOM], "gpu_oom_runtime"), ([*HEALTHY_START, OOM, *TOKENS], "benign")):
        text = "\n".join(head + line for line in lines)
        assert matcher.classify(text, whole_log=True, platform=None).class_ == class_
    refused = f"{head}vllm serve: error: unrecognized arguments: --lamp"
    assert matcher.classify(refused, whole_log=True, platform=None).class_ == "invalid_flag"


@pytest.mark.parametrize("head", HEADS)
def test_notes_of_a_program_are_its_own(head: str) -> None:
    notes = [f"{head}lamp {number} is on" for number in range(30)]
    assert unrelayed(notes) == notes
    assert unrelayed([*notes, OOM]) == [*notes, OOM]
    assert unrelayed(HEALTHY_START) == HEALTHY_START
    assert unrelayed([head + OOM, "", head + "lamp"]) == [OOM, "", "lamp"]
