"""What Cloud Run refuses before it starts anything: the documented limits, in its own way of saying them.

Sources: docs/facts.md 4.4 and 4.5 (probes, shapes, quota wordings); run_v2 of google-cloud-run 0.16.2.
"""

import re
from typing import Any

GIB = 2**30
SHAPES = {"nvidia-l4": (4, 16, 8, 32), "nvidia-rtx-pro-6000": (20, 80, 44, 176)}  # vCPU, GiB: least and most
QUOTAS = {"nvidia-l4": "NvidiaL4", "nvidia-rtx-pro-6000": "NvidiaRtxPro6000"}
RESERVED = {"PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"}
LABEL = re.compile(r"[a-z0-9_-]{0,63}")
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
GPU = "nvidia.com/gpu"


def complaints(service: Any, revisions: frozenset[str], *, gpus_allowed: int) -> list[str]:
    """Return what is wrong with the service that an update would make."""
    template = service.template
    found = [*_names(service, template), *_traffic(service, revisions), *_scaling(template)]
    for container in template.containers:
        found += _container(container, template.node_selector.accelerator)
    return found + _quota(template, gpus_allowed)


def _names(service: Any, template: Any) -> list[str]:
    short = service.name.rsplit("/", 1)[-1]
    found = [
        f"template.labels[{key}]: invalid value {value!r}"
        for key, value in template.labels.items()
        if not LABEL.fullmatch(value) or not LABEL.fullmatch(key)
    ]
    name = template.revision
    if name and not (name.startswith(f"{short}-") and NAME.fullmatch(name)):
        found.append(f"template.revision: {name!r} must be prefixed by the service's name and at most 63 characters")
    return found


def _traffic(service: Any, revisions: frozenset[str]) -> list[str]:
    known = revisions | {service.template.revision}
    found = [
        f"traffic: revision {t.revision!r} was not found"
        for t in service.traffic
        if t.revision and t.revision not in known
    ]
    if sum(t.percent for t in service.traffic) != 100:
        found.append("traffic: percentages must sum up to 100")
    tags = [t.tag for t in service.traffic if t.tag]
    if len(tags) != len(set(tags)) or not all(NAME.fullmatch(t) for t in tags):
        found.append("traffic: tags must be unique and valid")
    return found


def _scaling(template: Any) -> list[str]:
    least, most = template.scaling.min_instance_count, template.scaling.max_instance_count
    found = []
    if most and most < least:
        found.append(f"scaling.max_instance_count: {most} is less than min_instance_count {least}")
    if not 0 <= template.max_instance_request_concurrency <= 1000:
        found.append("max_instance_request_concurrency: must be between 1 and 1000")
    return found


def _container(container: Any, accelerator: str) -> list[str]:
    gpu = GPU in container.resources.limits
    found = [f"env: the name {e.name!r} is reserved" for e in container.env if e.name in RESERVED]
    if container.HasField("startup_probe"):
        found += _probe("startup_probe", container.startup_probe, field=240, window=1800 if gpu else 600)
    if container.HasField("liveness_probe"):
        found += _probe("liveness_probe", container.liveness_probe, field=3600, window=None)
    if gpu:
        cpu, memory = _quantities(container)
        low_cpu, low_gib, high_cpu, high_gib = SHAPES.get(accelerator, (0, 0, 0, 0))
        if not low_cpu:
            found.append(f"node_selector.accelerator: {accelerator!r} is not supported")
        elif not low_cpu <= cpu <= high_cpu or not low_gib * GIB <= memory <= high_gib * GIB:
            found.append(
                f"resources.limits: {accelerator} needs {low_cpu} to {high_cpu} CPU and {low_gib} to {high_gib}Gi"
            )
        if container.resources.cpu_idle:
            found.append("resources.cpu_idle: GPU services need CPU that is always allocated")
    return found


def _probe(name: str, probe: Any, *, field: int, window: int | None) -> list[str]:
    period, timeout = probe.period_seconds or 10, probe.timeout_seconds or 1
    found = []
    if not 0 <= probe.initial_delay_seconds <= field:
        found.append(f"{name}.initial_delay_seconds: must be between 0 and {field}")
    if not 1 <= period <= field:
        found.append(f"{name}.period_seconds: must be between 1 and {field}")
    if timeout > period:
        found.append(f"{name}.timeout_seconds: must not be greater than period_seconds")
    if window is not None and period * (probe.failure_threshold or 3) > window:
        found.append(f"{name}: failure_threshold * period_seconds must not exceed {window}")
    return found


def _quantities(container: Any) -> tuple[float, float]:
    cpu, memory = container.resources.limits["cpu"], container.resources.limits["memory"]
    units = {"Gi": GIB, "Mi": 2**20}
    return (float(cpu[:-1]) / 1000 if cpu.endswith("m") else float(cpu)), float(memory[:-2]) * units[memory[-2:]]


def _quota(template: Any, allowed: int) -> list[str]:
    gpus = sum(int(c.resources.limits[GPU]) for c in template.containers if GPU in c.resources.limits)
    asked = gpus * max(template.scaling.max_instance_count, 1)
    if asked <= allowed:
        return []
    zone = "NoZonalRedundancy" if template.gpu_zonal_redundancy_disabled else ""
    quota = f"{QUOTAS.get(template.node_selector.accelerator, 'Gpu')}GpuAlloc{zone}PerProjectRegion"
    most = f"Max instances must be set to {allowed // gpus} or fewer in order to set GPU requirements."
    return [f"{most}\n\nQuota violated:\n{quota} requested: {asked} allowed: {allowed}"]
