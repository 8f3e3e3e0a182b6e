"""Words of the end of a process, and words that only look like them; a text that ends with one is not harmless."""

import re

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.ends import ended_without_fault, says_it_ended
from tests.agent.failures.log_changes import ACCESS, BANNER, ENGINE, HEALTHY_START, READY, TOKENS

ENDS = [
    "gmake[5]: *** [CMakeFiles/lamp.di",
    "1 error generated.",
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
    "llm-7d9f8b6c5-x2x9k   0/1     Init:Error     0   4m",
    "llm-7d9f8b6c5-x2x9k   0/1     Evicted     0   4m",
    "llm-7d9f8b6c5-x2x9k   0/1     ContainerStatusUnknown     1   4m",
    "    State:          Terminated\n      Reason:       ContainerCannotRun\n      Exit Code:    128",
    "Warning  NodeLost  1m  node-controller  Node lamp-1 which was running pod llm-0 is unresponsive",
    "INFO:     Child process [42] died",
    "Signal (11) received.",
    "[ 1.000000] traps: VLLM::EngineCor[42] trap invalid opcode ip:7f sp:7f error:0",
    "root  42  0.0  0.0      0     0 ?  Z  10:00 0:00 [python3] <defunct>",
    "Scheduled event: Preempt for VM lamp-1",
    "Nov 26 10:00:00 lamp-1 systemd-shutdown[1]: Powering off.",
    "+ exit 137",
    "+ exit 1",
    'level=WARN msg="llama runner process exited" error="exit status 0xc0000409"',
    "llama-server exited with code 3221225477",
    "Nov 26 10:00:00 lamp-1 systemd[1]: vllm.service: Deactivated successfully.",
]
IN_ORDER = [
    "vllm: exited with status 143",
    "vllm: exited with status 130",
    'a1b2c3   lamp   "lamp"   2 minutes ago   Restarting (143) 9 seconds ago   lamp',
    "Main child exited normally with code: 130",
    "job exited with status 10 of 10 ok",
    "Ray is not running, using multiprocessing backend",
    "vLLM is not running in eager mode",
    "WARNING 05-06 07:08:09 [lamp.py:3] Triton is not running on this platform",
    "INFO 05-06 07:08:09 [lamp.py:3] Retrieval failed with status 12, falling back",
    "+ exit 0",
    *(f"make: *** [Makefile:5: serve] {signal}" for signal in ("Interrupt", "Terminated", "Error 130", "Error 143")),
    "vllm: exited with status 0",
    'a1b2c3   lamp   "lamp"   2 minutes ago   Exited (0) 9 seconds ago   lamp',
    'a1b2c3   lamp   "lamp"   2 minutes ago   Exited (143) 9 seconds ago   lamp',
    "PM2        | App [lamp:0] exited with code [0] via signal [SIGTERM]",
    "llm-7d9f8b6c5-x2x9k   1/1     Running   0   4m",
    "HTTP status code 404 is returned for a missing page",
    "the request finished with status 200",
    "llm-7d9f8b6c5-x2x9k   0/1     Terminating     0   4m",
    "[2031-05-06 07:08:09 +0000] [1] [INFO] Worker exiting (pid: 42)",
    "Nov 26 10:00:00 lamp-1 systemd[1]: user@1000.service: Deactivated successfully.",
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


LEAKED = (
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 "
    "leaked shared_memory objects to clean up at shutdown"
)


@pytest.mark.parametrize(
    "leaked",
    [
        [LEAKED],
        ["nanobind: leaked 7 functions!", ' - leaked function "reset"'],
        ["nanobind: leaked 3 keep_alive records!"],
    ],
)
def test_what_python_cleans_up_at_its_end_ends_the_server_unless_it_was_stopped(
    matcher: Matcher, leaked: list[str]
) -> None:
    assert not is_benign(matcher, [*HEALTHY_START, *leaked])
    assert is_benign(matcher, [*HEALTHY_START, "INFO:     Shutting down", *leaked])
    assert is_benign(matcher, [*HEALTHY_START, *leaked, *TOKENS])
    interrupt = "srun: interrupt (one more within 1 sec to abort)"
    assert is_benign(matcher, [*HEALTHY_START, interrupt, "INFO:     Shutting down", *leaked])
    assert not is_benign(matcher, [*BANNER, interrupt, *leaked])


def test_a_program_that_ends_below_a_full_count_of_its_prompts_has_done_its_work(matcher: Matcher) -> None:
    """It has no server: the same end of half the prompts, or with a fault, is none."""
    start = [*BANNER, *ENGINE]
    bars = [f"Processed prompts: {share:3}%|##| {share}/100 [03:03<00:00,  1.08s/it]" for share in (47, 100)]
    assert is_benign(matcher, [*start, *bars, LEAKED])
    assert not is_benign(matcher, [*start, bars[0], LEAKED])
    assert not is_benign(matcher, [*start, *bars, bars[0], LEAKED])
    assert not is_benign(matcher, [*start, *bars, *start, LEAKED])
    assert not is_benign(matcher, [*HEALTHY_START, *bars, LEAKED])
    two = [*(f"web-2  | {line}" for line in HEALTHY_START), *(f"web-1  | {line}" for line in [*start, *bars])]
    assert not is_benign(matcher, [*two, f"web-2  | {LEAKED}"])
    assert not is_benign(matcher, [*start, *bars, "Exited with exit code 134", LEAKED])


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("last", [LEAKED, ACCESS[0], ACCESS[3]], ids=["resource_tracker", "a probe", "another's probe"])
def test_notes_and_probes_below_an_end_do_not_hide_it(matcher: Matcher, end: str, last: str) -> None:
    assert not is_benign(matcher, [*HEALTHY_START, end, last])


@pytest.mark.parametrize("end", ["'vllm' process is not running", "make: *** [Makefile:5: serve] Error 2"])
def test_what_another_server_does_below_an_end_does_not_hide_it(matcher: Matcher, end: str) -> None:
    own = [f"vllm-1  | {line}" for line in HEALTHY_START]
    assert not is_benign(matcher, [*own, f"vllm-1  | {end}", *(f"vllm-2  | {line}" for line in HEALTHY_START)])
    assert is_benign(matcher, [*own, f"vllm-1  | {end}", *(f"vllm-1  | {line}" for line in TOKENS)])


@pytest.mark.parametrize(
    "end", ["make: *** [Makefile:5: serve] Error 2", "vllm: exited with status 1", "npm ERR! code 1"]
)
def test_an_end_of_nobody_is_of_the_named_server_that_says_nothing_below_it(matcher: Matcher, end: str) -> None:
    both = [f"vllm-{number}  | {line}" for line in HEALTHY_START for number in (1, 2)]
    goes_on = ["vllm-1  | " + line for line in TOKENS]
    assert not is_benign(matcher, [*both, end, *goes_on])
    assert not is_benign(matcher, [*both[::2], end, *both[1::2]])
    assert is_benign(matcher, [*both, end, *goes_on, *("vllm-2  | " + line for line in TOKENS)])
    assert is_benign(matcher, [*both, "vllm-2  | INFO:     Application shutdown complete.", end, *goes_on])


@pytest.mark.parametrize("said", ["make: *** [Makefile:5: smoke] Error 1", "Process exited with code 0"])
def test_where_a_server_works_below_an_end_nobody_knows_what_ended(matcher: Matcher, said: str) -> None:
    lines = [*HEALTHY_START, said, *TOKENS]
    finding = matcher.classify("\n".join(lines), whole_log=True, platform=None)
    assert finding.benign
    assert not finding.certain


@pytest.mark.parametrize("name", ["vllm-1", "Process", "Container"])
def test_of_what_ended_with_0_and_no_more_is_known_nothing_is_said(matcher: Matcher, name: str) -> None:
    """Unless it has a name that is no model server's, or somebody ordered it."""
    assert not is_benign(matcher, [f"{name} exited with code 0"])
    assert is_benign(matcher, ["migrate-1 exited with code 0"])
    assert is_benign(
        matcher, [" Container vllm-1  Stopping", " Container vllm-1  Stopped", f"{name} exited with code 0"]
    )


@pytest.mark.parametrize(
    "order", ["Gracefully stopping... (press Ctrl+C again to force)", " Container vllm-1  Stopping"]
)
def test_what_compose_was_told_to_stop_may_be_killed(matcher: Matcher, order: str) -> None:
    assert is_benign(matcher, [*HEALTHY_START, order, "vllm-1 exited with code 137"])
    assert not is_benign(matcher, [*HEALTHY_START, "vllm-1 exited with code 137"])


@pytest.mark.parametrize("code", ["0", "137", "139"])
def test_an_order_of_compose_is_for_the_container_that_it_names_until_it_starts_again(
    matcher: Matcher, code: str
) -> None:
    ended = f"vllm-1 exited with code {code}"
    assert not is_benign(matcher, [" Container proxy-1  Stopping", " Container proxy-1  Stopped", ended])
    assert not is_benign(matcher, [*HEALTHY_START, " Container proxy-1  Removed", ended])
    assert not is_benign(matcher, [" Container vllm-1  Stopped", " Container vllm-1  Started", ended])


def test_a_server_that_works_below_an_end_did_not_end(matcher: Matcher) -> None:
    assert is_benign(matcher, [*HEALTHY_START, "make: *** [Makefile:5: smoke] Error 1", LEAKED, *TOKENS])


@pytest.mark.parametrize("said", IN_ORDER)
def test_an_end_in_order_or_another_number_is_none(matcher: Matcher, said: str) -> None:
    assert not says_it_ended(said)
    assert is_benign(matcher, [*HEALTHY_START, said])


def test_a_server_that_was_up_and_ended_with_0_is_not_harmless(matcher: Matcher) -> None:
    """Unless it was told to, or another container is meant."""
    own = ["vllm-1  | " + line for line in HEALTHY_START]
    assert ended_without_fault("vllm-1 exited with code 0") == "vllm-1"
    assert not is_benign(matcher, [*HEALTHY_START, "Container called exit(0)."])
    assert not is_benign(matcher, [*own, "vllm-1 exited with code 0"])
    assert is_benign(matcher, [*own, "init-1 exited with code 0"])
    assert is_benign(matcher, [*own, "vllm-1  | INFO:     Application shutdown complete.", "vllm-1 exited with code 0"])
    assert is_benign(matcher, [*own, "vllm-1 exited with code 0", *(f"vllm-1  | {line}" for line in TOKENS)])


@pytest.mark.parametrize("code", ["0", "1", "134", "139", "255"])
def test_of_two_containers_the_one_that_ended_is_seen_whatever_the_other_says(matcher: Matcher, code: str) -> None:
    both = [f"vllm-{number}  | {line}" for line in HEALTHY_START for number in (1, 2)]
    goes_on = ["vllm-1  | " + line for line in TOKENS]
    ended = f"vllm-2 exited with code {code}"
    assert not is_benign(matcher, [*both, ended, *goes_on])
    in_order = "vllm-2  | INFO:     Application shutdown complete."
    assert is_benign(matcher, [*both, in_order, "vllm-2 exited with code 143", *goes_on])
    assert is_benign(matcher, [*both, "lamp-2 exited with code 0", *goes_on])


def test_a_segmentation_fault_in_any_spelling_is_not_certain(matcher: Matcher) -> None:
    for said in (
        "Uncaught signal: 11, pid=7, tid=7, fault_addr=0.",
        "[ 1.000000] traps: python3[42] general protection fault ip:7f sp:7f error:0 in libc.so.6",
        "Signal (11) received.",
        "llm-7d9f8b6c5-abcd4   0/1     CreateContainerError     0   4m",
    ):
        assert not matcher.classify(said, whole_log=True, platform=None).certain


@pytest.mark.parametrize(
    "end",
    [
        "lamp: exited with status 1",
        "PM2        | App [lamp:0] exited with code [1] via signal [SIGINT]",
        "lamp-a-x2x9k   0/1     Error   0   4m\nvllm-0   1/1     Running   0   4m",
    ],
)
def test_whose_end_it_is_that_nobody_names_is_not_known(matcher: Matcher, end: str) -> None:
    """Another program's end above a start is over; below a server that is up it is a doubt, and no dead engine."""
    assert matcher.classify("\n".join([*HEALTHY_START, end]), whole_log=True, platform=None).class_ == "unknown"
    assert is_benign(matcher, [end, *HEALTHY_START])


@pytest.mark.parametrize("kind", ["type: OutOfMemoryError", "exc: type: OutOfMemoryError, text: lamp"])
def test_an_exception_that_is_only_named_does_not_say_whose_memory(matcher: Matcher, kind: str) -> None:
    assert not matcher.classify(kind, whole_log=True, platform=None).certain
