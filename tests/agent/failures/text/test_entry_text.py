"""The words of structured records."""

import json
from pathlib import Path

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import entry_lines, log_lines


def test_a_text_payload_is_taken_as_it_is_without_colours() -> None:
    assert entry_lines({"textPayload": "\x1b[31mone\x1b[0m\ntwo", "insertId": "a"}) == ["one", "two"]


def test_reason_and_message_of_an_event_stand_on_one_line() -> None:
    event = {
        "jsonPayload": {"reason": "FailedScheduling", "message": "0/3 nodes: Insufficient nvidia.com/gpu", "count": 3}
    }
    assert entry_lines(event)[0] == "FailedScheduling: 0/3 nodes: Insufficient nvidia.com/gpu"


def test_a_pod_status_keeps_the_reason_of_a_terminated_container(matcher: Matcher) -> None:
    pod = {"status": {"containerStatuses": [{"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}}
    found = matcher.classify("\n".join(entry_lines(pod)), whole_log=False, platform="kubernetes")
    assert found.class_ == "host_oom"
    assert found.fields["exit_code"] == 137


def test_an_audit_entry_gives_its_status_first() -> None:
    entry = {"protoPayload": {"methodName": "/Services.ReplaceService", "status": {"code": 9, "message": "not ready"}}}
    assert entry_lines(entry)[0] == "not ready"


def test_json_lines_within_a_log_are_taken_apart_and_a_cut_one_stays() -> None:
    log = '{"textPayload": "first"}\nplain\n{"textPayload": "cut'
    assert log_lines(log) == ["first", "plain", '{"textPayload": "cut']


def test_deep_or_odd_json_is_survived() -> None:
    deep: object = "leaf"
    for _ in range(200):
        deep = {"a": deep}
    assert isinstance(entry_lines({"x": deep, "y": None, "z": [1, [2, {"q": "w"}]]}), list)
    assert log_lines("[" * 100_000) == ["[" * 100_000]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "class_"),
    [
        ("log_memory_limit.json", "host_oom"),
        ("audit_gpu_quota_rejected.json", "quota_exceeded"),
        ("audit_gpu_quota_revision.json", "quota_exceeded"),
        ("audit_mem_quota_rejected.json", "quota_exceeded"),
        ("log_startup_probe_succeeded.json", "benign"),
        ("log_instance_started.json", "benign"),
        ("log_gcsfuse_permission_denied.json", "weights_unreadable"),
    ],
)
def test_documented_payloads_are_recognised(matcher: Matcher, name: str, class_: str, samples: Path) -> None:
    sample = json.loads((samples / name).read_text())
    text = "\n".join(entry_lines(sample))
    assert matcher.classify(text, whole_log=False, platform="cloud_run").class_ == class_


def test_truth_values_are_written_as_json_writes_them(matcher: Matcher) -> None:
    state = {"State": {"Running": True, "OOMKilled": False, "ExitCode": 0}, "Dead": False}
    assert entry_lines(state) == ["State: Running: true, OOMKilled: false, ExitCode: 0", "Dead: false"]
    assert matcher.classify("\n".join(entry_lines(state)), whole_log=False, platform=None).class_ != "host_oom"


@pytest.mark.parametrize(
    "record",
    [
        {"role": "assistant", "content": "CUDA out of memory", "finish_reason": "stop"},
        {"choices": [{"delta": {"content": "CUDA out of memory"}, "finish_reason": None}]},
        {"msg": "request", "messages": [{"role": "user", "content": [{"type": "text", "text": "CUDA out of memory"}]}]},
        {"msg": "request", "params": {"prompt": "CUDA out of memory", "n": 1}},
        {"tool_calls": [{"function": {"name": "f", "arguments": "CUDA out of memory"}}]},
    ],
)
def test_what_people_and_models_say_is_no_line_of_the_log(record):
    assert "CUDA out of memory" not in "\n".join(entry_lines(record))


@pytest.mark.parametrize("key", ["content", "text", "message"])
def test_a_logger_may_call_its_own_words_content(key):
    assert "CUDA out of memory" in "\n".join(entry_lines({key: "CUDA out of memory", "level": "error"}))


@pytest.mark.parametrize("whole", [True, False], ids=["array", "lines"])
def test_entries_of_several_instances_say_whose_they_are(matcher, whole):
    def entry(instance, text):
        return {"insertId": "x", "textPayload": text, "labels": {"instanceId": instance}}

    failed = entry("a1", "requests.exceptions.ConnectionError: MaxRetryError on huggingface.co")
    for other, class_ in (("b2", "network_timeout"), ("a1", "benign")):
        entries = [failed, entry(other, "INFO:     Application startup complete.")]
        text = json.dumps(entries) if whole else "\n".join(map(json.dumps, entries))
        lines = log_lines(text)
        assert lines[0].startswith("[instance/a1] ") == (other == "b2")
        assert matcher.classify("\n".join(lines), whole_log=True, platform="cloud_run").class_ == class_


def test_under_a_key_of_a_path_no_more_than_a_path_is_a_clients() -> None:
    """A target or a route of another kind is the server's own word."""
    assert entry_lines({"verb": "GET", "target": "/lamp"}) == ["verb: GET", "target: /..."]
    assert entry_lines({"verb": "GET", "target": "GPU 0: lamp"}) == ["verb: GET", "target: GPU 0: lamp"]


def test_the_level_of_a_stream_does_not_speak_where_the_line_has_its_own() -> None:
    """Some collectors call all that a program writes on standard error an error."""
    own = {"severity": "ERROR", "message": "INFO 05-06 07:08:09 [lamp.py:7] it is lit"}
    assert entry_lines(own) == [own["message"]]
    for said in ("it is out", "(EngineCore pid=7) the engine is gone", "INFO it is lit\nit is out"):
        assert entry_lines({"level": "error", "msg": said}) == [*said.split("\n"), "level: error"]
