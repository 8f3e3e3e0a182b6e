"""The doctor through the command line: what it prints, and what it ends with."""

import json

import pytest

from agent.entrypoints.cli.main import main

NOBODY = "http://127.0.0.1:9/v1"  # the discard port: refused at once on loopback
COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.fixture(autouse=True)
def _own_state(monkeypatch, tmp_path):
    for name in ("PLATFORM", "SERVICES", "POLICY", "SLACK_TOKEN", "MODEL_ENDPOINTS", "BUS", *COLLECTOR):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")


def looked(capsys, *words):
    code = main(["doctor", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_an_installation_without_anything_wrong_ends_with_0(capsys):
    code, out, err = looked(capsys)
    assert code == 0, out
    assert "no problem found" in err
    assert "clock" in err, "what could not be looked at is named, never taken for good"


def test_a_rehearsal_is_not_said_to_watch_a_real_service(capsys):
    """Nothing configured: what runs is simulated, and the doctor says so instead of calling it good."""
    _, out, _ = looked(capsys, "--json")
    rows = {row["check"]: row for row in map(json.loads, out.splitlines())}
    assert rows["platform"]["state"] == "off"
    assert "no real service is watched or changed" in rows["platform"]["says"]
    assert "watched" not in rows["services"]["says"]


def test_a_services_file_that_is_not_there_is_not_replaced_by_the_rehearsals(capsys, monkeypatch):
    monkeypatch.setenv("SERVICES", "nope.toml")
    _, out, _ = looked(capsys, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["state"] for row in rows if "SERVICES" in row["check"]] == ["bad"]
    assert not [row for row in rows if row["check"] == "services"]


@pytest.mark.parametrize(
    ("environ", "code", "check"),
    [
        pytest.param({"QUIET_S": "ten"}, 2, "setting:QUIET_S", id="a setting"),
        pytest.param({"SERVICES": "services.toml"}, 2, "services", id="a file that a setting names"),
        pytest.param({"PLATFORM": "rehearsal:nowhere"}, 2, "platform", id="a rehearsal that is none"),
        pytest.param({"KILL_SWITCH": "on"}, 2, "kill-switch", id="the kill switch"),
        pytest.param(COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, 2, "traces", id="a way to a collector"),
        pytest.param(COLLECTOR | {"OTEL_BSP_MAX_QUEUE_SIZE": "100"}, 2, "traces", id="a setting of the SDK"),
        pytest.param({"MODEL_ENDPOINTS": NOBODY}, 3, "model:", id="a dependency"),
        pytest.param(
            {"MODEL_ENDPOINTS": NOBODY, "QUIET_S": "ten"}, 2, "setting:QUIET_S", id="both: what was given first"
        ),
    ],
)
def test_what_was_given_ends_with_2_and_what_failed_with_3(environ, code, check, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "services.toml").write_text('[[service]]\nname = "gemma"\n')
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    ended, out, err = looked(capsys, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert ended == code
    assert "to fix" in err
    assert all(set(row) == {"check", "state", "says", "hint", "given"} for row in rows)
    (named,) = [row for row in rows if row["check"].startswith(check) and row["state"] == "bad"]
    assert named["hint"]
    assert named["given"] is (code == 2)


@pytest.mark.parametrize(
    ("environ", "state", "says"),
    [
        (COLLECTOR, "good", "to http://127.0.0.1:9/v1/traces (OTLP), as 'sre-agent'; the collector is not asked"),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "true"}, "off", "OTEL_SDK_DISABLED is set"),
        ({}, "off", "no collector is named, or OTEL_TRACES_EXPORTER is none"),
    ],
    ids=["on", "switched off", "no collector"],
)
def test_it_says_where_traces_go(environ, state, says, capsys, monkeypatch):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    code, out, _ = looked(capsys, "--json")
    (row,) = [row for row in map(json.loads, out.splitlines()) if row["check"] == "traces"]
    assert (code, row["state"], row["says"]) == (0, state, says)


def test_an_unknown_word_is_bad_input(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--fix"])
    assert ended.value.code == 2
