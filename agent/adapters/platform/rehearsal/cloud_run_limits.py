"""What Cloud Run refuses before it starts anything, as far as our actions can ask for it."""

from agent.core.service.serving import Probe, ServingConfig

# CPU and MiB that a shape asks for at least; Cloud Run documentation, GPU services, read 2026-10-01.
SHAPES = {"nvidia-l4": (4.0, 16 * 1024), "nvidia-rtx-pro-6000": (20.0, 80 * 1024)}

_FIELD_LIMIT_S = 240  # run_v2.Probe, google-cloud-run 0.16.2: initial delay and period of a startup probe
_WINDOW_S = {True: 1800, False: 600}  # period x threshold, with and without a GPU; health-check guide, 2026


def complaints(config: ServingConfig) -> tuple[str, ...]:
    """Return what Cloud Run would refuse, each a sentence; empty where it would begin the rollout."""
    found: list[str] = []
    if config.startup_probe is not None:
        found += _probe(config.startup_probe, gpu=config.accelerator is not None)
    if config.accelerator in SHAPES:
        cpu, memory_mib = SHAPES[config.accelerator]
        if config.cpu is not None and config.cpu < cpu:
            found.append(f"cpu is {config.cpu:g}, {config.accelerator} asks for at least {cpu:g}")
        if config.memory_mib is not None and config.memory_mib < memory_mib:
            found.append(f"memory is {config.memory_mib} MiB, {config.accelerator} asks for at least {memory_mib}")
    stopped = (config.min_instances, config.max_instances) == (0, 0)
    if config.max_instances is not None and not stopped and config.max_instances < max(config.min_instances, 1):
        found.append(f"max_instances is {config.max_instances}, min_instances is {config.min_instances}")
    return tuple(found)


def _probe(probe: Probe, *, gpu: bool) -> list[str]:
    found = []
    for name, value in (("initial_delay_s", probe.initial_delay_s), ("period_s", probe.period_s)):
        if value > _FIELD_LIMIT_S:
            found.append(f"startup_probe {name} is {value}, at most {_FIELD_LIMIT_S}")
    if probe.timeout_s > probe.period_s:
        found.append(f"startup_probe timeout_s is {probe.timeout_s}, at most its period {probe.period_s}")
    if probe.period_s * probe.failure_threshold > _WINDOW_S[gpu]:
        window = probe.period_s * probe.failure_threshold
        found.append(f"startup_probe period x threshold is {window} s, at most {_WINDOW_S[gpu]}")
    return found
