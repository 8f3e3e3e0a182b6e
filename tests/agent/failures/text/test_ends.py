"""Words of the end of a process, and words that only look like them; a text that ends with one is not harmless."""

import re

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.ends import ended_with_none, says_it_ended
from tests.agent.failures.log_changes import BANNER, ENGINE, HEALTHY_START, READY, TOKENS

ENDS = [
    "run.sh: line 3:    99 Illegal instruction     (core dumped) vllm serve lamp",
    "run.sh: line 3:    99 Bus error               (core dumped) vllm serve lamp",
    "llm-7d9f8b6c5-x2x9k   0/1     Error   0   4m",
    "2031-05-06 07:08:09,000 INFO gave up: vllm entered FATAL state, too many start retries too quickly",
    "PM2        | App [vllm:0] exited with code [1] via signal [SIGINT]",
    "PM2        | App [vllm:0] exited with code [0] via signal [SIGKILL]",
    "vllm: exited with status 1",
    "com.lamp.vllm: Service exited with abnormal code: 1",
    "'vllm' process is not running",
    'a1b2c3   vllm/vllm-openai:latest   "vllm serve"   2 minutes ago   Exited (139) 9 seconds ago   vllm',
    'a1b2c3   vllm/vllm-openai:latest   "vllm serve"   2 minutes ago   Restarting (1) 3 seconds ago   vllm',
    "malloc(): corrupted top size",
    "make: *** [Makefile:5: serve] Error 137",
    "npm ERR! code ELIFECYCLE",
    "Main child exited with signal (with signal 'SIGKILL', core dumped? false)",
    "Main child exited normally with code: 1",
    "Exited with status 1 while running your code.",
    "Container terminated due to signal 9",
    "Runner terminated, in-progress inputs will be re-scheduled",
]
IN_ORDER = [
    "vllm: exited with status 0",
    'a1b2c3   lamp   "lamp"   2 minutes ago   Exited (0) 9 seconds ago   lamp',
    'a1b2c3   lamp   "lamp"   2 minutes ago   Exited (143) 9 seconds ago   lamp',
    "PM2        | App [lamp:0] exited with code [0] via signal [SIGTERM]",
    "llm-7d9f8b6c5-x2x9k   1/1     Running   0   4m",
    "HTTP status code 404 is returned for a missing page",
    "the request finished with status 200",
]


def unnamed(lines: list[str]) -> list[str]:
    """The same lines of a version that does not write its pids."""
    return [re.sub(r"^\((?:APIServer|EngineCore) pid=\d+\) ", "", line) for line in lines]


def is_benign(matcher: Matcher, lines: list[str]) -> bool:
    return matcher.classify("\n".join(lines), whole_log=True, platform=None).benign


@pytest.mark.parametrize("end", ENDS)
def test_a_log_that_ends_with_an_end_is_not_harmless(matcher: Matcher, end: str) -> None:
    for above in (HEALTHY_START, [*BANNER, *ENGINE, *READY], [*BANNER, *ENGINE[:3]], unnamed(HEALTHY_START)):
        assert not is_benign(matcher, [*above, end])
    stopped = "(APIServer pid=7) INFO 05-06 07:09:00 [launcher.py:9] Received signal SIGTERM"
    assert says_it_ended(end) or is_benign(matcher, [*HEALTHY_START, stopped, end])


@pytest.mark.parametrize("said", IN_ORDER)
def test_an_end_in_order_or_another_number_is_none(matcher: Matcher, said: str) -> None:
    assert not says_it_ended(said)
    assert is_benign(matcher, [*HEALTHY_START, said])


def test_a_server_that_was_up_and_ended_with_0_is_not_harmless(matcher: Matcher) -> None:
    """Unless it was told to, or another container is meant."""
    own = ["vllm-1  | " + line for line in HEALTHY_START]
    assert ended_with_none("vllm-1 exited with code 0") == "vllm-1"
    assert not is_benign(matcher, [*HEALTHY_START, "Container called exit(0)."])
    assert not is_benign(matcher, [*own, "vllm-1 exited with code 0"])
    assert is_benign(matcher, [*own, "init-1 exited with code 0"])
    assert is_benign(matcher, [*own, "vllm-1  | INFO:     Application shutdown complete.", "vllm-1 exited with code 0"])
    assert is_benign(matcher, [*own, "vllm-1 exited with code 0", *(f"vllm-1  | {line}" for line in TOKENS)])
