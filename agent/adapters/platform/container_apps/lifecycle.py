"""Container apps as a whole: what a creation sends, and the stamp of a stop, which makes no revision."""

from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Json, Seen
from agent.adapters.platform.container_apps.describe import read_config
from agent.adapters.platform.container_apps.edit import check_limits, entry_of, probe_body, profile_for, refused
from agent.adapters.platform.container_apps.template import (
    INCIDENT_LABEL,
    REVISION_TAG,
    stamped,
    weights_of,
)
from agent.adapters.platform.server_flags import server_port
from agent.adapters.platform.traffic import LATEST
from agent.adapters.platform.work import Work
from agent.core.service.container_args import flag_map
from agent.core.service.serving import EFFECT_LABEL, ServingConfig
from agent.ports.platform import Order, Restore

KEYS = frozenset({"api-key"})


def new_app(ref: AppRef, config: ServingConfig, environment: Environment, order: Order) -> Json:
    """Return the resource that a creation sends: Single mode, one container, an ingress to vLLM's port.

    The ingress is reached from the internet only where the server wants a key; otherwise from the environment alone.

    Raises:
        InputRejected: A container app cannot say all of it, or the environment has no such accelerator.
    """
    check_limits(ref.name, config)
    none = config.accelerator is None
    profile = "Consumption" if none else profile_for(ref, config, environment, "created")
    template = stamped(
        _template(ref, config), ref, revision=order.revision, effect_key=order.effect_key, incident=order.incident
    )
    made = read_config(ref, template, profile, environment)
    if made != config:
        raise refused(ref.name, f"a container app cannot say it: {made.differing(config)}")
    ingress = {
        "external": ref.has_key or bool(KEYS & flag_map(config.args).keys()),
        "targetPort": server_port(config),
        "transport": "http",
        "traffic": weights_of(ref, LATEST),
    }
    return {
        "location": environment.location,
        "properties": {
            "environmentId": environment.id,
            "workloadProfileName": profile,
            "configuration": {"activeRevisionsMode": "Single", "ingress": ingress},
            "template": template,
        },
    }


def _template(ref: AppRef, config: ServingConfig) -> Json:
    container: Json = {
        "name": ref.container or "vllm",
        "image": config.image,
        "command": list(config.command),
        "args": list(config.args),
        "env": [entry_of(e) for e in config.env],
        "resources": {"cpu": config.cpu, "memory": f"{(config.memory_mib or 0) / 1024:g}Gi"},
    }
    if config.cpu is None or config.memory_mib is None:
        container.pop("resources")
    probes = (("startup", config.startup_probe), ("liveness", config.liveness_probe))
    container["probes"] = [probe_body(kind, probe, {}) for kind, probe in probes if probe is not None]
    scale = {"minReplicas": config.min_instances, "maxReplicas": config.max_instances or 1}
    if config.max_instances is None:
        scale.pop("maxReplicas")
    grace = config.termination_grace_s
    return {"containers": [container], "scale": scale} | (
        {} if grace is None else {"terminationGracePeriodSeconds": grace}
    )


def stop_tags(order: Order | Restore) -> dict[str, str]:
    """Return the stamp of a stop, as tags of the app."""
    return {EFFECT_LABEL: order.effect_key, INCIDENT_LABEL: order.incident[:256], REVISION_TAG: order.revision}


def stop_of(seen: Seen, effect_key: str) -> Work | None:
    """Return the work of the stop that carries a stamp, or None."""
    tags = seen.body.get("tags") or {}
    if tags.get(EFFECT_LABEL) != effect_key:
        return None
    return Work(service=seen.ref.name, aim=f"scaling/{tags.get(REVISION_TAG) or effect_key}")
