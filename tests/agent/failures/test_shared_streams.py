"""Two servers that write into one log without names, the orders of a job's scheduler, and who is called afterwards."""

import re

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import log_lines
from tests.agent.failures.log_changes import BANNER, ENGINE, HEALTHY_START, READY, TOKENS

OOM = "(EngineCore pid=91) ERROR 05-06 07:10:01 [core.py:7] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."
PORT = "(APIServer pid=9) OSError: [Errno 98] Address already in use"


def second(lines: list[str]) -> list[str]:
    """The same lines of another start."""
    return [line.replace("pid=7)", "pid=9)").replace("pid=71)", "pid=91)") for line in lines]


def unnamed(lines: list[str]) -> list[str]:
    """The same lines of a version that does not write its pids."""
    return [re.sub(r"^\((?:APIServer|EngineCore) pid=\d+\) ", "", line) for line in lines]


def classify(matcher: Matcher, lines: list[str]) -> Finding:
    text = "\n".join(log_lines("\n".join(lines)))
    return matcher.classify(text, whole_log=True, platform=None)


@pytest.mark.parametrize("names", [list, unnamed])
@pytest.mark.parametrize(("said", "class_"), [(OOM, "gpu_oom_weights"), (PORT, "port_not_listening")])
def test_a_second_start_that_fails_is_not_healed_by_the_first_which_serves_on(
    matcher: Matcher, names: type[list[str]], said: str, class_: str
) -> None:
    lines = [*HEALTHY_START, *second([*BANNER, *ENGINE[:2]]), said, *TOKENS]
    assert classify(matcher, names(lines)).class_ == class_


def test_an_engine_is_of_the_start_that_it_was_first_seen_in(matcher: Matcher) -> None:
    both = [*HEALTHY_START, *second(HEALTHY_START)]
    others = second(TOKENS)
    assert classify(matcher, [*both, OOM.replace("91", "71"), *others]).class_ == "gpu_oom_runtime"
    assert classify(matcher, [*both, OOM, *others]).benign
    assert classify(matcher, [*both, OOM, *TOKENS]).class_ == "gpu_oom_runtime"


@pytest.mark.parametrize("failed", ["71", "91"])
@pytest.mark.parametrize("up", [list, second])
def test_of_two_that_start_at_once_nobody_says_whose_an_engine_is(matcher: Matcher, failed: str, up) -> None:
    begun = [*BANNER, *second(BANNER), *ENGINE[:2], *second(ENGINE[:2])]
    lines = [*begun, OOM.replace("91", failed), *up([*READY, *TOKENS])]
    assert classify(matcher, lines).class_ == "gpu_oom_weights"
    assert classify(matcher, [*begun, *READY, *second(READY), *TOKENS, *second(TOKENS)]).benign


def test_in_a_container_that_starts_again_the_same_pids_are_of_the_new_start(matcher: Matcher) -> None:
    again = [*HEALTHY_START, *BANNER, *ENGINE[:2], OOM.replace("91", "71")]
    assert classify(matcher, again).class_ == "gpu_oom_weights"
    refused = "(EngineCore pid=71) requests.exceptions.ConnectionError: MaxRetryError on huggingface.co"
    assert classify(matcher, [*HEALTHY_START, *BANNER, refused, *ENGINE, *READY, *TOKENS]).benign


LOADS = [
    "main: loading model",
    "srv    load_model: loading model 'lamp.gguf'",
    "llama_model_loader: loaded meta data with 34 key-value pairs and 339 tensors from lamp.gguf",
]
UP = [
    "llama_context: constructing llama_context",
    "srv    load_model: initializing, n_slots = 4",
    "main: server is listening on http://127.0.0.1:8080 - starting the main loop",
]
LACKS = [
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory",
    "alloc_tensor_range: failed to allocate CUDA0 buffer of size 8589934592",
    "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
    "main: exiting due to model loading error",
]
MISSES = ["gguf_init_from_file: failed to open GGUF file 'lamp.gguf'", "main: exiting due to model loading error"]


