"""What was answered wrong once, each with the look-alikes that stay as they were."""

import re

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import log_lines
from tests.agent.failures.log_changes import ACCESS, BANNER, ENGINE, HEALTHY_START, READY, TOKENS

DEAD = "ERROR 05-06 07:09:11 [core.py:5] EngineCore encountered a fatal error."


def unnamed(lines: list[str]) -> list[str]:
    """The same lines of a version that does not write its pids."""
    return [re.sub(r"^\((?:APIServer|EngineCore) pid=\d+\) ", "", line) for line in lines]


def classify(matcher: Matcher, lines: list[str], platform: str | None = None) -> Finding:
    return matcher.classify("\n".join(log_lines("\n".join(lines))), whole_log=True, platform=platform)


@pytest.mark.parametrize("number", [46, 48, 62, 64, 74, 79, 94, 95, 119, 120, 140, 143, 144, 150, 158, 171])
@pytest.mark.parametrize("bus", ["PCI:0000:3b:00", "0000:3b:00", "PCI:0000:3b:00 GPU-I:05"])
def test_an_xid_of_the_card_is_hardware(matcher: Matcher, number: int, bus: str) -> None:
    """NVIDIA resets or replaces the card after these; older drivers write the bus without its kind."""
    for above in ([], HEALTHY_START):
        found = classify(matcher, [*above, f"kernel: NVRM: Xid ({bus}): {number}, pid=7, name=lamp, lamp"])
        assert (found.class_, found.certain) == ("gpu_hardware_fault", True)


@pytest.mark.parametrize("number", [11, 13, 31, 32, 39, 43, 45, 68, 69, 80, 126])
@pytest.mark.parametrize("bus", ["PCI:0000:3b:00", "0000:3b:00"])
def test_an_xid_of_a_program_is_no_certain_hardware(matcher: Matcher, number: int, bus: str) -> None:
    """NVIDIA restarts the program after these."""
    found = classify(matcher, [f"kernel: NVRM: Xid ({bus}): {number}, pid=7, name=lamp, Ch 00000008"])
    assert (found.class_, found.certain) == ("illegal_memory_access", False)


@pytest.mark.parametrize(
    "said",
    [
        "NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping",
        "NVRM: Xid (PCI:0000:3b:00): 92, pid='<unknown>', name=<unknown>, High single-bit ECC error rate",
        "NVRM: Xid (PCI:0000:3b:00): 145, RLW_REMAP Nonfatal XC1 i0 Link 06 (0x00000004 0x80000000)",
        "NVRM: Xid (PCI:0000:3b:00): 121, pid=7, name=lamp, C2C Link corrected error",
        "nvidia-nvswitch3: SXid (PCI:0000:c3:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
    ],
)
def test_an_xid_that_ends_nothing_is_harmless_and_never_certainly_so(matcher: Matcher, said: str) -> None:
    """A program may have been ended with it: the log must go on below."""
    for above in ([], HEALTHY_START):
        found = classify(matcher, [*above, said])
        assert (found.benign, found.certain) == (True, False)
    assert classify(matcher, [*HEALTHY_START, said, *TOKENS]).benign
    assert classify(matcher, [*HEALTHY_START, said, DEAD]).class_ == "engine_dead"


def test_a_fatal_error_beside_one_that_is_not_is_not_harmless(matcher: Matcher) -> None:
    found = classify(matcher, [*HEALTHY_START, "EngineCore encountered a fatal error; a non-fatal copy follows"])
    assert not found.benign


def test_an_xid_that_nobody_knows_is_a_guess(matcher: Matcher) -> None:
    found = classify(matcher, ["kernel: NVRM: Xid (PCI:0000:3b:00): 999, pid=7, name=lamp"])
    assert (found.class_, found.hint, found.certain) == ("gpu_hardware_fault", True, False)


