"""Rule files, help texts and programs raise no alarm, and are no healthy log; what may only explain or show a message is not certain."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.documents import MOST_OPEN_LINES, documents, may_only_describe
from agent.failures.text.entry_text import log_lines
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS

RULES = """groups:
- name: lamp
  rules:
  - alert: LampOutOfMemory
    expr: increase(container_oom_events_total{container="vllm"}[5m]) > 0
    annotations:
      summary: "vLLM was OOMKilled on {{ $labels.instance }}"
      description: |
        torch.OutOfMemoryError: CUDA out of memory. Exit code 137
        means that it was killed.
  - alert: LampEngine
    expr: up{job="vllm"} == 0
    annotations:
      description: "EngineCore encountered a fatal error, or Xid 79, GPU has fallen off the bus"
"""
COLLECTOR = """scrape_configs:
  - job_name: lamp
    pipeline_stages:
      - match:
          selector: '{job="vllm"} |= "torch.OutOfMemoryError: CUDA out of memory"'
      - regex:
          expression: '.*(?P<fatal>EngineDeadError|NCCL error|Failed to load model).*'
      - drop:
          expression: "ERROR: No space left on device"
"""
HELP = """usage: lamp serve [model_tag] [options]

options:
  -h, --help            show this help message and exit
  --max-model-len LEN   Where "is larger than the maximum number of tokens
                        that can be stored in KV cache" is raised, lower it.
  --shm-size SIZE       Against "No space left on device" in /dev/shm
  --enforce-eager       Avoids an illegal memory access was encountered
"""
PROGRAM = """from lamp import Lamp

def main(port):
    lamp = Lamp(port)
    while not is_port_in_use(port):
        logger.info("Port %d is already in use, trying port %d", port - 1, port)
    if lamp.is_dark:
        raise RuntimeError("CUDA out of memory")
    prompt = lamp.tokenizer.apply_chat_template(
        messages, tokenize=False
    )
    return prompt
"""
PAGE = """# Lamps in trouble

## Out of memory
If the model is too large you will see `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB`.
- check dmesg for "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"
`RuntimeError: CUDA error: an illegal memory access was encountered` means a bug of a kernel.
Q: What does "EngineCore encountered a fatal error" mean?
A: The engine process died.
"""
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


@pytest.mark.parametrize("text", [RULES, COLLECTOR, HELP, PROGRAM], ids=["rules", "collector", "help", "program"])
@pytest.mark.parametrize("prefix", ["", "vllm-1  | ", "[pod/vllm-0/vllm] ", "2031-05-06T07:08:09.123456789Z stderr F "])
def test_a_document_that_names_failures_is_none_and_no_healthy_log(matcher: Matcher, text: str, prefix: str) -> None:
    for whole in (text, "\n".join([text, *HEALTHY_START]), "\n".join([*HEALTHY_START, text])):
        lines = [prefix + line for line in whole.splitlines()]
        found = matcher.classify("\n".join(lines), whole_log=True, platform=None)
        assert found.class_ == "unknown" or (found.benign and lines[-1] == prefix + TOKENS[-1]), found


def test_a_page_of_explanations_is_not_certain(matcher: Matcher) -> None:
    for whole in (PAGE, "\n".join([PAGE, *HEALTHY_START]), "\n".join([*HEALTHY_START, PAGE])):
        found = matcher.classify(whole, whole_log=True, platform=None)
        assert (found.benign, found.certain) == (False, False)


@pytest.mark.parametrize(
    "text", [RULES, COLLECTOR, HELP, PROGRAM, PAGE], ids=["rules", "collector", "help", "program", "page"]
)
def test_a_failure_below_a_document_is_one(matcher: Matcher, text: str) -> None:
    found = matcher.classify("\n".join([text, *HEALTHY_START, OOM]), whole_log=True, platform=None)
    assert found.class_ == "gpu_oom_runtime"


@pytest.mark.parametrize(
    ("said", "class_"),
    [
        ("When I serve a second model I get CUDA out of memory", "gpu_oom_weights"),
        ("usage: lamp serve [options]\nlamp serve: error: unrecognized arguments: --lamp", "invalid_flag"),
        ("message: 'The node was low on resource: memory.'", "host_oom"),
        ("vllm: error: argument --max-num-seqs: invalid int value: 'x'", "invalid_flag"),
    ],
)
def test_a_report_is_no_explanation(matcher: Matcher, said: str, class_: str) -> None:
    assert matcher.classify(said, whole_log=True, platform=None).class_ == class_


def test_what_is_true_of_all_things_of_a_kind_is_not_certain(matcher: Matcher) -> None:
    said = "A pod that is OOMKilled used more than its memory limit."
    assert may_only_describe(said)
    assert not may_only_describe("A process in the process pool was terminated abruptly")
    assert not matcher.classify(said, whole_log=True, platform=None).certain


def test_a_record_of_a_program_explains_nothing() -> None:
    assert may_only_describe('If you see "CUDA out of memory", lower it')
    assert not may_only_describe('ERROR 05-06 07:08:09 [lamp.py:3] If you see "CUDA out of memory", lower it')


def test_a_rule_file_ends_where_another_text_begins() -> None:
    lines = RULES.splitlines()
    for below in (OOM, "vllm: error: lamp", f"- {OOM}", "status:", "      Reason:       OOMKilled"):
        assert documents([*lines, below, "  lamp"]) == frozenset(range(3, len(lines)))


def test_a_program_ends_where_a_record_or_a_traceback_begins() -> None:
    lines = PROGRAM.splitlines()
    for below in (
        *(OOM, "ERROR 05-06 07:08:09 [lamp.py:3] lamp", "Traceback (most recent call last):", "Killed", "  Killed"),
        *(f"  {OOM}", "free(): invalid pointer", "malloc(): corrupted top size (core dumped)", "  reason: OOMKilled"),
        *("ValueError: max_len = 5", "Warning  Unhealthy  1m  kubelet  Liveness probe failed: lamp"),
    ):
        assert documents([*lines, below, "  lamp"]) == frozenset(range(len(lines))), below


def test_a_program_goes_on_within_brackets_and_quotes_that_it_closes() -> None:
    inside = ["lamp = Lamp(", "    wick,", '    "OOMKilled",', ")", 'story = """', "CUDA out of memory", '"""', "go()"]
    lines = [*PROGRAM.splitlines(), *inside]
    assert documents(lines) == frozenset(range(len(lines)))
    never_closed = [*PROGRAM.splitlines(), 'story = """', OOM, "Killed"]
    assert documents(never_closed) == frozenset(range(len(PROGRAM.splitlines())))
    for lamps, closed in ((MOST_OPEN_LINES - 2, True), (MOST_OPEN_LINES, False)):
        lines = [*PROGRAM.splitlines(), 'story = """', *["lamp"] * lamps, '"""']
        assert (len(lines) - 1 in documents(lines)) is closed