@pytest.mark.parametrize(("ends", "class_"), [(LACKS, "gpu_oom_weights"), (MISSES, "weights_unreadable")])
@pytest.mark.parametrize(
    "order",
    [
        lambda ends: [*LOADS, *LOADS, *ends, *UP],
        lambda ends: [*LOADS[:1] * 2, *LOADS[1:2] * 2, *LOADS[2:] * 2, *ends, *UP],
        lambda ends: [*LOADS[:2], *LOADS, *ends, *LOADS[2:], *UP],
        lambda ends: [*LOADS, *UP, *LOADS, *ends],
        lambda ends: [*LOADS, *ends, *LOADS, *UP],
    ],
    ids=[
        "one behind the other",
        "line by line",
        "in stretches",
        "up, then one that fails",
        "fails, then one that is up",
    ],
)
def test_a_start_of_llama_cpp_that_ended_is_not_the_one_that_comes_up(matcher: Matcher, ends, class_, order) -> None:
    assert classify(matcher, order(ends)).class_ == class_


def test_the_models_of_llama_cpps_router_are_servers_of_their_own(matcher: Matcher) -> None:
    lines = [f"[45001] {one}" for one in [*LOADS, *LACKS[:3]]] + [f"[45002] {one}" for one in [*LOADS, *UP]]
    assert classify(matcher, lines).class_ == "gpu_oom_weights"


def test_what_another_start_prints_says_nothing_of_the_memory_of_this_one(matcher: Matcher) -> None:
    buffers = "llama_context: CUDA0 compute buffer size = 304.00 MiB"
    assert classify(matcher, [*LOADS, buffers, *UP, *LOADS, *LACKS]).class_ == "gpu_oom_weights"


CANCELLED = "slurmstepd: error: *** JOB 123 ON gpu01 CANCELLED AT 2031-05-06T07:12:00 ***"


@pytest.mark.parametrize(
    "said",
    [
        "openai.APIConnectionError: Connection error.",
        "ERROR: lamp ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
        "httpx.ConnectError: [Errno 111] Connection refused",
        "curl: (7) Failed to connect to localhost port 8000: Connection refused",
    ],
)
@pytest.mark.parametrize("above", [[], ["CUDA_VISIBLE_DEVICES: 0"], HEALTHY_START])
def test_a_client_is_refused_after_its_job_was_cancelled(matcher: Matcher, said: str, above: list[str]) -> None:
    assert not classify(matcher, [*above, said]).benign
    assert classify(matcher, [*above, CANCELLED, said]).benign
    late = CANCELLED.replace(" ***\n", "").replace("00 ***", "00 DUE TO TIME LIMIT ***")
    assert classify(matcher, [*above, late, said]).class_ == "quota_exceeded"


def test_an_ordered_stop_that_was_printed_newest_first_is_one(matcher: Matcher) -> None:
    ends = [
        "(APIServer pid=7) INFO 05-06 07:12:01 [launcher.py:99] Received signal SIGTERM",
        "(APIServer pid=7) INFO:     Application shutdown complete.",
        "(EngineCore pid=71) ERROR 05-06 07:12:03 [core.py:1] EngineCore encountered a fatal error",
    ]
    timed = [f"2031-05-06T07:{n // 60:02}:{n % 60:02}Z {line}" for n, line in enumerate([*HEALTHY_START, *ends])]
    assert classify(matcher, timed[::-1]).benign
    dies = timed[:-3] + timed[-1:]
    assert classify(matcher, dies[::-1]).class_ == "engine_dead"


