"""The verdict: silence on healthy logs, doubt where the text leaves doubt."""

from collections.abc import Sequence

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from tests.agent.failures.log_changes import BANNER as FIRST_LINES
from tests.agent.failures.log_changes import ENGINE, HEALTHY_START, READY, TOKENS

STAMP = "2031-05-06 07:08:09"
HEALTHY = [
    'vllm:num_requests_waiting{engine="0",model_name="m"} 0.0',
    "# If the pod is OOMKilled, give it a larger memory limit",
    "# If you see CUDA out of memory, serve a shorter context",
    f"{STAMP} INFO  [worker-3] storage.BlockKeeper - block 7781 written to 10.9.8.7:5010, size 4096",
    f"{STAMP} INFO scheduler.TaskSet: finished task 3.0 in stage 0.0 (TID 3) in 41 ms",
    f"{STAMP} DEBUG cache.Pool: notification time out 3200, retry in 5 s",
    "May  6 07:08:09 host-a sshd[1993]: session opened for user deploy by (uid=501)",
    "May  6 07:08:09 host-a systemd[1]: Started vllm.service - LLM server.",
    "kernel: [    1.234567] nvidia: loading out-of-tree module taints kernel.",
    '10.1.2.3 - - [06/May/2031:07:08:09 +0000] "GET /healthz HTTP/1.1" 200 2 "-" "kube-probe/1.44"',
    '{"level":"info","ts":1936000000.1,"caller":"ctl.go:11","msg":"reconciled","quota":"ok","timeout":"30s"}',
    "I0506 07:08:09.123456       1 lease.go:25] attempting to acquire leader lease",
    "Normal  Scheduled  10s  default-scheduler  Successfully assigned default/llm-0 to node-a",
    "INFO 05-06 07:08:09 [gpu_model_runner.py:2602] Starting to load model example/model...",
    "(APIServer pid=1) INFO 05-06 07:08:09 [utils.py:233] non-default args: {'tool_call_parser': 'gemma4', 'limit_mm_per_prompt': {'image': 2}}",
    "INFO 05-06 07:08:09 [kv_cache_utils.py:1087] GPU KV cache size: 164,032 tokens",
    '    Args: --speculative-config={"method":"eagle","use_local_argmax_reduction":true}',
    "loaded Custom proposer class lamp.Prop",
    "Using custom proposer module path lamp.prop",
    "redis: URI format - redis://host:port",
    "WARNING 05-06 07:08:09 [model.py:1389] Default sampling parameters have been overridden by the model's Hugging Face generation config",
    "llm-0:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.3<0>",
    "Downloading shards: 100%|##########| 12/12 [03:12<00:00, 16.0s/it]",
    "(APIServer pid=1) INFO 05-06 07:08:09 [loggers.py:257] Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: 31.2 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.4%, Prefix cache hit rate: 0.0%",
]


def test_a_healthy_log_holds_no_trouble_line(matcher: Matcher) -> None:
    assert [HEALTHY[index] for index, _ in matcher.troubles(HEALTHY * 3)] == []


def test_a_healthy_log_as_a_whole_is_benign(matcher: Matcher) -> None:
    assert matcher.classify("\n".join(HEALTHY), whole_log=True, platform=None).benign


@pytest.mark.parametrize("line", HEALTHY)
def test_a_healthy_line_alone_is_benign_or_unknown_and_never_an_incident(matcher: Matcher, line: str) -> None:
    found = matcher.classify(line, whole_log=False, platform=None)
    assert found.benign or found.class_ == "unknown"


def stats(waiting: int, usage: float) -> str:
    return (
        "(APIServer pid=1) INFO 05-06 07:08:09 [loggers.py:257] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg "
        f"generation throughput: 90.5 tokens/s, Running: 64 reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%"
    )


def test_a_queue_that_drained_is_no_incident_and_one_that_stands_is(matcher: Matcher) -> None:
    full = [HEALTHY[14], "(APIServer pid=1) INFO:     Application startup complete.", stats(200, 97.2), stats(80, 99.5)]
    assert matcher.classify("\n".join([*full, stats(0, 61.0)]), whole_log=True, platform=None).benign
    assert matcher.classify("\n".join(full), whole_log=True, platform=None).class_ == "queue_saturation"
    stopped = "(EngineCore pid=9) INFO 05-06 07:09:09 [core.py:9] Shutdown initiated (timeout=0)"
    ended = "(EngineCore pid=9) INFO 05-06 07:09:09 [core.py:9] Shutdown complete"
    assert matcher.classify("\n".join([*full, stopped, ended]), whole_log=True, platform=None).benign
    aborts = [*full, stopped, "(EngineCore pid=9) INFO 05-06 07:09:09 [core.py:9] Aborting 29 requests", ended]
    assert matcher.classify("\n".join(aborts), whole_log=True, platform=None).class_ == "queue_saturation"
    again = [*full, stats(0, 61.0), stats(90, 98.1)]
    assert matcher.classify("\n".join(again), whole_log=True, platform=None).class_ == "queue_saturation"


def test_a_worker_that_ends_after_its_engine_was_told_to_is_no_incident(matcher: Matcher) -> None:
    died = (
        "(EngineCore pid=9) ERROR 05-06 07:09:14 [multiproc_executor.py:9] Worker proc VllmWorker-0 died unexpectedly"
    )
    told = "(EngineCore pid=9) INFO 05-06 07:09:09 [core.py:9] Shutdown initiated (timeout=0)"
    up = [HEALTHY[14], "(APIServer pid=1) INFO:     Application startup complete.", stats(0, 9.5)]
    assert matcher.classify("\n".join([*up, told, died]), whole_log=True, platform=None).benign
    assert matcher.classify("\n".join([*up, died, told]), whole_log=True, platform=None).class_ == "engine_dead"


STARTS = [
    "(APIServer pid=9) INFO 05-06 07:08:01 [api_server.py:9] vLLM API server version 0.32.0",
    "(EngineCore pid=12) INFO 05-06 07:08:02 [gpu_model_runner.py:9] Starting to load model example/lamp...",
]


def test_an_interrupt_at_the_terminal_is_an_operators_stop(matcher: Matcher) -> None:
    """The traceback is the interrupt's; another one is not."""
    program = '(APIServer pid=9)   File "/usr/local/bin/vllm", line 3, in <module>'
    shown = ["(APIServer pid=9) Traceback (most recent call last):", program]
    shown.append("(APIServer pid=9)     raise KeyboardInterrupt()")
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete."]
    stopped = "\n".join([*up, *shown, "(APIServer pid=9) KeyboardInterrupt"])
    assert matcher.classify(stopped, whole_log=True, platform=None).benign
    other = stopped.replace(") KeyboardInterrupt", ") LampError")
    assert not matcher.classify(other, whole_log=True, platform=None).benign


def test_a_long_traceback_belongs_to_the_interrupt_that_ends_it(matcher: Matcher) -> None:
    frame = ['(APIServer pid=9)   File "/srv/lamp.py", line 3, in <module>', "(APIServer pid=9)     import lamp"]
    head = "(APIServer pid=9) Traceback (most recent call last):"
    shown = "\n".join([*STARTS[:1], head, *frame * 90, "(APIServer pid=9) KeyboardInterrupt: terminated"])
    assert matcher.classify(shown, whole_log=True, platform=None).benign


def test_a_job_that_was_cancelled_is_an_operators_stop_and_one_out_of_time_is_not(matcher: Matcher) -> None:
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete."]
    end = "slurmstepd: error: *** JOB 7 ON lamp1 CANCELLED AT 2031-05-06T07:08:09 {}***"
    assert matcher.classify("\n".join([*up, end.format("")]), whole_log=True, platform=None).benign
    late = matcher.classify("\n".join([*up, end.format("DUE TO TIME LIMIT ")]), whole_log=True, platform=None)
    assert late.class_ == "quota_exceeded"


STATS = stats(0, 9.5).replace("pid=1)", "pid=9)")
SERVED = '(APIServer pid=9) INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


@pytest.mark.parametrize("below", [STATS, SERVED])
@pytest.mark.parametrize("why", ["TIME LIMIT", "NODE FAILURE", "PREEMPTION"])
def test_what_a_server_prints_until_slurm_kills_it_does_not_undo_its_end(
    matcher: Matcher, why: str, below: str
) -> None:
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete."]
    end = f"slurmstepd: error: *** JOB 7 ON lamp1 CANCELLED AT 2031-05-06T07:08:09 DUE TO {why} ***"
    found = matcher.classify("\n".join([*up, end, below]), whole_log=True, platform=None)
    assert (found.class_, found.signature) == ("quota_exceeded", "slurm_took_it_back")


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ("ERROR lamp: lamps failed: 0 of 2 became bright", "unknown"),
        ("ERROR lamp: lamps failed: 0, errors: 12 of 12 lost", "unknown"),
        ("CRITICAL lamp: lamp 3 vanished; errors: 0", "unknown"),
        ("vllm[123]: error: the lamp is lost", "unknown"),
        ("Slurmd: error: the lamp is lost", "unknown"),
        ("error: the lamp is lost", "unknown"),
        ("2031/05/06 07:08:09 [error] 31#31: *5 the lamp closed its connection", "unknown"),
        ("Failed lamps:            0", "benign"),
    ],
)
def test_an_error_below_a_healthy_start_is_unknown(matcher: Matcher, line: str, class_: str) -> None:
    """A count of no failures in it, small letters and a pid make it no less of one."""
    text = "\n".join([*STARTS, "(APIServer pid=9) INFO:     Application startup complete.", line, STATS])
    assert matcher.classify(text, whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    "line",
    [
        "[2031-05-06 07:08:09,123 W 7 9] (raylet) lamp.cc:3: the node is short, killing the latest task",
        'time="2031-05-06T07:08:09Z" level=warning msg="Failed to resolve owner references: lamp"',
    ],
)
def test_a_warning_of_a_program_beside_the_server_is_unknown_alone(matcher: Matcher, line: str) -> None:
    """Below a healthy start it is none of the server's troubles."""
    assert matcher.classify(line, whole_log=False, platform=None).class_ == "unknown"


def test_an_engine_that_was_interrupted_announces_no_death(matcher: Matcher) -> None:
    said = ["Process EngineCore:", "Traceback (most recent call last):", '  File "x.py", line 3, in run', "{}"]
    text = "\n".join([*STARTS, *(f"(EngineCore pid=12) {line}" for line in said)])
    assert matcher.classify(text.format("KeyboardInterrupt"), whole_log=True, platform=None).class_ == "unknown"
    died = matcher.classify(text.format("LampError"), whole_log=True, platform=None)
    assert died.class_ == "engine_dead"


