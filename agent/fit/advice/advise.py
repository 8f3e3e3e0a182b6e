"""What to change: the smallest changes that fit, each proven and priced, or what rules all of them out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import islice

from agent.fit.advice.advice import Advice, Change, Cost, Demand, Option, Reach, Setting
from agent.fit.advice.alternatives import Market, other_checkpoints, other_hardware
from agent.fit.advice.cost import compare, concurrency_of, cost_of
from agent.fit.advice.obstacle import ruled_out
from agent.fit.advice.search import Prober, SearchResult, search_flags, spare_bytes, with_longest_context
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB
from agent.fit.flags.flags import AUTO, Flags
from agent.fit.memory.batch import effective
from agent.fit.model_and_hardware import AcceleratorKind, ModelFacts
from agent.fit.report import FitReport
from agent.fit.speed.price import find_shapes

SLOWEST_TOKENS_PER_S = 5.0
"""Decode rate of one request, low end, below which nobody wants to wait, where no need was stated."""

_ENOUGH_USERS = 4
"""Full-length requests at once beyond which more of them does not outrank quality or speed."""

_MOST_OPTIONS, _MOST_MARGINAL = 8, 3
_MOST_ELSEWHERE, _LOOKED_AT_ELSEWHERE = 4, 14
_LEVERS_ELSEWHERE = 2


def advise(setup: Setup, demand: Demand, market: Market) -> Advice:
    """Rank the changes that make a server fit and keep what the user needs.

    Flags are searched exhaustively (see ``search_flags``), then other checkpoints of the family, then other hardware.
    What is slower than ``SLOWEST_TOKENS_PER_S`` comes last; the others by their largest relative loss of modality,
    context, concurrency, speed and checkpoint. Ties keep the checkpoint, then go by price. An option that another one
    beats in everything is left out.

    Args:
        setup: What runs, or was tried.
        demand: What has to be kept.
        market: Other checkpoints, accelerators, and the price table.

    Returns:
        Options whose report says ``fits`` True at the pessimistic end; marginal ones apart. Where the setup fits and
        keeps the demand as it is, only faster ways to serve it are listed, if it offloads.

    Raises:
        InputRejected: The setup is impossible whatever the memory: no device, or a parallelism that does not divide.
    """
    demand = _with_host(setup, demand, market)
    prober = Prober(demand=demand)
    current = prober.report(setup)
    now = cost_of(setup, current, before=setup, demand=demand, shapes=market.shapes)
    settled = prober.passes(setup) and within_demand(now, demand)
    if settled and not setup.flags.cpu_offload_gb:
        return Advice(
            current=current, options=(), marginal=(), ruled_out=None, searched=len(prober.asked), demand=demand
        )
    base = _with_kernels(_floors(setup, demand))
    found = list(_by_flags(base, setup, prober))
    options = [_option(Reach.FLAGS, each, setup, demand, market) for each in found if each.certain]
    kept = [option for option in options if within_demand(option.cost, demand) and option.changes]
    place = _Placing(
        before=setup,
        now=now,
        demand=demand,
        users=_users_now(current, now, demand, kept),
        models={model.name: model for model in market.models},
    )
    if settled:
        kept = [option for option in kept if _faster(option.cost, now)]
    longer = _lengthened(_best(map(place.placed, kept)), base, setup, prober, market)
    near = _best(map(place.placed, longer))
    maybe = _marginal([each for each in found if not each.certain], near, setup, demand, market)
    far: list[Option] = []
    reason = None
    if not settled:
        hardware = other_hardware(base, market, platform=demand.platform)
        far += _elsewhere(Reach.CHECKPOINT, other_checkpoints(base, market), setup, prober, market)
        far += _elsewhere(Reach.HARDWARE, hardware, setup, prober, market)
        reason = None if near else ruled_out(base, prober, options)
    return Advice(
        current=current,
        options=tuple(sorted((*near, *map(place.placed, far)), key=_order)),
        marginal=tuple(map(place.placed, maybe)),
        ruled_out=reason,
        searched=len(prober.asked),
        demand=demand,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Placing:
    """What options are compared with: what runs now, and the concurrency known of it or of its best option."""

    before: Setup
    now: Cost
    demand: Demand
    users: int | None
    models: Mapping[str, ModelFacts]

    def placed(self, option: Option) -> Option:
        """The option with what it takes away."""
        model = self.models.get(option.model, self.before.model)
        after = replace(self.before, model=model, flags=option.flags)
        speed = option.cost.decode_tokens_per_s
        needed = self.demand.tokens_per_s or SLOWEST_TOKENS_PER_S
        return replace(
            option,
            tradeoff=compare(self.before, after, now=self.now, then=option.cost, demand=self.demand, users=self.users),
            misses_needs=speed is not None and speed[0] < needed,
        )


def _users_now(current: FitReport, now: Cost, demand: Demand, options: Iterable[Option]) -> int | None:
    """Full-length requests at once to compare with: now, or the best option's where the server never ran."""
    if current.fits:
        return now.users
    return min(max(demand.needs.users, _ENOUGH_USERS), max((o.cost.users for o in options), default=1))