@pytest.mark.parametrize("count", ["oom_score_adj:0", "failed: 0", "total: 0", "count 0", "errors=0"])
def test_a_count_of_none_behind_a_kill_does_not_deny_the_kill(matcher: Matcher, count: str) -> None:
    kill = "kernel: Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, UID:0"
    assert classify(matcher, [f"{kill} {count}"]).class_ == "host_oom"
    assert classify(matcher, [*HEALTHY_START, "oom_kill events: 0"]).benign


@pytest.mark.parametrize(
    ("said", "class_", "fix"),
    [
        ("docker: invalid reference format.", "invalid_flag", "fix_command_line"),
        ("Error response from daemon: invalid reference format", "invalid_flag", "fix_command_line"),
        (
            'Failed to apply default image tag "vllm:": couldn\'t parse image reference "vllm:": invalid reference format',
            "image_pull_failed",
            "fix_image_or_driver",
        ),
    ],
)
def test_a_word_that_is_no_image_name_is_a_bad_argument(matcher: Matcher, said: str, class_: str, fix: str) -> None:
    found = classify(matcher, [said])
    assert (found.class_, found.fix_actions[0]) == (class_, fix)
    assert found.certain == (class_ == "image_pull_failed")


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: Number of requested LoRAs (5) is greater than the number of GPU LoRA slots (2).",
        "ValueError: Number of requested LoRAs (5) greater than max_loras (2)",
        "ValueError: max_cpu_loras (1) must be >= max_loras (4).",
    ],
)
def test_more_adapters_than_slots_are_a_flag(matcher: Matcher, said: str) -> None:
    for above in ([], HEALTHY_START):
        found = classify(matcher, [*above, said])
        assert (found.class_, found.fix_actions[0], found.certain) == ("invalid_flag", "set_flag max_loras up", False)


@pytest.mark.parametrize("kind", ["Validation", "NotFound", "UnprocessableEntity", "Client"])
def test_a_refused_request_is_a_clients_only_where_a_server_has_clients(matcher: Matcher, kind: str) -> None:
    said = f"vllm.exceptions.VLLM{kind}Error: lamp must be at least 1, got 0."
    frames = [
        "(APIServer pid=7) Traceback (most recent call last):",
        '(APIServer pid=7)   File "/usr/local/bin/vllm", line 8, in <module>',
        "(APIServer pid=7)     sys.exit(main())",
    ]
    for above in ([*BANNER, *frames], [*BANNER, *ENGINE], [*BANNER, *ENGINE, *frames]):
        found = classify(matcher, [*above, f"(APIServer pid=7) {said}"])
        assert not found.benign
        assert not found.certain
    assert classify(matcher, [*HEALTHY_START, f"(APIServer pid=7) {said}"]).benign


LOST = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB",
    "ERROR 05-06 07:09:30 [lamp.py:3] RuntimeError: NCCL error: unhandled system error",
]


@pytest.mark.parametrize("trouble", LOST)
def test_of_two_unnamed_servers_that_are_up_neither_saves_the_other(matcher: Matcher, trouble: str) -> None:
    """Whether they began one after the other or at once; a start that somebody stopped first is up no more."""
    one = unnamed(HEALTHY_START)
    other = [line.replace("07:08", "07:18") for line in one]
    at_once = [line for pair in zip(one, other, strict=True) for line in pair]
    second_model = [line.replace("example/model", "example/other") if n % 2 else line for n, line in enumerate(at_once)]
    for above in ([*one, *other], at_once, second_model):
        found = classify(matcher, [*above, trouble, *unnamed(TOKENS), *unnamed(ACCESS)])
        assert (found.benign, found.certain) == (False, False)
        assert classify(matcher, [*above, *unnamed(TOKENS)]).benign
    stop = "INFO:     Application shutdown complete."
    for above in (one, [*one, stop, *other], [line for line in one for _ in range(2)]):
        assert classify(matcher, [*above, trouble, *unnamed(TOKENS)]).benign