def test_a_stop_is_no_progress_of_what_waited(matcher: Matcher) -> None:
    waits = "INFO 05-06 07:08:0{} [ray_utils.py:9] Waiting for creating a placement group of specs for {} seconds."
    text = "\n".join(
        [*STARTS[:1], waits.format(3, 30), waits.format(5, 70), "*** SIGTERM received at time=7 on cpu 8 ***"]
    )
    assert matcher.classify(text, whole_log=True, platform=None).class_ == "no_gpu_visible"


def test_a_warning_about_requests_to_come_is_over_with_the_start(matcher: Matcher) -> None:
    warned = "(APIServer pid=9) WARNING 05-06 07:08:03 [vllm.py:9] check whether your reasoning parser has start tokens"
    up = "(APIServer pid=9) INFO:     Application startup complete."
    assert matcher.classify("\n".join([*STARTS, warned, up]), whole_log=True, platform=None).benign
    assert (
        matcher.classify("\n".join([*STARTS, up, warned]), whole_log=True, platform=None).class_ == "tool_parser_error"
    )


def test_two_causes_of_the_same_rank_leave_doubt(matcher: Matcher) -> None:
    text = "RuntimeError: operator torchvision::nms does not exist\nImportError: cannot import name 'x'"
    assert not matcher.classify(text, whole_log=True, platform=None).certain


def test_a_consequence_alone_is_said_to_be_one(matcher: Matcher) -> None:
    found = matcher.classify(
        "RuntimeError: Engine core initialization failed. See root cause above.", whole_log=False, platform=None
    )
    assert found.consequence
    assert not found.certain
    assert found.confidence <= 0.6


def test_evidence_points_at_lines_that_exist_and_stays_short(matcher: Matcher) -> None:
    text = "\n".join(["noise"] * 50 + ["OOMKilled " + "x" * 5000] + ["noise"] * 50)
    found = matcher.classify(text, whole_log=True, platform=None)
    assert found.evidence[0].index == 50
    assert all(len(line.text) <= 500 for line in found.evidence)


PROBE_LINES = [
    'STARTUP HTTP probe failed 10 times for container "v" on port 8000. Connection failed with status ERROR_CONNECTION_FAILED',
    "Warning  Unhealthy  1s (x60 over 10m)  kubelet  Startup probe failed: dial tcp 10.0.0.7:8000: connect: connection refused",
    "Probe of StartUp failed with status code: 1",
]
LOADING = [
    "INFO 05-06 07:00:00 [gpu_model_runner.py:2602] Starting to load model example/model...",
    "INFO 05-06 07:00:01 [weight_utils.py:1071] Prefetching checkpoint files into page cache started (in background)",
    "Loading safetensors checkpoint shards:  20% Completed | 1/5 [04:01<16:04, 241.00s/it]",
]
LOADED = [
    *LOADING,
    "INFO 05-06 07:11:04 [default_loader.py:502] Loading weights took 664.24 seconds",
    "INFO 05-06 07:11:05 [gpu_model_runner.py:5150] Model loading took 15.62 GiB memory and 664.500000 seconds",
]


@pytest.mark.parametrize("probe", PROBE_LINES)
@pytest.mark.parametrize("log", [LOADING, LOADED])
def test_a_probe_that_ends_a_healthy_load_is_the_cause_itself(matcher: Matcher, log: list[str], probe: str) -> None:
    found = matcher.classify("\n".join([*log, probe]), whole_log=True, platform=None)
    assert (found.class_, found.certain, found.consequence) == ("startup_probe_failed", True, False)
    assert found.fix_actions[0] == "increase_startup_probe"
    assert found.fields.get("weights_load_s") == (664.24 if log is LOADED else None)


@pytest.mark.parametrize("probe", PROBE_LINES)
def test_the_same_probe_without_the_log_stays_uncertain(matcher: Matcher, probe: str) -> None:
    for text in (probe, "\n".join([*LOADED, probe])):
        assert not matcher.classify(text, whole_log=False, platform=None).certain


@pytest.mark.parametrize("probe", PROBE_LINES)
@pytest.mark.parametrize(
    "crash",
    [
        "ValueError: No available memory for the cache blocks.",
        "ERROR 05-06 07:11:06 [core.py:700] frobnicator gave up: nobody has written this before",
        "thread main panicked: nobody has written this before",
        "Container called exit(1).",
    ],
)
def test_the_same_probe_after_a_crash_is_no_cause(matcher: Matcher, probe: str, crash: str) -> None:
    found = matcher.classify("\n".join([*LOADED, crash, probe]), whole_log=True, platform=None)
    assert found.signature != "healthy_start_outlasts_probe"
    assert not (found.certain and found.class_ == "startup_probe_failed")


def test_a_server_that_is_up_was_not_too_slow_for_its_probe(matcher: Matcher) -> None:
    text = "\n".join([*LOADED, "INFO: Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)", PROBE_LINES[0]])
    assert matcher.classify(text, whole_log=True, platform=None).class_ == "port_not_listening"


def test_prefetching_is_loading_and_no_retry_of_the_hub(matcher: Matcher) -> None:
    found = matcher.line(LOADING[1])
    assert found is not None
    assert found.signature == "phase_loading"


def of(matcher: Matcher, text: str, platform: str | None = None) -> Finding:
    return matcher.classify(text, whole_log="\n" in text, platform=platform)


SHM = "(EngineCore pid=7) INFO 05-06 07:0{}:00 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds."


def test_a_warning_of_the_c_runtime_is_no_ground_for_a_guess(matcher: Matcher) -> None:
    """The device library grumbles once, then nothing moves for minutes: that is a hang, not a missing feature."""
    grumble = "[rank0]:[W506 07:00:01.123456789 lazy_init.ts:9] Warning: Firmware: is not supported yet. (function f)"
    found = of(matcher, "\n".join([grumble, *(SHM.format(n) for n in range(1, 5))]))
    assert found.class_ == "engine_hang"


@pytest.mark.parametrize(
    "text",
    [
        "[W506 07:00:01.12 TCPStore.cpp:12] [c10d] recvValue failed on SocketImpl(fd=4): failed to recv, got 0 bytes",
        "[rank1]:[W506 07:00:01.12 socket.cpp:6] [c10d] The client socket has failed to connect to [ip6]:1 (errno: 99)",
        "WARNING 05-06 07:08:09 [worker.py:12] Methods open,close are left to the base class of <vllm.worker.Worker>",
    ],
)
def test_a_text_of_warnings_alone_is_no_trouble_and_no_certainty(matcher: Matcher, text: str) -> None:
    found = of(matcher, text)
    assert (found.class_, found.certain) == ("benign", False)
    assert list(matcher.troubles([text])) == []


@pytest.mark.parametrize(
    "text",
    [
        "[E506 07:00:01.12 TCPStore.cpp:12] [c10d] The client socket has timed out after 600000ms",
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        "[W506 07:00:01.1 TCPStore.cpp:1] [c10d] failed to recv, got 0 bytes\nRuntimeError: NCCL error: unhandled system error",
    ],
)
def test_ranks_that_cannot_talk_are_still_heard(matcher: Matcher, text: str) -> None:
    assert of(matcher, text).class_ == "nccl_failure"


@pytest.mark.parametrize("word", ["failed to open the gate", "is refused", "timed out", "OddError: x"])
def test_a_warning_that_speaks_of_failure_is_not_called_harmless(matcher: Matcher, word: str) -> None:
    assert not of(matcher, f"WARNING 05-06 07:08:09 [gate.py:1] the gate {word}").benign


STARTING = [
    "INFO 05-06 07:08:09 [gpu_model_runner.py:1] Starting to load model me/model...",
    "INFO 05-06 07:09:09 [loader.py:2] Loading weights took 60.02 seconds",
]
RAISED = ["Traceback (most recent call last):", '  File "/opt/api_server.py", line 871, in signal_handler']
STOPPED = ['    raise KeyboardInterrupt("terminated")', "KeyboardInterrupt: terminated"]


def test_the_end_of_a_process_alone_is_no_trouble_line(matcher: Matcher) -> None:
    """What others do not say cannot be heard in one line."""
    assert list(matcher.troubles(STOPPED)) == []
    assert of(matcher, STOPPED[1]).class_ == "unknown"


@pytest.mark.parametrize("above", [[], RAISED])
def test_a_start_that_is_ended_from_outside_without_a_fault_was_too_slow_for_its_platform(
    matcher: Matcher, above: list[str]
) -> None:
    found = of(matcher, "\n".join([*STARTING, *above, *STOPPED]), "kubernetes")
    assert (found.class_, found.fix_actions[0]) == ("startup_probe_failed", "increase_startup_probe")
    assert not found.certain


@pytest.mark.parametrize(
    ("lines", "platform", "class_"),
    [
        ([*STARTING, "INFO:     Application startup complete.", *STOPPED], "kubernetes", "benign"),
        ([*STARTING, *STOPPED], "host", "benign"),
        (
            [*STARTING, "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", *STOPPED],
            "kubernetes",
            "gpu_oom_weights",
        ),
        ([*STARTING, "ZorkError: the grue has eaten the lamp", *STOPPED], "kubernetes", "unknown"),
        ([*STARTING, *RAISED, "zork.Gone: the grue has eaten the lamp", *STOPPED], "kubernetes", "unknown"),
    ],
    ids=[
        "after it was ready",
        "by somebody at this machine",
        "after a cause",
        "after words that nobody knows",
        "after a traceback that nobody knows",
    ],
)
def test_a_stop_is_no_slow_start_where_something_else_explains_it(
    matcher: Matcher, lines: list[str], platform: str, class_: str
) -> None:
    found = of(matcher, "\n".join(lines), platform)
    assert found.class_ != "startup_probe_failed"
    assert found.class_ == class_


@pytest.mark.parametrize(
    "said",
    [
        "ERROR worker.py:9] Error executing method 'open_gate'. This might cause deadlock in distributed execution.",
        "library: the process was forked after threads were used. Disabling threads to avoid deadlocks...",
    ],
)
def test_a_deadlock_that_is_only_feared_is_none(matcher: Matcher, said: str) -> None:
    assert of(matcher, said).class_ != "engine_hang"
    assert of(matcher, f"{said}\nOSError: [Errno 13] Permission denied: '/models/x'").class_ == "weights_unreadable"
    assert of(matcher, "worker 3: Deadlock detected between rank 0 and rank 1").class_ == "engine_hang"