def test_what_a_traceback_quotes_is_no_program() -> None:
    quoted = [
        '  File "/opt/lamp.py", line 7, in <module>',
        "    from lamp import (",
        "        a,",
        "    )",
        "x = 1",
        "y = 2",
    ]
    assert not documents([*quoted, "z = 3", "w = 4", OOM])
    assert not documents(["import lamp", "x = 1", OOM])


@pytest.mark.parametrize(
    "lines",
    [
        [
            "    Args:",
            "      --help",
            "      --model=m",
            "    Last State:     Terminated",
            "      Reason:       OOMKilled",
        ],
        ["  RuntimeError: lamp", "Usage:", "  --help  x"],
        ["panic: x", "  --help   x", "\tNo space left on device"],
        ["Options:", "  --help  Show this message and exit.", "", "Engine log:", "    RuntimeError: lamp"],
    ],
)
def test_a_lone_option_makes_no_help_text(lines: list[str]) -> None:
    assert not documents(lines)


def test_a_help_text_ends_where_no_option_follows() -> None:
    lines = HELP.splitlines()
    for below in (f"  {OOM}", "", "\nlog:\n    lamp", "Reason: lamp"):
        assert documents([*lines, *below.split("\n"), f"    {OOM}"]) <= frozenset(range(3, len(lines)))


SHOWN = [
    '+ grep -c "{}" /var/log/lamp.log',
    "+ LAMP='{}'",
    "+ echo '{}'",
    "root@lamp:/# grep '{}' /var/log/lamp.log",
    '$ echo "{}"',
    'lamp_failures_total{{reason="{}"}} 0',
    'lamp_failures_total{{reason="{}"}} 0.000',
    'lamp_failures_total{{reason="{}"}} 0e+00',
    'lamp_failures_total{{reason="{}"}} 0 1699999999',
    "tests/test_lamp.py::test_handles[{}] PASSED",
    "When it gets a second request, the server dies with {}",
    "No retry succeeded: {}",
    "{} (last attempt that succeeded: 07:01)",
    "{}; attempt 2 succeeded",
    "INFO 05-06 07:08:09 [lamp.py:3] event: '{}'",
]
SAID = [
    "## ERROR: {}",
    "pattern: {}",
    '  "text": "{}"',
    "curl: (7) {}",
    "sed -i /lamp.json: {}",
    "echo ERROR: {}",
    '{{"level": "error", "content": "{}"}}',
    '{{"level": "error", "msg": "lamp", "text": "{}"}}',
    '{{"severity": "ERROR", "message": "lamp", "content": "{}"}}',
    '{{"message": {{"body": {{"content": "{}"}}}}}}',
    '{{"msg": "lamp", "code": 1, "stderr": {{"text": "{}"}}}}',
    'lamp_failures_total{{reason="{}"}} 3',
]


@pytest.mark.parametrize("said", [*SHOWN, *SAID])
@pytest.mark.parametrize(
    ("words", "class_"), [("GPU has fallen off the bus", "gpu_hardware_fault"), ("OOMKilled", "host_oom")]
)
def test_a_failure_stands_whoever_shows_it_and_is_certain_only_where_it_is_said(
    matcher: Matcher, said: str, words: str, class_: str
) -> None:
    """What nothing tells from the words of a program that died is no healthy log."""
    text = "\n".join(log_lines("\n".join([*HEALTHY_START, said.format(words)])))
    found = matcher.classify(text, whole_log=True, platform=None)
    assert (found.class_, found.certain) == (class_, said in SAID)


@pytest.mark.parametrize(
    "note",
    [
        "event: {'reason': 'OOMKilled', 'exitCode': 137}",
        'shutting down because: "EngineCore encountered a fatal error"',
    ],
)
def test_a_note_of_a_launcher_may_quote_what_happened(matcher: Matcher, note: str) -> None:
    found = matcher.classify(
        "\n".join([*HEALTHY_START, f"INFO 05-06 07:09:20 [lamp.py:3] {note}"]), whole_log=True, platform=None
    )
    assert (found.benign, found.certain) == (False, False)
