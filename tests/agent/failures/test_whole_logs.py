"""A failure stays a failure: what stands around it and before its lines changes nothing (R18), and health stays silent."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agent.catalogue.load_failures import FailureCatalogue
from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher, compile_catalogue
from agent.failures.signature import PLAIN_TROUBLE
from agent.failures.text.entry_text import log_lines
from agent.failures.text.streams import server_of
from tests.agent.failures import log_changes
from tests.counts import tries
from tests.outside import shared

CORPORA = ["incidents-dev.jsonl", "incidents-dev-2.jsonl"]
KEPT_SHARE = 0.99
TURNS = tries(4, ci=1, soak=1)  # of the records, one of so many is tried
OWN = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."
XID = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
LIMIT = "Memory limit of 32768 MiB exceeded with 32801 MiB used. Consider increasing the memory limit"
HEALTH = log_changes.ACCESS[0]


def classify(matcher: Matcher, text: str, platform: str | None = None) -> Finding:
    lines = log_lines(text)
    return matcher.classify("\n".join(lines), whole_log=len(lines) > 1, platform=platform)


def broken(matcher: Matcher, rows: list[Mapping[str, Any]]) -> tuple[int, list[str]]:
    """How many (record, change) there are, and those that lost a right class, became benign, or an alarm."""
    asked, lost = 0, []
    for row in rows:
        text, right = "\n".join(log_lines(row["log"])), {row["class"], *(row.get("also_acceptable_class") or ())}
        if classify(matcher, text, row.get("platform")).class_ not in right:
            continue
        for name, change in log_changes.CHANGES.items():
            asked += 1
            now = classify(matcher, change(text), row.get("platform")).class_
            if now not in right:
                lost.append(f"{row['id']}, {name}: {row['class']} became {now}")
    return asked, lost


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("corpus", CORPORA)
def test_what_was_right_stays_right_under_every_change(matcher: Matcher, corpus: str) -> None:
    """R18. All changes are decidable: no line of theirs proves that this very start of this server came up."""
    text = shared("data", corpus).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()][::TURNS]
    asked, lost = broken(matcher, rows)
    assert asked > 50 // TURNS * len(log_changes.CHANGES)
    assert len(lost) <= (1 - KEPT_SHARE) * asked, lost
    assert [one for one in lost if one.endswith("became benign") or ": benign became" in one] == []


@pytest.mark.slow
def test_our_own_texts_stay_what_they_are_under_every_change(matcher: Matcher) -> None:
    taken = OWN[::TURNS]
    bare = [row for row in taken if not any(server_of(line) for line in row["text"].splitlines())]
    rows = [{"id": str(n), "log": row["text"], "class": row["class"]} for n, row in enumerate(bare)]
    asked, lost = broken(matcher, rows)
    assert asked >= len(log_changes.CHANGES) * 0.9 * len(taken)
    assert lost == []


@pytest.mark.parametrize("name", list(log_changes.CHANGES))
def test_a_healthy_start_stays_silent_under_every_change(matcher: Matcher, name: str) -> None:
    """R12, with an early error that the start got over."""
    early = "(EngineCore pid=71) ERROR 05-06 07:08:21 [fa_utils.py:57] Cannot use FA version 2: the lamp is out"
    start = [*log_changes.BANNER, early, *log_changes.ENGINE, *log_changes.READY, *log_changes.TOKENS]
    assert classify(matcher, log_changes.CHANGES[name]("\n".join(start))).benign


@pytest.mark.parametrize("around", [[], log_changes.BANNER])
@pytest.mark.parametrize(
    ("failure", "class_"), [(OOM, "gpu_oom_weights"), (XID, "gpu_hardware_fault"), (LIMIT, "host_oom")]
)
@pytest.mark.parametrize("other", ["", "web-2  | "], ids=["the same", "another replica"])
def test_a_health_line_proves_nothing(
    matcher: Matcher, around: list[str], failure: str, class_: str, other: str
) -> None:
    own = "web-1  | " if other else ""
    text = "\n".join([*(own + line for line in around), own + failure, other + HEALTH])
    assert classify(matcher, text).class_ == class_


def test_one_start_is_one_server_whatever_its_processes_are_called(matcher: Matcher) -> None:
    trouble = "(EngineCore pid=71) requests.exceptions.ConnectionError: MaxRetryError on huggingface.co"
    start = [*log_changes.BANNER, trouble, *log_changes.ENGINE]
    assert classify(matcher, "\n".join(start)).class_ == "network_timeout"
    assert classify(matcher, "\n".join([*start, *log_changes.READY])).benign
    web2 = ["web-2  | " + line for line in log_changes.READY]
    assert classify(matcher, "\n".join(["web-1  | " + line for line in start] + web2)).class_ == "network_timeout"


@pytest.mark.parametrize("failure", [XID, LIMIT, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore died"])
def test_hardware_kills_limits_and_dead_engines_are_never_survived(matcher: Matcher, failure: str) -> None:
    text = "\n".join([*log_changes.BANNER, failure, *log_changes.ENGINE, *log_changes.READY, *log_changes.TOKENS])
    assert not classify(matcher, text).benign


SERVING = [*log_changes.HEALTHY_START]
RUNTIME = [
    '(EngineCore pid=71) ERROR 05-06 07:10:01 [core.py:7]   File "/srv/v1/engine/core.py", line 1, in execute_model',
    f"(EngineCore pid=71) ERROR 05-06 07:10:01 [core.py:7] {OOM}",
]
DEAD = "(APIServer pid=7) ERROR 05-06 07:10:02 [async_llm.py:9] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."


@pytest.mark.parametrize(
    ("after", "class_"),
    [
        ([], "gpu_oom_runtime"),
        (log_changes.ACCESS, "gpu_oom_runtime"),
        (log_changes.READY, "gpu_oom_runtime"),
        (["web-9  | " + line for line in log_changes.TOKENS], "gpu_oom_runtime"),
        ([*log_changes.BANNER, *log_changes.ENGINE, *log_changes.READY, *log_changes.TOKENS], "gpu_oom_runtime"),
        ([log_changes.TOKENS[0], DEAD], "gpu_oom_runtime"),
        (log_changes.TOKENS[:1], "benign"),
        (log_changes.TOKENS[1:], "benign"),
        ([log_changes.TOKENS[1].replace("throughput: 31.2", "throughput: 0.0")], "gpu_oom_runtime"),
    ],
    ids=[
        "nothing", "health", "ready again", "tokens of another", "a new start", "a dead engine", "a completion",
        "tokens", "a counter that stands still",
    ],
)  # fmt: skip
def test_a_trouble_of_serving_is_over_by_tokens_of_the_same_start_alone(
    matcher: Matcher, after: list[str], class_: str
) -> None:
    assert classify(matcher, "\n".join([*SERVING, *RUNTIME, *after])).class_ == class_


@pytest.mark.parametrize("after", [log_changes.TOKENS[:1], log_changes.TOKENS[1:]], ids=["a completion", "tokens"])
def test_a_process_whose_kernel_failed_is_not_healed_by_tokens(matcher: Matcher, after: list[str]) -> None:
    """Statistics written afterwards count the seconds before; of the same process no later call succeeds."""
    broken = "(EngineCore pid=71) ERROR 05-06 07:10:01 [core.py:7] torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    assert classify(matcher, "\n".join([*SERVING, broken, *after])).class_ == "illegal_memory_access"


@pytest.mark.parametrize(
    "said",
    [
        "[serving.py:7] Chat template warmup failed",
        "[usage_lib.py:7] Failed to collect TPU information",
        "[registry.py:7] Cached model info for class lamp.Lamp error.",
        "[cuda.py:7] NVLink detection failed. This is normal if your machine has no NVLink equipped.",
    ],
)
def test_an_error_of_what_vllm_goes_on_without_is_no_alarm(matcher: Matcher, said: str) -> None:
    """R12. Read in the sources: the caller takes another way."""
    error = f"(APIServer pid=7) ERROR 05-06 07:09:11 {said}"
    assert classify(matcher, "\n".join([*SERVING, error])).benign
    assert classify(matcher, "\n".join([*SERVING, error, OOM])).class_ == "gpu_oom_runtime"


def test_a_restart_that_comes_up_does_not_undo_the_failure_of_the_start_before(matcher: Matcher) -> None:
    failed = [*log_changes.BANNER, *log_changes.ENGINE[:2], OOM]
    assert classify(matcher, "\n".join([*failed, *log_changes.HEALTHY_START])).class_ == "gpu_oom_weights"
    assert classify(matcher, "\n".join([*log_changes.HEALTHY_START, *failed])).class_ == "gpu_oom_weights"


def test_of_two_starts_in_one_stream_without_names_the_pid_says_which_failed(matcher: Matcher) -> None:
    other = [line.replace("pid=7)", "pid=9)") for line in [*log_changes.BANNER, *log_changes.READY]]
    failed = "(APIServer pid=7) requests.exceptions.ConnectionError: MaxRetryError on huggingface.co"
    mixed = [*log_changes.BANNER, *other[:5], failed, *other[5:]]
    assert classify(matcher, "\n".join(mixed)).class_ == "network_timeout"
    assert classify(matcher, "\n".join([*mixed, *log_changes.READY])).benign


@pytest.mark.parametrize(
    "said",
    [
        "openai.BadRequestError: Error code: 400 - {'object': 'error', 'message': 'the lamp is not lit', 'code': 400}",
        '{"object":"error","message":"the lamp is not lit","type":"BadRequestError","param":null,"code":400}',
        'INFO:     10.0.0.9:41010 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
        'INFO:     10.0.0.9:41010 - "POST /v1/completions HTTP/1.1" 401 Unauthorized',
        "ERROR 05-06 07:08:09 [serving_chat.py:2] vllm.exceptions.BadRequestError: the lamp is not lit",
    ],
    ids=["client", "json", "access line", "unauthorised", "logged"],
)
@pytest.mark.parametrize("around", [[], log_changes.HEALTHY_START])
def test_a_request_that_was_refused_is_one_clients_trouble(matcher: Matcher, said: str, around: list[str]) -> None:
    found = classify(matcher, "\n".join([*around, said]))
    assert (found.class_, found.fix_actions[0]) == ("benign", "none_client_side")
    assert not found.certain


@pytest.mark.parametrize(
    ("said", "class_"),
    [
        ("This model's maximum context length is 4096 tokens", "context_length_exceeded"),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "tool_parser_error"),
        ("Conversation roles must alternate user/assistant/user/assistant", "chat_template_error"),
    ],
)
def test_a_refusal_that_a_rule_names_keeps_its_class(matcher: Matcher, said: str, class_: str) -> None:
    answer = {"object": "error", "message": said, "type": "BadRequestError", "code": 400}
    for text in (json.dumps(answer), f"openai.BadRequestError: Error code: 400 - {answer}"):
        assert classify(matcher, text).class_ == class_
        assert classify(matcher, "\n".join([text, *log_changes.TOKENS])).class_ == class_


def test_a_refusal_does_not_hide_an_error_beside_it(matcher: Matcher) -> None:
    refused = 'INFO:     10.0.0.9:41010 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request'
    error = "ERROR 05-06 07:08:09 [lamp.py:3] the lamp is out"
    assert classify(matcher, f"{refused}\n{error}").class_ == "unknown"
    assert classify(matcher, f"{refused}\n{OOM}").class_ == "gpu_oom_weights"


@pytest.mark.shared
def test_a_hint_is_right_seven_times_in_ten_where_it_speaks_alone(catalogue: FailureCatalogue) -> None:
    """T1: each is asked what it would say of every failure that it speaks of, were no text known."""
    unknowing = compile_catalogue((s for s in catalogue.signatures if s.role not in PLAIN_TROUBLE), ())
    told: dict[str, list[bool]] = {}
    for corpus in CORPORA:
        for line in shared("data", corpus).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found = classify(unknowing, row["log"], row["platform"])
            if found.hint and found.signature and row["class"] != "benign":
                right = {row["class"], *(row.get("also_acceptable_class") or ())}
                told.setdefault(found.signature, []).append(found.class_ in right)
    assert sum(map(len, told.values())) > 60
    assert {name: sum(of) / len(of) for name, of in told.items() if sum(of) < 0.7 * len(of)} == {}


def test_figures_are_those_of_the_start_and_the_server_that_failed(matcher: Matcher) -> None:
    """A plan is proved from them: another replica's context, or that of the start before, proves nothing."""
    told = "INFO 05-06 07:08:01 [utils.py:233] non-default args: {{'gpu_memory_utilization': {}, 'max_model_len': {}}}"
    failed = "ValueError: No available memory for the cache blocks."
    before = [log_changes.BANNER[3], told.format(0.5, 100), OOM]
    own = [log_changes.BANNER[3], told.format(0.8, 200), failed]
    found = classify(matcher, "\n".join([*before, *own]))
    assert found.fields["gpu_memory_utilization"] == 0.8
    other = ["web-2  | " + line for line in [log_changes.BANNER[3], told.format(0.6, 300)]]
    found = classify(matcher, "\n".join([*other, *("web-1  | " + line for line in own)]))
    assert found.fields["gpu_memory_utilization"] == 0.8
    found = classify(matcher, "\n".join([*other, "web-1  | " + failed]))
    assert "gpu_memory_utilization" not in found.fields


