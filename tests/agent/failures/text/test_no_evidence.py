"""Settings, quoted source and handled exceptions hold the words of failures and prove none."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.no_evidence import (
    MOST_FRAME_LINES,
    REFUSING,
    ends_process,
    is_handled,
    is_logged_as_mild,
    is_quoted,
    is_refusal,
    without_arguments,
    without_flag_names,
)
from agent.failures.text.tracebacks import ends_traceback
from tests.agent.failures.log_changes import HEALTHY_START
from tests.agent.failures.log_changes import TOKENS as SERVED

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
    ("said", "listed", "after"),
    [
        ("Namespace(", "model='lamp', num_gpu_blocks_override=None, swap_space=4)", ""),
        ("INFO 05-06 07:08:09 api_server.py:9] args: Namespace(", "model='lamp', quantization=None)", ""),
        ("[02-20 17:55:34] server_args: {", '"lamp": null, "dist_timeout": 3600, "log_level": "error"}', ""),
        ("(APIServer pid=1) INFO [utils.py:2] non-default args: {", "'num_gpu_blocks_override': 9}", ""),
        ("INFO Initializing a V1 LLM engine (v0.32.0) with config: ", "model='lamp', load_format=auto", ""),
        ("Starting: command=", "python3 -m lamp.launch --say 'CUDA out of memory' --dark", ""),
        ("lamp 3 exited, cmd=", "/bin/vllm serve lamp --port 8000 -O3 --name=lamp", " died of signal 9"),
        ("Command: ", 'python3 -m lamp --name "lamp lit"', " exited with code 137"),
        ("lamp 3 exited, cmd=python lamp.py with code 137", "", ""),
        ('exec: "python": executable file not found', "", ""),
        ("cmd=", "vllm serve lamp --seed -1 --lit", " Killed process 41 (lamp)"),
        ("cmd=python killed by signal -9", "", ""),
        ("ERROR 05-06 07:08:09 [x.py:3] CUDA out of memory with Namespace(model='lamp')", "", ""),
    ],
)
def test_only_the_arguments_of_a_line_are_quoted(said: str, listed: str, after: str) -> None:
    assert without_arguments(said + listed + after) == said + after


@pytest.mark.parametrize(
    "shown",
    [
        "+ /opt/lamp/bin/lamp profile --url http://localhost:8000 --failed-request-threshold 0.1",
        "--error-budget 5 --abort-on-crash",
        " + pytest-timeout==2.4.0",
    ],
)
def test_the_name_of_a_flag_or_of_a_package_says_of_nothing_that_it_failed(matcher: Matcher, shown: str) -> None:
    found = matcher.classify("\n".join([*HEALTHY_START[:-2], shown]), whole_log=True, platform=None)
    assert found.benign
    assert without_flag_names("--wick lit: CUDA out of memory") == "--wick lit: CUDA out of memory"
    reported = f"ERROR: lamp failed, try again with {shown}"
    assert not matcher.classify("\n".join([*HEALTHY_START[:-2], reported]), whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    ("line", "class_", "certain"),
    [
        ("[9.4] Out of memory: Killed process 41 (VLLM::EngineCor) total-vm:9kB, cmd=python -m lamp", "host_oom", True),
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=41, GPU has fallen off the bus. cmd=python lamp",
            "gpu_hardware_fault",
            True,
        ),
        ("lamp exited with code 137 cmd=python -m vllm.entrypoints.openai.api_server", "host_oom", False),
        ('failed to start container: exec: "vllm": executable file not found in $PATH', "invalid_flag", False),
        ("/entrypoint.sh: line 3: exec: vllm: not found", "invalid_flag", False),
        ("the lamp failed, cmd=python -m lamp --say good", "unknown", False),
    ],
)
def test_what_is_said_beside_a_command_stands(matcher: Matcher, line: str, class_: str, certain: bool) -> None:
    found = matcher.classify("\n".join([*HEALTHY_START, *SERVED, line]), whole_log=True, platform=None)
    assert found.class_ == class_
    assert found.certain or not certain


def test_a_command_that_is_not_there_has_one_class_whatever_its_name(matcher: Matcher) -> None:
    line = 'docker: OCI runtime create failed: unable to start container process: exec: "{}": executable file not found in $PATH: unknown.'
    assert {
        matcher.classify(line.format(name), whole_log=False, platform=None).class_ for name in ("foo", "python")
    } == {"invalid_flag"}


def test_source_below_a_frame_is_quoted_and_what_it_raises_is_not() -> None:
    assert is_quoted([FRAME, "    backend_class = ProcessGroupNCCL("], 1)
    assert not is_quoted([FRAME, '    raise RuntimeError("Failed to find C compiler")'], 1)
    assert is_quoted([FRAME, "    raise NotImplementedError("], 1)
    assert not is_quoted([FRAME, "    self.model = load(", FRAME], 2)  # a frame names whose work failed
    assert not is_quoted([FRAME, "torch.OutOfMemoryError: CUDA out of memory."], 1)
    assert not is_quoted(["web-1  | " + FRAME, "web-2  |     ProcessGroupNCCL("], 1)


@pytest.mark.parametrize("indent", ["", "  ", "    ", "\t"])
def test_in_an_indented_log_the_exception_is_no_source(matcher: Matcher, indent: str) -> None:
    """As `kubectl get -o yaml` shows the message of a container that ended."""
    frame = '  File "/srv/vllm/model_loader/x.py", line 7, in load_model'
    call = ["    lamp = torch.empty(", "           ^^^^^^^^^^^^", "        size,", "    )"]
    end = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."
    lines = [indent + line for line in [*UP[:2], "Traceback (most recent call last):", frame, *call, end]]
    assert [is_quoted(lines, at) for at in range(4, 9)] == [True] * 4 + [False]
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).class_ == "gpu_oom_weights"


def test_source_over_several_lines_below_a_frame_is_quoted() -> None:
    """Python 3.13 quotes the whole call, and carets below each line of it."""
    call = [
        "    light_lamp(",
        "    ~~~~~~~~~~^",
        "        timeout=VLLM_ENGINE_READY_TIMEOUT_S * 1000",
        "        ^^^^^^^",
    ]
    assert all(is_quoted([FRAME, *call, "TimeoutError: lamp"], at) for at in (1, 3))
    assert not is_quoted([FRAME, *call, "TimeoutError: lamp"], 5)
    assert not is_quoted(["ERROR lamp is out:", *call], 3)
    assert not is_quoted([FRAME, "    raise LampError(", '        "CUDA out of memory")'], 2)
    assert not is_quoted(["web-1  | " + FRAME, *("web-2  | " + line for line in call)], 3)


def test_what_a_dying_engine_dumps_of_its_settings_is_quoted(matcher: Matcher) -> None:
    dump = (
        "ERROR 05-06 07:08:09 [dump_input.py:72] Dumping input data with config: kv_cache_dtype=fp8, dtype is invalid"
    )
    assert is_quoted([dump], 0)
    assert matcher.classify("\n".join([*UP, TOKENS, dump]), whole_log=True, platform=None).class_ == "unknown"
    died = [dump, "ERROR 05-06 07:08:09 [core.py:7] torch.AcceleratorError: CUDA error: device-side assert triggered"]
    assert matcher.classify("\n".join([*UP, *died]), whole_log=True, platform=None).class_ == "illegal_memory_access"


def test_a_message_that_a_second_handler_calls_a_warning_is_one() -> None:
    said, twin = (
        "[lamp] -mglow is not supported by cc.",
        "[2031-05-06 07:08:09] WARNING x.py:3: -mglow is not supported by cc.",
    )
    assert is_logged_as_mild([said, twin], 0)
    assert is_logged_as_mild([twin, said], 1)
    assert not is_logged_as_mild([said, twin.replace("WARNING", "ERROR")], 0)
    assert not is_logged_as_mild([said, twin.replace("cc.", "ld.")], 0)
    assert not is_logged_as_mild([said.removeprefix("[lamp] "), twin], 0)


def test_the_second_line_of_a_python_warning_is_part_of_it() -> None:
    head = "/srv/vllm/__init__.py:7: RuntimeWarning: Failed to read commit hash:"
    assert is_quoted([head, "No module named 'vllm._version'"], 1)
    assert not is_quoted(["Failed to read commit hash:", "No module named 'vllm._version'"], 1)


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
    lines = [
        FALLS_BACK,
        TRACEBACK,
        *["(EngineCore pid=9)     pad"] * MOST_FRAME_LINES,
        "(EngineCore pid=9) RuntimeError: no lamp",
    ]
    assert not is_handled(lines, len(lines) - 1)
    assert is_handled([*lines[:40], lines[-1], TOKENS], 40)


VLLM = "WARNING 05-06 07:08:09 [{}] {}"
REDUCED = VLLM.format("custom_all_reduce.py:144", "Custom allreduce is disabled, falling back to NCCL")
PLAIN = "2031-05-06 07:08:09,703 - WARNING - {}"
SKIPPED = PLAIN.format("Skipping request chatcmpl-7")
STATS = "INFO 05-06 07:09:10 [loggers.py:257] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation throughput: 31.2 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.4%"


def shown(error: str, head: str = "") -> list[str]:
    return [head + line for line in ("Traceback (most recent call last):", FRAME, "    out = self.lamp(x)", error)]


@pytest.mark.parametrize("after", [[], [STATS], [TOKENS]], ids=["the end", "statistics", "tokens"])
@pytest.mark.parametrize(
    "warning", [REDUCED, SKIPPED, PLAIN.format("Custom allreduce is disabled, falling back to NCCL")]
)
@pytest.mark.parametrize(
    ("error", "class_"),
    [
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu_hardware_fault"),
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "illegal_memory_access"),
        ("RuntimeError: CUDA error: device-side assert triggered", "illegal_memory_access"),
        ("RuntimeError: CUDA error: misaligned address", "illegal_memory_access"),
        ("RuntimeError: HIP error: unspecified launch failure", "illegal_memory_access"),
        ("RuntimeError: CUDA error: the launch timed out and was terminated", "illegal_memory_access"),
        ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "engine_dead"),
        ("Memory cgroup out of memory: Killed process 41 (llm)", "host_oom"),
    ],
)
def test_no_warning_handles_a_broken_card_a_kill_a_dead_engine_or_a_poisoned_process(
    matcher: Matcher, warning: str, error: str, class_: str, after: list[str]
) -> None:
    found = matcher.classify("\n".join([warning, *shown(error), *after]), whole_log=True, platform=None)
    bare = matcher.classify("\n".join([*shown(error), *after]), whole_log=True, platform=None)
    assert found.class_ == bare.class_
    if not after or class_ != "illegal_memory_access":  # tokens of the same start tell of another process below it
        assert found.class_ == class_


@pytest.mark.parametrize(
    ("warning", "head"),
    [
        (REDUCED, ""),
        (REDUCED, "ERROR 05-06 07:08:09 [core.py:9] "),
        (FALLS_BACK, "(EngineCore pid=8) "),
        (FALLS_BACK, "(APIServer pid=1) "),
        (FALLS_BACK, ""),
        (PLAIN.format("falling back"), "(EngineCore pid=9) "),
        (PLAIN.format("falling back"), "ERROR 05-06 07:08:09 [core.py:9] "),
    ],
)
def test_a_traceback_of_another_process_or_record_is_not_the_warnings(
    matcher: Matcher, warning: str, head: str
) -> None:
    """VLLM's logger writes the head of its record before every line of a traceback that belongs to it."""
    text = "\n".join([*UP, warning, *shown("LampError: it is out", head), TOKENS])
    assert not matcher.classify(text, whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    ("warning", "head"),
    [(REDUCED, REDUCED[:50]), ("(EngineCore pid=9) " + REDUCED, "(EngineCore pid=9) " + REDUCED[:50])],
)
def test_a_traceback_in_the_record_of_the_warning_is_handled(matcher: Matcher, warning: str, head: str) -> None:
    text = "\n".join([*UP, warning, *shown("LampError: it is out", head), TOKENS])
    assert matcher.classify(text, whole_log=True, platform=None).benign