@pytest.mark.parametrize("said", ["lamp not found", "the lamp timed out", "Failed to light the lamp"])
def test_a_warning_of_a_failure_that_is_written_last_leaves_a_doubt(matcher: Matcher, said: str) -> None:
    warning = f"(APIServer pid=7) WARNING 05-06 07:12:01 [lamp.py:9] {said}"
    last = classify(matcher, [*HEALTHY_START, warning])
    assert (last.benign, last.certain) == (True, False)
    assert classify(matcher, [*HEALTHY_START, f"{warning}, falling back"]).certain
    assert classify(matcher, [*HEALTHY_START, warning, *TOKENS]).certain


@pytest.mark.parametrize("number", [48, 74, 79, 94, 95, 119])
def test_an_xid_that_somebody_other_than_the_driver_names_is_not_certain(matcher: Matcher, number: int) -> None:
    told = classify(matcher, [f"lamp-watch: GPU 3 had Xid {number}"])
    assert (told.class_, told.certain) == ("gpu_hardware_fault", False)
    for said in (f"if Xid {number} then drain", f'rule "Xid {number}" loaded', f"no Xid {number} on any GPU"):
        assert classify(matcher, [*HEALTHY_START, said]).class_ != "gpu_hardware_fault"
    drivers = f"kernel: NVRM: Xid (PCI:0000:3b:00): {79 if number in {74, 94, 119} else number}, pid=1, lamp"
    assert classify(matcher, [drivers]).certain


TGI = [
    '2031-05-06T07:08:01.000000Z  INFO text_generation_launcher: Args {\n    model_id: "lamp",\n}',
    "2031-05-06T07:08:07.000000Z  INFO shard-manager: text_generation_launcher: Starting shard rank=0",
    "2031-05-06T07:08:34.000000Z  INFO text_generation_router::server: router/src/server.rs:2402: Connected",
    "2031-05-06T07:09:22.000000Z  INFO chat_completions{seed=7}: text_generation_router::server: server.rs:420: Success",
]
OLLAMA = [
    'time=2031-05-06T07:08:01.000Z level=INFO source=routes.go:1234 msg="server config" env="map[OLLAMA_DEBUG:INFO]"',
    'time=2031-05-06T07:08:12.000Z level=INFO source=server.go:431 msg="starting llama server" cmd="lamp"',
    'time=2031-05-06T07:08:18.000Z level=INFO source=server.go:630 msg="llama runner started in 6.02 seconds"',
    '[GIN] 2031/05/06 - 07:09:22 | 200 |  3.7s |       10.0.0.9 | POST     "/api/chat"',
]


@pytest.mark.parametrize("starts", [TGI, OLLAMA], ids=["tgi", "ollama"])
def test_other_servers_begin_anew_as_well(matcher: Matcher, starts: list[str]) -> None:
    """R18: the start that comes up is not the one that failed."""
    failed = [*starts[:2], "CUDA error: out of memory"]
    assert classify(matcher, [*failed, *starts]).class_ == "gpu_oom_weights"
    assert classify(matcher, starts).benign


@pytest.mark.parametrize(
    "ends",
    [
        ["vllm-1 exited with code 143"],
        ["Container terminated on signal 15."],
        ["    State:          Terminated", "      Reason:       Error", "      Exit Code:    143"],
        [
            "May 06 07:20:00 lamp systemd[1]: Stopping lamp.service - lamp...",
            "May 06 07:21:30 lamp systemd[1]: lamp.service: State 'stop-sigterm' timed out. Killing.",
            "May 06 07:21:30 lamp systemd[1]: lamp.service: Main process exited, code=killed, status=9/KILL",
            "May 06 07:21:30 lamp systemd[1]: lamp.service: Failed with result 'timeout'.",
        ],
    ],
)
def test_the_number_of_sigterm_after_an_orderly_end_is_that_end(matcher: Matcher, ends: list[str]) -> None:
    stops = ["(APIServer pid=7) INFO:     Shutting down", "(APIServer pid=7) INFO:     Application shutdown complete."]
    assert classify(matcher, [*HEALTHY_START, *stops, *ends]).benign
    killed = [
        line.replace("143", "137").replace("signal 15", "signal 9").replace("Stopping", "Started") for line in ends
    ]
    assert not classify(matcher, [*HEALTHY_START, *killed]).benign


