"""The bill: USD per hour, per month, and per million tokens, idle hours included."""

from __future__ import annotations

from dataclasses import dataclass

from agent.fit.cost.load import Load
from agent.fit.speed.price import usd_per_million_tokens

MONTH_H = 730
"""Hours of a month, as the vendors' calculators count: 8,760 / 12."""

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """Tokens per second of all requests together while the server is busy.

    Attributes:
        output: Lower and upper bound; the same twice where it was measured; None if unknown.
        input: Of the prompts, measured; None where nobody measured it, for it is not computed.
        measured: Whether a load generator measured it here; otherwise it is computed.
        source: What was measured where and when, or how it was computed.
    """

    output: Range | None
    input: float | None = None
    measured: bool = False
    source: str = "computed: bytes read per step over the bandwidth"

    @property
    def middle(self) -> float | None:
        """The middle of the bounds, geometric; None if unknown."""
        return None if self.output is None else (self.output[0] * self.output[1]) ** 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Bill:
    """What one setup costs at one load; None where price or speed is unknown.

    Attributes:
        usd_per_h: One running hour of one instance.
        billed_share: Instance hours billed per hour, idle time included.
        usd_per_month: Of 730 hours at that share.
        busy_output: USD per million output tokens of a running hour that is all work: least, middle, most.
        output: The same with the idle hours that are billed; None for a load that generates nothing.
        busy_input: USD per million input tokens of the same hour. The hour pays for both: the two are not added up.
    """

    usd_per_h: float | None
    billed_share: float
    usd_per_month: float | None
    busy_output: tuple[float, float, float] | None
    output: tuple[float, float, float] | None
    busy_input: float | None


def bill(usd_per_h: float | None, throughput: Throughput, load: Load, *, sleeps: bool, wake_s: float) -> Bill:
    """Return what a setup costs at a load.

    Args:
        usd_per_h: Of one running hour; None if unknown.
        throughput: While it is busy.
        load: How it is used.
        sleeps: Whether nothing is billed while no instance runs.
        wake_s: Billed seconds of one wake-up.
    """
    share = load.billed_share(sleeps=sleeps, wake_s=wake_s)
    busy = _per_million(usd_per_h, throughput)
    idle = None if busy is None or not load.busy else (busy[0] / load.busy, busy[1] / load.busy, busy[2] / load.busy)
    return Bill(
        usd_per_h=usd_per_h,
        billed_share=share,
        usd_per_month=None if usd_per_h is None else usd_per_h * share * MONTH_H,
        busy_output=busy,
        output=None if idle is None else (idle[0] * share, idle[1] * share, idle[2] * share),
        busy_input=usd_per_million_tokens(usd_per_h, throughput.input),
    )


def _per_million(usd_per_h: float | None, throughput: Throughput) -> tuple[float, float, float] | None:
    middle = throughput.middle
    if usd_per_h is None or throughput.output is None or not middle:
        return None
    slow, fast = throughput.output
    prices = [usd_per_million_tokens(usd_per_h, speed) for speed in (fast, middle, slow)]
    least, usual, most = (price for price in prices if price is not None)
    return least, usual, most


def own_hardware_usd_per_h(
    *, price_usd: float, years: float, watts: float, usd_per_kwh: float, busy: float, idle_watts: float | None = None
) -> float:
    """Return what an hour of one's own machine costs: depreciation by the straight line, and electricity.

    Args:
        price_usd: What it cost, above 0.
        years: In which it is written off, above 0.
        watts: Of the whole machine while it generates.
        usd_per_kwh: Price of electricity.
        busy: Share of the time in which it generates.
        idle_watts: Of the machine at rest; as much as busy where nobody measured it.
    """
    rest = watts if idle_watts is None else idle_watts
    power_kw = (watts * busy + rest * (1 - busy)) / 1000
    return price_usd / (years * 12 * MONTH_H) + power_kw * usd_per_kwh