def test_a_traceback_with_another_line_above_it_is_not_the_warnings(matcher: Matcher) -> None:
    text = "\n".join([*UP, SKIPPED, STATS, *shown("LampError: it is out"), TOKENS])
    assert not matcher.classify(text, whole_log=True, platform=None).benign


def test_a_bare_traceback_at_the_end_of_a_text_may_have_ended_the_process(matcher: Matcher) -> None:
    """Nothing tells whether the warning above printed it; what its own record printed is told by the head."""
    ended = [
        *UP[:2],
        PLAIN.format("falling back to the slow lamp"),
        *shown("torch.OutOfMemoryError: CUDA out of memory."),
    ]
    assert matcher.classify("\n".join(ended), whole_log=True, platform=None).class_ == "gpu_oom_weights"
    own = [*UP, REDUCED, *shown("LampError: it is out", REDUCED[:50])]
    assert matcher.classify("\n".join(own), whole_log=True, platform=None).benign


PLACE = "(APIServer pid=1) ERROR 05-06 07:12:01 [serving.py:230] "
ANSWERED = '(APIServer pid=1) INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request'


def refused(end: str, head: str = REFUSING[0]) -> list[str]:
    said = [head, "Traceback (most recent call last):", '  File "/srv/vllm/inputs.py", line 7, in parse']
    return [PLACE + line for line in [*said, "    raise ValueError(", end]]