@pytest.mark.parametrize(
    "shown",
    [
        ["    ContainersReady             True", "    Startup:   http-get http://:8000/health timeout=1s #failure=60"],
        ["lamp-7d9f8b6c5-x2x9k    1/1     Running     0          3d"],
        ["============ Serving Benchmark Result ============", "Failed requests:                         0"],
    ],
)
def test_what_somebody_printed_of_what_is_well_is_no_alarm(matcher: Matcher, shown: list[str]) -> None:
    assert classify(matcher, shown).benign
    assert not classify(matcher, [*shown, "ERROR the lamp went out"]).benign


@pytest.mark.parametrize(
    "said",
    [
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'lamp: Name or service not known': /simple/lamp/",
        "E0000 00:00:1.2  9 cuda_dnn.cc:8] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN",
    ],
)
def test_what_a_script_got_past_above_a_start_that_comes_up_is_over(matcher: Matcher, said: str) -> None:
    assert classify(matcher, [said, *HEALTHY_START]).benign


def test_the_usage_that_argparse_prints_is_not_the_error_below_it(matcher: Matcher) -> None:
    usage = ["usage: lamp.py [-h]", "                [--num-gpu-blocks-override N] [--swap-space GIB]"]
    refused = "lamp.py: error: unrecognized arguments: --wick"
    assert classify(matcher, [*usage, refused]).class_ == "invalid_flag"


@pytest.mark.parametrize(
    "ended",
    [
        [
            "W0506 07:08:09.123000 9 torch/distributed/elastic/multiprocessing/api.py:8] Sending process 71 closing signal SIGTERM",
            "worker 1 exited with exit code 143",
            "E0506 07:08:09.123000 9 torch/distributed/elastic/multiprocessing/api.py:8] failed (exitcode: 1) local_rank: 0",
        ],
        [
            "INFO 05-06 07:08:09 lamp.py: worker 0 quit with code 1, sending SIGTERM to the others",
            "worker 1 exited with code 143",
        ],
        [
            "slurmstepd: error: *** STEP 99.0 ON lamp CANCELLED AT 2031-05-06T07:08:09 ***",
            "srun: error: lamp2: task 1: Exited with exit code 1",
        ],
    ],
    ids=["torchrun", "launcher", "slurm"],
)
def test_those_that_a_launcher_ends_because_one_failed_were_not_asked_to(matcher: Matcher, ended: list[str]) -> None:
    assert not classify(matcher, ended).benign


@pytest.mark.parametrize(
    "beside",
    ["lamp-1   0/1   Error     0   5m", "lamp-1   0/1   Pending   0   50m", "  Ready             False "],
)
def test_what_is_well_beside_what_is_not_speaks_for_nothing(matcher: Matcher, beside: str) -> None:
    well = ["lamp-0   1/1   Running   0          5d", "  ContainersReady   True "]
    assert not classify(matcher, [*well, beside]).benign


def test_a_clients_view_of_a_model_server_is_no_trouble_of_the_hub(matcher: Matcher) -> None:
    said = "lamp: Server error '503 Service Unavailable' for url 'http://10.0.0.9:8000/v1/completions'"
    assert classify(matcher, [said]).class_ == "engine_dead"
    assert classify(matcher, [said.replace("10.0.0.9:8000/v1", "huggingface.co")]).class_ == "network_timeout"


@pytest.mark.parametrize(
    "line",
    [
        "GPU 0 double bit ECC errors volatile: 12 aggregate errors: 0",
        "GPU 0 uncorrectable ECC error encountered",
        "kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. corrected errors: 0",
        "GPU 3: uncorrectable ECC error, retry count: 0",
    ],
)
def test_a_count_of_none_beside_a_trouble_does_not_deny_it(matcher: Matcher, line: str) -> None:
    assert classify(matcher, [line]).class_ == "gpu_hardware_fault"