@pytest.mark.parametrize(
    ("text", "class_"),
    [
        ("[77.1] llm-engine invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "host_oom"),
        ("[77.2] Out of memory: Killed process 41 (llm-engine) total-vm:9kB, UID:0 oom_score_adj:0", "host_oom"),
        ("Loading shards:  50%|#####     | 2/4 [00:07<00:08,  4.11s/it]Killed", "host_oom"),
        ("Fetching files:  50%|#####     | 2/4 [00:07<00:08,  4.11it/s]Killed", "host_oom"),
        ("[77.3] Kernel panic - not syncing: Out of memory and no killable processes...", "host_oom"),
        ("Aug 19 07:08:09 lamp Killed process 41 (llm-engine) total-vm:9kB, anon-rss:7kB", "host_oom"),
        (
            'lamp earlyoom[3]: sending SIGTERM to process 41 uid 7 "llm-engine": badness 1546, VmRSS 9 MiB',
            "host_oom",
        ),
        ("ERROR Set visible device failed, invalid device=0, input visible devices:4,7", "no_gpu_visible"),
        ("Error: back-off 5m0s restarting failed container=llm pod=lamp_default(7f80)", "engine_dead"),
        ("Memory critical error by agent node-0 on address 0x7f. Reason: Memory in use.", "illegal_memory_access"),
        ("mkdir: can't create directory '/models/lamp': Permission denied", "weights_unreadable"),
        ("lamp[7]: Error: could not create directory mkdir /var/lamp: permission denied", "weights_unreadable"),
        ("docker: Error response from daemon: unknown or invalid runtime name: nvidia", "no_gpu_visible"),
        (
            'error gathering device information while adding custom device "/dev/dri": no such file or directory',
            "no_gpu_visible",
        ),
        ("RuntimeError: FlashInfer requires GPUs with sm75 or higher", "cuda_driver_mismatch"),
    ],
)
def test_words_of_the_machine_are_heard(matcher: Matcher, text: str, class_: str) -> None:
    assert of(matcher, text, "host").class_ == class_


@pytest.mark.parametrize(
    "text",
    [
        "runc: setting oom_score_adj to -997 for the shim",
        "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x51) returned from _take(p) @ mem.c:1",
    ],
)
def test_what_the_machine_only_mentions_is_no_trouble(matcher: Matcher, text: str) -> None:
    assert of(matcher, text, "host").class_ in {"benign", "unknown"}
    assert list(matcher.troubles([text])) == []


SERVING = 'INFO:     10.0.0.9:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
HEALTH = 'INFO:     10.0.0.9:1 - "GET /health HTTP/1.1" 200 OK'


@pytest.mark.parametrize("after", [SERVING, HEALTH, ""])
@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: the lamp is out",
        "(EngineCore pid=7) ERROR 05-06 07:08:09 [lamp.py:3] the lamp is out",
        "FATAL: the lamp is out",
        "E0506 07:08:09.123456       1 lamp.go:25] the lamp is out",
        'Traceback (most recent call last):\n  File "/srv/lamp.py", line 3, in light\n    raise LampOut()\nlamp.LampOutError',
        'Traceback (most recent call last):\n  File "/srv/lamp.py", line 3, in light',
    ],
)
def test_an_error_that_no_rule_knows_is_never_benign_whatever_was_served_around_it(
    matcher: Matcher, error: str, after: str
) -> None:
    found = matcher.classify(f"{SERVING}\n{HEALTH}\n{error}\n{after}", whole_log=True, platform=None)
    assert not found.benign
    assert not found.certain


def test_an_unknown_error_of_a_start_that_completed_is_over(matcher: Matcher) -> None:
    """R12: vLLM logs errors of features that it then does without."""
    text = [
        *STARTING,
        "ERROR 05-06 07:08:09 [fa_utils.py:57] the lamp is out",
        "INFO:     Application startup complete.",
    ]
    found = of(matcher, "\n".join(text))
    assert (found.benign, found.certain) == (True, False)
    assert not of(matcher, "\n".join(text[:-1])).benign


def test_a_loud_word_that_is_no_error_is_over_when_it_serves_on(matcher: Matcher) -> None:
    found = matcher.classify(f"{SERVING}\nthe lamp was refused\n{SERVING}", whole_log=False, platform=None)
    assert (found.benign, found.certain) == (True, False)
    assert matcher.classify(f"{SERVING}\n{SERVING}", whole_log=False, platform=None).certain
    assert not matcher.classify(f"{SERVING}\nthe lamp was refused\n{HEALTH}", whole_log=False, platform=None).benign


BANNER = "(APIServer pid=1) INFO 05-06 07:08:00 [utils.py:299] vLLM API server version 0.21.0"
COMPLETE = "(APIServer pid=1) INFO:     Application startup complete."
TRY = 'Warning  Unhealthy  pod/llm-0  {} probe failed: Get "http://10.0.0.4:9000/health": dial tcp 10.0.0.4:9000: connect: '


@pytest.mark.parametrize("probe", ["Startup", "Readiness"])
def test_a_probe_that_fails_before_the_first_line_belongs_to_the_start_that_follows(
    matcher: Matcher, probe: str
) -> None:
    """The kubelet begins before the server prints anything; a start that ended, or never completes, stays a failure."""
    tries = [TRY.format(probe) + "connection refused"] * 3
    assert of(matcher, "\n".join([*tries, BANNER, COMPLETE]), "kubernetes").benign
    assert not of(matcher, "\n".join([*tries, BANNER]), "kubernetes").benign
    ended = "Normal  Killing  pod/llm-0  Container vllm failed startup probe, will be restarted"
    assert not of(matcher, "\n".join([*tries, ended, BANNER, COMPLETE]), "kubernetes").benign
    given_up = "The user-provided container failed to start and listen on the port defined by the PORT=9000 variable."
    assert not of(matcher, f"{given_up}\n{BANNER}\n{COMPLETE}", "cloud_run").benign


def test_an_error_line_with_a_word_of_calm_in_it_is_an_error(matcher: Matcher) -> None:
    """Neither "info" as a word nor an ordinary phrase speaks for a line that calls itself an error or fatal."""
    assert of(matcher, "ERROR 05-06 07:08:09 [lamp.py:3] Cannot read the lamp info table").class_ == "unknown"
    assert of(matcher, "CRITICAL 05-06 07:08:09 [lamp.py:3] The lamp is gone. Shutting down.").class_ == "unknown"
    assert of(matcher, "INFO 05-06 07:08:09 [lamp.py:3] The lamp is off. Shutting down.").benign


def test_an_order_to_end_that_nobody_gave_is_none(matcher: Matcher) -> None:
    """Ray's executor speaks of SIGTERM whatever ends it."""
    text = (
        "INFO 05-06 07:08:09 [ray.py:1] Shutting down Ray. If you see error log regarding SIGTERM received, ignore it.\n"
        "CRITICAL 05-06 07:08:09 [core_client.py:36] Got fatal signal from worker processes, shutting down."
    )
    assert of(matcher, text).class_ == "engine_dead"


def test_an_exception_of_the_configuration_refuses_a_setting(matcher: Matcher) -> None:
    frame = 'Traceback (most recent call last):\n  File "/x/vllm/{}", line 3, in check\n'
    said = "ValueError: lamps want an even number"
    assert of(matcher, frame.format("engine/arg_utils.py") + said).class_ == "invalid_flag"
    assert of(matcher, frame.format("lamps.py") + said).class_ == "unknown"


def test_a_layer_that_computes_ran_out_after_loading(matcher: Matcher) -> None:
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB."
    frame = '  File "/x/vllm/layers/lamp.py", line 3, in {}\n    return f(x)\n'
    assert of(matcher, frame.format("forward") + error).class_ == "gpu_oom_runtime"
    assert of(matcher, frame.format("bright") + error).class_ == "gpu_oom_weights"


@pytest.mark.parametrize(
    ("end", "benign"), [("starlette.requests.ClientDisconnect", True), ("LampError: it went out", False)]
)
def test_a_line_that_announces_a_traceback_is_known_by_its_end(matcher: Matcher, end: str, benign: bool) -> None:
    """A client that goes away is written by the web server as an error, with a traceback."""
    lines = ["ERROR:    Exception in ASGI application", "Traceback (most recent call last):"]
    lines += ['  File "/x/starlette/requests.py", line 3, in stream', "    raise ClientDisconnect()", end]
    served = '(APIServer pid=1) INFO:     10.0.0.4:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    assert of(matcher, "\n".join([BANNER, COMPLETE, *lines, served])).benign is benign


ENDED = [
    "(APIServer pid=7) Traceback (most recent call last):",
    '(APIServer pid=7)   File "/usr/local/bin/vllm", line 8, in <module>',
    "(APIServer pid=7)     sys.exit(main())",
    '(APIServer pid=7)   File "/srv/lamp.py", line 3, in glow',
    "(APIServer pid=7)     burn()",
    "(APIServer pid=7) lamp.LampError: the wick is too short",
]


def test_an_unknown_exception_that_ended_the_server_is_its_end_and_a_clients_is_unknown(matcher: Matcher) -> None:
    found = matcher.classify("\n".join([*HEALTHY_START, *ENDED]), whole_log=True, platform=None)
    assert (found.class_, found.certain, found.consequence) == ("engine_dead", False, True)
    assert found.fix_actions[0] == "collect_container_logs"
    script = [line.removeprefix("(APIServer pid=7) ").replace("/usr/local/bin/vllm", "/srv/ask.py") for line in ENDED]
    assert matcher.classify("\n".join([*HEALTHY_START, *script]), whole_log=True, platform=None).class_ == "unknown"


@pytest.mark.parametrize(
    ("end", "fix"),
    [
        ("NameError: name 'check_lamp' is not defined", "upgrade_version"),
        ("TypeError: Lamp.__init__() got an unexpected keyword argument 'oil'", "upgrade_version"),
        ("TypeError: 'NoneType' object is not iterable", "collect_container_logs"),
    ],
)
def test_code_that_does_not_go_together_is_changed_before_logs_are_read(matcher: Matcher, end: str, fix: str) -> None:
    lines = [*HEALTHY_START, *ENDED[:-1], f"(APIServer pid=7) {end}"]
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).fix_actions[0] == fix


