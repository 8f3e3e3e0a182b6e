"""sre-agent replay: what it ends with when a source says nothing that is understood."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from agent.entrypoints.cli.main import main
from agent.ports.bus import Topic
from tests import google_tokens as tokens

EXAMPLES = Path(__file__).resolve().parents[5] / "examples"
ENTRY = {
    "insertId": "i1",
    "timestamp": "2026-11-21T03:00:00Z",
    "logName": "projects/p/logs/run.googleapis.com%2Fstderr",
    "resource": {"type": "cloud_run_revision", "labels": {"service_name": "lamp", "revision_name": "lamp-00001-abc"}},
    "textPayload": "the lamp is lit",
}


@pytest.fixture(autouse=True)
def _own_state(monkeypatch, tmp_path):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")


@pytest.mark.parametrize(
    "body",
    [b"\x00\x01\x02 binary", b'{"id":"a","log":"CUDA out of memory"}\n{"id":"b","log":"x"}\n', b'{"a":1}\n{"b":\n'],
    ids=["binary", "rows of classify", "foreign and broken rows"],
)
def test_a_source_of_which_nothing_is_understood_is_never_called_healthy(body, tmp_path, capsys):
    source = tmp_path / "source"
    source.write_bytes(body)
    assert main(["replay", str(source), "--json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "no incident" not in told.err


def test_one_bad_row_does_not_hide_a_healthy_one(tmp_path, capsys):
    source = tmp_path / "source"
    source.write_text(json.dumps(ENTRY) + "\n{broken\n")
    assert main(["replay", str(source), "--json"]) == 0
    assert "no incident" in capsys.readouterr().err


@pytest.fixture
def two_examples(tmp_path):
    for name in ("vllm-cpu-kv-cache-too-small", "gemma4-31b-l4-oom"):
        shutil.copytree(EXAMPLES / name, tmp_path / "cases" / name)
    return str(tmp_path / "cases")


def test_a_folder_of_examples_is_replayed_one_by_one(two_examples, capsys):
    """Each with its own services, in the order of names."""
    assert main(["replay", two_examples, "--json"]) == 1
    told = capsys.readouterr()
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert [(row["example"], row["class"]) for row in rows] == [
        ("gemma4-31b-l4-oom", "gpu_oom_weights"),
        ("vllm-cpu-kv-cache-too-small", "kv_cache_insufficient"),
    ]
    assert told.err == ""


def test_a_folder_of_examples_is_not_sent(two_examples, capsys):
    assert main(["replay", two_examples, "--publish"]) == 2
    assert "it holds 2 examples" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["vllm-cpu-kv-cache-too-small", "examples/vllm-cpu-kv-cache-too-small"])
def test_an_example_goes_by_its_bare_name_or_as_in_a_checkout(monkeypatch, tmp_path, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert main(["replay", name]) == 1
    assert "kv_cache_insufficient" in capsys.readouterr().out


@pytest.mark.parametrize("source", ["logging:severity>=ERROR", "-"])
def test_a_span_that_is_none_is_refused(source, capsys):
    assert main(["replay", source, "--since", "banana"]) == 2
    assert "'banana'" in capsys.readouterr().err


def test_a_span_is_refused_where_nothing_is_looked_back_for(source, capsys):
    assert main(["replay", source, "--since", "2h"]) == 2
    assert "is read whole" in capsys.readouterr().err


def test_without_credentials_the_log_is_a_dependency_that_failed(monkeypatch, tmp_path, capsys):
    """Exit code 3, and the command that logs in."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "example")
    assert main(["replay", "logging:severity>=ERROR", "--since", "2h"]) == 3
    told = capsys.readouterr().err
    assert "gcloud auth application-default login" in told
    assert ".." not in told


def test_an_empty_source_is_not_called_healthy(tmp_path, capsys):
    (tmp_path / "empty").touch()
    assert main(["replay", str(tmp_path / "empty")]) == 2
    assert "it is empty" in capsys.readouterr().err


