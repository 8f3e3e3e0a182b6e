"""What a sweep found, in sentences: where requests wait and why, the best setting, and how right the fit was."""

from collections.abc import Iterator, Mapping, Sequence

from agent.core.sweep.cell import Cell
from agent.core.sweep.findings import P99_REQUESTS, BestSetting, ContextFindings, Deviation, Findings, Verdict, figures
from agent.core.sweep.plateau import PlateauReason
from agent.core.sweep.provenance import Provenance
from agent.core.sweep.target import Condition
from agent.presentation.sweep.figure_text import digits, limit_text, rate_text, seconds_text, share_text, tokens_text
from agent.presentation.sweep.rate_section import rates_text

_ENOUGH = 0.02  # of the highest throughput: less is how two measurements of one cell differ


def context_name(context_tokens: int, output_tokens: int) -> str:
    """Return what a context is called in the report."""
    return f"{tokens_text(context_tokens)} tokens ({tokens_text(output_tokens)} of them output)"


def plateau_text(context: ContextFindings, made: Provenance) -> str:
    """Say where more concurrent requests stop helping, and which flag makes them wait, or that nobody knows."""
    plateau, name = context.plateau, context_name(context.context_tokens, context.output_tokens)
    limits = [limit_text(limit, made, context_tokens=context.context_tokens) for limit in plateau.limits]
    known = "; ".join(limit_text(limit, made, context_tokens=context.context_tokens) for limit in context.limits)
    said = {
        PlateauReason.LIMIT: f"from {plateau.begins_at} on requests wait: {' or '.join(limits)}",
        PlateauReason.UNKNOWN_LIMIT: f"from about {plateau.begins_at} on requests wait, and why is unknown: "
        + (f"no known limit lies there ({known})" if known else "no limit of this server is known"),
        PlateauReason.PREFILL: "requests wait for their first token, but no fixed number of them runs at once, so no "
        "limit is named: prompts wait for other prompts",
        PlateauReason.NOT_TIMED: "how many requests ran at once is not known, so nobody knows whether any waited",
        PlateauReason.ACCELERATOR: f"no request waits; throughput stops growing at {plateau.begins_at}, so each "
        "further request only slows the others",
        PlateauReason.NOT_REACHED: "no request waits and throughput still grows: the plateau lies beyond the highest "
        "concurrency measured",
        PlateauReason.TOO_FEW: "fewer than two cells have figures, so nothing is said about a plateau",
    }[plateau.reason]
    return f"{name}: {said}{' (estimated from mean times)' if context.estimated else ''}."


def bundled_text(context: ContextFindings) -> str:
    """Say where the time between tokens is not the server's."""
    at = ", ".join(map(str, context.bundled))
    return (
        f"{context_name(context.context_tokens, context.output_tokens)}: at {at} concurrent the tokens of many answers "
        "arrived in one piece: a proxy keeps them back, or this machine or the server's front is too busy to pass them "
        "on one by one. TTFT and ITL are those of that path."
    )


def saturation_text(context: ContextFindings, cells: Mapping[str, Cell]) -> str:
    """Say the highest throughput, from where on it is nearly reached, and whether it falls again; empty if unknown."""
    known = [
        (cell.measured.output_tokens_per_s, cell.planned.concurrency)
        for name in context.cells
        if (cell := cells[name]).measured is not None and cell.measured.succeeded
    ]
    if not known or context.plateau.saturated_at is None:
        return ""
    best, at = max(known, key=lambda one: (one[0], -one[1]))
    text = (
        f"Highest throughput: {rate_text(best)} output tokens/s at {at}; 95 % of it at {context.plateau.saturated_at}."
    )
    if context.plateau.falls_by > _ENOUGH:
        text += f" At {max(known, key=lambda one: one[1])[1]} it is {context.plateau.falls_by * 100:.0f} % lower."
    return text


def best_text(best: BestSetting, target: str, cells: Mapping[str, Cell]) -> str:
    """Say the best setting for a target, or what the nearest one misses."""
    name = context_name(best.context_tokens, best.output_tokens)
    if best.verdict is Verdict.NOT_MEASURED:
        return f"{name}: nothing was measured, so nothing is said about {target}."
    measured = cells[best.cell].measured
    found = figures(measured)
    rate = f"{best.concurrency} concurrent, {rate_text(found['output_tokens_per_s'])} output tokens/s"
    few = measured is not None and measured.succeeded < P99_REQUESTS and "_p99" in target
    caution = f" Fewer than {P99_REQUESTS} requests: p99 is the slowest of them." if few else ""
    if best.verdict is Verdict.MET:
        return f"{name}: best for {target}: {rate}.{caution}"
    missed = ", ".join(_missed(condition, found.get(condition.figure)) for condition in best.missed)
    return f"{name}: no setting keeps {target}; the nearest is {rate}: {missed}.{caution}"


def goodput_text(best: BestSetting) -> str:
    """Say where most requests each kept to the target; empty where nobody knows."""
    good = best.goodput
    if good is None:
        return ""
    name = context_name(best.context_tokens, best.output_tokens)
    return (
        f"{name}: most goodput: {digits(good.requests_per_s)} requests/s "
        f"that each keep the target's times, at {good.concurrency} concurrent ({good.share:.0%} of its requests)."
    )


def deviation_text(deviation: Deviation) -> str:
    """Say how far a prediction was off, or that it holds."""
    if deviation.off == 0:
        return "as predicted"
    return f"{share_text(deviation.off)} beyond the {'high' if deviation.off > 0 else 'low'} end"


def predicted_text(deviation: Deviation) -> str:
    """Return what was predicted."""
    low, high = digits(deviation.low), digits(deviation.high)
    return low if low == high else f"{low} to {high}"


def findings_text(found: Findings, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield every sentence, the best settings first."""
    by_id = {cell.id: cell for cell in cells}
    for best in found.best:
        yield best_text(best, found.target, by_id)
    for context in found.contexts:
        yield " ".join(filter(None, (plateau_text(context, found.provenance), saturation_text(context, by_id))))
        if context.bundled:
            yield bundled_text(context)
    yield from filter(None, map(goodput_text, found.best))
    for run in found.rates:
        yield rates_text(run, found.target)
    failed = sum(cell.measured.failed for cell in cells if cell.measured is not None)
    sent = failed + sum(cell.measured.succeeded for cell in cells if cell.measured is not None)
    if failed:
        yield f"{failed:,} of {sent:,} requests failed; they stand in no percentile."
    missing = sum(cell.measured is None for cell in cells)
    if missing:
        yield f"{missing} of {len(cells)} cells were not measured; the reasons are below."


def _missed(condition: Condition, found: float | None) -> str:
    if found is None:
        return f"{condition.figure} was not measured"
    if condition.figure == "output_tokens_per_s":
        return f"{condition.figure} is {rate_text(found)}"
    if condition.figure == "error_share":
        return f"{condition.figure} is {found:.2%}"
    return f"{condition.figure} is {seconds_text(found)}"