def test_a_start_that_loaded_its_weights_had_found_its_model(matcher: Matcher) -> None:
    """A server asks the hub about a path, logs the refusal as an error, and goes on: what ended it came later."""
    hub = (
        "(APIServer pid=7) ERROR 05-06 07:08:02 [repo_utils.py:47] Error retrieving safetensors: Repo id must use "
        "alphanumeric chars, '-', '_' or '.': '/lamp'., retrying 1 of 2"
    )

    def told(*more: str) -> Finding:
        return matcher.classify("\n".join([*FIRST_LINES, hub, *more]), whole_log=True, platform=None)

    assert told().class_ == "model_not_found"
    assert (told(*ENGINE).class_, told(*ENGINE).certain) == ("model_not_found", False)
    assert told(*ENGINE, *ENDED).class_ == "engine_dead"
    for told_of_it in (
        "Engine core initialization failed. See root cause above.",
        "EngineCore encountered a fatal error.",
    ):
        found = told(*ENGINE, f"(APIServer pid=7) ERROR 05-06 07:08:58 [core.py:1] {told_of_it}")
        assert (found.class_, found.certain) == ("model_not_found", False)
    memory = "(EngineCore pid=71) ERROR 05-06 07:08:59 [core.py:1] torch.OutOfMemoryError: CUDA out of memory."
    assert told(*ENGINE, memory).class_ == "gpu_oom_profile"
    assert told(*ENGINE, *READY).benign


def test_an_engine_of_older_servers_that_was_sent_a_signal_is_no_failure(matcher: Matcher) -> None:
    stop = [
        "INFO 05-06 07:19:53 launcher.py:57] Shutting down FastAPI HTTP server.",
        "Traceback (most recent call last):",
        '  File "/srv/vllm/engine/multiprocessing/engine.py", line 351, in signal_handler',
        '    raise KeyboardInterrupt("MQLLMEngine terminated")',
        "KeyboardInterrupt: MQLLMEngine terminated",
    ]
    assert matcher.classify("\n".join([*HEALTHY_START, *stop]), whole_log=True, platform=None).benign


def test_what_ray_lists_as_possible_causes_proves_none_of_them(matcher: Matcher) -> None:
    gone = (
        "ERROR 05-06 07:08:59 [core.py:387] ray.exceptions.ActorDiedError: The actor is dead because its worker process "
        "has died. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high "
        "memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV."
    )
    found = matcher.classify(gone, whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("host_oom", False)
    crash = "(RayWorkerWrapper pid=9) *** SIGSEGV received at time=1746541214 on cpu 3 ***"
    assert matcher.classify(f"{crash}\n{gone}", whole_log=True, platform=None).class_ == "illegal_memory_access"


def test_a_word_of_ordinary_prose_takes_no_machine_back(matcher: Matcher) -> None:
    for text in ("In 1984 the teacher was suspended for a day.", "The sites may grow old and overloaded."):
        assert matcher.classify(text, whole_log=False, platform=None).class_ == "unknown"
    assert matcher.classify("Error: Overloaded", whole_log=False, platform=None).class_ == "queue_saturation"
    assert matcher.classify("state: SUSPENDED", whole_log=False, platform="tpu_vm").class_ == "quota_exceeded"


def test_of_two_causes_of_different_classes_neither_is_certain(matcher: Matcher) -> None:
    nvml = "pynvml.NVMLError_Unknown: Unknown Error"
    launch = "(Worker pid=9) ERROR 05-06 07:08:30 [worker.py:5] RuntimeError: CUDA error: unspecified launch failure"
    assert matcher.classify(nvml, whole_log=True, platform=None).certain
    both = matcher.classify(f"{nvml}\n{launch}", whole_log=True, platform=None)
    assert not both.certain
    assert both.class_ in {"no_gpu_visible", "illegal_memory_access"}


def test_an_error_explains_more_than_a_warning_above_it(matcher: Matcher) -> None:
    warned = "/srv/ccl/__init__.py:25: UserWarning: Cannot load xpu CCL; oneCCL does not work here"
    error = "ERROR 05-06 07:08:30 [worker.py:5] torch.OutOfMemoryError: CUDA out of memory."
    assert matcher.classify(warned, whole_log=True, platform=None).class_ == "nccl_failure"
    assert matcher.classify(f"{warned}\n{error}", whole_log=True, platform=None).signature == "torch_out_of_memory"


@pytest.mark.parametrize(
    ("line", "class_", "fix"),
    [
        (
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. Use the 'spawn' start method",
            "invalid_flag",
            "set_env VLLM_WORKER_MULTIPROC_METHOD",
        ),
        ("RuntimeError: HIP error: invalid configuration argument", "illegal_memory_access", "none_code_bug"),
        ("Error: Invalid configuration: 'lamps'", "invalid_flag", "fix_command_line"),
    ],
    ids=["forked", "launch", "settings"],
)
def test_a_kernels_launch_and_a_fork_are_no_settings_file(matcher: Matcher, line: str, class_: str, fix: str) -> None:
    found = matcher.classify(line, whole_log=False, platform=None)
    assert (found.class_, found.fix_actions[0]) == (class_, fix)


def raised(head: str, frames: Sequence[tuple[str, str]], end: str, written_by: str = "") -> list[str]:
    calls = [part for file, name in frames for part in (f'  File "{file}", line 9, in {name}', "    glow()")]
    return [written_by + line for line in (*filter(None, [head]), "Traceback (most recent call last):", *calls, end)]


CORE_ERROR = "(EngineCore pid=71) ERROR 05-06 07:09:20 [core.py:800] "
PROGRAM = [("/usr/local/bin/vllm", "<module>"), ("/srv/vllm/entrypoints/cli/main.py", "main")]
WORKER = [("/lib/multiprocessing/process.py", "_bootstrap"), ("/srv/vllm/v1/executor/multiproc_executor.py", "main")]
BY_HAND = raised("", PROGRAM, "KeyboardInterrupt")
OF_A_WORKER = raised("", WORKER, "KeyboardInterrupt")
FATAL = [f"{CORE_ERROR}EngineCore encountered a fatal error.", f"{CORE_ERROR}lamp.LampError: the wick is too short"]
SHUTDOWN = ["(APIServer pid=7) INFO:     Shutting down", "(APIServer pid=7) INFO:     Application shutdown complete."]


@pytest.mark.parametrize(
    ("lines", "class_"),
    [
        ([*HEALTHY_START, *BY_HAND], "benign"),
        ([*HEALTHY_START, *BY_HAND[:-1], "KeyboardInterrupt:"], "benign"),
        ([*HEALTHY_START, *OF_A_WORKER, *BY_HAND], "benign"),
        ([*HEALTHY_START, *OF_A_WORKER, *SHUTDOWN], "benign"),
        ([*HEALTHY_START, *OF_A_WORKER], "unknown"),
        ([*HEALTHY_START, *OF_A_WORKER, *FATAL], "engine_dead"),
        ([*HEALTHY_START, *BY_HAND, *FATAL], "engine_dead"),
        ([*HEALTHY_START, *BY_HAND, FATAL[1]], "unknown"),
        ([*FIRST_LINES, *BY_HAND], "unknown"),
        ([*FIRST_LINES, *ENGINE, *BY_HAND], "unknown"),
        ([*HEALTHY_START, *FIRST_LINES, *ENGINE[:2], *BY_HAND], "unknown"),
    ],
    ids=[
        "up", "with a colon", "with its workers", "a worker beside a stop", "a worker alone", "the engine died",
        "the engine died below", "an unknown error below", "a start", "a start far on", "a second start",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "before", ["", "[pod/lamp-0/vllm] ", "lamp-1  | ", "Nov 23 07:09:20 lamp vllm[7]: ", "lamp vllm[7]: "]
)
def test_ctrl_c_is_a_stop_of_a_server_that_was_up_and_of_no_start_that_may_hang(
    matcher: Matcher, before: str, lines: list[str], class_: str
) -> None:
    """Whatever a collector writes before each line, and the process before the interrupt."""
    assert matcher.classify("\n".join(before + line for line in lines), whole_log=True, platform=None).class_ == class_
    named = [f"(APIServer pid=7) {line}" if line in BY_HAND else line for line in lines]
    assert matcher.classify("\n".join(before + line for line in named), whole_log=True, platform=None).class_ == class_


CAUGHT = {
    "a call of the engine": raised(
        "Invocation of add_lora method failed",
        [("/srv/vllm/v1/engine/core.py", "_handle_client_request"), ("/srv/vllm/v1/worker/gpu_worker.py", "add_lora")],
        "lamp.LampError: no wick",
        CORE_ERROR,
    ),
    "a request": raised(
        "ERROR:    Exception in ASGI application",
        [("/srv/uvicorn/run.py", "run_asgi"), ("/srv/vllm/model_executor/models/qwen2_vl.py", "glow")],
        "lamp.LampError: no wick",
    ),
    "a request of an older server": raised(
        "",
        [("/srv/vllm/entrypoints/openai/serving_chat.py", "chat"), ("/srv/vllm/engine/llm_engine.py", "add_request")],
        "lamp.LampError: no wick",
    ),
    "a thread": raised(
        "Exception in thread Thread-3 (glow):",
        [("/lib/threading.py", "_bootstrap_inner"), ("/srv/vllm/v1/worker/gpu_worker.py", "glow")],
        "lamp.LampError: no wick",
    ),
    "another program beside it": raised("", PROGRAM, "lamp.LampError: no wick"),
}


@pytest.mark.parametrize("lines", CAUGHT.values(), ids=CAUGHT)
def test_an_exception_after_which_the_server_serves_on_ended_it_not(matcher: Matcher, lines: list[str]) -> None:
    text = "\n".join([*HEALTHY_START, *lines, *TOKENS])
    assert matcher.classify(text, whole_log=True, platform=None).class_ == "unknown"


def test_only_the_end_of_a_server_is_told_as_one_where_the_log_ends_below_it(matcher: Matcher) -> None:
    def told(name: str) -> str:
        text = "\n".join([*HEALTHY_START, *CAUGHT[name]])
        return matcher.classify(text, whole_log=True, platform=None).class_

    dead = {name for name in CAUGHT if told(name) == "engine_dead"}
    assert dead == {"another program beside it"}
    loop = raised("", [("/srv/vllm/v1/engine/core.py", "run_busy_loop")], "lamp.LampError: no wick", CORE_ERROR)
    assert matcher.classify("\n".join([*HEALTHY_START, *loop]), whole_log=True, platform=None).class_ == "engine_dead"


@pytest.mark.parametrize(
    "line",
    [
        "ls: cannot access '/dev/dri: no such file or directory",
        "note: lamp library libcuda.so.1 not found, using stub",
        "Backend device lamp is not active, using default",
        "'/models/x' is not a valid safetensors folder, trying bin",
        "the glow needs lamps to be installed. Install with `pip install lamps`",
        "chunked prefill cannot be used with prefix caching, disabling it.",
        "UserWarning: forward is overloaded",
        "no runtime yet: failed to discover driver, trying the next",
        "nginx: error: invalid configuration argument",
    ],
)
def test_a_note_without_a_level_is_no_failure(matcher: Matcher, line: str) -> None:
    assert matcher.classify(line, whole_log=True, platform=None).class_ in {"unknown", "benign"}


@pytest.mark.parametrize(
    ("words", "class_"),
    [
        ("the shared memory size of 64 MB is not sufficient for two lamps", "shm_too_small"),
        ("the lamp did not answer /health within 120 s, giving up", "startup_probe_failed"),
        ("rank 1 did not join the lamps within 300 s", "nccl_failure"),
        ("the KV cache is too small: room for 12 tokens, 40 wanted", "kv_cache_insufficient"),
        ("the prompt has 9001 tokens, longer than the model takes", "context_length_exceeded"),
        ("checkpoint lamp.bin is truncated: 12 of 4711 bytes", "weights_unreadable"),
        ("this lamp needs CUDA 12.8, the host driver supports 12.2", "cuda_driver_mismatch"),
        ("cannot split 6 heads over 4 lamps", "tp_shape_mismatch"),
    ],
)
def test_words_of_a_mechanism_speak_in_an_error_that_no_entry_knows(matcher: Matcher, words: str, class_: str) -> None:
    """It is a guess, never certain; a line that is no error by its own word says nothing with them."""
    found = matcher.classify(f"ERROR: {words}", whole_log=True, platform=None)
    assert (found.class_, found.hint, found.certain) == (class_, True, False)
    assert matcher.line(words) is None
    assert matcher.classify(words, whole_log=True, platform=None).class_ in {"unknown", "benign"}
    assert matcher.classify(f"INFO: {words}", whole_log=True, platform=None).class_ in {"unknown", "benign"}


def test_a_warning_of_a_mechanism_explains_more_than_words_of_ordinary_logs(matcher: Matcher) -> None:
    def told(*lines: str) -> str:
        return matcher.classify("\n".join(lines), whole_log=True, platform=None).class_

    oom = "WARNING 05-06 07:08:22 [lamp.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert told(*FIRST_LINES, ENGINE[1], oom, "Error: lamp ReadTimeout") == "gpu_oom_weights"
    nccl = "llm-0:1:1 [0] NCCL WARN Call to connect returned Connection refused"
    assert told(nccl, "httpx.ReadTimeout: ") == "nccl_failure"


def test_what_a_server_only_notes_is_not_certain(matcher: Matcher) -> None:
    """A server of another platform looks for CUDA in vain and goes on; where it says so, it is no failure at all."""
    said = "CUDA platform is not available because: NVML Shared Library Not Found"
    noted = matcher.classify(f"DEBUG 05-06 07:08:00 [__init__.py:92] {said}", whole_log=True, platform=None)
    assert (noted.class_, noted.certain) == ("no_gpu_visible", False)
    assert matcher.classify(f"ERROR 05-06 07:08:00 [__init__.py:92] {said}", whole_log=True, platform=None).certain
    for other in (
        "DEBUG 05-06 07:08:00 [__init__.py:106] Confirmed ROCm platform is available.",
        "DEBUG 05-06 07:08:00 [__init__.py:180] Confirmed Neuron platform is available.",
        "INFO 05-06 07:08:00 [__init__.py:235] Platform plugin ascend is activated",
        "INFO 05-06 07:08:00 [__init__.py:239] Automatically detected platform neuron.",
    ):
        text = "\n".join([f"DEBUG 05-06 07:08:00 [__init__.py:92] {said}", other])
        assert matcher.classify(text, whole_log=True, platform=None).benign


def test_a_cause_beside_an_unknown_end_of_the_server_is_not_certain(matcher: Matcher) -> None:
    bucket = "NoSuchBucket: The specified bucket does not exist"
    assert matcher.classify(bucket, whole_log=True, platform=None).certain
    assert not matcher.classify("\n".join([bucket, *ENDED]), whole_log=True, platform=None).certain


def test_the_head_of_a_traceback_is_told_by_the_exception_that_ends_it(matcher: Matcher) -> None:
    head = "ERROR 05-06 07:08:09 [core.py:324] "
    lines = [
        f"{head}EngineCore hit an exception: Traceback (most recent call last):",
        f'{head}  File "/srv/vllm/v1/engine/core.py", line 316, in run_engine_core',
        f"{head}    engine_core = EngineCoreProc(*args, **kwargs)",
        f'{head}  File "/srv/lamp.py", line 3, in glow',
        f"{head}    burn()",
        f"{head}AttributeError: 'Lamp' object has no attribute 'wick'",
    ]
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).class_ == "engine_dead"


def test_what_a_note_says_first_is_certain_where_an_error_says_it_too(matcher: Matcher) -> None:
    note = "(EngineCore pid=71) INFO 05-06 07:09:19 [gpu_worker.py:4] Available KV cache memory: -2.14 GiB"
    error = f"{CORE_ERROR}ValueError: No available memory for the cache blocks."
    assert not matcher.classify("\n".join([*FIRST_LINES, note]), whole_log=True, platform=None).certain
    assert matcher.classify("\n".join([*FIRST_LINES, note, error]), whole_log=True, platform=None).certain


def test_a_timeout_that_somebody_waits_for_explains_no_warned_mechanism(matcher: Matcher) -> None:
    warned = "WARNING 05-06 07:09:19 [lamp.py:4] CUDA out of memory. Tried to allocate 2.00 GiB"
    for timeout in ("httpx.ReadTimeout: ", "ERROR 05-06 07:09:25 [lamp.py:4] APITimeoutError: Request timed out."):
        text = "\n".join([*HEALTHY_START, warned, timeout])
        assert matcher.classify(text, whole_log=True, platform=None).class_ == "gpu_oom_runtime"


def test_an_exception_in_the_loop_that_hands_out_answers_ends_the_server(matcher: Matcher) -> None:
    frames = [("/srv/vllm/v1/engine/async_llm.py", "output_handler"), ("/srv/vllm/v1/metrics/loggers.py", "record")]
    lines = raised("AsyncLLM output_handler failed.", frames, "ValueError: lamps can only be lit", CORE_ERROR)
    found = matcher.classify("\n".join([*HEALTHY_START, *lines[1:]]), whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("engine_dead", False)


@pytest.mark.parametrize(
    "line",
    [
        "metrics is lamp_args=Namespace(backend='lamp', chat_template=None, error='CUDA out of memory')",
        "Starting a node with args: ['--kv-cache-dtype', 'is not compatible with', '--CUDA out of memory']",
        "command=python3 -m lamp.launch --say 'CUDA out of memory' --not-supported",
        "TRACE:    10.0.0.9 - HTTP connection lost",
        "lamp of this version is not supported yet. (function operator())",
        "Invalid: 0.000",
        "ERROR lamp.py:9: Received output for rid='a' but the state was deleted in TokenizerManager.",
    ],
)
def test_settings_traces_counts_of_none_and_answers_nobody_waits_for_are_no_trouble(
    matcher: Matcher, line: str
) -> None:
    text = "\n".join([*HEALTHY_START, line])
    assert matcher.classify(text, whole_log=True, platform=None).class_ == "benign"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: the lamp is out (trace id 7)",
        "Process failed with code 1 trace follows",
        "terminate called after throwing an instance of 'lamp' (trace below)",
        "backend error: lamp 3 info lost, server crashed",
        "the engine died [info: none]",
        "Invalid rank: 0",
        "hub retry 3/3 failed: engine dead",
        "retrying: lamp 3 has died",
    ],
)
@pytest.mark.parametrize("around", [[], [*HEALTHY_START, *TOKENS]], ids=["alone", "served before"])
def test_a_harmless_word_in_a_failure_speaks_not_for_it(matcher: Matcher, line: str, around: list[str]) -> None:
    assert not matcher.classify("\n".join([*around, line]), whole_log=True, platform=None).benign


