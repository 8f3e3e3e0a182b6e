"""What the watcher refuses before it starts anything."""

import os
import socket
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from agent.app.host_environment import add_service, config_from_args, host_platform
from agent.app.stores import machine_clock
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.main import main
from agent.entrypoints.cli.watch_run import Watch, WatchOptions
from agent.entrypoints.cli.watch_view import state_line
from agent.errors import DependencyFailed
from agent.settings import read_settings


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    for name in ("SERVICES", "POLICY", "PLATFORM", "DECIDE_URL"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "state"


def refused(capsys, *words):
    assert main(["watch", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


@pytest.mark.parametrize("words", [(), ("--",), ("--auto",), ("--name", "gemma", "--")], ids=" ".join)
def test_without_a_command_nothing_is_watched_and_the_way_is_told(capsys, state, words):
    assert "sre-agent watch -- vllm serve MODEL" in refused(capsys, *words)
    assert not state.exists()


@pytest.mark.parametrize("words", [("ls", "-l"), ("vllm", "serve"), ("vllm", "serve", "--port", "8000")])
def test_words_that_serve_no_model_are_refused(capsys, state, words):
    assert "the command names no model" in refused(capsys, "--", *words)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("vlm", "nothing was started: 'vlm' was not found. Hint: check the name and PATH"),
        ("./serve.sh", "nothing was started: './serve.sh' is not executable. Hint: run: chmod +x ./serve.sh"),
    ],
    ids=["misspelt", "not executable"],
)
def test_a_program_that_cannot_be_run_is_refused_at_once(capsys, state, tmp_path, monkeypatch, program, says):
    """No server is on record afterwards, and no incident is opened about a misspelt word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "serve.sh").write_text("exit 0\n")
    assert refused(capsys, "--", program, "serve", "me/model") == f"sre-agent watch: {says}"
    assert not list(state.rglob("*.toml"))


def test_a_log_that_is_not_there_is_refused(capsys, tmp_path):
    assert "there is no such file" in refused(capsys, "--log", str(tmp_path / "absent.log"))


def test_a_log_that_does_not_tell_the_command_asks_for_it(capsys, tmp_path):
    log = tmp_path / "vllm.log"
    log.write_text("the lamp is lit\n")
    assert "sre-agent watch --log FILE -- vllm serve MODEL" in refused(capsys, "--log", str(log))


@pytest.mark.parametrize("name", ["../x", "Gemma 4", "\x1b[31m"])
def test_a_name_that_no_service_can_have_is_refused(capsys, name):
    line = refused(capsys, "--name", name, "--", "vllm", "serve", "me/model")
    assert "name" in line
    assert "\x1b" not in line


def test_a_store_in_the_cloud_is_no_place_for_a_server_here(capsys, monkeypatch, tmp_path):
    (tmp_path / "services.toml").write_text("")
    monkeypatch.setenv("STORE", "firestore:example-project")
    monkeypatch.setenv("BUS", "pubsub:example-project")
    monkeypatch.setenv("SERVICES", str(tmp_path / "services.toml"))
    assert "use STORE=sqlite:<folder>" in refused(capsys, "--", "vllm", "serve", "me/model")


@pytest.mark.parametrize("port", ["70000", "taken"])
def test_a_console_that_cannot_be_had_stops_the_command_before_a_server_is_started(capsys, state, tmp_path, port):
    """What was started would go on alone, as a server does when its watcher ends."""
    mark = tmp_path / "started"
    words = ["sh", "-c", f"touch {mark}", "serve", "me/model"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        at = str(other.getsockname()[1]) if port == "taken" else port
        assert "was not started on port" in refused(capsys, "--console", at, "--", *words)
    assert not mark.exists()
    assert not list(state.rglob("server.log"))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_server_that_somebody_else_started_is_not_stopped_by_its_name(capsys, state, tmp_path, restarted):
    """Nothing of it runs under a supervisor of ours: it would be called ended while it runs."""
    log = tmp_path / "vllm.log"
    log.write_text("")
    settings = read_settings(platform="host", follow_log=log)
    config = config_from_args(["vllm", "serve", "me/model"])
    service = add_service(settings, config, "gemma")
    platform = host_platform(settings, machine_clock())
    platform.open("gemma", config, running=True)
    if restarted:  # as the restart command leaves it
        place = state / "host" / "gemma" / "starts" / platform.settled("gemma").newest.mark
        place.mkdir(parents=True)
        (place / "server.json").write_text('{"restart": ["true"], "first_byte": 0}')
    record = (state / "host" / "gemma" / "server.json").read_bytes()
    assert "started by somebody else" in refused(capsys, "--stop", service.name)
    assert (state / "host" / "gemma" / "server.json").read_bytes() == record


HOSTILE = (
    "lost\x1b]0;gone\x07\x1b[2J\r\n03:00:00  RESOLVED      all is well \u202e db_password=Zq3Xv9Kd7Rm2Wp8H \x9b31m"
)


class Said:
    """A view that keeps what a terminal would get."""

    def __init__(self):
        self.lines = []

    def say(self, text, **about):
        self.lines.append(text)

    def show(self, text):
        self.say(text)


@pytest.mark.parametrize("through", ["an error", "an event", "the last line"])
def test_what_a_server_prints_cannot_speak_to_the_terminal(through):
    """S13: in errors, events and the state: no escape, no further line that looks like ours, no secret."""
    view = Said()
    now = datetime(2026, 11, 22, 3, tzinfo=UTC)
    watch = object.__new__(Watch)
    event = Event(at=now, phase=Phase.ESCALATED, what=HOSTILE)
    watch.__dict__ |= {"_view": view, "_interrupt": False, "_service": "gemma", "_shown_events": {}, "_said": {}}
    watch._options = WatchOptions()
    watch._monitor = SimpleNamespace(state=None, last_check=None, last_line="")
    store = SimpleNamespace(timeline=lambda _id: (event,))
    watch._app = SimpleNamespace(clock=SimpleNamespace(now=lambda: now), store=store)
    if through == "an error":

        def fails():
            raise DependencyFailed("the server was not read", why=HOSTILE, hint="nothing")

        watch._incidents = fails
        watch._turn()
    elif through == "an event":
        about = {"id": "i", "service": "gemma", "platform": "host", "ended_why": HOSTILE, "phase": Phase.ESCALATED}
        watch._tell(Incident(**about, opened_at=now, phase_at=now, quiet_since=now))
    else:
        start = SimpleNamespace(ready_at=now, began_at=now, sick="", stage="ready", revision="r1", mark="m")
        view.say(state_line("gemma", SimpleNamespace(newest=start), None, now=now, last=HOSTILE))
    said = "\x00".join(view.lines)
    assert "lost" in said
    assert not any(sign in said for sign in "\x1b\x07\x9b\r\u202e")
    assert "Zq3Xv9" not in said
    assert "\n" not in said
