"""Search the flags: every set of levers, strongest settings first to prune, then as mild as still fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from agent.fit.advice.advice import Demand
from agent.fit.advice.grid import GRADED, Lever, levers, with_levers
from agent.fit.assessment import Setup
from agent.fit.flags.flags import AUTO, Flags
from agent.fit.memory.batch import effective
from agent.fit.report import FitReport

_ALWAYS = 4
"""Sets of up to so many levers are always looked at; larger ones only while nothing was found."""

_TRADED = 3
"""Largest set in which context is traded against offload step by step; larger ones give one point of the trade."""

_LENGTH_STEP = 128
"""Tokens by which a shortened context is lengthened again."""

_TEXT_ONLY = frozenset({"language_model_only", "limit_mm_per_prompt"})
_AT_LOAD = frozenset({"tensor_parallel_size", "cpu_offload_gb"}) | _TEXT_ONLY
"""Levers that move weights. No other lever can help a set whose weights do not load."""

_LOOSENED = {"cpu_offload_gb": 0, "max_model_len": 1, "max_num_seqs": 2, "max_num_batched_tokens": 3}
"""Order in which levers are let go: what hurts most first, while the others still hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """One setup and its report: ``certain`` if it fits at the pessimistic end and keeps the demand."""

    setup: Setup
    report: FitReport
    certain: bool


@dataclass(kw_only=True, slots=True)
class Prober:
    """Predicts, remembers, counts.

    Attributes:
        demand: What has to be kept.
        asked: Predictions made so far, by setup flags.
    """

    demand: Demand
    asked: dict[tuple[str, str, int, Flags], FitReport] = field(default_factory=dict)

    def report(self, setup: Setup) -> FitReport:
        """The fit report of a setup."""
        key = (setup.model.name, setup.accelerator.name, setup.count, setup.flags)
        found = self.asked.get(key)
        if found is None:
            found = self.asked[key] = setup.predict(self.demand.needs)
        return found

    def passes(self, setup: Setup) -> bool:
        """True if it fits at the pessimistic end with the demanded memory to spare."""
        report = self.report(setup)
        return report.fits is True and spare_bytes(report, self.demand) >= self.demand.spare_bytes


def spare_bytes(report: FitReport, demand: Demand) -> int:
    """Memory left at the pessimistic end: of the device, and of the KV pool beyond what the needs take; the less.

    Args:
        report: A prediction.
        demand: For its users.

    Returns:
        Bytes, may be negative; 0 when a figure is unknown.
    """
    if report.total_bytes is None or report.required_bytes is None:
        return 0
    device = report.total_bytes.low - report.required_bytes.high
    if report.kv_cache_bytes is None or report.kv_bytes_per_request is None or not demand.spare_bytes:
        return device
    return min(device, report.kv_cache_bytes.low - report.kv_bytes_per_request.high * demand.needs.users)


def search_flags(setup: Setup, prober: Prober, *, most_levers: int = 7) -> Iterator[SearchResult]:
    """Find every minimal set of levers that makes a setup fit, each pulled as little as possible.

    For each set, the strongest settings are tried first: memory falls with every lever, so a set that fails there
    fails everywhere, and so does every set with the same weights if the weights alone do not load. What remains is
    loosened lever by lever, those first that hurt most, and dropped if a lever turns out not to be needed. A set that
    contains a fitting one is looked at only where it spares a graded lever (offload, context). Beyond sets of four, the
    one with least offload is grown lever by lever as long as that spares more of it.

    Args:
        setup: What runs, with offload taken out and the demand's floors put in.
        prober: Carries the demand and the memory of predictions.
        most_levers: Largest set.

    Yields:
        Certain finds, and uncertain ones (``fits`` None at the strongest settings) whose subsets do not fit either.
    """
    every = levers(setup, prober.demand)
    never_fit = _loads_that_never_fit(setup, every, prober)
    fitting: dict[frozenset[Lever], Setup] = {}
    for size in range(1, most_levers + 1):
        if size > _ALWAYS and fitting:
            yield from _further(setup, every, fitting, prober, most_levers)
            return
        for chosen in _sets(every, size, never_fit):
            usable = _usable(setup, chosen)
            if len(usable) == size and _worth(chosen, fitting):
                found = list(_looked_at(setup, usable, prober))
                yield from found
                if found and found[0].certain:
                    fitting[frozenset(chosen)] = found[0].setup


