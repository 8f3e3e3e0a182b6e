"""What a sleeping server answers is no proof that it works."""

import pytest

from agent.failures.match.matcher import Matcher
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS

API = "(APIServer pid=7) "
TOOK = API + 'INFO:     10.0.0.1:40000 - "POST {what} HTTP/1.1" 200 OK'
REFUSED = API + 'INFO:     10.0.0.1:40000 - "POST {what} HTTP/1.1" 500 Internal Server Error'
FAILS = "(EngineCore pid=9) ERROR 05-06 07:08:09 [core.py:1365] RuntimeError: CUDA Error: out of memory at cumem.cpp:1"
SERVED = TOOK.format(what="/v1/chat/completions")


def classify(matcher: Matcher, *below: str) -> tuple[str, bool]:
    text = "\n".join([*HEALTHY_START, *below])
    found = matcher.classify(text, whole_log=True, platform=None)
    return str(found.class_), found.benign


def test_a_server_that_does_not_wake_is_not_well_for_an_answer_while_it_sleeps(matcher: Matcher) -> None:
    fell = TOOK.format(what="/sleep?level=1")
    for lines in (
        [fell, FAILS, REFUSED.format(what="/wake_up"), SERVED, *TOKENS],
        [FAILS, REFUSED.format(what="/wake_up?tags=weights"), SERVED],
        [fell, FAILS, SERVED, *TOKENS],
    ):
        assert classify(matcher, *lines) == ("gpu_oom_runtime", False)


@pytest.mark.parametrize("woke", [TOOK.format(what="/wake_up"), TOOK.format(what="/wake_up?tags=weights")])
def test_a_server_that_woke_in_the_end_is_well_once_it_answers(matcher: Matcher, woke: str) -> None:
    fell = TOOK.format(what="/sleep")
    assert classify(matcher, fell, FAILS, REFUSED.format(what="/wake_up"), woke, SERVED) == ("benign", True)


def test_a_sleep_that_was_refused_and_a_sleep_of_another_server_are_none(matcher: Matcher) -> None:
    assert classify(matcher, FAILS, REFUSED.format(what="/sleep"), SERVED) == ("benign", True)
    other = TOOK.format(what="/sleep").replace("pid=7", "pid=8")
    assert classify(matcher, other, FAILS, SERVED) == ("benign", True)


def test_a_new_start_is_awake(matcher: Matcher) -> None:
    fell = TOOK.format(what="/sleep")
    assert classify(matcher, fell, *HEALTHY_START, FAILS, SERVED) == ("benign", True)
