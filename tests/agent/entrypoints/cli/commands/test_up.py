"""What the whole service in one process shows of itself."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from werkzeug.test import Client

from agent.app import build_app_in_memory
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.cli.commands.up import console_server
from agent.entrypoints.cli.main import main
from agent.entrypoints.console.serve import claim
from agent.ports.bus import Message, Topic
from agent.settings import read_settings
from tests.otlp_receiver import OtlpReceiver, orphans

ROOT = Path(__file__).resolve().parents[5]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


@pytest.mark.parametrize("waits_s", [0, 42])
def test_its_console_says_how_old_its_queue_is(tmp_path: Path, waits_s: int) -> None:
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
    installation = build_app_in_memory(settings, clock=clock, state=tmp_path)
    if waits_s:
        installation.bus.publish(Message(id="m", topic=Topic.INCIDENTS, data="{}"))
        clock.step(waits_s)
    with claim(0) as held:
        server = console_server(installation, held)
    here = {"base_url": settings.public_url, "environ_overrides": {"REMOTE_ADDR": "127.0.0.1"}}
    with closing(server):
        said = Client(server.app).get("/metrics", **here).get_data(as_text=True)
    assert f"sre_queue_age_seconds {float(waits_s)}\n" in said


ALERT = {
    "version": "4", "groupKey": "g", "receiver": "r",
    "alerts": [{"status": "firing", "fingerprint": "f", "startsAt": "2026-11-21T03:00:00Z",
                "labels": {"alertname": "VllmDown", "service": "gemma4-26b"}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "secret", "status"),
    [
        ("/ingest/alertmanager", "0123456789abcdef-s3cret", 200),
        ("/ingest/alertmanager", "another", 401),
        ("/ingest/kubernetes", "0123456789abcdef-s3cret", 401),
    ],
    ids=["known", "wrong secret", "another sender"],
)
def test_senders_that_cannot_publish_are_let_in_by_their_secret(tmp_path, path, secret, status):
    """In a cluster nothing else takes Alertmanager's and the event exporter's posts."""
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    environ = {"INGEST_SECRETS": "alertmanager=0123456789abcdef-s3cret"}
    settings = read_settings(environ, platform=f"rehearsal:{EXAMPLE}")
    installation = build_app_in_memory(settings, clock=clock, state=tmp_path)
    (service, *_) = installation.services.services
    body = json.loads(json.dumps(ALERT).replace("gemma4-26b", service.name))
    with claim(0) as held:
        server = console_server(installation, held)
    with closing(server):
        said = Client(server.app).post(path, json=body, headers={"Authorization": f"Bearer {secret}"})
    assert said.status_code == status
    clock.step(5)
    assert installation.queue.oldest_s() == (5 if status == 200 else 0)


def test_without_a_sender_nothing_is_taken(tmp_path):
    settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    installation = build_app_in_memory(settings, clock=clock, state=tmp_path)
    with claim(0) as held:
        server = console_server(installation, held)
    with closing(server):
        assert Client(server.app).post("/ingest/alertmanager", json=ALERT).status_code in {403, 404, 405}


@pytest.mark.parametrize("port", ["-1", "65536", "99999", "x", ""])
def test_a_port_that_is_none_is_bad_input(tmp_path, monkeypatch, capsys, port):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    try:
        code = main(["up", "--port", port])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert "port" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_port_that_is_taken_is_said_once_and_nothing_is_made(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert main(["up", "--port", str(other.getsockname()[1])]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "it is in use. Hint: choose another, 1 to 65535: sre-agent up --port" in line
    assert not (tmp_path / "state").exists()


def test_an_example_that_is_none_is_bad_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    assert main(["up", "--port", "0", "--example", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err


@pytest.mark.slow
def test_it_tells_the_port_that_it_took_answers_there_and_ends_when_told(tmp_path):
    words = [sys.executable, "-m", "agent.entrypoints.cli.main", "up", "--port", "0", "--example", str(EXAMPLE)]
    environ = {**os.environ, "STORE": f"sqlite:{tmp_path / 'state'}"}
    with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = next(line for line in process.stderr if line.startswith("console:"))
            page = requests.get(told.split()[1], timeout=30)
            assert page.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


@pytest.mark.slow
def test_with_a_collector_it_says_where_traces_go_and_leaves_none_behind(tmp_path):
    """One line at the start; what was not sent yet is sent at the end. Without the extra nothing starts."""
    receiver = OtlpReceiver()
    words = [sys.executable, "-m", "agent.entrypoints.cli.main", "up", "--port", "0", "--example", str(EXAMPLE)]
    environ = {**os.environ, "STORE": f"sqlite:{tmp_path / 'state'}", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    environ |= {"OTEL_BSP_SCHEDULE_DELAY": "60000"}
    with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = []
            for line in process.stderr:
                lines.append(line)
                if "phase=ASKED" in line:
                    break
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            receiver.stop()
    (said,) = [line for line in lines if line.startswith("traces:")]
    assert said == f"traces:   {receiver.url}/v1/traces (OTLP), as 'sre-agent'\n"
    spans = receiver.spans
    assert {"process sre-log-events", "ask"} <= {span.name for span in spans}
    assert len({span.trace for span in spans}) == 1
    assert orphans(spans) == []


@pytest.mark.parametrize("address", ["here", "192.0.2.300", "example.com", "192.0.2.1"])
def test_an_address_that_is_not_this_machines_starts_nothing(tmp_path, monkeypatch, capsys, address):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    assert main(["up", "--port", "0", "--bind", address]) == 2
    assert address in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


@pytest.mark.slow
def test_bound_elsewhere_being_there_decides_nothing(tmp_path):
    """The page is read, a decision without a proof is refused at its door and on the command line beside it."""
    words = [sys.executable, "-m", "agent.entrypoints.cli.main", "up", "--port", "0", "--example", str(EXAMPLE)]
    environ = {**os.environ, "STORE": f"sqlite:{tmp_path / 'state'}", "BIND": "0.0.0.0"}
    with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = next(line for line in process.stderr if line.startswith("console:"))
            assert "http://0.0.0.0:" in told
            url = told.split()[1].replace("0.0.0.0", "127.0.0.1")
            assert requests.get(f"{url}healthz", timeout=30).text == "ok\n"
            page = requests.get(url, timeout=30)
            assert (page.status_code, "reading only" in page.text) == (200, True)
            body = {"plan": "p-1", "answer": "approve"}
            refused = requests.post(f"{url}decisions", json=body, headers={"X-Sre-Id-Token": "a.b.c"}, timeout=30)
            assert refused.status_code == 401
            stop = [sys.executable, "-m", "agent.entrypoints.cli.main", "stop", "--off"]
            said = subprocess.run(stop, env=environ, capture_output=True, text=True, timeout=60, check=False)
            assert said.returncode != 0
            assert "bound to 0.0.0.0" in said.stderr
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


@pytest.mark.parametrize(
    ("store", "bus", "says"),
    [
        ("firestore:p", "pubsub:p", "STORE is 'firestore:p' and BUS is 'pubsub:p', in the cloud"),
        (None, "pubsub:p", "BUS is 'pubsub:p', in the cloud"),
    ],
)
def test_settings_of_the_cloud_start_nothing_here(tmp_path, monkeypatch, capsys, store, bus, says):
    """An empty folder on a laptop would look like a service without incidents."""
    (tmp_path / "services.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BUS", bus)
    monkeypatch.setenv("SERVICES", str(tmp_path / "services.toml"))
    monkeypatch.delenv("STORE", raising=False)
    if store is not None:
        monkeypatch.setenv("STORE", store)
    assert main(["up", "--port", "0"]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