def test_that_something_is_tried_again_is_alone_no_certain_health(matcher: Matcher) -> None:
    found = matcher.classify("Retry 1/5 in 3 s", whole_log=True, platform=None)
    assert (found.benign, found.certain) == (True, False)
    assert matcher.classify("\n".join([*HEALTHY_START, "Retry 1/5 in 3 s"]), whole_log=True, platform=None).certain


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: spot handler config: enable SPOT_ITN draining true",
        "UserWarning: CUDA_HOME environment variable is not set",
        "ninja: No such file or directory: 'ninja'; using prebuilt kernels",
    ],
)
def test_settings_and_mild_words_of_a_platform_are_no_alarm(matcher: Matcher, line: str) -> None:
    assert matcher.classify("\n".join([*HEALTHY_START, *TOKENS, line]), whole_log=True, platform=None).benign


def test_workers_that_wait_with_nothing_else_told_are_no_health(matcher: Matcher) -> None:
    assert not matcher.classify(SHM.format(1), whole_log=False, platform=None).benign


def test_a_deadline_of_the_cluster_itself_is_no_queue(matcher: Matcher) -> None:
    attach = 'AttachVolume.Attach failed for volume "pv-lamp": context deadline exceeded'
    assert matcher.classify(attach, whole_log=False, platform=None).class_ == "weights_unreadable"
    lines = [
        'level=error msg="failed to drain exec process \\"a1\\" io: context deadline exceeded"',
        "reconcile lamp: context deadline exceeded",
    ]
    assert {matcher.classify(line, whole_log=False, platform=None).class_ for line in lines} == {"unknown"}
    asked = 'Post "http://10.0.0.7:8000/v1/completions": context deadline exceeded'
    assert matcher.classify(asked, whole_log=False, platform=None).class_ == "queue_saturation"


def counted(at_s: int, who: str = "") -> str:
    return (
        f"{who}INFO 05-06 07:{at_s // 60:02d}:{at_s % 60:02d} [loggers.py:9] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
        "Avg generation throughput: 9.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.0%"
    )


@pytest.mark.parametrize(
    ("one", "other", "several"),
    [
        ("", "", True),
        ("(APIServer pid=1) ", "(APIServer pid=1) ", True),
        ("lamp-1  | ", "lamp-2  | ", True),
        ("(ApiServer_0 pid=1) ", "(ApiServer_1 pid=2) ", False),
        ("", None, False),
    ],
    ids=["nobody names them", "two containers, one pid", "named", "two API servers of one start", "one alone"],
)
def test_of_two_servers_the_tokens_of_one_do_not_save_the_other(
    matcher: Matcher, one: str, other: str | None, *, several: bool
) -> None:
    oom = "ERROR 05-06 07:01:02 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    lines = [counted(10 * at, one) for at in range(6)]
    lines += [] if other is None else [counted(3 + 10 * at, other) for at in range(6)]
    lines = [*sorted(lines, key=lambda line: line[line.index("07:") :]), counted(63, other or one)]
    said_by = "" if "pid" in one else one
    found = matcher.classify("\n".join([*lines[:-1], said_by + oom, lines[-1]]), whole_log=True, platform=None)
    assert found.benign is not several
    for calm in (lines, [line for line in lines for _ in range(2)]):
        healthy = matcher.classify("\n".join(calm), whole_log=True, platform=None)
        assert healthy.benign
        assert healthy.certain is not (several and one == other)