def test_a_request_that_broke_is_no_dead_engine_where_tokens_come_after_it(matcher: Matcher) -> None:
    broke = 'INFO:     10.0.0.9:41010 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error'
    error = 'ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nLampError: out'
    log = "\n".join([*log_changes.HEALTHY_START, broke, error])
    assert classify(matcher, log).class_ == "engine_dead"
    assert classify(matcher, "\n".join([log, *log_changes.ACCESS])).class_ == "engine_dead"
    assert classify(matcher, "\n".join([log, *log_changes.TOKENS])).class_ == "unknown"


STOP = [
    "(APIServer pid=7) INFO 05-06 09:00:00 [launcher.py:9] Received signal SIGTERM, shutting down",
    "INFO:     Shutting down",
    "INFO:     Application shutdown complete.",
    "INFO:     Finished server process [7]",
]


def test_a_graceful_end_is_harmless_and_what_the_engine_says_in_it_too(matcher: Matcher) -> None:
    """An unasked end is a signal of its own; the lines of an asked one are none."""
    for lines in (STOP, [*STOP, DEAD], [*STOP, "Normal  Killing  2s  kubelet  Stopping container vllm"]):
        assert classify(matcher, "\n".join([*log_changes.HEALTHY_START, *lines])).benign
    assert not classify(matcher, "\n".join([*log_changes.HEALTHY_START, DEAD, *STOP[1:]])).benign