@pytest.mark.parametrize("head", REFUSING)
@pytest.mark.parametrize(
    "said", ["a lamp is not supported here", "Unknown dtype", "invalid literal for int() with base 10: 'lamp'"]
)
def test_a_traceback_of_a_refused_request_is_no_failure(matcher: Matcher, head: str, said: str) -> None:
    """Nor do known texts of settings or checkpoints mean more than the request's own values in it."""
    lines = refused(f"ValueError: {said}", head)
    assert [is_refusal(lines, at) for at in range(len(lines))] == [False, True, True, True, True]
    found = matcher.classify("\n".join([*UP, TOKENS, *lines, ANSWERED]), whole_log=True, platform=None)
    assert (found.class_, found.fix_actions[0]) == ("benign", "none_client_side")


def test_empty_lines_of_a_copied_log_part_no_refusal(matcher: Matcher) -> None:
    head, *frames = refused("ValueError: lamps are not multimodal")
    lines = [head, *(part for line in frames for part in (line, ""))]
    found = matcher.classify("\n".join([*UP, TOKENS, *lines, ANSWERED]), whole_log=True, platform=None)
    assert found.class_ == "benign"


@pytest.mark.parametrize(
    "said",
    [
        "Failed to apply Gemma3Processor on data={'text': 'lamp'} with kwargs={}",
        "Unrecognized processing class in /models/lamp. Can't instantiate a processor",
    ],
)
def test_a_checkpoint_that_refuses_every_request_is_a_failure_in_doubt(matcher: Matcher, said: str) -> None:
    """One refusal beside requests that are served is its client's."""
    one = [*refused(f"ValueError: {said}"), ANSWERED]

    def found(*lines: str) -> tuple[str, bool]:
        finding = matcher.classify("\n".join([*UP, *lines]), whole_log=True, platform=None)
        return finding.class_, finding.certain

    assert found(*one) == found(*one * 30) == found(TOKENS, *one * 2) == ("unsupported_architecture", False)
    assert found(TOKENS, *one) == found(*one, TOKENS) == found(*one * 2, TOKENS) == ("benign", False)