@pytest.mark.parametrize("trouble", [
    "(EngineCore pid=71) WARNING 05-06 07:00:17 [lamp.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "(EngineCore pid=71) ERROR 05-06 07:00:17 [lamp.py:1] RuntimeError: NCCL error: remote process exited or there was a network error",
])  # fmt: skip
@pytest.mark.parametrize(
    "gaps",
    [[5] * 12, [1] * 12, [10] * 12, [10, 10, 13, 7, 10, 10, 10, 13, 7, 10, 10, 13, 7, 10], [5, 5, 6, 4, 5, 6, 5, 4, 6, 5, 5, 5]],
    ids=["every five seconds", "every second", "every ten", "late now and then", "five and jitter"],
)  # fmt: skip
def test_one_server_keeps_its_own_interval(matcher: Matcher, trouble: str, gaps: list[int]) -> None:
    """How often statistics are written is a setting: what its tokens ended is over."""
    own = "(APIServer pid=7) "
    lines = [counted(sum(gaps[:n]), own) for n in range(len(gaps))]
    text = "\n".join([*HEALTHY_START, *lines[:4], trouble, *lines[4:]])
    assert matcher.classify(text, whole_log=True, platform=None).benign
    assert matcher.classify("\n".join([*HEALTHY_START, *lines]), whole_log=True, platform=None).benign


@pytest.mark.parametrize("late", [0, 1, 3, 7])
def test_a_trouble_that_another_servers_tokens_may_have_ended_is_not_certain(matcher: Matcher, late: int) -> None:
    oom = "(EngineCore pid=71) ERROR 05-06 07:01:02 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    own = "(APIServer pid=7) "
    lines = [
        counted(10 * n + at, own).replace("9.5", f"{which}.5") for n in range(7) for which, at in ((8, 0), (9, late))
    ]
    text = "\n".join([*HEALTHY_START, *lines[:8], oom, *lines[8:]])
    found = matcher.classify(text, whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("gpu_oom_runtime", False)
    alone = "\n".join([*HEALTHY_START, *lines, oom])
    assert matcher.classify(alone, whole_log=True, platform=None).certain


NGINX = "2031/05/06 07:08:09 [error] 31#31: *5 "


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ('open() "/srv/favicon.ico" failed (2: No such file or directory), client: 10.0.0.1, server: lamp', "benign"),
        ("client intended to send too large body: 10485761 bytes, client: 10.0.0.1, server: lamp", "benign"),
        ("upstream prematurely closed connection while reading response header from upstream", "unknown"),
        ("connect() failed (111: Connection refused) while connecting to upstream", "port_not_listening"),
    ],
    ids=["no file", "too large", "cut off", "refused"],
)
def test_what_a_proxy_refuses_one_client_is_no_trouble_and_what_its_server_does_is(
    matcher: Matcher, line: str, class_: str
) -> None:
    found = matcher.classify("\n".join([*HEALTHY_START, NGINX + line]), whole_log=True, platform=None)
    assert (found.class_, found.certain) == (class_, False)


LLAMA_STARTS = ["main: loading model", "str: cannot format the name of lamp", "main: model loaded"]
LLAMA_LOOPS = ["main: starting the main loop...", "srv  update_slots: all slots are idle"]
SGLANG_STALLS = "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds."


@pytest.mark.parametrize(
    ("lines", "class_"),
    [
        ([*LLAMA_STARTS, *LLAMA_LOOPS], "benign"),
        (LLAMA_STARTS, "unknown"),
        ([*LLAMA_STARTS, *LLAMA_STARTS, *LLAMA_LOOPS], "unknown"),
        ([SGLANG_STALLS], "engine_hang"),
        ([SGLANG_STALLS, 'INFO:     10.0.0.9:1 - "GET /health HTTP/1.1" 200 OK'], "engine_hang"),
        (["server_args=ServerArgs(", SGLANG_STALLS, 'INFO: 10.0.0.9:1 - "POST /generate HTTP/1.1" 200 OK'], "benign"),
    ],
    ids=["up", "not yet", "the second is up", "stalls", "answers", "serves"],
)
def test_starts_and_stalls_of_other_servers_are_over_as_those_of_vllm_are(
    matcher: Matcher, lines: list[str], class_: str
) -> None:
    """llama.cpp and SGLang say in their own words that a start begins, that it is complete, and that a token came."""
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    "text",
    [
        "systemd[1]: nvidia-persistenced.service - NVIDIA was skipped because of an unmet condition check (ConditionPath)",
        "systemd[1]: Dependency failed for vllm.service; systemd[1]: Stopping vllm.service",
        'podgc gc_controller.go:225] "Found orphaned Pod assigned to the Node, deleting" node="gpu-1"',
    ],
)
def test_what_may_hide_a_lost_device_or_node_is_not_called_ordinary(matcher: Matcher, text: str) -> None:
    """The same words stand in a start without trouble."""
    assert matcher.classify(text, whole_log=True, platform=None).class_ == "unknown"


def test_eight_ranks_that_came_first_are_not_one_that_tries_in_vain(matcher: Matcher) -> None:
    """Each counts its own tries."""
    line = "(Worker_TP{} pid=9) [W102 10:00:00 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host "
    once = "\n".join(line.format(rank) + "10.0.0.1:29500 - retrying (try=0, timeout=600000ms)" for rank in range(8))
    assert matcher.classify(once, whole_log=True, platform=None).benign
    vainly = "\n".join(line.format(0) + f"10.0.0.1:29500 - retrying (try={n}, timeout=600000ms)" for n in range(8))
    assert matcher.classify(vainly, whole_log=True, platform=None).class_ == "nccl_failure"


def test_a_rank_that_somebody_else_answers_did_not_come_first(matcher: Matcher) -> None:
    """Where nobody listens yet a connection is refused; one that is taken and closed is not the store's."""
    tried = "[W101 10:00:00 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500"
    closed = f"{tried} - retrying (try=0, timeout=600000ms): Failed to recv, got 0 bytes."
    assert matcher.classify(closed, whole_log=True, platform=None).class_ == "nccl_failure"
    up = "INFO:     Application startup complete."
    assert matcher.classify(f"{closed}\n{up}", whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    ("said", "class_"),
    [
        ("webui-1   | ERROR: Connection error: connect ECONNREFUSED 172.18.0.2:8000", "benign"),
        ("webui-1   | httpx.ConnectError: [Errno 111] Connection refused", "benign"),
        ("webui-1   | MaxRetryError: huggingface.co: [Errno 111] Connection refused", "network_timeout"),
        ("vllm-1    | MaxRetryError: lamp: [Errno 111] Connection refused", "network_timeout"),
    ],
)
def test_a_client_that_calls_before_the_server_is_up_waits_for_it(matcher: Matcher, said: str, class_: str) -> None:
    """It is refused until the start has come to its end; what the server itself cannot reach is a trouble."""
    start = [
        "vllm-1    | INFO 05-06 07:08:09 [api_server.py:7] vLLM API server version 0.20.0",
        "vllm-1    | INFO 05-06 07:08:49 [default_loader.py:7] Loading weights took 12.00 seconds",
    ]
    found = matcher.classify("\n".join([start[0], said, start[1]]), whole_log=True, platform=None)
    assert (found.class_, found.benign and found.certain) == (class_, False)
    up = ["vllm-1    | INFO:     Application startup complete.", said]
    assert not matcher.classify("\n".join([*start, *up]), whole_log=True, platform=None).benign


@pytest.mark.parametrize("said", ["step 7 of 9: copying lamps", "lamp@host:~$ ls"])
def test_a_log_that_ends_with_words_of_nobody_known_is_not_certainly_healthy(matcher: Matcher, said: str) -> None:
    """Tokens above say nothing about a line without a level that no rule knows."""
    served = [*HEALTHY_START, counted(7, "(APIServer pid=7) ")]
    sure = matcher.classify("\n".join(served), whole_log=True, platform=None)
    assert (sure.benign, sure.certain) == (True, True)
    found = matcher.classify("\n".join([*served, said]), whole_log=True, platform=None)
    assert (found.benign, found.certain) == (True, False)


def test_a_queue_that_a_program_fills_for_itself_is_no_trouble(matcher: Matcher) -> None:
    """A batch waits by design; the same counts of a server that others call are a queue."""
    waits = [
        f"INFO 05-06 07:08:{at} [loggers.py:7] Engine 000: Avg prompt throughput: 9.5 tokens/s, Avg generation throughput: 9.5 "
        "tokens/s, Running: 7 reqs, Waiting: 99 reqs, GPU KV cache usage: 95.1%, Prefix cache hit rate: 0.0%"
        for at in (10, 20, 30, 40)
    ]
    batch = [*HEALTHY_START, "Processed prompts:   0%|          | 0/777 [00:00<?, ?it/s]", *waits]
    assert matcher.classify("\n".join(batch), whole_log=True, platform=None).benign
    served = matcher.classify("\n".join([*HEALTHY_START, *waits]), whole_log=True, platform=None)
    assert served.class_ == "queue_saturation"