def with_longest_context(found: SearchResult, most: int, prober: Prober) -> SearchResult:
    """The same find with the longest context that still passes.

    Args:
        found: Certain.
        most: Tokens that were asked for before the context was shortened.
        prober: Carries the demand.

    Returns:
        ``found`` where its context was not shortened, else a setup that passes too, its context a multiple of 128
        tokens above (a block is no longer on any device), up to ``most``.
    """
    length = found.setup.flags.max_model_len
    if length is None or length == AUTO:
        return found
    low, high = length // _LENGTH_STEP, most // _LENGTH_STEP
    best = found.setup
    while low < high:
        middle = (low + high + 1) // 2
        longer = found.setup.with_flags(replace(found.setup.flags, max_model_len=middle * _LENGTH_STEP))
        if prober.passes(longer):
            low, best = middle, longer
        else:
            high = middle - 1
    return SearchResult(setup=best, report=prober.report(best), certain=True)


def _further(
    setup: Setup, every: Sequence[Lever], fitting: dict[frozenset[Lever], Setup], prober: Prober, most_levers: int
) -> Iterator[SearchResult]:
    """Grow the set with the least offload greedily: harmless levers may spare what is left of it."""

    def offload(held: Setup) -> float:
        return held.flags.cpu_offload_gb or 0.0

    best = min(fitting, key=lambda chosen: (offload(fitting[chosen]), len(chosen)))
    while len(best) < most_levers and offload(fitting[best]):
        names = {lever.flag for lever in best}
        grown: dict[frozenset[Lever], Setup] = {}
        for lever in every:
            held = [other for other in every if other in best]
            usable = _usable(setup, (*held, lever)) if lever.flag not in names else ()
            if len(usable) == len(best) + 1:
                found = list(_looked_at(setup, usable, prober))
                yield from (each for each in found if each.certain)
                grown |= {frozenset((*best, lever)): each.setup for each in found if each.certain}
        least = min(grown, key=lambda chosen: offload(grown[chosen]), default=None)
        if least is None or offload(grown[least]) >= offload(fitting[best]):
            return
        fitting, best = grown, least


def _sets(every: Sequence[Lever], size: int, never_fit: set[frozenset[str]]) -> Iterator[tuple[Lever, ...]]:
    """Sets of levers of different flags whose weights can load at all."""
    for chosen in combinations(every, size):
        names = frozenset(lever.flag for lever in chosen)
        if len(names) == size and names & _AT_LOAD not in never_fit:
            yield chosen


def _looked_at(setup: Setup, chosen: Sequence[Lever], prober: Prober) -> Iterator[SearchResult]:
    """What one set gives: certain finds, one uncertain find, or nothing."""
    strongest = _pull(setup, chosen, [lever.strongest for lever in chosen])
    if prober.passes(strongest):
        for each in _loosened(setup, chosen, prober):
            yield SearchResult(setup=each, report=prober.report(each), certain=True)
    elif prober.report(strongest).fits is not False:
        yield SearchResult(setup=strongest, report=prober.report(strongest), certain=False)


def strongest_reports(setup: Setup, prober: Prober, every: Sequence[Lever]) -> Iterator[FitReport]:
    """Reports with every lever at its strongest, one per utilisation that may be set; the present one first."""
    others = [lever for lever in every if lever.flag != "gpu_memory_utilization"]
    shares: list[list[Lever]] = [[], *([lever] for lever in every if lever.flag == "gpu_memory_utilization")]
    for share in shares:
        usable = _usable(setup, (*others, *share))
        yield prober.report(_pull(setup, usable, [lever.strongest for lever in usable]))


def _pull(setup: Setup, chosen: Sequence[Lever], values: Sequence[object]) -> Setup:
    pulled = {lever.flag: value for lever, value in zip(chosen, values, strict=True)}
    return setup.with_flags(with_levers(setup.flags, pulled))  # type: ignore[arg-type]