REFUSED_TRY = (
    "12s  Warning  Unhealthy  pod/{}  Readiness probe failed: dial tcp 10.0.0.4:8000: connect: connection refused"
)
NEW_POD = "lamp-8e1d9c7b6-x2x9k"


def of_pod(pod: str, lines: list[str]) -> list[str]:
    return [f"[pod/{pod}/vllm] {line}" for line in lines]


def test_a_probe_of_a_pod_whose_own_log_comes_up_below_is_over(matcher: Matcher) -> None:
    """Of a pod whose log does not come up it stands, and so it does of another pod than the one that came up."""
    whole, part = of_pod(NEW_POD, HEALTHY_START), of_pod(NEW_POD, HEALTHY_START[:6])
    said = REFUSED_TRY.format(NEW_POD)
    assert classify(matcher, [*part, said, *whole[6:]]).benign
    assert not classify(matcher, [*part, said]).benign
    assert not classify(matcher, [*whole, said]).benign
    assert not classify(matcher, [*part, REFUSED_TRY.format("lamp-8e1d9c7b6-q7q8z"), *whole[6:]]).benign


ACA_PROBE = "ProbeFailed: Probe of StartUp failed with status code: 1"
ACA_READY = "RevisionReady: Successfully provisioned revision lamp--1a2b"
CLOUD_RUN_PROBE = 'Default STARTUP TCP probe failed 9 times consecutively for container "lamp" on port 8080.'
CLOUD_RUN_READY = "Ready condition status changed to True for Revision lamp-00001-abc."


@pytest.mark.parametrize(
    ("events", "benign"),
    [
        ([ACA_PROBE, "RevisionName: lamp--1a2b", ACA_READY], True),
        ([ACA_PROBE, "ContainerAppName_s: lamp", "RevisionName_s: lamp--1a2b", ACA_READY], True),
        (
            [
                ACA_PROBE,
                "TimeStamp: x",
                "Type: Warning",
                "ContainerAppName: lamp",
                "RevisionName: lamp--1a2b",
                ACA_READY,
            ],
            True,
        ),
        (
            [ACA_PROBE, "RevisionName: lamp--1a2b", "RevisionReady: Successfully provisioned revision 'lamp--1a2b'"],
            True,
        ),
        ([ACA_READY, ACA_PROBE, "RevisionName: lamp--1a2b"], False),
        ([ACA_PROBE, "RevisionName: lamp--9z9z", ACA_READY], False),
        ([ACA_PROBE, "RevisionName_s: lamp--9z9z", ACA_READY, "RevisionName_s: lamp--1a2b"], False),
        ([ACA_PROBE, ACA_READY, "RevisionName: lamp--1a2b"], False),
        ([ACA_PROBE, "RevisionName: lamp--1a2b", "RevisionReady False lamp--1a2b"], False),
        ([CLOUD_RUN_PROBE, CLOUD_RUN_READY], False),
    ],
    ids=[
        *(
            "ready below",
            "in columns",
            "of its stream",
            "in quotes",
            "ready above",
            "another revision",
            "another in columns",
        ),
        *("the probe's is not named", "not ready", "Cloud Run names none"),
    ],
)
def test_a_probe_of_a_revision_that_is_ready_below_is_over(matcher: Matcher, events: list[str], benign: bool) -> None:
    assert classify(matcher, events).benign is benign


def test_an_image_that_docker_could_not_pull_does_not_explain_a_server_that_started_below(matcher: Matcher) -> None:
    """A script tried another image first; alone, the refusal is the cause."""
    refused = "docker: Error response from daemon: pull access denied for lamp, repository does not exist"
    assert classify(matcher, [refused]).class_ == "image_pull_failed"
    full = "ValueError: Free memory on device (1.2/79.1 GiB) on startup is less than desired (0.9, 71.2 GiB)."
    assert classify(matcher, [refused, *HEALTHY_START[:3], full]).class_ == "gpu_memory_occupied"