def _order(option: Option) -> tuple[float, ...]:
    """By need, largest loss, checkpoint and price; then by the other losses, speed and the number of changes."""
    cost, losses = option.cost, option.tradeoff.losses
    price = cost.usd_per_h if cost.usd_per_h is not None else float("inf")
    speed = -cost.decode_tokens_per_s[0] if cost.decode_tokens_per_s else 0.0
    return (option.misses_needs, losses[0], cost.quality_rank, price, *losses[1:], speed, len(option.changes))


def within_demand(cost: Cost, demand: Demand) -> bool:
    """True if speed and price are within the demand; unknown ones are not."""
    if demand.tokens_per_s is not None:
        speed = cost.decode_tokens_per_s
        if speed is None or speed[0] < demand.tokens_per_s:
            return False
    return demand.usd_per_h is None or (cost.usd_per_h is not None and cost.usd_per_h <= demand.usd_per_h)


def changes_between(before: Setup, after: Setup) -> tuple[Change, ...]:
    """Every difference of two setups: model, accelerator, count, then flags by name."""
    found = [
        Change(flag=name, before=old, after=new)
        for name, old, new in (
            ("model", before.model.name, after.model.name),
            ("accelerator", before.accelerator.name, after.accelerator.name),
            ("count", before.count, after.count),
        )
        if old != new
    ]
    for field in fields(Flags):
        old, new = getattr(before.flags, field.name), getattr(after.flags, field.name)
        same = old == new or (field.name == "cpu_offload_gb" and not old and not new)  # an offload of 0 is none
        if not same:
            found.append(Change(flag=field.name, before=_setting(old), after=_setting(new)))
    return tuple(found)


def _setting(value: Setting) -> Setting:
    """As a command line takes it."""
    return json.dumps(dict(value), separators=(",", ":")) if isinstance(value, tuple) else value


def _with_host(setup: Setup, demand: Demand, market: Market) -> Demand:
    """Offload pins host memory: the shape's, where the caller did not say."""
    if demand.host_bytes is not None:
        return demand
    shapes = find_shapes(market.shapes, setup.accelerator.name, setup.count, platform=demand.platform)
    known = next((shape.memory_bytes for shape in shapes if shape.count == setup.count and shape.memory_bytes), None)
    return replace(demand, host_bytes=known)


def _with_kernels(setup: Setup) -> Setup:
    """A cache format without kernels on the card gives way to the model's own: no search over memory finds that."""
    fp8 = (setup.flags.kv_cache_dtype or "").startswith("fp8")
    if fp8 and setup.accelerator.kind is AcceleratorKind.CUDA and not setup.accelerator.supports((8, 9)):
        return setup.with_flags(replace(setup.flags, kv_cache_dtype="auto"))
    return setup