def test_an_exception_that_ended_sglang_is_its_end_whatever_it_fell_back_to(matcher: Matcher) -> None:
    """A line that says how it goes on is no cause of what comes below it."""
    lines = [
        "[2031-05-06 07:08:01] Acceleration for lamps is not supported by Compressed Tensors. Falling back to LampMethod",
        "[2031-05-06 07:08:02] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/usr/lib/python3/site-packages/sglang/srt/managers/scheduler.py", line 7, in run_scheduler_process',
        "    scheduler = Scheduler(server_args)",
        '  File "/usr/lib/python3/site-packages/lamp/wick.py", line 7, in __init__',
        "    orig = self.linear.weight",
        "AttributeError: 'Lamp' object has no attribute 'weight'",
    ]
    found = matcher.classify("\n".join(lines), whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("engine_dead", False)


@pytest.mark.parametrize(
    ("above", "class_"), [(HEALTHY_START, "engine_dead"), (HEALTHY_START[:2], "weights_unreadable")]
)
def test_a_size_that_does_not_fit_is_the_checkpoints_until_it_is_loaded(
    matcher: Matcher, above: list[str], class_: str
) -> None:
    """A server that was up had its weights."""
    said = "RuntimeError: start (6) + length (2) exceeds dimension size (7)."
    assert matcher.classify("\n".join([*above, said]), whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    "said", ["Target not found in /opt/lamp/the model.py", "lamp step: --wick is not supported, left out"]
)
def test_a_script_that_lets_the_server_begin_is_no_ground_for_a_guess(matcher: Matcher, said: str) -> None:
    """Words without a known text count where no server began below them."""
    loading = [*HEALTHY_START[:6], "Loading safetensors checkpoint shards:   0% Completed | 0/8 [00:00<?, ?it/s]"]
    above = matcher.classify("\n".join([said, *loading]), whole_log=True, platform=None)
    assert (above.class_ in {"benign", "unknown"}, above.certain) == (True, False)
    below = matcher.classify("\n".join([*loading, said]), whole_log=True, platform=None)
    assert (below.benign, below.hint) == (False, True)


@pytest.mark.parametrize("end", ["Killed", "Terminated"])
def test_a_step_that_slurm_cancels_ends_in_order_however_its_tasks_are_ended(matcher: Matcher, end: str) -> None:
    """The wait and each task's signal are told; without the order a killed task is a failure."""
    told = [
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        f"srun: error: lamp1: task 0: {end}",
    ]
    order = "slurmstepd: error: *** STEP 7.1 ON lamp1 CANCELLED AT 2031-05-06T07:08:09 ***"
    up = [*HEALTHY_START, *READY]
    assert matcher.classify("\n".join([*up, order, *told]), whole_log=True, platform=None).benign
    found = matcher.classify("\n".join([*up, *told]), whole_log=True, platform=None)
    assert (found.class_ == "host_oom") is (end == "Killed")


@pytest.mark.parametrize(
    "said",
    [
        "AssertionError: releasing a finished request 7 twice",
        "AssertionError: the lamp of kind 3 falls back to no lamp",
        "lamps.errors.LampError: Fallback to candles: none left",
    ],
)
def test_a_note_in_the_words_of_an_exception_calls_nothing_harmless(matcher: Matcher, said: str) -> None:
    assert matcher.classify(said, whole_log=False, platform=None).class_ == "unknown"


def test_a_cause_that_means_the_same_in_the_right_phase_leaves_no_doubt(matcher: Matcher) -> None:
    torch = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
    said = "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."
    found = matcher.classify(f"{torch}\n{said}", whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("gpu_oom_profile", True)


@pytest.mark.parametrize(
    "said", ["lamps of type 7 are not supported", "the lamp timed out", "a lamp's tool call is cut"]
)
def test_words_without_a_level_of_a_server_that_is_up_are_no_guess(matcher: Matcher, said: str) -> None:
    """SGLang and llama.cpp write no level, and go on; an exception by name is no such word."""
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete.", STATS]
    last = matcher.classify("\n".join([*up, said]), whole_log=True, platform=None)
    assert last.class_ in {"benign", "unknown"}
    assert not last.certain
    assert matcher.classify("\n".join([*up, said, STATS]), whole_log=True, platform=None).benign
    raised = matcher.classify("\n".join([*up, f"LampError: {said}", STATS]), whole_log=True, platform=None)
    assert not raised.benign


def sgl_batch(second: int, queue: int) -> str:
    return (
        f"[2031-05-06 07:08:{second:02d} TP0] Decode batch, #running-req: 128, #token: 380000, token usage: 0.99, "
        f"gen throughput (token/s): 900.1, #queue-req: {queue}"
    )


def test_a_queue_of_sglang_stands_or_drains_and_a_burst_is_none(matcher: Matcher) -> None:
    up = ["[2031-05-06 07:08:01] The server is fired up and ready to roll!"]

    def of(*queues: int) -> str:
        lines = [*up, *(sgl_batch(second, queue) for second, queue in enumerate(queues, 10))]
        return matcher.classify("\n".join(lines), whole_log=True, platform=None).class_

    assert of(0, 300, 400, 640) == "queue_saturation"
    assert of(0, 300, 400, 640, 0, 0, 0) == "benign"
    assert of(0, 12, 14, 9) == "benign"
    assert of(0, 0, 0) == "benign"


def test_a_queue_far_deeper_than_what_runs_is_told_by_one_line(matcher: Matcher) -> None:
    batch = (
        "Decode batch. #running-req: 100, #token: 55006, token usage: 0.93, gen throughput (token/s): 7.1, #queue-req: "
    )
    assert matcher.classify(f"{batch}4000", whole_log=False, platform=None).class_ == "queue_saturation"
    assert matcher.classify(f"{batch}90", whole_log=False, platform=None).benign


def test_what_is_said_below_an_ordered_stop_is_no_guess(matcher: Matcher) -> None:
    stop = "INFO 05-06 07:09:11 launcher.py:45] Gracefully stopping http server"
    said = [
        "Traceback (most recent call last):",
        '  File "lamp.py", line 3, in socket',
        "LampError: Operation not supported",
    ]
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete.", STATS]
    down = "INFO:     Application shutdown complete."
    assert matcher.classify("\n".join([*up, stop, *said, down]), whole_log=True, platform=None).benign
    assert not matcher.classify("\n".join([*up, *said, stop, down]), whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    "said", ["rm: cannot remove '/usr/lamp': Is a directory", "main: setting lamps = 3 to avoid assertion failure"]
)
def test_words_of_a_script_above_a_start_that_served_are_no_trouble(matcher: Matcher, said: str) -> None:
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete.", STATS]
    assert matcher.classify("\n".join([said, *up]), whole_log=True, platform=None).benign


def test_a_container_that_ended_is_not_given_more_time(matcher: Matcher) -> None:
    status = (
        "The user-provided container failed to start and listen on the port defined provided by the PORT=8080 "
        "environment variable within the allocated timeout."
    )
    assert matcher.classify(status, whole_log=False, platform="cloud_run").fix_actions[0] == "increase_startup_probe"
    ended = matcher.classify(f"{status}\nContainer called exit(1).", whole_log=False, platform="cloud_run")
    assert ended.fix_actions[0] == "collect_container_logs"


def test_a_start_below_undoes_no_words_but_those_of_a_script(matcher: Matcher) -> None:
    """R18: only what a script may say of its own work is taken for a script's."""
    said = "the lamp's tool call could not be parsed"
    alone = matcher.classify(said, whole_log=True, platform=None)
    assert alone.class_ == "tool_parser_error"
    up = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete."]
    assert not matcher.classify("\n".join([said, *up]), whole_log=True, platform=None).benign


IS_UP = [*STARTS, "(APIServer pid=9) INFO:     Application startup complete."]


@pytest.mark.parametrize(
    ("said", "class_"),
    [
        ('    message: "Address already in use",', "port_not_listening"),
        ('    message: "No space left on device",', "disk_full"),
        ('        message: "CUDA error: an illegal memory access was encountered",', "illegal_memory_access"),
        ('        error: "CUDA_ERROR_OUT_OF_MEMORY",', "gpu_oom_runtime"),
        ('    context: "CUDA out of memory",', "gpu_oom_runtime"),
        ('    source: Some("No space left on device"),', "disk_full"),
    ],
)
def test_an_error_that_rust_prints_line_by_line_is_no_setting(matcher: Matcher, said: str, class_: str) -> None:
    text = "\n".join([*IS_UP, "Os {", "    code: 98,", said, "}"])
    assert matcher.classify(text, whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    "said",
    [
        ["+ set -e", "+ rm /lamps/.lock", "rm: cannot remove '/lamps/.lock': Permission denied"],
        ["rm: cannot remove '/dev/shm/lamp': Device or resource busy", "command terminated with exit code 1"],
        ["rm: cannot remove '/lamps': Permission denied", "set -e: exiting"],
        ["rm: cannot remove '/lamp': Structure needs cleaning"],
        ["mkdir: cannot create directory '/lamps': File exists"],
        [*STARTS, "rm: cannot remove '/lamps': Is a directory"],
        ["rm: cannot remove '/lamps': Permission denied", *STARTS],
    ],
)
def test_a_script_that_may_have_ended_in_its_own_words_is_not_benign(matcher: Matcher, said: list[str]) -> None:
    """R18: under ``set -e`` what a script cannot remove ends it."""
    assert not matcher.classify("\n".join(said), whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    "said", ["fp8 not supported: engine will exit", "kernel not supported on this GPU, falling over"]
)
def test_a_guess_that_a_server_wrote_last_is_unknown(matcher: Matcher, said: str) -> None:
    """R18: nobody knows what it went on with; one that serves on below it went on."""
    last = matcher.classify("\n".join([*IS_UP, STATS, said]), whole_log=True, platform=None)
    assert (last.class_, last.benign) == ("unknown", False)
    health = '(APIServer pid=9) INFO:     10.0.0.1:5 - "GET /health HTTP/1.1" 200 OK'
    asked = matcher.classify("\n".join([*IS_UP, STATS, said, health]), whole_log=True, platform=None)
    assert asked.class_ == "unknown"
    goes_on = "\n".join([*IS_UP, f"{said}; falling back"])
    assert matcher.classify(goes_on, whole_log=True, platform=None).benign
    assert matcher.classify("\n".join([*IS_UP, said, STATS]), whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    "first",
    [
        [*IS_UP, STATS, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."],
        [*STARTS, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."],
    ],
)
def test_a_cause_that_means_another_class_in_its_own_phase_is_a_rival(matcher: Matcher, first: list[str]) -> None:
    said = "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."
    found = matcher.classify("\n".join([*first, *STARTS, said]), whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("gpu_oom_profile", False)


def test_a_frame_of_a_shared_memory_module_is_not_a_full_shm(matcher: Matcher) -> None:
    """T2: the other ranks of an engine that died find its segment gone."""
    said = [
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 104, in __init__',
        "    self._fd = _posixshmem.shm_open(",
        "FileNotFoundError: [Errno 2] No such file or directory: '/psm_lamp'",
    ]
    died = "(EngineCore pid=12) ERROR 05-06 07:08:09 [core.py:9] Worker proc VllmWorker-0 died unexpectedly"
    found = matcher.classify("\n".join([*IS_UP, died, *said]), whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("engine_dead", False)
    flag = "vllm serve: error: unrecognized arguments: --lamp"
    found = matcher.classify("\n".join([flag, *said]), whole_log=True, platform=None)
    assert (found.class_, found.certain) == ("invalid_flag", True)


@pytest.mark.parametrize(
    "said",
    [
        "ERROR OSError: image file is truncated (35 bytes not processed)",
        "ERROR Graceful shutdown did not finish within 30 seconds, exiting anyway",
        "ERROR Xid 94 contained error recovered",
        "ERROR Xid 74 on a link, retrained",
        "ERROR Xid 119 seen before the last reset",
        "NGC_API_KEY is not set, continuing with public lamps",
        "ERROR download incomplete, resuming",
        "ERROR Request for unknown model: 'lamp' is not found",
        "ERROR Value is not callable: lamp",
        "ERROR Failed to apply chat template: lamp",
        "ERROR Unsupported tool_choice: lamp",
        "ERROR Failed to parse arguments: lamp",
        "ERROR job exited with code 139 previously; restarted fine",
        "Found 0 NVIDIA plugins to load",
        "ERROR no devices were found for the lamp",
    ],
)
def test_words_that_are_no_whole_sentence_of_one_program_are_not_certain(matcher: Matcher, said: str) -> None:
    assert not matcher.classify(said, whole_log=False, platform=None).certain


@pytest.mark.parametrize(
    "said", ["(service lamp) deployment circuit breaker: enabled", "fly.io: waiting for health checks to pass"]
)
def test_a_platform_that_tells_its_progress_reports_no_failed_probe(matcher: Matcher, said: str) -> None:
    assert matcher.classify(said, whole_log=False, platform=None).class_ != "startup_probe_failed"


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("TimeoutError: Timed out waiting for engine core processes to start", "set_env VLLM_ENGINE_READY_TIMEOUT_S"),
        ('level=ERROR error="timed out waiting for llama runner to start"', "set_env OLLAMA_LOAD_TIMEOUT"),
        ("RuntimeError: Server failed to start in time", "increase_startup_probe"),
        ("RuntimeError: Server did not become ready within 600 s", "increase_startup_probe"),
    ],
    ids=["vLLM", "Ollama", "a launcher", "a launcher with seconds"],
)
def test_a_start_that_took_too_long_is_given_more_time_by_whoever_measured_it(
    matcher: Matcher, said: str, fix: str
) -> None:
    """A variable of vLLM's does nothing for another server."""
    found = matcher.classify(said, whole_log=True, platform=None)
    assert (found.class_, found.fix_actions[0]) == ("startup_probe_failed", fix)


def test_an_index_out_of_range_by_itself_is_of_no_tool_parser(matcher: Matcher) -> None:
    """Any program raises it; a stream of an answer around it makes it one, whatever its requests asked for besides."""
    raised = "(APIServer pid=78) ERROR 02-05 08:06:47 [serving_chat.py:1343] IndexError: list index out of range"
    frame = (
        '(APIServer pid=78) ERROR 02-05 08:06:47 [serving_chat.py:1343]   File "/vllm/serving_chat.py", line 12, in {}'
    )
    stream, params = frame.format("chat_completion_stream_generator"), "INFO 02-05 08:06:40 params: logprobs=None"
    match = matcher.line(raised)
    assert match is None or match.class_ != "tool_parser_error"
    for text, is_parser in (
        (f"{stream}\n{raised}", True),
        (f"{params}\n{stream}\n{raised}", True),
        (f"{stream}\n{frame.format('_create_chat_logprobs')}\n{raised}", False),
        (raised, False),
    ):
        found = matcher.classify(text, whole_log=True, platform=None)
        assert (found.class_ == "tool_parser_error") is is_parser, text


HELD = "Of the allocated memory 23.40 GiB is allocated by PyTorch, and 3.00 MiB is reserved by PyTorch but unallocated."
BROKEN_UP = HELD.replace("23.40 GiB", "13.00 GiB").replace("3.00 MiB", "9.80 GiB")
ASCEND = "(NPU 0; 60.00 GiB total capacity; {0} GiB already allocated; {0} GiB current active; 9.00 MiB free; {0} GiB reserved in total by PyTorch)"


@pytest.mark.parametrize(
    ("said", "class_", "fix"),
    [
        (
            f"GPU 0 has a total capacty of 23.70 GiB of which 4.00 MiB is free. {HELD}",
            "gpu_oom_weights",
            "change_model",
        ),
        (ASCEND.format("59.70"), "gpu_oom_weights", "change_model"),
        (ASCEND.format("38.00"), "gpu_memory_occupied", "restart"),
        (
            f"GPU 0 has a total capacty of 23.70 GiB of which 4.00 MiB is free. {BROKEN_UP}",
            "gpu_oom_weights",
            "set_flag",
        ),
    ],
    ids=["PyTorch 2.1", "Ascend", "Ascend, beside others", "in pieces"],
)
def test_who_holds_the_card_is_read_as_each_pytorch_spells_it(
    matcher: Matcher, said: str, class_: str, fix: str
) -> None:
    text = f"OutOfMemoryError: CUDA out of memory. Tried to allocate 322.00 MiB. {said}"
    found = matcher.classify(text, whole_log=False, platform=None)
    assert (found.class_, found.fix_actions[0].startswith(fix)) == (class_, True)


def test_a_method_that_is_not_the_checkpoints_own_is_taken_off_the_command_line(matcher: Matcher) -> None:
    said = "ValueError: Quantization method specified in the model config (awq) does not match the quantization method specified in the `quantization` argument (gptq)."
    found = matcher.classify(said, whole_log=False, platform=None)
    assert (found.class_, found.fix_actions[0]) == ("unsupported_dtype_or_quant", "fix_command_line")


def test_workers_are_waited_for_no_more_once_the_server_is_started(matcher: Matcher) -> None:
    wait = "(EngineCore pid=7) INFO 05-06 07:0{}:09 [shm_broadcast.py:5] No available shared memory broadcast block found in 60 seconds."
    waits = [wait.format(minute) for minute in range(4)]
    started = "(APIServer pid=6) INFO 05-06 07:05:09 [api_server.py:6] Starting vLLM server on http://0.0.0.0:8000"
    assert matcher.classify("\n".join(waits), whole_log=True, platform=None).class_ == "engine_hang"
    assert matcher.classify("\n".join([*waits, started]), whole_log=True, platform=None).benign


def test_the_port_of_a_server_is_read_from_the_address_it_started_at(matcher: Matcher) -> None:
    probe = 'STARTUP HTTP probe failed 15 times consecutively for container "lamp-1" on port {} path "/health". The instance was not started.\nConnection failed with status ERROR_CONNECTION_FAILED.'
    for port, fix in ((8055, "set_flag port"), (8080, "collect_container_logs")):
        text = f"INFO: Server started at http://0.0.0.0:8080\n{probe.format(port)}"
        assert matcher.classify(text, whole_log=True, platform="cloud_run").fix_actions[0] == fix
    beside = f"INFO: Metrics server started at http://0.0.0.0:9090\n{probe.format(8080)}"
    assert matcher.classify(beside, whole_log=True, platform="cloud_run").fix_actions[0] == "collect_container_logs"


def test_a_plugin_that_skips_a_device_is_no_failure_and_a_good_test_excuses_none(matcher: Matcher) -> None:
    skipped = "spark-a:7:7 [0] init.cc:440 NCCL WARN Lamp NCCL plugin is not supported on device:lamp0, skipping .."
    assert matcher.classify(skipped, whole_log=True, platform=None).benign
    failed = "node2: Test NCCL failure common.cu:961 unhandled cuda error\n# Out of bounds values : 0 OK"
    assert matcher.classify(f"{skipped}\n{failed}", whole_log=True, platform=None).class_ == "nccl_failure"


def test_a_readiness_probe_that_was_refused_once_long_ago_is_not_failing(matcher: Matcher) -> None:
    """A kubelet asks again every few seconds, and reports it within minutes where it is refused again."""
    event = '{}  Warning  Unhealthy  pod/lamp-7  Readiness probe failed: Get "http://10.0.0.7:80/": dial tcp 10.0.0.7:80: connect: connection refused'
    assert matcher.classify(event.format("32m"), whole_log=True, platform="kubernetes").class_ == "unknown"
    standing = ["20s", "6m", "32m (x88 over 58m)"]
    texts = [*map(event.format, standing), "Conditions:\n  Ready  False\n" + event.format("32m")]
    found = {matcher.classify(text, whole_log=True, platform="kubernetes").class_ for text in texts}
    assert found == {"startup_probe_failed"}


def test_a_container_that_answers_its_liveness_probe_late_is_not_starting(matcher: Matcher) -> None:
    ended = "Normal  Killing  kubelet  Container lamp failed liveness probe, will be restarted"
    late = 'Warning  Unhealthy  kubelet  Liveness probe failed: Get "http://10.0.0.7/health": context deadline exceeded'
    assert matcher.classify(ended, whole_log=True, platform="kubernetes").class_ == "startup_probe_failed"
    for up in (
        late,
        late.replace("context deadline exceeded", "EOF"),
        "  Normal  Started  3d  kubelet  Started container lamp",
    ):
        assert matcher.classify(f"{up}\n{ended}", whole_log=True, platform="kubernetes").class_ == "queue_saturation"


SCRIPT = [
    "Traceback (most recent call last):",
    '  File "/opt/lamp/run.py", line 130, in <module>',
    "    main()",
    '  File "/opt/lamp/lamp.py", line 12, in main',
    "    light()",
    "AttributeError: 'Lamp' object has no attribute 'colour'",
]
ENDS_IN_ORDER = [
    "(APIServer pid=7) INFO:     Shutting down",
    "(APIServer pid=7) INFO:     Application shutdown complete.",
]


def benign(matcher: Matcher, lines: Sequence[str]) -> bool:
    return matcher.classify("\n".join(lines), whole_log=True, platform=None).benign


def test_a_script_that_fails_by_itself_and_ends_its_server_in_order_is_no_servers_trouble(matcher: Matcher) -> None:
    started = [*FIRST_LINES, *ENGINE, *READY]
    assert benign(matcher, [*started, *SCRIPT, *ENDS_IN_ORDER])
    assert not benign(matcher, [*started, *SCRIPT])
    assert not benign(matcher, [*FIRST_LINES, *ENGINE, *SCRIPT, *ENDS_IN_ORDER])
    for unanswered in ("TimeoutError: timed out", "ConnectionError: refused", "AttributeError: 'NoneType' has no wick"):
        assert not benign(matcher, [*started, *SCRIPT[:-1], unanswered, *ENDS_IN_ORDER])
    for frame in ("/opt/venv/lib/python3.12/site-packages/lamp/x.py", "/opt/vllm/v1/engine/core.py"):
        through = [*SCRIPT[:5], f'  File "{frame}", line 3, in light', "    go()", SCRIPT[5]]
        assert not benign(matcher, [*started, *through, *ENDS_IN_ORDER])
