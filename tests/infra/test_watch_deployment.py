"""The systemd units and the compose file are sound, and start the service and the watcher with words that they take."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agent.entrypoints.cli.commands import up, watch

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "sre-agent-watch@.service"
SERVICE = DEPLOY / "systemd" / "sre-agent.service"


def parsed(words: list[str], command=watch) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return parser.parse_args(words[words.index(command.__name__.rpartition(".")[2]) + 1 :])


def started(unit: Path) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line.replace("%i", "gemma").replace("$SERVER", "vllm serve me/model"))


@pytest.mark.parametrize(("source", "name"), [(UNIT, "sre-agent-watch@gemma"), (SERVICE, "sre-agent")])
def test_systemd_takes_the_unit(source, name, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here")
    unit = tmp_path / f"{name}.service"
    shutil.copy(source, unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "SYSTEMD_COLORS": "0"},
    )  # fmt: skip
    told = [line for line in (done.stdout + done.stderr).splitlines() if source.stem.rstrip("@") in line]
    assert told == []
    assert done.returncode == 0


def test_the_unit_stops_the_server_in_order():
    found = parsed(started(UNIT))
    assert (found.name, found.on_exit, found.command) == ("gemma", "stop", ["--", "vllm", "serve", "me/model"])
    assert "KillMode=process" in UNIT.read_text(encoding="utf-8")


def test_the_service_is_started_again_whatever_it_ended_with():
    """A port that is in use ends it with 2 as a refused setting does, and passes by itself."""
    lines = SERVICE.read_text(encoding="utf-8").splitlines()
    assert "Restart=on-failure" in lines
    assert not any(line.startswith("RestartPreventExitStatus") for line in lines)


def test_the_service_starts_with_words_that_up_takes_where_only_it_may_write():
    assert parsed(started(SERVICE), up).port == 8080
    lines = SERVICE.read_text(encoding="utf-8").splitlines()
    assert {"DynamicUser=yes", "ProtectSystem=strict", "StateDirectory=sre-agent"} <= set(lines)
    assert any(line.startswith("Environment=STORE=sqlite:/var/lib/sre-agent ") for line in lines)


COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
LOG = "/logs/vllm.log"
TEE = """#!{python}
import pathlib, sys
data = sys.stdin.buffer.read()
here = pathlib.Path(__file__).parent
(here / "over").write_bytes(b"")
(here / "go").read_bytes()
for place in (sys.argv[-1], "/dev/stdout"):
    open(place, "ab").write(data)
"""  # the latest of all: it writes once the server has ended and the test allows it
SERVER = """#!{python}
import os, signal, sys
def end(*_):
    os.write(1, b"asked to end\\n")
    os._exit(3)
signal.signal(signal.SIGTERM, end)
print(*sys.argv[1:], flush=True)
if "--wait" in sys.argv:
    open(sys.argv[sys.argv.index("--wait") + 1], "w").close()
    signal.pause()
os.write(2, b"last words\\n")
os._exit(7)
"""


def test_the_compose_file_follows_the_log_that_the_server_writes():
    agent, server = COMPOSE["services"]["agent"], COMPOSE["services"]["vllm"]
    command = re.sub(r"\$\{MODEL[^}]*\}", "me/model", agent["command"]).replace("${FLAGS:-}", "")
    found = parsed(shlex.split(command))
    assert str(found.log) == LOG
    assert LOG in server["command"][0]
    assert found.command[:3] == ["--", "vllm", "serve"]
    named = {volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service["volumes"]}
    assert named == set(COMPOSE["volumes"])


def test_the_agent_in_a_container_finds_the_server_again_after_a_restart():
    """A network that is the server's would be gone with it; the machine's own stays, and nobody else reaches it."""
    agent, server = COMPOSE["services"]["agent"], COMPOSE["services"]["vllm"]
    assert agent["network_mode"] == server["network_mode"] == "host"
    assert "ports" not in server
    for command in (agent["command"], server["command"][0]):
        assert "--host 127.0.0.1 --port 8000" in command
    assert agent["healthcheck"] == {"disable": True}  # the image's own asks for a page that watch does not serve


def contained(tmp_path: Path, flags: str) -> subprocess.Popen:
    """Start what the container of the server runs, with a server that ends at once or waits."""
    for name, text in (("vllm", SERVER), ("tee", TEE)):
        (tmp_path / name).write_text(text.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    for pipe in ("up", "over", "go"):
        os.mkfifo(tmp_path / pipe)
    (words,) = COMPOSE["services"]["vllm"]["command"]
    words = re.sub(r"(?<!\$)\$\{MODEL[^}]*\}", "me/model", words).replace("${FLAGS:-}", flags).replace("$$", "$")
    return subprocess.Popen(
        [*COMPOSE["services"]["vllm"]["entrypoint"], words.replace(LOG, str(tmp_path / "vllm.log"))],
        stdout=subprocess.PIPE, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip


def written(folder: Path, server: subprocess.Popen) -> tuple[int, bytes]:
    """Let tee write once the server has ended, which the first process of the container has to wait for."""
    (folder / "over").read_bytes()
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(0.2)
    (folder / "go").write_bytes(b"")
    return server.wait(30), server.stdout.read()


def test_the_container_keeps_the_servers_last_words_and_its_exit_code(tmp_path):
    """Whatever runs beside the first process of a container is killed when that one ends."""
    with contained(tmp_path, "--flag") as server:
        code, printed = written(tmp_path, server)
    told = printed.splitlines()
    assert code == 7
    assert told[0].startswith(b"serve me/model --flag")
    assert told[1:] == [b"last words"]
    assert (tmp_path / "vllm.log").read_bytes() == printed


def test_the_container_passes_a_stop_on_to_the_server(tmp_path):
    """Whoever stops the container stops its first process; with init, that passes the signal on to the shell."""
    assert COMPOSE["services"]["vllm"]["init"] is True
    with contained(tmp_path, f"--wait {tmp_path / 'up'}") as server:
        (tmp_path / "up").read_bytes()
        server.terminate()
        code, printed = written(tmp_path, server)
    assert code == 3
    assert printed.endswith(b"asked to end\n")
