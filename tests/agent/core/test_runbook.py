"""What a person is told to run can be pasted as it stands."""

import json
import shlex

import pytest

from agent.core.runbook import change_commands, instruction

BEFORE = ("serve", "m", "--limit-mm-per-prompt", '{"image": 4}', "--note", "it's")
AFTER = (*BEFORE, "--max-model-len", "4096")


@pytest.mark.parametrize("platform", ["container_apps", "tpu_vm", "ec2", "host", None])
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


def test_a_hostile_service_name_stays_one_word() -> None:
    """Names come from outside; a shell must not see a second command in one."""
    _, commands, _ = instruction("collect_container_logs", "x; rm -rf /", "unknown", "kubernetes")
    assert shlex.split(commands[0])[:3] == ["kubectl", "logs", "deployment/x; rm -rf /"]
