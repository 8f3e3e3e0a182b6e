"""Probes, images, devices: the neighbours tell the case."""

import pytest

from agent.failures.finding import Finding
from agent.failures.match import Matcher


def classify(matcher: Matcher, text: str) -> Finding:
    return matcher.classify(text, whole_log=True, platform=None)


PROBE = 'Default STARTUP TCP probe failed 1 time consecutively for container "v" on port 8000. The instance was not started.'


@pytest.mark.parametrize(
    ("text", "class_", "fix"),
    [
        (PROBE + " Connection failed with status DEADLINE_EXCEEDED.", "startup_probe_failed", "increase_startup_probe"),
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
        ("Liveness probe failed: HTTP probe failed with statuscode: 503", "engine_dead", "restart"),
        (
            "Failed to pull image x: unexpected status: 401 Unauthorized: unauthorized: authentication required",
            "image_pull_failed",
            "fix_auth_token",
        ),
        ("Failed to pull image x: dial tcp 1.2.3.4:443: i/o timeout", "image_pull_failed", "fix_network"),
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
