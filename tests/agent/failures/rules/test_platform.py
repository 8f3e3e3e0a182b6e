"""Probes, images, devices: the neighbours tell the case."""

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher


def classify(matcher: Matcher, text: str) -> Finding:
    return matcher.classify(text, whole_log=True, platform=None)


PROBE = 'Default STARTUP TCP probe failed 1 time consecutively for container "v" on port 8000. The instance was not started.'
LOADS = "Starting to load model x\nLoading safetensors checkpoint shards:  25% Completed | 1/4\n"
ENDED_ITSELF = (
    "(EngineCore pid=9) ERROR [core.py:1] EngineCore failed to start.\n"
    "(EngineCore pid=9) ERROR [core.py:1] ValueError: seven lamps want nine sockets\n"
)
DIED = "(EngineCore pid=9) ERROR [multiproc_executor.py:2] Worker proc VllmWorker-2 died unexpectedly (exit code: None)"
REFUSED = "Liveness probe failed: dial tcp 10.0.0.1:80: connect: connection refused"


@pytest.mark.parametrize(
    ("text", "class_", "fix"),
    [
        (PROBE + " Connection failed with status DEADLINE_EXCEEDED.", "startup_probe_failed", "increase_startup_probe"),
        (
            f"Metrics server on http://0.0.0.0:9090\nUvicorn running on http://0.0.0.0:8000\n{PROBE} DEADLINE_EXCEEDED",
            "startup_probe_failed",
            "increase_startup_probe",
        ),
        (PROBE + " Connection failed with status CANCELLED.", "port_not_listening", "collect_container_logs"),
        (f"Uvicorn running on http://0.0.0.0:8080\n{PROBE}", "port_not_listening", "set_flag port"),
        (
            f"Starting to load model x\nLoading safetensors checkpoint shards: 40%\n{PROBE}",
            "startup_probe_failed",
            "increase_startup_probe",
        ),
        (
            "Warning Unhealthy Startup probe failed: HTTP probe failed with statuscode: 404",
            "startup_probe_failed",
            "fix_probe_path",
        ),
        (
            "Readiness probe failed: Get http://10.0.0.1:8000/health: context deadline exceeded",
            "queue_saturation",
            "relax_liveness_probe",
        ),
        (
            "Starting to load model x\nLiveness probe failed: connection refused",
            "startup_probe_failed",
            "increase_startup_probe",
        ),
        (
            f"{REFUSED}\nLiveness probe failed: deadline (Client.Timeout exceeded while awaiting headers)",
            "startup_probe_failed",
            "increase_startup_probe",
        ),
        ("Liveness probe failed: HTTP probe failed with statuscode: 503", "engine_dead", "restart"),
        (
            "Failed to pull image x: unexpected status: 401 Unauthorized: unauthorized: authentication required",
            "image_pull_failed",
            "fix_auth_token",
        ),
        ("Failed to pull image x: dial tcp 1.2.3.4:443: i/o timeout", "image_pull_failed", "fix_network"),
        (
            "Error: ErrImagePull\nFailed to pull image x: write /var/lib/containerd/x.so: no space left on device",
            "disk_full",
            "increase_disk",
        ),
        (
            "Warning BackOff Back-off restarting failed container\nWarning Unhealthy Readiness probe failed: connection refused",
            "port_not_listening",
            "collect_container_logs",
        ),
        (
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=9, name=python3, Ch 00000001 caused by previous Xid 149",
            "gpu_hardware_fault",
            "change_accelerator",
        ),
        (
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=9, name=python3, Ch 00000001",
            "illegal_memory_access",
            "upgrade_version",
        ),
        ("[1]    75076 killed     python serve.py", "host_oom", "increase_memory_limit"),
        (
            "Starting to load model x\nSTARTUP TCP probe failed 1 time. Container called exit(1).",
            "startup_probe_failed",
            "increase_startup_probe",
        ),
        (
            "MountVolume.SetUp failed for volume c : failed to sync configmap cache\nBack-off restarting failed container",
            "engine_dead",
            "collect_container_logs",
        ),
        (
            "Log: Liveness probe failed: Get http://10.1.1.2:3501/: connect: connection refused\nLog: Persistent Failure to start container\nReason: ContainerBackOff",
            "startup_probe_failed",
            "collect_container_logs",
        ),
        (
            "service lamp was unable to place a task because no container instance met all of its requirements. Reason: No Container Instances were found in your capacity provider.",
            "quota_exceeded",
            "scale_out",
        ),
        (
            "Error: No available node types can fulfill resource request {'node:10.9.8.7': 0.001, 'GPU': 1.0}",
            "invalid_flag",
            "set_env VLLM_HOST_IP",
        ),
        (
            "Failed to pull image x: failed to do request: Get https://blobs.example/sha256:1",
            "image_pull_failed",
            "fix_network",
        ),
        ("Failed to pull image x: manifest unknown", "image_pull_failed", "fix_image_or_driver"),
        ("Failed to initialize NVML: Unknown Error", "no_gpu_visible", "restart"),
        ("Failed to initialize NVML: Driver/library version mismatch", "cuda_driver_mismatch", "fix_image_or_driver"),
        ("nvidia 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT]", "gpu_hardware_fault", "fix_image_or_driver"),
        (
            "Starting to load model x\nWorker proc VllmWorker-0 died unexpectedly (exit code: -9)",
            "host_oom",
            "increase_memory_limit",
        ),
        (
            f"{LOADS}{ENDED_ITSELF}{DIED}",
            "engine_dead",
            "restart",
        ),
        (f"{ENDED_ITSELF}{LOADS}{DIED}", "host_oom", "increase_memory_limit"),
        (
            f"{LOADS}{ENDED_ITSELF.replace('seven lamps', 'WorkerProc initialization failed: seven lamps')}{DIED}",
            "host_oom",
            "increase_memory_limit",
        ),
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, Timeout(ms)=600000)",
            "nccl_failure",
            "fix_network_nccl",
        ),
        (
            "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://huggingface.co/x",
            "network_timeout",
            "restart",
        ),
    ],
)
def test_the_neighbours_tell_the_case(matcher: Matcher, text: str, class_: str, fix: str) -> None:
    found = classify(matcher, text)
    assert (found.class_, found.fix_actions[0]) == (class_, fix)


