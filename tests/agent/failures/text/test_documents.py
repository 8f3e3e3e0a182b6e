"""Rule files, help texts and explanations raise no alarm; what a program says in their words does."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.documents import documents, is_explained, speaks_of_any
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
PAGE = """# Lamps in trouble

## Out of memory
If the model is too large you will see `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB`.
- check dmesg for "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"
`RuntimeError: CUDA error: an illegal memory access was encountered` means a bug of a kernel.
Q: What does "EngineCore encountered a fatal error" mean?
A: The engine process died.
"""
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


@pytest.mark.parametrize("text", [RULES, COLLECTOR, HELP, PAGE], ids=["rules", "collector", "help", "page"])
def test_a_document_that_names_failures_is_none(matcher: Matcher, text: str) -> None:
    for whole in (text, "\n".join([text, *HEALTHY_START]), "\n".join([*HEALTHY_START, text])):
        found = matcher.classify(whole, whole_log=True, platform=None)
        assert found.benign or found.class_ == "unknown", found


@pytest.mark.parametrize("text", [RULES, COLLECTOR, HELP, PAGE], ids=["rules", "collector", "help", "page"])
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
    assert speaks_of_any(said)
    assert not speaks_of_any("A process in the process pool was terminated abruptly")
    assert not matcher.classify(said, whole_log=True, platform=None).certain


def test_a_record_of_a_program_explains_nothing() -> None:
    assert is_explained('If you see "CUDA out of memory", lower it')
    assert not is_explained('ERROR 05-06 07:08:09 [lamp.py:3] If you see "CUDA out of memory", lower it')


def test_a_rule_file_ends_where_another_text_begins() -> None:
    lines = RULES.splitlines()
    assert documents([*lines, OOM, "vllm: error: lamp"]) == frozenset(range(3, len(lines)))


@pytest.mark.parametrize(
    "shown",
    [
        '+ grep -c "{}" /var/log/lamp.log',
        'grep "{}" /var/log/lamp.log',
        '$ echo "{}"',
        'lamp_failures_total{{reason="{}"}} 0',
        '  "text": "{}",',
        "tests/test_lamp.py::test_handles[{}] PASSED",
        'INFO 05-06 07:08:09 [lamp.py:3] watching for "{}"',
        "(lamp pid=3) DEBUG 05-06 07:08:09 [lamp.py:3] retry_on=['{}'], retries=3",
        '{{"level": "info", "msg": "answered", "content": "{}"}}',
        "WARNING 05-06 07:08:09 [lamp.py:3] {}; retry 1/3 succeeded",
    ],
)
@pytest.mark.parametrize(
    "words", [OOM, "GPU has fallen off the bus", "EngineCore encountered a fatal error", "OOMKilled"]
)
def test_what_is_shown_quoted_or_was_tried_again_is_no_trouble(matcher: Matcher, shown: str, words: str) -> None:
    text = "\n".join(log_lines("\n".join([*HEALTHY_START, shown.format(words), *TOKENS])))
    assert matcher.classify(text, whole_log=True, platform=None).benign


@pytest.mark.parametrize(
    "said",
    [
        "curl: (7) {}",
        "+ python: {}",
        'ERROR 05-06 07:08:09 [lamp.py:3] "{}"',
        '{{"level": "error", "content": "{}"}}',
        "WARNING 05-06 07:08:09 [lamp.py:3] {}; no retry succeeded",
        'lamp_failures_total{{reason="{}"}} 3',
    ],
)
def test_what_a_program_says_itself_is(matcher: Matcher, said: str) -> None:
    text = "\n".join(log_lines("\n".join([*HEALTHY_START, said.format("GPU has fallen off the bus")])))
    found = matcher.classify(text, whole_log=True, platform=None)
    assert not found.benign
