"""The verdict: silence on healthy logs, doubt where the text leaves doubt."""

import pytest

from agent.failures.match import Matcher

STAMP = "2031-05-06 07:08:09"
HEALTHY = [
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
