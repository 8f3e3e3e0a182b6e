"""A start that nobody recorded, simulated by the arithmetic; every screen says "computed, not recorded"."""

from agent.adapters.platform.rehearsal.outcome import Compute, Computed
from agent.core.plan.capacity import Capacity
from agent.core.service.serving import Probe, ServingConfig

SLOWEST_S = 600.0  # assumed where neither size nor load rate is known


def by_fit(fits: Capacity) -> Compute:
    """Return what simulates the starts of watched services."""

    def compute(service: str, platform: str, config: ServingConfig) -> Computed:
        word = fits.assess(service, config)
        if word.fits is None:
            return Computed(came_up=None, says=word.sentence)
        start_up = fits.start_up(service, config, seen_s=None)
        needed = start_up.seconds if start_up is not None else SLOWEST_S
        budget = _patience_s(platform, config)
        if not word.fits:
            return Computed(came_up=False, says=word.sentence, after_s=min(needed, budget or needed))
        if budget is not None and budget < needed:
            says = f"{word.sentence}; but the start takes up to {needed:,.0f} s and the probe allows {budget:,} s"
            return Computed(came_up=False, says=says, after_s=budget)
        speed = fits.decode_tokens_per_s(service, config)
        return Computed(came_up=True, says=word.sentence, after_s=needed, tokens_per_s=speed)

    return compute


def _patience_s(platform: str, config: ServingConfig) -> int | None:
    """How long a start may take: the probe's budget; Cloud Run has one by default, a host has none."""
    if config.startup_probe is None and platform != "cloud_run":
        return None
    return (config.startup_probe or Probe()).budget_s
