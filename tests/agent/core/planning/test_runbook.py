"""What a person is told to run can be pasted as it stands."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.core.planning.runbook import change_commands, instruction
from agent.core.service.serving import EnvVar, ServingConfig, Volume

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
    assert how.undo == 'kubectl rollout undo deployment/svc --namespace "$NAMESPACE"'


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


ERRANDS = ("fix_quota", "fix_auth_token", "fix_image_or_driver", "fix_mount_permissions", "redownload_weights")
EVERYWHERE = [
    (platform, fix)
    for platform in ("cloud_run", "kubernetes", "container_apps", "tpu_vm", "ec2")
    for fix in (*ERRANDS, "upgrade_version", "none_code_bug", "change_accelerator", "set_strategy")
]


@pytest.mark.parametrize(("platform", "fix"), EVERYWHERE, ids=[f"{p} {f}" for p, f in EVERYWHERE])
def test_every_command_is_one_that_a_shell_reads_and_no_name_breaks_out(
    tmp_path: Path, platform: str, fix: str
) -> None:
    """A hostile name from outside stays one word, in what is done and in what undoes it."""
    evil = "x'; touch /tmp/owned; '"
    config = ServingConfig(
        image=evil,
        args=("serve", f"/mnt/{evil}/m"),
        env=(EnvVar(name="HF_TOKEN", secret=evil),),
        volumes=(Volume(name="v", mount_path="/mnt", bucket=evil),),
        accelerator=evil,
    )
    stubs = "".join(f"{name}() {{ :; }}; " for name in (*PROGRAMS, "hf", "mv", "chmod", "getfacl", "cat", "tail"))
    for known in (None, config):
        _, commands, undo = instruction(fix, evil, "unknown", platform, config=known)
        lines = [*commands, *([undo] if undo.split()[0] in PROGRAMS else [])]
        script = "set -e; touch() { echo owned; }; " + stubs + "\n".join(lines)
        ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
        assert (ran.stdout, ran.stderr) == ("", "")
        assert "@NAME" not in script


PROGRAMS = {"gcloud", "kubectl", "az", "docker", "aws", "setfacl"}
AZURE_FILES = ("container_apps", "redownload_weights")  # a share that the app mounts in a way of its own


@pytest.mark.parametrize(("platform", "fix"), [e for e in EVERYWHERE if e[1] in ERRANDS and e != AZURE_FILES])
def test_what_only_a_person_may_do_comes_with_commands_and_a_way_back(platform: str, fix: str) -> None:
    """Not only where to look: what to type there, and how to take it back."""
    text, commands, undo = instruction(fix, "svc", "unknown", platform)
    assert len(commands) > 1
    assert all(line.split("=")[0] == "RUNTIME_ACCOUNT" or line.split()[0] in {*PROGRAMS, "hf", "mv", "chmod", "getfacl"}
               for line in commands)  # fmt: skip
    assert undo.split()[0] in PROGRAMS or undo.startswith("nothing ")
    assert "nothing of this was run by us" in text


def test_the_way_back_names_what_stood_before() -> None:
    """Image, limit, secret and bucket are the service's own, as it was described."""
    config = ServingConfig(
        image="r/vllm@sha256:1",
        args=("serve", "/mnt/models/gemma"),
        env=(EnvVar(name="HUGGING_FACE_HUB_TOKEN", secret="hf"),),
        volumes=(Volume(name="v", mount_path="/mnt/models", bucket="b"),),
        accelerator="nvidia-l4",
        max_instances=3,
    )

    def told(fix: str) -> tuple[tuple[str, ...], str]:
        return instruction(fix, "svc", "unknown", "cloud_run", config=config)[1:]

    assert told("fix_image_or_driver")[1].endswith("--image r/vllm@sha256:1")
    assert told("fix_quota")[1].endswith("--max-instances 3")
    assert "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion" in told("fix_quota")[0][1]
    assert told("fix_auth_token")[0][-1].endswith("--update-secrets HUGGING_FACE_HUB_TOKEN=hf:latest")
    assert "gs://b " in told("fix_mount_permissions")[1]
    assert told("redownload_weights")[1].endswith(" gs://b/gemma/")