@pytest.mark.parametrize("written_by", ["", "(APIServer pid=1) ", "web-1  | "])
@pytest.mark.parametrize(
    "end",
    [
        "vllm.exceptions.VLLMValidationError: the lamp must be lit",
        "openai.AuthenticationError: Error code: 401 - {'error': 'no lamp'}",
    ],
)
@pytest.mark.parametrize("function", ["<module>", "run_busy_loop"])
def test_a_refusal_that_ends_a_process_is_no_clients(
    matcher: Matcher, written_by: str, end: str, function: str
) -> None:
    outermost = ['  File "/srv/lamp.py", line 7, in ' + function, "    sys.exit(light())", "             ~~~~~^^"]
    inner = ['  File "/srv/light.py", line 7, in light', "    work()"] * 60
    shown = ["Traceback (most recent call last):", *outermost, *inner, end]
    lines = [written_by + line for line in shown]
    assert ends_process(lines, len(lines) - 1)
    assert not ends_process([lines[0], *lines[4:]], len(lines) - 4)
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).class_ == "unknown"
    assert matcher.classify("\n".join([*UP, TOKENS, *lines]), whole_log=True, platform=None).class_ == "unknown"


@pytest.mark.parametrize(
    ("end", "head", "class_"),
    [
        ("AttributeError: 'NoneType' object has no attribute 'lamp'", REFUSING[0], "unknown"),
        ("ValueError: the lamp is out", "Error in the lamp", "unknown"),
        ("ValueError: invalid literal for int() with base 10: 'lamp'", "Error in the lamp", "invalid_flag"),
        ("ValueError: This model's maximum context length is 4096 tokens", REFUSING[0], "context_length_exceeded"),
    ],
    ids=["a fault of the server", "another record", "another with a known text", "a refusal with a class of its own"],
)
def test_what_is_more_than_a_refused_request_stays_evidence(matcher: Matcher, end: str, head: str, class_: str) -> None:
    text = "\n".join([*UP, TOKENS, *refused(end, head)])
    assert matcher.classify(text, whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    ("end", "class_"),
    [
        ("RuntimeError: amdsmi did not answer for the lamp", "unknown"),
        ("vllm.exceptions.VLLMValidationError: the lamp must be lit", "benign"),
    ],
    ids=["a note's words", "a request that was refused"],
)
def test_a_note_does_not_speak_for_the_exception_that_ends_a_traceback(matcher: Matcher, end: str, class_: str) -> None:
    """What a healthy start mentions may stand in the words of an exception that ended the process."""
    head = "(APIServer pid=1) Traceback (most recent call last):"
    frames = [f"(APIServer pid=1) {line}" for line in ('  File "/srv/lamp.py", line 7, in light', "    work()", end)]
    assert ends_traceback([head, *frames], 3)
    assert not ends_traceback([head, *frames], 2)
    assert not ends_traceback([UP[0], frames[-1]], 1)
    found = matcher.classify("\n".join([*UP, TOKENS, head, *frames]), whole_log=True, platform=None)
    assert found.class_ == class_