@pytest.mark.parametrize("trouble", LOST)
def test_a_server_whose_lines_or_banner_stand_twice_is_one_and_not_certainly(matcher: Matcher, trouble: str) -> None:
    doubled = [
        f"2031-05-06 07:08:09.{2 * at + more:03d} {line}" for at, line in enumerate(HEALTHY_START) for more in (0, 1)
    ]
    begun = [*BANNER, *(line.replace("07:08:01", "07:08:02") for line in BANNER), *ENGINE, *READY]
    for above in (doubled, begun, unnamed(begun)):
        assert classify(matcher, [*above, trouble, *TOKENS]).benign
    assert not classify(matcher, [*begun, trouble, *TOKENS]).certain


@pytest.mark.parametrize("trouble", LOST)
def test_a_process_that_writes_no_more_when_another_began_is_no_second_server(matcher: Matcher, trouble: str) -> None:
    later = [line.replace("pid=7)", "pid=9)").replace("pid=71)", "pid=91)") for line in [*HEALTHY_START, *TOKENS]]
    found = classify(matcher, [*HEALTHY_START, *later[:-2], trouble, *later[-2:]])
    assert (found.benign, found.certain) == (True, False)
    assert not classify(matcher, [*HEALTHY_START, *later[:-2], *TOKENS, trouble, *later[-2:]]).benign


SYSTEMD = "Nov 26 10:00:00 lamp-1 systemd[1]: "


@pytest.mark.parametrize(
    "end", ["code=exited, status=1/FAILURE", "code=killed, status=9/KILL", "code=dumped, status=6"]
)
def test_a_fabric_manager_that_fails_beside_a_server_that_is_up_is_told(matcher: Matcher, end: str) -> None:
    """Until somebody starts it, or a server comes up below without it."""
    failed = f"{SYSTEMD}nvidia-fabricmanager.service: Main process exited, {end}"
    started = f"{SYSTEMD}Started nvidia-fabricmanager.service - NVIDIA fabric manager service."
    for below in ([], TOKENS):
        found = classify(matcher, [*HEALTHY_START, failed, *below])
        assert (found.class_, found.certain) == ("no_gpu_visible", False)
    assert classify(matcher, [*HEALTHY_START, failed, started, *TOKENS]).benign
    assert classify(matcher, [failed, *HEALTHY_START]).benign
    assert classify(matcher, [failed, *(f"lamp-1 vllm[9]: {line}" for line in HEALTHY_START)]).benign
    for other in ("lamp-2 vllm[9]: ", "web-2  | "):
        begun = [f"lamp-1 vllm[8]: {line}" for line in [*BANNER, *ENGINE[:3]]]
        for above in ([], begun):
            found = classify(matcher, [*above, failed, *(other + line for line in HEALTHY_START)])
            assert found.class_ == "no_gpu_visible"


def test_a_server_that_comes_up_ends_no_other_lack_of_cards(matcher: Matcher) -> None:
    """The fabric manager's end alone is over then: a plugin may have gone with the cards of another server."""
    gone = (
        "E0602 07:08:09.123456    900 endpoint.go:106] listAndWatch ended unexpectedly for device plugin nvidia.com/gpu"
    )
    assert classify(matcher, [gone, *HEALTHY_START]).class_ == "no_gpu_visible"


def test_an_autoscaler_that_plans_a_node_lacks_none_whoever_else_runs(matcher: Matcher) -> None:
    """Without the plan below, the same words are a lack of cards."""
    checked = (
        "I1120 10:00:00.534530 1 orchestrator.go:546] Pod a can't be scheduled on group-1, predicate checking error: "
    )
    checked += "Insufficient nvidia.com/gpu; predicateName=NodeResourcesFit"
    planned = "I1120 10:00:00.534710 1 orchestrator.go:250] Final scale-up plan: [{gpu-pool 0->1 (max: 4)}]"
    other = [f"web-2  | {line}" for line in HEALTHY_START]
    assert classify(matcher, [f"web-1  | {checked}", f"web-1  | {planned}", *other]).benign
    assert classify(matcher, [f"web-1  | {checked}", *other]).class_ == "quota_exceeded"