def test_a_broken_connection_is_certain_only_where_it_is_said_who_was_asked(matcher: Matcher) -> None:
    bare = classify(matcher, "ConnectionResetError: [Errno 104] Connection reset by peer")
    asked = classify(matcher, "Error while downloading from https://huggingface.co/a/b: Connection reset by peer")
    assert (bare.class_, bare.certain) == ("network_timeout", False)
    assert (asked.class_, asked.certain) == ("network_timeout", True)


def test_who_killed_below_an_exception_nobody_knows_but_while_memory_is_taken_it_is_the_kernel(
    matcher: Matcher,
) -> None:
    raised, loads = "RuntimeError: lamp went out", "INFO 05-01 10:01:10 [core.py:9] Starting to load model x"
    for blank in ("", "\n"):
        found = classify(matcher, f"lamps\n{raised}\n{blank}Killed")
        assert (found.class_, found.signature) == ("engine_dead", "killed_below_an_exception")
    assert classify(matcher, f"lamps\n{raised}\nit is dark\nKilled").class_ == "host_oom"
    assert classify(matcher, f"{loads}\n{raised}\nKilled").class_ == "host_oom"


def test_a_server_that_loads_after_ray_gave_the_cards_is_well(matcher: Matcher) -> None:
    waited = "INFO 05-01 10:01:10 [ray_utils.py:9] Waiting for creating a placement group of specs for 70 seconds."
    went_on = waited + "\nLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:09<00:09,  9.1s/it]"
    assert classify(matcher, waited).class_ == "no_gpu_visible"
    assert classify(matcher, went_on).class_ == "benign"