def test_a_failed_assertion_without_words_is_told_by_its_source() -> None:
    """The same source above an exception with words of its own is only quoted."""
    frame = [
        "Traceback (most recent call last):",
        '  File "lamp.py", line 3, in light',
        "    assert lamps % rooms == 0",
    ]
    assert not is_quoted([*frame, "AssertionError"], 2)
    assert is_quoted([*frame, "ValueError: the lamp is out"], 2)


@pytest.mark.parametrize("head", ["File ~/lamp.py:116, in Lamp.light(self)", "/srv/lamp.py in light(self)", "", TOKENS])
def test_numbered_source_below_a_frame_of_ipython_is_no_evidence(matcher: Matcher, head: str) -> None:
    """Logs begin with numbers too: process ids, times, rows of a table."""
    source = ["    476 if self.num_gpu_blocks_override:", "--> 477     blocks = self.num_gpu_blocks_override"]
    log = [head, *source, "", "RuntimeError: CUDA error: an illegal memory access was encountered"]
    of_a_frame = " in light(" in head or " in Lamp" in head
    assert [is_quoted(log, at) for at in range(len(log))] == [False, of_a_frame, of_a_frame, False, False]
    found = matcher.classify("\n".join(log), whole_log=True, platform=None)
    assert any("num_gpu_blocks_override" in line.text for line in found.evidence) is not of_a_frame