PROBE = "Warning  Unhealthy  9s  kubelet  Startup probe failed: dial tcp 10.0.0.1:8000: connect: connection refused"


def test_one_try_of_a_probe_is_silent_where_the_server_comes_up_and_never_certain_without_an_end(
    matcher: Matcher,
) -> None:
    begun = [*BANNER, *ENGINE[:4]]
    assert classify(matcher, [*begun, PROBE, *ENGINE[4:], *READY]).benign
    one = classify(matcher, [*begun, PROBE])
    assert (one.class_, one.certain) == ("startup_probe_failed", False)
    killing = "Normal  Killing  1s  kubelet  Container vllm failed startup probe, will be restarted"
    assert classify(matcher, [*begun, PROBE, killing]).certain


def test_a_node_that_is_ready_again_is_not_lost(matcher: Matcher) -> None:
    lost = "Normal  NodeNotReady  2m  node-controller  Node lamp-1 status is now: NodeNotReady"
    back = "Normal  NodeReady  1m  kubelet  Node lamp-1 status is now: NodeReady"
    found = classify(matcher, [*HEALTHY_START, lost, back, *TOKENS])
    assert (found.benign, found.certain) == (True, False)
    evicted = "Normal  TaintManagerEviction  1m  taint-eviction-controller  Marking for deletion Pod default/lamp-0"
    pod_gone = "Normal  Evicted  1m  taint-eviction-controller  Pod lamp-0 leaves the node"
    for below in (
        *([], [back.replace("lamp-1", "lamp-2")], [back.replace("1m", "5m")], [evicted, back], [pod_gone, back]),
        ["autoscaler: still waiting for NodeReady of lamp-1"],
        ["condition NodeReady=False for lamp-1"],
    ):
        assert classify(matcher, [*HEALTHY_START, lost, *below]).class_ == "engine_dead"
    nameless = "3m  Warning  NodeNotReady  pod/vllm-0  Node is not ready"
    assert classify(matcher, [*HEALTHY_START, nameless, back]).class_ == "engine_dead"


def test_a_node_that_is_ready_again_excuses_nothing_else(matcher: Matcher) -> None:
    lost = "Warning  NodeNotReady  2m  node-controller  Node lamp-1 status is now: NodeNotReady ({})"
    back = "Normal  NodeReady  1m  kubelet  Node lamp-1 status is now: NodeReady"
    for said, class_ in (
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus", "gpu_hardware_fault"),
        ("lamp-0 OOMKilled, exit code 137", "host_oom"),
    ):
        found = classify(matcher, [*HEALTHY_START, lost.format(said), back])
        assert (found.class_, found.certain) == (class_, True)


def test_an_answer_of_500_is_over_when_the_same_is_answered(matcher: Matcher) -> None:
    failed = '10.0.0.9 - - "POST /predict HTTP/1.1" 500 -'
    served = failed.replace("500", "200")
    assert not classify(matcher, [failed]).benign
    assert not classify(matcher, [served, failed]).benign
    assert not classify(matcher, [failed, served.replace("POST /predict", "GET /health")]).benign
    assert classify(matcher, [failed, served]).class_ in {"benign", "unknown"}


ANSWERED_500 = 'INFO:     10.0.0.9:41010 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error'
ANSWERED_200 = ANSWERED_500.replace("500 Internal Server Error", "200 OK")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[pod/lamp-0/vllm] ", "[pod/lamp-1/vllm] "),
        ("lamp-1  | ", "lamp-2  | "),
        ("host-a vllm[7]: ", "host-b vllm[7]: "),
        ("nginx-1  | ", "lamp-2  | "),
        ("(APIServer pid=7) ", "(APIServer pid=9) "),
    ],
    ids=["kubectl", "compose", "journal", "a gateway's", "another process"],
)
def test_what_another_server_answers_does_not_end_a_500(matcher: Matcher, one: str, other: str) -> None:
    failed, served = [one + ANSWERED_500] * 9, [other + ANSWERED_200]
    for above in ([], [one + line.partition(") ")[2] for line in HEALTHY_START if ") " in line]):
        assert classify(matcher, [*above, *failed, *served]).class_ == "engine_dead"
        mixed = [line for line in failed for line in (line, *served)]
        assert classify(matcher, [*above, *mixed]).class_ == "engine_dead"


