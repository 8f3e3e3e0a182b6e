"""sre-agent replay: what it ends with when a source says nothing that is understood."""

import json

import pytest
import structlog

from agent.entrypoints.cli import main

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
    yield
    structlog.reset_defaults()  # the command bound the log to what pytest captures here


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


def test_nothing_is_sent_of_a_source_that_holds_no_event(tmp_path, capsys):
    source = tmp_path / "source"
    source.write_bytes(b"\x00\x01\x02 binary")
    assert main(["replay", str(source), "--publish", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["sent"] == 0
