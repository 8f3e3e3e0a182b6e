"""Settings, quoted source and handled exceptions hold the words of failures and prove none."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.no_evidence import MOST_FRAME_LINES, is_no_evidence

FRAME = '  File "/srv/vllm/x.py", line 7, in load_model'
FALLS_BACK = (
    "(EngineCore pid=9) 2031-05-06 07:08:09,703 - WARNING - Custom op lamp is unavailable; falling back to the slow one"
)
TRACEBACK = "(EngineCore pid=9) Traceback (most recent call last):"
UP = [
    "(APIServer pid=1) INFO 05-06 07:08:01 [api_server.py:9] vLLM API server version 0.32.0",
    "(EngineCore pid=9) INFO 05-06 07:08:02 [gpu_model_runner.py:9] Starting to load model example/lamp...",
    "(APIServer pid=1) INFO:     Application startup complete.",
]
TOKENS = '(APIServer pid=1) INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK'


@pytest.mark.parametrize(
    "line",
    [
        "Namespace(model='lamp', num_gpu_blocks_override=None, swap_space=4)",
        "INFO 05-06 07:08:09 api_server.py:9] args: Namespace(model='lamp', quantization=None)",
        "(APIServer pid=1) INFO 05-06 07:08:09 [utils.py:2] non-default args: {'num_gpu_blocks_override': 9}",
        "INFO 05-06 07:08:09 [core.py:7] Initializing a V1 LLM engine (v0.32.0) with config: model='lamp', load_format=auto",
    ],
)
def test_a_list_of_arguments_is_no_evidence(line: str) -> None:
    assert is_no_evidence([line], 0)


def test_an_error_that_quotes_arguments_is_evidence() -> None:
    assert not is_no_evidence(["ERROR 05-06 07:08:09 [x.py:3] CUDA out of memory with Namespace(model='lamp')"], 0)


def test_source_below_a_frame_is_quoted_and_what_it_raises_is_not() -> None:
    assert is_no_evidence([FRAME, "    backend_class = ProcessGroupNCCL("], 1)
    assert not is_no_evidence([FRAME, '    raise RuntimeError("Failed to find C compiler")'], 1)
    assert not is_no_evidence([FRAME, "torch.OutOfMemoryError: CUDA out of memory."], 1)
    assert not is_no_evidence(["web-1  | " + FRAME, "web-2  |     ProcessGroupNCCL("], 1)


def test_the_second_line_of_a_python_warning_is_part_of_it() -> None:
    head = "/srv/vllm/__init__.py:7: RuntimeWarning: Failed to read commit hash:"
    assert is_no_evidence([head, "No module named 'vllm._version'"], 1)
    assert not is_no_evidence(["Failed to read commit hash:", "No module named 'vllm._version'"], 1)


def test_a_traceback_under_a_warning_that_falls_back_is_handled(matcher: Matcher) -> None:
    """Later errors, and one under a warning that says nothing of going on, are not."""
    shown = [TRACEBACK, f"(EngineCore pid=9) {FRAME}", "(EngineCore pid=9) RuntimeError: lamp.so not found."]
    handled = "\n".join([*UP, FALLS_BACK, *shown, TOKENS])
    assert matcher.classify(handled, whole_log=True, platform=None).benign
    plain = "\n".join([*UP, FALLS_BACK.replace("falling back to the slow one", "mind it"), *shown, TOKENS])
    assert not matcher.classify(plain, whole_log=True, platform=None).benign
    later = f"{handled}\n(EngineCore pid=9) RuntimeError: no lamp."
    assert not matcher.classify(later, whole_log=True, platform=None).benign


def test_a_long_text_without_a_head_is_read_back_no_further_than_the_limit() -> None:
    lines = [FALLS_BACK, TRACEBACK, *["    pad"] * MOST_FRAME_LINES, "RuntimeError: no lamp"]
    assert not is_no_evidence(lines, len(lines) - 1)
    assert is_no_evidence(lines[:40] + lines[-1:], 40)