def _loads_that_never_fit(setup: Setup, every: Sequence[Lever], prober: Prober) -> set[frozenset[str]]:
    """Sets of weight-moving levers that fail even with everything else at its strongest, whatever the utilisation."""
    moving = [lever for lever in every if lever.flag in _AT_LOAD]
    others = [lever for lever in every if lever.flag not in _AT_LOAD]
    return {
        frozenset(lever.flag for lever in chosen)
        for size in range(len(moving) + 1)
        for chosen in combinations(moving, size)
        if all(report.fits is False for report in strongest_reports(setup, prober, (*chosen, *others)))
    }


def _usable(setup: Setup, chosen: Sequence[Lever]) -> tuple[Lever, ...]:
    """Without text-only, a batch must hold the largest image: shorter steps fall away, and the lever with its last."""
    if any(lever.flag in _TEXT_ONLY for lever in chosen):
        return tuple(chosen)
    item = effective(setup.model, setup.accelerator, setup.flags, setup.rules).item_tokens
    kept = []
    for lever in chosen:
        values = lever.values
        if lever.flag == "max_num_batched_tokens":
            values = tuple(value for value in values if isinstance(value, int) and value >= item)
        if values:
            kept.append(Lever(flag=lever.flag, values=values))
    return tuple(kept)


def _worth(chosen: Sequence[Lever], fitting: dict[frozenset[Lever], Setup]) -> bool:
    """False when a smaller set already fits and this one spares nobody anything."""
    whole = frozenset(chosen)
    smaller = [held for held in fitting if held < whole]
    if not smaller:
        return True
    graded = [lever for lever in chosen if lever.flag in GRADED]
    if not graded or any(not any(lever in held for lever in graded) for held in smaller):
        return False
    return any(
        getattr(fitting[held].flags, lever.flag) != lever.values[0]
        for held in smaller
        for lever in graded
        if lever in held
    )


def _loosened(setup: Setup, chosen: Sequence[Lever], prober: Prober) -> Iterator[Setup]:
    """The mildest settings of a set that fits at its strongest; nothing if one of its levers is not needed.

    Two graded levers trade against each other: a small set gives each step of the context with the offload it takes.
    """
    context = next((at for at, lever in enumerate(chosen) if lever.flag == "max_model_len"), None)
    offloads = any(lever.flag == "cpu_offload_gb" for lever in chosen)
    if context is None or not offloads or len(chosen) > _TRADED:
        found = _loosen(setup, chosen, prober)
        if found is not None:
            yield found
        return
    before: Setup | None = None
    for length in reversed(chosen[context].values):
        fixed = tuple(
            Lever(flag=lever.flag, values=(length,)) if at == context else lever for at, lever in enumerate(chosen)
        )
        if not prober.passes(_pull(setup, fixed, [lever.strongest for lever in fixed])):
            return
        found = _loosen(setup, fixed, prober)
        if found is None:
            continue
        if before is not None and found.flags.cpu_offload_gb != before.flags.cpu_offload_gb:
            yield before
        before = found
    if before is not None:
        yield before


def _loosen(setup: Setup, chosen: Sequence[Lever], prober: Prober) -> Setup | None:
    """The mildest settings of a set that fit at its strongest; None if one of its levers is not needed.

    Need is asked once, when the lever that hurts most is as mild as the others, at their strongest, let it be: what is
    needed beside strong levers is needed beside mild ones.
    """
    values: list[object] = [lever.strongest for lever in chosen]
    order = sorted(range(len(chosen)), key=lambda at: _LOOSENED.get(chosen[at].flag, len(_LOOSENED)))
    _let_go(setup, chosen, values, order[0], prober)
    for at in range(len(chosen)):
        without = [lever for index, lever in enumerate(chosen) if index != at]
        kept = [value for index, value in enumerate(values) if index != at]
        if prober.passes(_pull(setup, without, kept)):
            return None
    for at in order[1:]:
        _let_go(setup, chosen, values, at, prober)
    return _pull(setup, chosen, values)


def _let_go(setup: Setup, chosen: Sequence[Lever], values: list[object], at: int, prober: Prober) -> None:
    """Set one lever to its mildest value that still passes beside the others, by halving."""
    low, high = 0, len(chosen[at].values) - 1
    while low < high:
        middle = (low + high) // 2
        values[at] = chosen[at].values[middle]
        if prober.passes(_pull(setup, chosen, values)):
            high = middle
        else:
            low = middle + 1
    values[at] = chosen[at].values[high]