REFUSED = "Readiness probe failed: Get http://10.0.0.7:8000/health: dial tcp 10.0.0.7:8000: connect: connection refused"
ENDING = "95s Normal Killing pod/llm-6d9f8b6c5-x2x9k Stopping container vllm"


@pytest.mark.parametrize(
    ("lines", "class_"),
    [
        ([ENDING, f"90s Warning Unhealthy pod/llm-6d9f8b6c5-x2x9k {REFUSED}"], "benign"),
        (["Normal Killing Stopping container vllm", f"Warning Unhealthy {REFUSED}"], "benign"),
        ([ENDING, f"90s Warning Unhealthy pod/llm-6d9f8b6c5-x2x9k {REFUSED.replace('Readiness', 'Liveness')}"], "benign"),
        (["Warning SpotInterrupted spot interruption warning was triggered", "Normal Killing Stopping container vllm"], "benign"),
        ([ENDING, f"90s Warning Unhealthy pod/llm-6d9f8b6c5-p7mz4 {REFUSED}"], "startup_probe_failed"),
        ([f"99s Warning Unhealthy pod/llm-6d9f8b6c5-x2x9k {REFUSED}", ENDING], "startup_probe_failed"),
        (["Normal Killing Stopping container vllm", *log_changes.BANNER, f"Warning Unhealthy {REFUSED}"], "startup_probe_failed"),
        (["Normal Killing Stopping container vllm", LIMIT], "host_oom"),
        (["Normal Killing Stopping container vllm", "ERROR 05-06 07:08:09 [lamp.py:3] the lamp is out"], "unknown"),
    ],
    ids=[
        "the same pod", "one pod described", "its liveness probe", "a spot reclaim", "another pod", "before the stop", "a start after it",
        "a kill for memory", "an error that nobody knows",
    ],
)  # fmt: skip
def test_what_the_platform_was_told_to_end_may_fail_its_probes(matcher: Matcher, lines: list[str], class_: str) -> None:
    """A scale-in, a drain or a rollout covers the probes and the end of the very pod below it, and nothing else."""
    assert classify(matcher, "\n".join(lines), "kubernetes").class_ == class_


