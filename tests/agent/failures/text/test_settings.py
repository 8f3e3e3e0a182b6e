"""A name that is set is no failure, whatever words it holds; what reports a number or an end is."""

import time

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.no_evidence import without_arguments
from tests.agent.failures.log_changes import HEALTHY_START

SETTINGS = [
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    "export VLLM_ENGINE_READY_TIMEOUT_S=3600",
    'declare -x VLLM_ENGINE_ITERATION_TIMEOUT_S="600"',
    "+ docker run --gpus all -e NVSHMEM_DISABLE_CUDA_VMM=1 --env=VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm/vllm-openai --model lamp",
    "Environment: LANG=C NVSHMEM_BOOTSTRAP=UID VLLM_RUST_FRONTEND_PATH=/opt/lamp",
    "VLLM_ENGINE_READY_TIMEOUT_S=3600 vllm serve example/lamp",
    "#LAMP='two words' VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve example/lamp",
    "      VLLM_ENGINE_READY_TIMEOUT_S:  3600",
    '  "kv_cache_scheme": null,',
    "(WorkerDict pid=71)   'num_bits': 4,",
    "  num_gpu_blocks_override: 4096",
    "data_parallel_hybrid_lb=False",
    "Request Timeout: 20",
    "[launcher] VLLM_ENGINE_READY_TIMEOUT_S=3600 set",
    "[entrypoint]: setting VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    "Using VLLM_ENGINE_READY_TIMEOUT_S=3600 NVSHMEM_DISABLE_CUDA_VMM=1",
    "Exporting VLLM_ENGINE_READY_TIMEOUT_S=3600",
    "Setting VLLM_ENGINE_READY_TIMEOUT_S=3600",
    "nohup python3 -m sglang.launch_server --watchdog-timeout 300",
    "sglang serve --model-path example/lamp --watchdog-timeout 300",
    "--cpu-distributed-timeout-seconds 100",
    "  --distributed-timeout-seconds 1800 \\",
    "$ vllm serve example/lamp --distributed-timeout-seconds 1800",
    "+ exec python3 -m vllm.entrypoints.openai.api_server --model example/lamp --shutdown-timeout 30 &",
    "NCCL_DEBUG=INFO /opt/bin/vllm serve example/lamp --dp-supervisor-probe-failures 3 \\",
]


@pytest.mark.parametrize("line", SETTINGS)
def test_what_is_set_before_a_start_is_no_failure_of_it(matcher: Matcher, line: str) -> None:
    for rest in (HEALTHY_START, HEALTHY_START[:6]):
        assert matcher.classify("\n".join([line, *rest]), whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    "line",
    [
        "LAST_ERROR=CUDA_ERROR_OUT_OF_MEMORY",
        "rc=137",
        "Restart Count: 7",
        "Exit Code: 137",
        "  FATAL: ENOSPC",
        "  WARNING: SIGSEGV",
        'LEVEL=WARN MSG="CUDA out of memory"',
        '  "exitCode": 137,',
        '  "OOMKilled": true,',
        "  readyReplicas: 0",
        '  "tool_calls": [],',
        "max_pending=4",
        "ValueError: to allow this, set the variable VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        "(EngineCore pid=71) ERROR 05-06 07:08:09 [core.py:1] NVSHMEM_INIT=7",
        "Using VLLM_ENGINE_READY_TIMEOUT_S=3600 did not help: the engine died",
        "[api_server] ERROR_CODE=7",
        "[rank0]: To allow this, use VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        "vllm serve example/lamp --lamp-width 3 failed with exit code 1",
        "vllm serve: error: --lamp-width",
        "vllm was OOMKilled with --gpu-memory-utilization 0.95",
        "python3 server.py was OOMKilled --enforce-eager",
        "vllm serve m --enforce-eager (OOMKilled)",
        "vllm serve m --enforce-eager Killed",
        "vllm serve m --enforce-eager Segmentation fault (core dumped)",
        "vllm serve m" + " --a 1" * 300 + " --b Killed",
        "-OOMKilled 137",
        "--OOMKilled",
        "--kv-cache-dtype unsupported",
        "Pod Restart Count: 7",
        "Connections Reset: 5",
        "Gpus Not Found: 2",
        "[systemd] ACTIVE_STATE=failed",
        "[launcher] CUDA_LAMP=OutOfMemoryError",
        "Using LAST_LAMP=crashed",
        "Exporting LAMP_TRIES=3 failed",
        "--lamp-width was refused: unknown flag",
        'torch.OutOfMemoryError: CUDA out of memory. Set PYTORCH_ALLOC_CONF="expandable_segments:True"',
    ],
)
def test_what_reports_stays(line: str) -> None:
    assert without_arguments(line) == line


def test_the_command_behind_its_variables_stays() -> None:
    assert without_arguments("A_B=1 C_D='2 3' vllm serve lamp") == "vllm serve lamp"


def test_flags_behind_variables_are_settings_too() -> None:
    assert without_arguments("A_B=1 vllm serve lamp --shutdown-timeout 3") == ""


@pytest.mark.parametrize(
    "line",
    [
        "Using " + "A_B=x, " * 2_000 + "!",
        "Using " + "A_B=1 " * 2_000 + "!",
        "vllm serve m " + "--a " * 4_000 + "2>&1 | tee x.log",
        "vllm serve m" + " --a='b'" * 2_000 + " x y",
        "-" * 16_000,
        "Ab " * 5_000 + "Timeout: 3!",
    ],
    ids=["commas", "assignments", "flags", "quotes", "dashes", "words"],
)
def test_a_long_line_is_read_in_no_time(line: str) -> None:
    begun = time.process_time()
    without_arguments(line)
    assert time.process_time() - begun < 0.5