def test_a_500_that_is_answered_later_is_not_certainly_over(matcher: Matcher) -> None:
    """A gateway answers for several servers."""
    served = [f"lamp-2  | {line}" for line in HEALTHY_START]
    found = classify(matcher, [*[f"nginx-1  | {ANSWERED_500}"] * 9, f"nginx-1  | {ANSWERED_200}", *served])
    assert not found.certain


TRIED = 'STARTUP HTTP probe failed {} times consecutively for container "{}" on port 8080 path "/health". Connection refused.'
PASSED = 'STARTUP HTTP probe succeeded after {} attempts for container "{}" on port 8080 path "/health".'


def test_a_probe_that_failed_and_succeeded_after_more_tries_is_over(matcher: Matcher) -> None:
    """Cloud Run counts the tries of one instance; several write into one stream, so it is not certain."""
    begun = "Starting new instance. Reason: AUTOSCALING - Instance started due to traffic increase"
    tried = [begun, TRIED.format(1, "lamp-1"), TRIED.format(2, "lamp-1")]
    over = classify(matcher, [*tried, PASSED.format(3, "lamp-1")], "cloud_run")
    assert over.benign
    assert not over.certain
    for passed in (
        PASSED.format(2, "lamp-1"),
        PASSED.format(3, "lamp-2"),
        PASSED.format(3, "lamp-1").replace("HTTP", "TCP"),
    ):
        assert not classify(matcher, [*tried, passed], "cloud_run").benign
    assert not classify(matcher, [begun, PASSED.format(3, "lamp-1"), *tried], "cloud_run").benign
    gave_up = TRIED.format(1, "lamp-1") + " The instance was not started."
    assert not classify(matcher, [begun, gave_up, begun, PASSED.format(3, "lamp-1")], "cloud_run").benign


def test_what_a_server_answers_of_others_does_not_end_its_500s_of_one_route(matcher: Matcher) -> None:
    """Two may be chance, and are not certainly over."""
    failed = f"(APIServer pid=7) {ANSWERED_500}".replace("/chat/completions", "/embeddings")
    assert classify(matcher, [*HEALTHY_START, *[failed] * 3, *TOKENS]).class_ == "engine_dead"
    assert classify(matcher, [*HEALTHY_START, *[failed, TOKENS[0]] * 9, TOKENS[1]]).class_ == "engine_dead"
    few = classify(matcher, [*HEALTHY_START, *[failed] * 2, *TOKENS])
    assert few.benign
    assert not few.certain
    served = failed.replace("500 Internal Server Error", "200 OK")
    assert classify(matcher, [*HEALTHY_START, *[failed] * 9, served]).benign


def test_what_the_next_start_answers_does_not_end_a_500(matcher: Matcher) -> None:
    again = [line.replace("pid=7)", "pid=9)").replace("pid=71)", "pid=91)") for line in HEALTHY_START]
    failed = [f"(APIServer pid=7) {ANSWERED_500}"] * 3
    assert classify(matcher, [*BANNER, *ENGINE, *READY, *failed, *again]).class_ == "engine_dead"


def test_what_a_rule_calls_harmless_hides_no_other_trouble(matcher: Matcher) -> None:
    """One line of statistics without a token is a long prompt; beside it a container may have ended."""
    waits = TOKENS[1].replace("31.2", "0.0").replace("12.0", "0.0").replace("Running: 3", "Running: 4")
    ended = "vllm-1 exited with code 1"
    assert classify(matcher, [*HEALTHY_START, waits]).benign
    for lines in ([waits, ended], [ended, waits]):
        assert classify(matcher, [*HEALTHY_START, *lines]).class_ == "engine_dead"