def _floors(setup: Setup, demand: Demand) -> Setup:
    """What is searched from: no offload, and context and sequences at least as needed."""
    flags = replace(setup.flags, cpu_offload_gb=None)
    context, length = demand.needs.context_tokens, flags.max_model_len
    if context is not None and length is not None and length != AUTO and length < context:
        flags = replace(flags, max_model_len=context)
    if flags.max_num_seqs is not None and flags.max_num_seqs < demand.needs.users:
        flags = replace(flags, max_num_seqs=demand.needs.users)
    return setup.with_flags(flags)


def _by_flags(base: Setup, setup: Setup, prober: Prober) -> Iterator[SearchResult]:
    report = prober.report(base)
    if report.fits is None and (report.shortfall_bytes is None or not report.shortfall_bytes.high):
        return  # something is not modelled: no lever makes that known
    if prober.passes(base):
        yield SearchResult(setup=base, report=prober.report(base), certain=True)
        return
    if prober.report(base).fits is not False and base != setup:
        yield SearchResult(setup=base, report=prober.report(base), certain=False)
    yield from search_flags(base, prober)


def _lengthened(
    options: Iterable[Option], base: Setup, before: Setup, prober: Prober, market: Market
) -> Iterator[Option]:
    """Each option with the longest context that it has room for; the search itself goes by powers of two."""
    most = effective(base.model, base.accelerator, base.flags, base.rules).max_model_len
    for option in options:
        here = SearchResult(setup=base.with_flags(option.flags), report=option.fit, certain=True)
        longer = with_longest_context(here, most, prober)
        same = longer.setup.flags == option.flags
        yield option if same else _option(option.reach, longer, before, prober.demand, market)


def _option(reach: Reach, found: SearchResult, before: Setup, demand: Demand, market: Market) -> Option:
    setup = found.setup
    cost = cost_of(setup, found.report, before=before, demand=demand, shapes=market.shapes)
    report = replace(found.report, decode_tokens_per_s=cost.decode_tokens_per_s, cost_usd_per_h=cost.usd_per_h)
    return Option(
        reach=reach,
        changes=changes_between(before, setup) + _move(cost, demand),
        model=setup.model.name,
        accelerator=setup.accelerator.name,
        count=setup.count,
        flags=setup.flags,
        fit=report,
        cost=cost,
        concurrency=concurrency_of(report),
        note=_sureness(report, demand, setup) if found.certain else _doubt(report),
    )


def _move(cost: Cost, demand: Demand) -> tuple[Change, ...]:
    """Hardware that the present platform does not rent is a move as well."""
    if demand.platform is None or cost.platform in {"", demand.platform}:
        return ()
    return (Change(flag="platform", before=demand.platform, after=cost.platform),)


def _sureness(report: FitReport, demand: Demand, setup: Setup) -> str:
    spare = spare_bytes(report, demand) / GIB
    words = f"fits at the pessimistic end of every term with {spare:.2f} GiB to spare; computed, not tried on hardware"
    if setup.flags.cpu_offload_gb:
        words += f"; needs {setup.flags.cpu_offload_gb:g} GiB of pinned host memory"
    if setup.accelerator.kind is AcceleratorKind.TPU:
        words += "; XLA's program memory is outside these rules"
    return words


def _doubt(report: FitReport) -> str:
    short = report.shortfall_bytes
    if short is None or not short.high:
        return "cannot be told: " + (report.assumptions[0] if report.assumptions else "a term is not modelled")
    best = "fits by the best estimate" if not short.best else f"misses {short.best / GIB:.2f} GiB by the best estimate"
    return f"marginal: {best}, and misses {short.high / GIB:.2f} GiB at the pessimistic end ({report.assumptions[0]})"


