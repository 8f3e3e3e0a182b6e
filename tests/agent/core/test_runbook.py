"""What a person is told to run can be pasted as it stands."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.core.runbook import change_commands, instruction

BEFORE = ("serve", "m", "--limit-mm-per-prompt", '{"image": 4}', "--note", "it's")
AFTER = (*BEFORE, "--max-model-len", "4096")


@pytest.mark.parametrize("platform", ["tpu_vm", "ec2", "host", None])
def test_every_word_survives_the_shell(platform: str | None) -> None:
    """A shell splits the command back into exactly the words that shall be."""
    how = change_commands(platform, "svc", BEFORE, AFTER)
    words = shlex.split(how.do[0])
    assert tuple(words[-len(AFTER) :]) == AFTER
    assert tuple(shlex.split(how.undo)[-len(BEFORE) :]) == BEFORE


def test_a_kubernetes_patch_holds_the_words() -> None:
    """The patch is JSON once the shell has read it, with the container's name as the shell's variable."""
    how = change_commands("kubernetes", "svc", BEFORE, AFTER)
    words = shlex.split(how.do[0])
    patch = json.loads(words[words.index("--patch") + 1])
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert tuple(container["args"]) == AFTER
    assert container["name"] == "$CONTAINER"
    assert how.undo == "kubectl rollout undo deployment/svc"


def test_container_apps_get_their_words_by_a_file_for_the_cli_takes_dashes_for_its_own(tmp_path: Path) -> None:
    """The commands run as they stand, with a stand-in for az that keeps the app; the undo puts the old words back."""
    how = change_commands("container_apps", "svc; rm -rf /", BEFORE, AFTER)
    assert not any("--args" in shlex.split(line) for line in (*how.do, how.undo))
    assert "Unverified" in how.note
    if shutil.which("jq") is None:
        pytest.skip("jq is absent")
    containers = [{"name": "side", "args": ["-x"]}, {"name": "vllm", "args": list(BEFORE)}]
    (tmp_path / "app.json").write_text(json.dumps({"properties": {"template": {"containers": containers}}}))
    az = tmp_path / "az"
    az.write_text('#!/bin/sh\n[ "$4" = "svc; rm -rf /" ] || exit 9\n'
                  'case "$2" in show) cat app.json;; update) eval "cp \\"\\$$#\\" app.json";; esac\n')  # fmt: skip
    az.chmod(0o755)

    def words(*lines: str) -> list[list[str]]:
        environ = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "RESOURCE_GROUP": "rg",
            "CONTAINER": "vllm",
        }
        for line in lines:
            subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environ, check=True)
        app = json.loads((tmp_path / "app.json").read_text())
        return [container["args"] for container in app["properties"]["template"]["containers"]]

    assert words(*how.do) == [["-x"], list(AFTER)]
    assert words(how.undo) == [["-x"], list(BEFORE)]


def test_a_server_of_this_machine_is_read_where_its_log_stands() -> None:
    """No service manager is taken for granted; a path is quoted like any name from outside."""
    _, commands, _ = instruction("restart", "gemma", "unknown", "host", log_path="/var/lo g/vllm.log")
    assert [shlex.split(line) for line in commands] == [["tail", "-n", "2000", "/var/lo g/vllm.log"]]
    assert instruction("restart", "gemma", "unknown", "host")[1] == ()


def test_a_hostile_service_name_stays_one_word() -> None:
    """Names come from outside; a shell must not see a second command in one."""
    _, commands, _ = instruction("collect_container_logs", "x; rm -rf /", "unknown", "kubernetes")
    assert shlex.split(commands[0])[:3] == ["kubectl", "logs", "deployment/x; rm -rf /"]