STORMS: dict[str, Callable[[int], list[str]]] = {
    "indented": lambda n: [
        f"    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {i}.00 GiB" for i in range(n)
    ],
    "below one traceback": lambda n: ["Traceback (most recent call last):", *["    CUDA out of memory"] * n],
    "heads of tracebacks": lambda n: ["Traceback (most recent call last):"] * n,
    "starts by process": lambda n: [f"(APIServer pid={i}) INFO vLLM API server version 0.11.0" for i in range(n)],
    "starts that failed": lambda n: (
        ["INFO vLLM API server version 0.11.0", OOM, "Application startup complete."] * (n // 3)
    ),
    "ends while serving": lambda n: [
        *("INFO vLLM API server version 0.11.0", "Application startup complete."),
        *["RuntimeError: NCCL error: unhandled system error", "EngineDeadError: EngineCore encountered an issue"]
        * (n // 2),
        log_changes.ACCESS[1],
    ],
    "told to end": lambda n: [
        *["Stopping container vllm pod/vllm-7d9f8b6c5d-abcde"] * (n // 2),
        *["Readiness probe failed: connection refused pod/vllm-7d9f8b6c5d-xyzzz"] * (n // 2),
    ],
    "waiting": lambda n: [
        f"INFO Engine {i:03d}: Running: 3 reqs, Waiting: 9 reqs, GPU KV cache usage: 1%" for i in range(n)
    ],
}
MOST_CALLS_A_LINE = 600


@pytest.mark.parametrize("storm", STORMS)
@pytest.mark.slow
def test_twice_the_lines_cost_twice_the_work(matcher: Matcher, storm: str) -> None:
    """Counted in calls, which a busy machine does not change; a line in a long traceback may ask the 400 above it."""

    def calls(lines: int) -> int:
        count = 0

        def called(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal count
            count += event in {"call", "c_call"}

        text = "\n".join(STORMS[storm](lines))
        before = sys.getprofile()
        sys.setprofile(called)
        try:
            matcher.classify(text, whole_log=True, platform=None)
        finally:
            sys.setprofile(before)
        return count

    once, twice = calls(1000), calls(2000)
    assert twice < 2.4 * once
    assert twice < 2000 * MOST_CALLS_A_LINE


OLLAMA_SERVES = '[GIN] 2031/05/06 - 07:08:18 | 200 |  8.131455301s |  10.0.0.9 | POST     "/api/chat"'


@pytest.mark.parametrize(
    ("said", "class_"),
    [
        ("Error: listen tcp 0.0.0.0:11434: bind: address already in use", "port_not_listening"),
        ("Probe of StartUp failed with status code: 1", "startup_probe_failed"),
    ],
)
def test_what_was_seen_at_a_port_is_over_once_requests_are_served_there(
    matcher: Matcher, said: str, class_: str
) -> None:
    """Also by a server that prints no banner; who holds the port, or what a probe missed, is no certainty."""
    assert classify(matcher, said).class_ == class_
    found = classify(matcher, f"{said}\n{OLLAMA_SERVES}")
    assert (found.class_, found.certain) == ("benign", False)
    ended = "Container lamp was terminated with exit code '1' and reason 'ProcessExited'"
    assert not classify(matcher, f"{said}\n{ended}\n{OLLAMA_SERVES}").benign


def test_what_python_ignores_is_no_failure_and_hides_none(matcher: Matcher) -> None:
    results = "Prompt: 'The lamp is', Generated text: ' lit'"
    ignored = [
        "Exception ignored in: <function Lamp.__del__ at 0x7f930d38e8c0>",
        "Traceback (most recent call last):",
        '  File "/srv/lamp.py", line 59, in __del__',
        "TypeError: 'NoneType' object is not callable",
    ]
    assert classify(matcher, "\n".join([results, *ignored])).benign
    assert not classify(matcher, "\n".join([results, *ignored[1:]])).benign
    assert not classify(matcher, "\n".join([*ignored, OOM])).benign
    assert not classify(matcher, "\n".join([*ignored[1:], *ignored])).benign


def test_a_note_that_tells_of_want_is_not_harmless_by_itself(matcher: Matcher) -> None:
    notes = [
        "INFO scheduler: request dropped, the lamps are saturated",
        "WARN gateway: request shed, priority band 0 over limit",
        "WARN init: only 1 of 2 lamps joined",
        "WARN quota: budget used up, lamps capped at 0",
        "INFO start: deadline passed, the lamp is still cold",
        "WARN start: took longer than allowed",
        "INFO engine: hit memory ceiling, shrinking batch to 0",
    ]
    assert [note for note in notes if classify(matcher, f"2031-05-06 07:08:09 {note}").benign] == []
