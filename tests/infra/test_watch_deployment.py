"""The systemd unit and the compose file are sound, and start the watcher with words that it takes."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from agent.entrypoints.cli.commands import watch

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "sre-agent-watch@.service"


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    watch.configure(parser)
    return parser.parse_args(words[words.index("watch") + 1 :])


def test_systemd_takes_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here")
    unit = tmp_path / "sre-agent-watch@gemma.service"
    shutil.copy(UNIT, unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "SYSTEMD_COLORS": "0"},
    )  # fmt: skip
    told = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.stem.rstrip("@") in line]
    assert told == []
    assert done.returncode == 0


def test_the_unit_stops_the_server_in_order():
    text = UNIT.read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)
    found = parsed(shlex.split(line.replace("%i", "gemma").replace("$SERVER", "vllm serve me/model")))
    assert (found.name, found.on_exit, found.command) == ("gemma", "stop", ["--", "vllm", "serve", "me/model"])
    assert "KillMode=process" in text


def test_the_compose_file_follows_the_log_that_the_server_writes():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    agent, server = services["agent"], services["vllm"]
    command = re.sub(r"\$\{MODEL[^}]*\}", "me/model", agent["command"]).replace("${FLAGS:-}", "")
    found = parsed(shlex.split(command))
    assert str(found.log) in server["command"][0]
    assert found.command[:3] == ["--", "vllm", "serve"]
    assert agent["network_mode"] == "service:vllm"
    named = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    assert named == set(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["volumes"])
