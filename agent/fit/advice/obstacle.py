"""Which constraint rules everything out: each is let go in turn, and the first whose absence helps is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.fit.advice.advice import Demand, Obstacle, Option, RuledOut
from agent.fit.advice.grid import levers
from agent.fit.advice.search import Prober, search_flags, strongest_reports
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB
from agent.fit.report import FitReason, FitReport


def ruled_out(base: Setup, prober: Prober, too_dear: Sequence[Option]) -> RuledOut:
    """Say why no change of flags is proposed.

    Args:
        base: What the search started from.
        prober: Carries the demand.
        too_dear: Options that fit, and were dropped for speed or price.

    Returns:
        The constraint, and how far it is missed.
    """
    demand = prober.demand
    if too_dear:
        return _too_dear(demand, too_dear)
    for obstacle, eased in _eased(demand):
        if _helps(base, eased):
            return RuledOut(obstacle=obstacle, why=_TOLD[obstacle].format(**_figures(demand)))
    if _helps(base, Demand(images=False, host_bytes=demand.host_bytes)):
        return RuledOut(obstacle=Obstacle.CONTEXT, why="the stated needs fit one by one, but not together")
    return _by_device(tuple(strongest_reports(base, prober, levers(base, demand))))


_TOLD = {
    Obstacle.CONTEXT: "a context of {context} tokens finds no room; without that need there are changes that fit",
    Obstacle.USERS: "{users} requests of full length at once find no room; for one there are changes that fit",
    Obstacle.IMAGES: "image input is to be kept; text-only there are changes that fit",
    Obstacle.SPARE: "nothing fits with {spare:.2f} GiB to spare; without that reserve there are changes that fit",
}


def _figures(demand: Demand) -> dict[str, float | int | None]:
    return {"context": demand.needs.context_tokens, "users": demand.needs.users, "spare": demand.spare_bytes / GIB}


def _eased(demand: Demand) -> list[tuple[Obstacle, Demand]]:
    found: list[tuple[Obstacle, Demand]] = []
    if demand.spare_bytes:
        found.append((Obstacle.SPARE, replace(demand, spare_bytes=0)))
    if demand.needs.users > 1:
        found.append((Obstacle.USERS, replace(demand, needs=replace(demand.needs, users=1))))
    if demand.needs.context_tokens is not None:
        found.append((Obstacle.CONTEXT, replace(demand, needs=replace(demand.needs, context_tokens=None))))
    if demand.images is True:
        found.append((Obstacle.IMAGES, replace(demand, images=None)))
    return found


def _helps(base: Setup, eased: Demand) -> bool:
    prober = Prober(demand=eased)
    return prober.passes(base) or any(found.certain for found in search_flags(base, prober))


def _too_dear(demand: Demand, options: Sequence[Option]) -> RuledOut:
    fast = [option.cost.decode_tokens_per_s[0] for option in options if option.cost.decode_tokens_per_s is not None]
    if demand.tokens_per_s is not None and (not fast or max(fast) < demand.tokens_per_s):
        fastest = f"the fastest that fits is sure of {max(fast):.1f} tokens/s" if fast else "no rate is known"
        return RuledOut(obstacle=Obstacle.SPEED, why=f"{fastest}, needed are {demand.tokens_per_s:g}")
    prices = [option.cost.usd_per_h for option in options if option.cost.usd_per_h is not None]
    cheapest = f"this shape costs {min(prices):.2f} USD an hour" if prices else "the price of this shape is unknown"
    return RuledOut(obstacle=Obstacle.BUDGET, why=f"{cheapest}, the ceiling is {demand.usd_per_h}")


def _by_device(reports: Sequence[FitReport]) -> RuledOut:
    """The report that came nearest, everything at its strongest."""
    if all(report.fits is None for report in reports):
        first = reports[0]
        short = first.shortfall_bytes
        if short is None or not short.high:
            unknown = first.assumptions[0] if first.assumptions else "a term is not modelled"
            return RuledOut(obstacle=Obstacle.NOT_MODELLED, why=f"it cannot be told: {unknown}")
    nearest = min(reports, key=lambda report: report.shortfall_bytes.high if report.shortfall_bytes else 2**62)
    if nearest.reason is FitReason.UNSUPPORTED:
        refusal = nearest.assumptions[0] if nearest.assumptions else "vLLM refuses it"
        return RuledOut(obstacle=Obstacle.UNSUPPORTED, why=refusal)
    short = nearest.shortfall_bytes
    step = nearest.reason.value if nearest.fits is False else "the doubtful step"
    missing = f"{(short.best or short.high) / GIB:.2f} GiB" if short is not None else "memory"
    return RuledOut(
        obstacle=Obstacle.DEVICE_MEMORY,
        why=f"with every flag at its strongest {missing} is missing at {step}: it takes another checkpoint or device",
    )