def _rank(option: Option, *, users: int = _ENOUGH_USERS) -> tuple[float, ...]:
    cost = option.cost
    speed = -cost.decode_tokens_per_s[0] if cost.decode_tokens_per_s else 0.0
    price = cost.usd_per_h if cost.usd_per_h is not None else float("inf")
    return (len(option.changes), -cost.context_tokens, -min(cost.users, users), cost.quality_rank, speed, price)


def _best(options: Iterable[Option]) -> list[Option]:
    """In order, without those that another one equals or beats in everything.

    Of options that change the same flags the first and the fastest are shown, and the fastest of all in any case.
    """
    kept: list[Option] = []
    for option in sorted(options, key=_rank):  # what beats another one comes before it in this order
        if not any(_beats(_rank(other), _rank(option)) for other in kept):
            kept.append(option)
    kept.sort(key=_order)
    alike: dict[tuple[str, ...], list[Option]] = {}
    for option in kept:
        alike.setdefault(tuple(change.flag for change in option.changes), []).append(option)
    chosen = [option for same in alike.values() for option in _ends(same)]
    shown = sorted(chosen, key=_order)[:_MOST_OPTIONS]
    if kept and (fastest := _fastest(kept)) not in shown:
        shown[-1] = fastest
    return shown


def _fastest(options: list[Option]) -> Option:
    return min(options, key=lambda option: _rank(option)[4])


def _ends(same: list[Option]) -> list[Option]:
    fastest = _fastest(same)
    return [same[0]] if fastest is same[0] else [same[0], fastest]


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _faster(cost: Cost, now: Cost) -> bool:
    if cost.decode_tokens_per_s is None or now.decode_tokens_per_s is None:
        return False
    return cost.decode_tokens_per_s[0] > now.decode_tokens_per_s[1]


def _marginal(
    found: Iterable[SearchResult], sure: list[Option], before: Setup, demand: Demand, market: Market
) -> tuple[Option, ...]:
    """What the best estimate lets through and the pessimistic end does not: smallest doubt first, fewest changes next.

    Nothing that costs as much as a sure option is worth its doubt.
    """
    likely = [
        _option(Reach.FLAGS, each, before, demand, market)
        for each in {each.setup.flags: each for each in found}.values()
        if _likely(each.report)
    ]
    worth = [
        option
        for option in likely
        if within_demand(option.cost, demand) and not any(_beats(_rank(known)[1:], _rank(option)[1:]) for known in sure)
    ]
    return tuple(sorted(worth, key=_doubt_rank)[:_MOST_MARGINAL])


def _likely(report: FitReport) -> bool:
    short = report.shortfall_bytes
    return short is not None and not short.best and short.high > 0


def _doubt_rank(option: Option) -> tuple[float, ...]:
    short = option.fit.shortfall_bytes
    return (round((short.high if short else 0) / GIB, 1), *_rank(option))


def _elsewhere(reach: Reach, setups: Iterator[Setup], before: Setup, prober: Prober, market: Market) -> list[Option]:
    """The first few that fit with at most two levers, ranked."""
    light = Prober(demand=replace(prober.demand, host_bytes=0), asked=prober.asked)  # nobody moves house to offload
    options: list[Option] = []
    for setup in islice(setups, _LOOKED_AT_ELSEWHERE):
        found = _first_fitting(setup, light)
        if found is None:
            continue
        option = _option(reach, found, before, prober.demand, market)
        if within_demand(option.cost, prober.demand):
            options.append(option)
        if len(options) == _MOST_ELSEWHERE:
            break
    return sorted(options, key=lambda option: _rank(option, users=prober.demand.needs.users))


def _first_fitting(setup: Setup, prober: Prober) -> SearchResult | None:
    if prober.passes(setup):
        return SearchResult(setup=setup, report=prober.report(setup), certain=True)
    certain = (found for found in search_flags(setup, prober, most_levers=_LEVERS_ELSEWHERE) if found.certain)
    first = next(certain, None)
    most = effective(setup.model, setup.accelerator, setup.flags, setup.rules).max_model_len
    return None if first is None else with_longest_context(first, most, prober)