def test_nothing_is_sent_of_a_source_that_holds_no_event(tmp_path, capsys):
    source = tmp_path / "source"
    source.write_bytes(b"\x00\x01\x02 binary")
    assert main(["replay", str(source), "--publish", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["sent"] == 0


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(ENTRY) + "\n")
    return str(path)


@pytest.fixture
def token(tmp_path, monkeypatch):
    """Make the operator's ID token what a command prints, as gcloud would."""
    path = tmp_path / "token"
    path.write_text(tokens.id_token(tokens.id_claims()))
    monkeypatch.setenv("ID_TOKEN_COMMAND", f"{sys.executable} -c \"print(open('{path}').read())\"")


@pytest.mark.emulator
@pytest.mark.xdist_group("emulator")
@pytest.mark.parametrize("live", [False, True])
def test_in_the_cloud_it_is_sent_to_the_topic_of_the_log_sink(
    source, token, pubsub_emulator, pubsub_project, monkeypatch, tmp_path, capsys, live
):
    """Nothing is written here; a live replay names its starter as the policy knows them, so that they cannot approve."""
    topic = pubsub_emulator.topic(Topic.LOG_EVENTS, pubsub_project)
    sent = pubsub_emulator.subscribe("heard", topic, pubsub_project)
    monkeypatch.setenv("BUS", f"pubsub:{pubsub_project}")
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator.host)
    assert main(["replay", source, "--publish", "--json", *(["--live"] if live else [])]) == 0
    told = json.loads(capsys.readouterr().out)
    (arrived,) = pubsub_emulator.pull(sent)
    attributes = dict(arrived.message.attributes)
    assert json.loads(arrived.message.data)["insertId"] == "i1"
    assert attributes["run"] == told["run"]
    assert (attributes.get("live"), attributes.get("started_by")) == (
        ("true", "ada@example.com") if live else (None, None)
    )
    assert not (tmp_path / "state").exists()


def test_a_live_replay_in_the_cloud_without_a_name_is_not_sent(source, monkeypatch, capsys):
    monkeypatch.setenv("BUS", "pubsub:example")
    monkeypatch.setenv("ID_TOKEN_COMMAND", "false")
    assert main(["replay", source, "--live"]) == 3
    assert "no ID token" in capsys.readouterr().err


def test_a_laptop_that_decides_in_the_cloud_does_not_publish_to_its_own_files(source, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DECIDE_URL", "https://decide.example")
    assert main(["replay", source, "--publish"]) == 2
    assert "set BUS=pubsub:<project>" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_an_incident_of_the_cloud_is_not_looked_for_in_the_files_of_this_machine(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BUS", "pubsub:example")
    assert main(["replay", "incident:inc-1"]) == 2
    assert "in the cloud replay its log" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


LOOP = "(EngineCore pid=7) DEBUG 08-11 02:14:00 [core.py:416] loop active"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB."


@pytest.mark.parametrize(
    ("above", "place"),
    [(LOOP, "log:4001"), ('{"level":"info","ts":7}', "log")],
    ids=["plain lines", "lines that were taken apart"],
)
def test_a_line_of_a_long_log_is_told_by_its_place_in_the_file(above, place, tmp_path, capsys):
    """Only some of its lines are kept for a diagnosis; where those are not the file's own, no place is told."""
    source = tmp_path / "server"
    source.mkdir()
    labels = {"service_name": "server", "revision_name": "server-00001-abc"}
    entry = ENTRY | {
        "timestamp": "2031-01-01T00:00:00Z",
        "resource": {"type": "cloud_run_revision", "labels": labels},
        "textPayload": f"{OOM} GPU 0",
    }
    (source / "entries.jsonl").write_text(json.dumps(entry) + "\n")
    (source / "server.log").write_text("\n".join([above, *[LOOP] * 3_999, OOM, LOOP]) + "\n")
    assert main(["replay", str(source), "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert place in {one["signal"] for row in rows for one in row["evidence"]}
