"""What a start meets on a platform, in one line for people."""

from agent.fit.speed.platform_start import StartThere


def start_text(there: StartThere) -> str:
    """How long it takes, how long the platform waits, what must be set for that, and how big an image may be."""
    start, probe, limits = there.start_s, there.probe, there.limits
    said = [
        "how long a start takes is unknown" if start is None else f"a start takes {start.low:,} to {start.high:,} s"
    ]
    if limits.probe is None:
        said.append("the platform ends no start")
    elif there.longest_s is None:
        said.append("its startup probe waits as long as it is told")
    else:
        said.append(f"its startup probe waits {there.longest_s:,} s at most")
    if probe is not None and probe.enough:
        delay = f"initialDelaySeconds {probe.initial_delay_s}, " if probe.initial_delay_s else ""
        said.append(f"set {delay}periodSeconds {probe.period_s}, failureThreshold {probe.failure_threshold}")
    if there.engine_ready_timeout_s is not None:
        said.append(f"set VLLM_ENGINE_READY_TIMEOUT_S={there.engine_ready_timeout_s}")
    if limits.image_gb is not None:
        said.append(f"an image of {limits.image_gb:g} GB at most ({limits.image_note})")
    return f"{limits.platform}: {'; '.join(said)}"


def source_text(there: StartThere) -> str:
    """Where the limits stand, and when that was read."""
    limits = there.limits
    source = f"{limits.source}, {limits.date}"
    return source if limits.probe is None else f"{source}; probe: {limits.probe.source}, {limits.probe.date}"
