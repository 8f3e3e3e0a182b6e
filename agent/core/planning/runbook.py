"""What only a person may do, said exactly: the instruction and the quoted commands of the platform."""

import json
import shlex

from agent.core.planning.runbook_commands import YOURS, Commands, commands_for, named
from agent.core.service.serving import ServingConfig

_SAYS = {
    "fix_quota": "Ask for the quota that the message names, or lower the number of instances to what is allowed.",
    "fix_auth_token": "Give the service a token that may read this model, and accept the model's licence with it.",
    "fix_mount_permissions": "Give the service account read access to the bucket or folder that holds the weights.",
    "fix_image_or_driver": "Use an image whose CUDA version the driver supports, or move to nodes with a newer driver.",
    "fix_network": "Let the service reach the host that the message names, or bring the files along.",
    "fix_network_nccl": "Check the links between the workers: interface names, shared memory, firewalls, P2P.",
    "fix_command_line": "Correct the command line; the message names what was not found or not understood.",
    "fix_cache_path": "Point the cache to a folder that is writable and large enough.",
    "fix_probe_path": "Point the probe to /health on the port that the server listens on.",
    "redownload_weights": "Fetch the checkpoint again and compare its checksums; the files are cut or changed.",
    "increase_disk": "Give the machine more disk, or clear old caches and images.",
    "set_shm_size": "Start the container with a larger /dev/shm (docker: --shm-size 10g; Kubernetes: an emptyDir).",
    "change_accelerator": "Use a larger accelerator; see sre-agent advise for which one fits.",
    "change_model_or_quantization": "Use a smaller or quantised checkpoint; see sre-agent advise for which one fits.",
    "set_strategy": "Set the strategy to Recreate, or maxSurge 0: the old replica ends first and frees its device.",
    "change_zone": "Use a zone that has the accelerator.",
    "upgrade_version": "Use a vLLM version that supports this model.",
    "collect_container_logs": "Read the server's log from its start; the cause stands above the last lines.",
    "none_client_side": "Nothing is wrong with the server: the client must change its request.",
    "none_code_bug": "This is a defect of the server's code: report it with the log, or go back to the last version.",
}

_LOGS = {
    "cloud_run": "gcloud run services logs read {service} --limit 2000",
    "kubernetes": "kubectl logs {service} --previous --tail 2000",
    "container_apps": "az containerapp logs show --name {service} --type console --tail 300",
    "tpu_vm": "docker logs --tail 2000 {service}",
    "ec2": "docker logs --tail 2000 {service}",
}


def instruction(
    fix: str,
    service: str,
    class_: str,
    platform: str | None,
    *,
    log_path: str | None = None,
    config: ServingConfig | None = None,
    at: str = "",
) -> tuple[str, tuple[str, ...], str]:
    """Return the instruction, the commands (what to read first, then what to do), and how to undo it.

    Args:
        fix: A fix action of the catalogue's vocabulary.
        service: The service in trouble; quoted in commands.
        class_: The failure class.
        platform: The platform, where it is known.
        log_path: The file that holds the server's log, where it is known; it wins over the platform's own way.
        config: What the service runs, where it could be described.
        at: Which object of a cluster it is, where it could be described.

    Returns:
        Sentence, quoted commands, undo; the commands are read by a person and never run by us.
    """
    words = fix.split()
    said = _SAYS.get(words[0])
    if words[0] == "set_flag" and len(words) > 1:
        value = f" {words[2]}" if len(words) > 2 else ""
        said = f"Change --{words[1].replace('_', '-')}{value} and start the server again."
    elif words[0] == "set_env" and len(words) > 1:
        said = f"Set the environment variable {words[1]} and start the server again."
    text = said or f"Look into {class_}: {fix.replace('_', ' ')}."
    command = _LOGS.get(platform or "", "")
    name = named(service, at) if platform == "kubernetes" else shlex.quote(service)
    commands = (command.format(service=name),) if command else ()
    if log_path is not None:
        commands = (f"tail -n 2000 {shlex.quote(log_path)}",)
    how = commands_for(words[0], service, platform, config, class_=class_, at=at)
    if how is None:
        return text, commands, "put the former setting back"
    return " ".join(part for part in (text, how.note, YOURS) if part), (*commands, *how.do), how.undo


def change_commands(platform: str | None, service: str, before: tuple[str, ...], after: tuple[str, ...]) -> Commands:
    """Return how a person changes the server's words on a platform that we do not change ourselves.

    Args:
        platform: The platform, where it is known.
        service: The service; names that we do not know stand as shell variables.
        before: The container's words now.
        after: The words to be.
    """
    name = shlex.quote(service)
    if platform == "container_apps":
        return _container_apps(name, after)
    if platform == "kubernetes":
        container = '{"name":"\'"$CONTAINER"\'","args":' + json.dumps(list(after)).replace("'", "'\\''") + "}"
        patch = '{"spec":{"template":{"spec":{"containers":[' + container + "]}}}}"
        return Commands(
            do=(f"kubectl patch {named(service, '')} --type strategic --patch {_single(patch)}",),
            undo=f"kubectl rollout undo {named(service, '')}",
        )
    return Commands(do=(f"vllm {shlex.join(after)}",), undo=f"vllm {shlex.join(before)}")


def _container_apps(name: str, after: tuple[str, ...]) -> Commands:
    """The Azure CLI reads words behind ``--args`` that begin with a dash as its own options, quoted or not.

    Source: microsoft/azure-container-apps issues 976 (2023-11-03) and 1245 (a maintainer on 2024-08-29: show the app,
    edit it, give the file to the update), Azure/azure-cli-extensions issue 9124 (2025-09-03); JSON is taken for YAML in
    Altinn/dialogporten pull 2928 (2025-10-24). Read 2026-11-21.
    """
    app = f'--name {name} --resource-group "$RESOURCE_GROUP"'
    path = "(.properties.template.containers[] | select(.name == $container)).args = $args"
    words = shlex.quote(json.dumps(list(after)))
    return Commands(
        do=(
            f"az containerapp show {app} --output json > before.json",
            f"jq --arg container \"$CONTAINER\" --argjson args {words} '{path}' before.json > after.json",
            f"az containerapp update {app} --yaml after.json",
        ),
        undo=f"az containerapp update {app} --yaml before.json",
        note="By a file, for az takes words behind --args that begin with dashes for its own. Unverified: put together"
        " from the maintainers' advice (microsoft/azure-container-apps#1245, 2024-08-29) and not run by us; look at"
        " after.json first.",
    )


def _single(text: str) -> str:
    """Single quotes that leave room for one shell variable, which stands between its own quotes."""
    return "'" + text + "'"