def test_a_server_of_this_machine_is_read_where_its_log_stands() -> None:
    """No service manager is taken for granted; a path is quoted like any name from outside."""
    _, commands, _ = instruction("restart", "gemma", "unknown", "host", log_path="/var/lo g/vllm.log")
    assert [shlex.split(line) for line in commands] == [["tail", "-n", "2000", "/var/lo g/vllm.log"]]
    assert instruction("restart", "gemma", "unknown", "host")[1] == ()


def test_a_hostile_service_name_stays_one_word() -> None:
    """Names come from outside; a shell must not see a second command in one."""
    _, commands, _ = instruction("collect_container_logs", "x; rm -rf /", "unknown", "kubernetes")
    assert shlex.split(commands[0])[:3] == ["kubectl", "logs", "deployment/x; rm -rf /"]


def test_a_kubernetes_rollout_deadlock_ends_by_its_strategy_and_the_former_one_can_come_back(tmp_path: Path) -> None:
    """Recreate without rollingUpdate, which the API refuses beside it; the undo patches what was read before."""
    _, commands, undo = instruction("set_strategy", "vllm", "rollout_deadlock_no_spare_gpu", "kubernetes")
    patch = next(words for words in map(shlex.split, commands) if words[1] == "patch")
    assert json.loads(patch[patch.index("--patch") + 1]) == {
        "spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}
    }
    former = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}
    (tmp_path / "strategy.before").write_text(json.dumps(former))
    script = f'kubectl() {{ printf "%s" "${{!#}}"; }}; {undo}'
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert json.loads(ran.stdout) == {"spec": {"strategy": former}}


POD_CHANGES = {
    "shared memory": (
        "set_shm_size",
        "shm_too_small",
        {
            "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "10Gi"}}],
            "containers": [{"name": "vllm", "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}]}],
        },
    ),
    "a registry's password": ("fix_auth_token", "image_pull_failed", {"imagePullSecrets": [{"name": "pull"}]}),
}


@pytest.mark.parametrize(("fix", "class_", "pod"), POD_CHANGES.values(), ids=POD_CHANGES)
def test_what_a_pod_lacks_is_a_patch_of_the_very_object(fix: str, class_: str, pod: dict) -> None:
    """As the person's shell fills it in: of a StatefulSet in its namespace, with a way back."""
    at = "statefulset/gemma --namespace llm"
    _, commands, undo = instruction(fix, "svc", class_, "kubernetes", at=at)
    patch = next(line for line in commands if line.startswith("kubectl patch"))
    filled = 'CONTAINER=vllm SIZE=10Gi PULL_SECRET=pull; kubectl() { printf "%s\\n" "$@"; }; '
    ran = subprocess.run(["bash", "-c", filled + patch], check=True, capture_output=True, text=True)
    words = ran.stdout.splitlines()
    assert words[:4] == ["patch", "statefulset/gemma", "--namespace", "llm"]
    assert json.loads(words[-1]) == {"spec": {"template": {"spec": pod}}}
    assert undo.startswith(f"kubectl rollout undo {at}")


def test_a_pod_that_is_evicted_for_its_disk_is_given_more_ephemeral_storage() -> None:
    _, commands, undo = instruction("increase_disk", "svc", "disk_full", "kubernetes")
    words = shlex.split(commands[-1])
    assert words[1:4] == ["set", "resources", "deployment/svc"]
    assert words[-4:] == ["--requests", "ephemeral-storage=$SIZE", "--limits", "ephemeral-storage=$SIZE"]
    assert undo == 'kubectl rollout undo deployment/svc --namespace "$NAMESPACE"'
