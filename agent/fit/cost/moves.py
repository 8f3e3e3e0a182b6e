"""Moves across platforms: where else the same devices can be rented, and whether a server can start there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agent.fit.advice.advice import Advice, Demand, Move, Option, Reach
from agent.fit.assessment import Setup
from agent.fit.bounds import Bounds
from agent.fit.cost.offers import Wanted, offers
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts
from agent.fit.speed.platform_start import PlatformStart, start_on
from agent.fit.speed.price import Shape

StartOf = Callable[[ModelFacts, Flags], Bounds | None]


def with_moves(
    advice: Advice,
    setup: Setup,
    demand: Demand,
    *,
    models: Callable[[str], ModelFacts],
    accelerators: Mapping[str, AcceleratorFacts],
    shapes: Sequence[Shape],
    starts: Mapping[str, PlatformStart],
    start_of: StartOf,
) -> Advice:
    """Return the advice with what a start meets on each platform, and where else the best of it can be rented.

    An option on other hardware whose platform does not wait for its start comes after the others.

    Args:
        advice: What fits.
        setup: What runs, or was tried.
        demand: What is kept, and where it runs now.
        models: By name.
        accelerators: By contract name.
        shapes: What can be rented.
        starts: How servers start, by platform.
        start_of: The start of a model with its flags, seconds.
    """

    def started(option: Option) -> Option:
        limits = starts.get(option.cost.platform)
        if option.reach is not Reach.HARDWARE or limits is None:
            return option
        return replace(option, start=start_on(limits, start_of(models(option.model), option.flags)))

    options = tuple(sorted(map(started, advice.options), key=lambda option: bool(option.start and option.start.misses)))
    best = next((option for option in options if option.reach is not Reach.HARDWARE), None)
    if advice.current.fits:
        runs = setup
    elif best is None:
        return replace(advice, options=options)
    else:
        runs = replace(setup, model=models(best.model), flags=best.flags)
    start_s = start_of(runs.model, runs.flags)
    found = _moves(runs, demand, accelerators, shapes, starts=starts, start_s=start_s)
    return replace(advice, options=options, moves=found)


def _moves(
    runs: Setup,
    demand: Demand,
    accelerators: Mapping[str, AcceleratorFacts],
    shapes: Sequence[Shape],
    *,
    starts: Mapping[str, PlatformStart],
    start_s: Bounds | None,
) -> tuple[Move, ...]:
    """The usual shape with exactly these devices on each other platform: what starts and is cheapest first."""
    devices = [s for s in shapes if (s.accelerator, s.count) == (runs.accelerator.name, runs.count)]
    here = next((s.usd_per_h for s in devices if s.platform == demand.platform), None)
    usual = {s.platform: s for s in reversed(devices) if s.platform != demand.platform}
    wanted = Wanted(
        model=runs.model,
        flags=runs.flags,
        rules=runs.rules,
        needs=demand.needs,
        tokens_per_s=demand.tokens_per_s,
        start_range=start_s,
    )
    rows = offers(wanted, usual.values(), accelerators, starts=starts)
    found = [
        Move(before=demand.platform, shape=row.shape, usd_per_h_before=here, misses=row.misses, start=row.start)
        for row in rows
    ]
    far = float("inf")
    return tuple(sorted(found, key=lambda m: (bool(m.misses), far if m.shape.usd_per_h is None else m.shape.usd_per_h)))
