"""What IPython quotes around a line that failed is no evidence; what was raised below it is."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.numbered_source import is_numbered_source

HEADS = ["File ~/lamp/worker.py:116, in Lamp.light(self, oil)", "/srv/lamp/worker.py in light(self, oil)"]
SOURCE = [
    "    476     if self.cache_config.num_gpu_blocks_override is not None:",
    "--> 477         num_gpu_blocks_override = self.cache_config.num_gpu_blocks_override",
    "    478 return num_gpu_blocks_override",
]


@pytest.mark.parametrize("head", HEADS)
def test_numbered_lines_below_a_frame_are_source(matcher: Matcher, head: str) -> None:
    """The exception decides, and not a name that stands near the line that raised it."""
    log = [head, *SOURCE, "", "RuntimeError: CUDA error: an illegal memory access was encountered"]
    assert [is_numbered_source(log, at) for at in range(len(log))] == [False, True, True, True, False, False]
    found = matcher.classify("\n".join(log), whole_log=True, platform=None)
    assert found.class_ == "illegal_memory_access"
    assert not any("num_gpu_blocks_override" in line.text for line in found.evidence)


@pytest.mark.parametrize("above", [[], ["INFO 05-06 07:08:09 [lamp.py:3] it burns"], [HEADS[0], ""]])
def test_a_number_without_a_frame_above_is_no_source(above: list[str]) -> None:
    """Logs begin with numbers too: process ids, times, rows of a table."""
    log = [*above, "2031 ERROR num_gpu_blocks_override is too small"]
    assert not is_numbered_source(log, len(above))