def test_a_worker_that_failed_without_a_word_is_no_proof_of_a_bug(matcher: Matcher) -> None:
    found = classify(matcher, "ERROR worker_base.py:9] Error executing method initialize_cache.")
    assert (found.class_, found.certain) == ("engine_dead", False)
    assert "collect_container_logs" in found.fix_actions
    assert "none_code_bug" not in found.fix_actions


def test_a_refused_liveness_probe_asks_for_a_longer_start_before_it_doubts_the_port(matcher: Matcher) -> None:
    events = (
        'Warning  Unhealthy  9s  kubelet  Liveness probe failed: Get "http://10.0.0.7:8000/live": '
        "dial tcp 10.0.0.7:8000: connect: connection refused\n"
        "Normal   Killing    9s  kubelet  Container server failed liveness probe, will be restarted"
    )
    found = classify(matcher, events)
    assert (found.class_, found.fix_actions[0]) == ("startup_probe_failed", "increase_startup_probe")


BROKEN = "probe errored: rpc error: OCI runtime exec failed: exec: curl: executable file not found in $PATH"


@pytest.mark.parametrize("kind", ["Liveness", "liveness"])
def test_a_probe_whose_command_is_missing_is_a_wrong_probe(matcher: Matcher, kind: str) -> None:
    found = classify(matcher, f"{kind} {BROKEN}")
    assert (found.class_, found.fix_actions[0]) == ("startup_probe_failed", "fix_probe_path")


def test_a_collective_that_cannot_connect_is_no_matter_of_shared_memory(matcher: Matcher) -> None:
    text = "RCCL error: unhandled system error, NCCL WARN Connect to 10.0.0.12<45301> failed : Connection refused"
    assert classify(matcher, text).fix_actions[0] == "fix_network_nccl"


@pytest.mark.parametrize(
    ("line", "class_", "fix"),
    [
        ("2025-Feb-11 ERROR  TDRV:dmem_alloc_internal  Failed to alloc DEVICE memory: 67108864", "gpu_oom_weights", ""),
        ("RuntimeError: NPU out of memory. Tried to allocate 3.47 GiB (NPU 0; 60.97 GiB total capacity)", "gpu_oom_profile", ""),
        ("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::", "gpu_oom_weights", ""),
        ("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3", "gpu_hardware_fault", "restart"),
        ("amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32794)", "illegal_memory_access", ""),
        ("[ERROR] DIST call hccl api failed, EI0006: Getting socket times out", "nccl_failure", "fix_network_nccl"),
        ("nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND", "nccl_failure", "fix_network_nccl"),
        ("RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure].", "engine_dead", "upgrade_version"),
        ("RuntimeError: 0 active drivers ([]). There should only be one.", "no_gpu_visible", "fix_image_or_driver"),
    ],
    ids=["neuron", "ascend", "gaudi", "amd ring", "amd page", "hccl", "nixl", "synapse", "triton"],
)  # fmt: skip
def test_devices_other_than_cuda_speak_their_own_words(matcher: Matcher, line: str, class_: str, fix: str) -> None:
    found = classify(matcher, line)
    assert found.class_ == class_
    assert found.fix_actions[0].startswith(fix)


def test_the_library_that_every_start_notes_does_not_say_what_broke(matcher: Matcher) -> None:
    noted = "INFO 05-06 07:08:09 [utils.py:944] Found nccl from library libnccl.so.2"
    error = "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
    assert classify(matcher, f"{noted}\n{error}").fix_actions[0] == "set_shm_size"
    missing = "OSError: libnccl.so.2: cannot open shared object file; Failed to load NCCL library"
    assert classify(matcher, missing).fix_actions[0] == "fix_image_or_driver"
