"""How long a server takes to start, and the probe that waits long enough, inside the platform's limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from agent.fit.bounds import Bounds

ENGINE_READY_DEFAULT_S: Final = 600
"""vLLM's own patience for its engine, ``VLLM_ENGINE_READY_TIMEOUT_S`` (envs.py, 0.32.0)."""

START_MARGIN: Final = 1.25
"""On the slow end of the estimate: two cold starts of one service differ by a fifth and more."""

_USUAL_PERIOD_S: Final = 10
_HEALTH_TIMEOUT_S: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRate:
    """How fast a checkpoint comes from its storage into device memory, bytes per second.

    Attributes:
        storage: "gcs-fuse" ...
        bytes_per_s: Slowest, usual, fastest.
        source: Where it was measured.
        date: When, ISO.
    """

    storage: str
    bytes_per_s: Bounds
    source: str
    date: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp:
    """What a start takes beyond loading, seconds.

    Attributes:
        compile_s: torch.compile of a cold cache; none of it with ``--enforce-eager``.
        rest_s: Container, imports, graph capture, first request.
        source: Where it was measured.
    """

    compile_s: Bounds
    rest_s: Bounds
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeLimits:
    """What a platform allows for a start-up probe, seconds; None where it sets no limit.

    Attributes:
        platform: "cloud_run_gpu", "cloud_run", "container_apps", "kubernetes" ...
        max_initial_delay_s: Of the first probe.
        max_period_s: Between probes.
        max_failures: Failed probes before it gives up.
        max_product_s: Failures x period.
        source: Where the limits stand.
        date: When they were read.
    """

    platform: str
    max_initial_delay_s: int | None
    max_period_s: int | None
    max_failures: int | None
    max_product_s: int | None
    source: str
    date: str

    @property
    def max_total_s(self) -> int | None:
        """Longest start that the platform can be configured to wait for."""
        products = [
            product
            for product in (
                self.max_product_s,
                None
                if self.max_failures is None or self.max_period_s is None
                else self.max_failures * self.max_period_s,
            )
            if product is not None
        ]
        return None if not products else min(products) + (self.max_initial_delay_s or 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbePlan:
    """A start-up probe and the engine's patience, raised together.

    Attributes:
        initial_delay_s, period_s, timeout_s, failure_threshold: As the platform's probe takes them.
        budget_s: Longest start that survives it.
        engine_ready_timeout_s: For ``VLLM_ENGINE_READY_TIMEOUT_S``; never under the budget nor vLLM's default.
        wanted_s: What the start asks for, with margin.
        enough: False when the platform cannot wait that long; then ``note`` says what else would help.
        note: One sentence.
    """

    initial_delay_s: int
    period_s: int
    timeout_s: int
    failure_threshold: int
    budget_s: int
    engine_ready_timeout_s: int
    wanted_s: int
    enough: bool
    note: str


def startup_time(
    checkpoint_bytes: int | None, rate: Bounds | None, warm_up: WarmUp, *, eager: bool = False
) -> Bounds | None:
    """Seconds from container start to the first healthy answer.

    Args:
        checkpoint_bytes: Size of the files; None if unknown.
        rate: Bytes per second from their storage; None if nobody measured it.
        warm_up: Compilation and the rest.
        eager: ``--enforce-eager``: nothing is compiled or captured.

    Returns:
        Fast, usual and slow start; None when size or rate is unknown.
    """
    if checkpoint_bytes is None or rate is None or rate.low <= 0:
        return None
    load = Bounds(
        low=ceil(checkpoint_bytes / rate.high),
        best=ceil(checkpoint_bytes / rate.best),
        high=ceil(checkpoint_bytes / rate.low),
    )
    return load + warm_up.rest_s if eager else load + warm_up.compile_s + warm_up.rest_s


def probe_budget(startup_s: Bounds, limits: ProbeLimits) -> ProbePlan:
    """A start-up probe that outlasts the slow end of a start.

    Probes begin at once and come often, so that a fast start is noticed fast; the initial delay is used only for what
    failures x period cannot cover.

    Args:
        startup_s: The start, seconds; its slow end counts, with a quarter on top.
        limits: The platform's.

    Returns:
        The probe; ``enough`` is False where the platform's longest probe is shorter than the slow start.
    """
    wanted = ceil(startup_s.high * START_MARGIN)
    most = limits.max_total_s
    budget = wanted if most is None else min(wanted, most)
    product = budget if limits.max_product_s is None else min(budget, limits.max_product_s)
    if limits.max_failures is not None and limits.max_period_s is not None:
        product = min(product, limits.max_failures * limits.max_period_s)
    delay = budget - product
    period = _period(product, limits)
    failures = ceil(product / period)
    if limits.max_product_s is not None and failures * period > limits.max_product_s:
        failures -= 1
    total = delay + period * failures
    enough = total >= startup_s.high
    return ProbePlan(
        initial_delay_s=delay,
        period_s=period,
        timeout_s=min(_HEALTH_TIMEOUT_S, max(1, period - 1)),
        failure_threshold=failures,
        budget_s=total,
        engine_ready_timeout_s=max(ENGINE_READY_DEFAULT_S, total),
        wanted_s=wanted,
        enough=enough,
        note=_note(startup_s, limits, total, enough=enough),
    )


def _period(product: int, limits: ProbeLimits) -> int:
    """Ten seconds, or as long as a small number of allowed failures makes it."""
    needed = 1 if limits.max_failures is None else ceil(product / limits.max_failures)
    period = max(_USUAL_PERIOD_S, needed)
    return period if limits.max_period_s is None else min(period, limits.max_period_s)


def _note(startup_s: Bounds, limits: ProbeLimits, total: int, *, enough: bool) -> str:
    if enough:
        return f"waits {total} s for a start of {startup_s.low} to {startup_s.high} s"
    return (
        f"{limits.platform} waits {total} s at most, a slow start takes {startup_s.high} s: "
        "copy the checkpoint nearer, make it smaller, or keep an instance warm"
    )
