"""Plateau: from how many concurrent requests on the others wait, and which limit makes them wait."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from agent.core.sweep.cell import Bound
from agent.core.value import Value

SATURATED: Final = 0.95
"""A cell with this share of the highest throughput is at saturation; repeated measurements of one cell differ by a few
per cent."""

BUNDLED_ITL_S: Final = 0.0003
"""Tokens of one request that arrive faster on average came in one piece: a step of an engine takes longer, also where
it yields several tokens. Against vLLM with a step of 3 ms on a busy machine half of the answers came so."""

_BUNDLED: Final = 0.1
"""With more than this share of such answers the times of first tokens say nothing about when requests ran."""

_SUSTAINED: Final = 0.85
"""The share of the busy time at or below the level that counts as running at once. A client that lags sees requests
overlap that did not: against vLLM with eight slots on an overloaded machine, more than eight for 7 % of the time."""

_QUEUED: Final = 1.2
"""A level counts as a limit only where it was exceeded by a fifth: prefills alone keep some requests from their first
token."""

_SPREAD: Final = 0.25
"""How far a cell may lie from min(concurrency, level) and still speak for a fixed level."""

_COUNTED: Final = (0.9, 1.05)
"""A count of requests is reached nearly all the time and never exceeded."""

_ESTIMATED: Final = (0.7, 1.1)
"""Mean times leave the requests out that are being prefilled."""

_BY_CACHE: Final = (0.75, 1.5)
"""Requests that have not produced all their tokens yet take less of the KV cache than was computed."""


class PlateauReason(StrEnum):
    """Where more concurrent requests stop helping, and why."""

    LIMIT = "limit"
    """Requests wait, and a known limit lies where they begin to."""
    UNKNOWN_LIMIT = "unknown_limit"
    """Requests wait at a fixed level that no known limit explains."""
    PREFILL = "prefill"
    """Requests wait for their first token, but no fixed number of them runs: prompts wait for other prompts."""
    NOT_TIMED = "not_timed"
    """Of some cell nobody knows how many requests produced tokens at once, so nobody knows whether any waited."""
    ACCELERATOR = "accelerator"
    """None waits; throughput stopped growing, so each further request only slows the others."""
    NOT_REACHED = "not_reached"
    """None waits and throughput still grows at the highest concurrency measured."""
    TOO_FEW = "too_few"
    """Fewer than two cells have figures."""


class Limit(Value):
    """A number of requests that may run at once.

    Attributes:
        bound: What limits them.
        requests: How many; of the KV cache a computed figure with a fraction.
    """

    bound: Bound
    requests: float


class LoadPoint(Value):
    """What one measured cell says about load.

    Attributes:
        concurrency: Requests that the client kept open at once.
        running: Requests that produced tokens at once; None where it is not known.
        output_tokens_per_s: Of all requests together.
    """

    concurrency: int
    running: float | None
    output_tokens_per_s: float


class Plateau(Value):
    """Where more concurrent requests stop helping.

    Attributes:
        reason: Why, or why it is not known.
        begins_at: Concurrency from which on requests wait or throughput no longer grows; None where not reached.
        limits: The limits that explain it, the closest first.
        saturated_at: Lowest measured concurrency with 95 % of the highest throughput; None without figures.
        falls_by: Share of the highest throughput that is lost at the highest concurrency; 0 where none is.
    """

    reason: PlateauReason
    begins_at: int | None = None
    limits: tuple[Limit, ...] = ()
    saturated_at: int | None = None
    falls_by: float = 0.0


def find_plateau(points: Sequence[LoadPoint], limits: Sequence[Limit], *, exact: bool = True) -> Plateau:
    """Say where requests begin to wait, and which known limit makes them wait.

    Requests wait where fewer of them produce tokens at once than are open. A limit is named only if the level at which
    they stay is the limit's: a limit that was predicted and did not show is not named.

    Args:
        points: The cells of one context length, in any order, each concurrency once.
        limits: What is known to limit the requests that run at once.
        exact: ``running`` was counted from the times of each request; False where it was estimated from mean times.
    """
    ordered = sorted(points, key=lambda point: point.concurrency)
    if len(ordered) < 2:
        return Plateau(reason=PlateauReason.TOO_FEW)
    best = max(point.output_tokens_per_s for point in ordered)
    saturated = next(p.concurrency for p in ordered if p.output_tokens_per_s >= SATURATED * best)
    falls = 1 - ordered[-1].output_tokens_per_s / best if best > 0 else 0.0
    reason, begins_at, binding = _waiting(ordered, limits, exact=exact)
    if reason is None and saturated < ordered[-1].concurrency:
        reason, begins_at = PlateauReason.ACCELERATOR, saturated
    return Plateau(
        reason=reason or PlateauReason.NOT_REACHED,
        begins_at=begins_at,
        limits=binding,
        saturated_at=saturated,
        falls_by=round(falls, 4),
    )


def running_at_once(intervals: Iterable[tuple[float, float]]) -> int:
    """Return how many intervals overlap, by the level that is not exceeded for 85 % of the time that any is open.

    Args:
        intervals: Begin and end of each, in seconds; from the first token to the last of each request.

    Returns:
        0 where there is no interval that lasts.
    """
    steps = sorted((at, change) for begin, end in intervals if end > begin for at, change in ((begin, 1), (end, -1)))
    spent: dict[int, float] = {}
    level = 0
    for (at, change), (until, _) in pairwise(steps):
        level += change
        if level and until > at:
            spent[level] = spent.get(level, 0.0) + until - at
    left = _SUSTAINED * sum(spent.values())
    for level in sorted(spent):
        left -= spent[level]
        if left <= 0:
            return level
    return 0


def arrive_in_bundles(itls_s: Sequence[float]) -> bool:
    """Whether the path to the client, and not the server, decided when tokens arrived.

    Args:
        itls_s: Mean time between the tokens of each request.
    """
    return sum(itl < BUNDLED_ITL_S for itl in itls_s) > _BUNDLED * len(itls_s)


def running_by_little(concurrency: int, *, first_token_s: float, latency_s: float) -> float:
    """Estimate how many requests produce tokens at once from mean times alone, by Little's law.

    Args:
        concurrency: Requests that the client kept open at once.
        first_token_s: Mean time to the first token, waiting included.
        latency_s: Mean time of a whole request.
    """
    return concurrency * (latency_s - first_token_s) / latency_s if latency_s > 0 else 0.0


def _waiting(
    ordered: Sequence[LoadPoint], limits: Sequence[Limit], *, exact: bool
) -> tuple[PlateauReason | None, int | None, tuple[Limit, ...]]:
    """Why requests wait, from where on, and by which limits; None where none waits or nobody knows."""
    if any(point.running is None for point in ordered):
        return PlateauReason.NOT_TIMED, None, ()
    known = [(point.concurrency, point.running) for point in ordered if point.running]
    if not known:
        return None, None, ()
    level = max(running for _, running in known)
    if ordered[-1].concurrency < _QUEUED * level:
        return None, None, ()
    if any(abs(running / min(concurrency, level) - 1) > _SPREAD for concurrency, running in known):
        return PlateauReason.PREFILL, None, ()
    binding = _explaining(level, limits, exact=exact)
    if not binding:
        return PlateauReason.UNKNOWN_LIMIT, round(level), ()
    return PlateauReason.LIMIT, max(1, int(level if _is_cache(binding[0]) else binding[0].requests)), binding


def _explaining(level: float, limits: Sequence[Limit], *, exact: bool) -> tuple[Limit, ...]:
    """The limits that lie where requests wait, the closest first."""

    def explains(limit: Limit) -> bool:
        low, high = _BY_CACHE if _is_cache(limit) else _COUNTED if exact else _ESTIMATED
        return low * limit.requests <= level <= high * limit.requests

    return tuple(sorted((limit for limit in limits if explains(limit)), key=lambda limit: abs(limit.requests - level)))


def _is_cache(limit: Limit) -> bool:
    return limit.bound is Bound.KV_CACHE
