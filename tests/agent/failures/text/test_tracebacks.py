"""A traceback whose exception a log does not hold: what was raised is not known, and no note below it says so."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.tracebacks import ends_in_traceback
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS

FRAMES = ['  File "/srv/lamp.py", line 7, in light', "    burn(", "    ^^^^^"]
HEAD = "ERROR 05-06 07:09:11 client.py:250]"
STOPS = [
    "INFO:     Shutting down",
    "INFO:     Waiting for application shutdown.",
    "INFO:     Application shutdown complete.",
    "INFO:     Finished server process [7]",
]
LEAKED = [
    (
        "/usr/lib/python3.12/multiprocessing/resource_tracker.py:224: UserWarning: resource_tracker: "
        "There appear to be 1 leaked semaphore objects to clean up at shutdown"
    ),
    "  warnings.warn('resource_tracker: There appear to be %d '",
]


@pytest.mark.parametrize("below", [STOPS, [*STOPS, *LEAKED], [*STOPS[:2], *LEAKED]])
def test_no_note_below_a_traceback_is_its_exception(matcher: Matcher, below: list[str]) -> None:
    """Uvicorn writes five blanks behind its level; the warning that follows was taken for what had been raised."""
    raised = [f"{HEAD} {line}" for line in ("Traceback (most recent call last):", *FRAMES[:2])]
    log = [*TOKENS[:1], *raised, *below]
    assert matcher.classify("\n".join(log), whole_log=True, platform=None).class_ == "unknown"


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_start_that_ends_within_frames_is_not_harmless(matcher: Matcher, cut: int) -> None:
    """Its log was cut before the exception, and the head of the traceback with it; whole, the exception decides."""
    log = [*HEALTHY_START[:4], *FRAMES, *FRAMES[:cut]]
    assert ends_in_traceback(log)
    assert matcher.classify("\n".join([*log, "", ""]), whole_log=True, platform=None).class_ == "unknown"
    assert matcher.classify("\n".join(log[:4]), whole_log=True, platform=None).benign
    assert not ends_in_traceback([*log, "LampError: it is out"])
    assert not ends_in_traceback(log[:4])


def test_what_python_calls_when_a_stopped_server_ends_leaves_it_harmless(matcher: Matcher) -> None:
    """PyTorch frees its libraries there; a traceback that begins in another call leaves the end open."""
    head = "Traceback (most recent call last):"
    for first, known in (('  File "/usr/lib/python3.12/weakref.py", line 7, in _exitfunc', True), (FRAMES[0], False)):
        asked = "INFO 05-06 07:09:09 [launcher.py:9] [shutdown] API server: shutdown triggered"
        below = [f"(APIServer pid=7) {line}" for line in (asked, *STOPS, head, first, "    f()", *FRAMES)]
        log = [*HEALTHY_START, *TOKENS, *below]
        assert ends_in_traceback(log) is not known
        assert matcher.classify("\n".join(log), whole_log=True, platform=None).benign is known
