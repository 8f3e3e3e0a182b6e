"""Figures of a sweep as people read them: seconds, rates and shares with their unit."""

from agent.core.sweep.cell import Bound, Cell, Outcome, PlannedCell, Strategy
from agent.core.sweep.plateau import Limit
from agent.core.sweep.provenance import Provenance

NONE = "-"
"""Stands where nothing was measured."""


def seconds_text(value: float | None) -> str:
    """Return a time with three digits: ``23.7 ms``, ``1.24 s``."""
    if value is None:
        return NONE
    return f"{value * 1000:.3g} ms" if value < 0.9995 else f"{digits(value)} s"


def rate_text(value: float | None) -> str:
    """Return a rate with three digits, never with an exponent."""
    return NONE if value is None else digits(value)


def digits(value: float) -> str:
    """Return a number with three significant digits at most, whole above a hundred, never with an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.6f}"


def share_text(value: float) -> str:
    """Return a share with its sign, in per cent: ``+12.5 %``."""
    return f"{value:+.1%}".replace("%", " %")


def tokens_text(tokens: int) -> str:
    """Return a number of tokens: ``8,192``."""
    return f"{tokens:,}"


def limit_text(limit: Limit, made: Provenance, *, context_tokens: int) -> str:
    """Return a limit by the name under which it can be changed."""
    known = made.limits
    times = f" in each of {made.instances} instances" if (made.instances or 1) > 1 else ""
    if limit.bound is Bound.MAX_NUM_SEQS:
        return f"--max-num-seqs {known.max_num_seqs}{times}"
    if limit.bound is Bound.KV_CACHE:
        size = f", {tokens_text(known.kv_tokens)} tokens{times}," if known.kv_tokens is not None else ""
        held = f"{limit.requests:.3g} request{'' if limit.requests == 1 else 's'}"
        return f"the KV cache{size} holds {held} of {tokens_text(context_tokens)} tokens"
    return f"concurrency of the platform, {limit.requests:g}"


def load_text(cell: Cell) -> str:
    """Return the load of a cell: requests in flight, or how a step of a run of request rates sent them."""
    return f"{digits(cell.rate)} requests/s" if cell.rate is not None else planned_load_text(cell.planned)


def planned_load_text(planned: PlannedCell) -> str:
    """Return the load of a cell as far as it is known before it was measured."""
    return {
        Strategy.CONCURRENT: f"{planned.concurrency:,}",
        Strategy.SYNCHRONOUS: "one at a time",
        Strategy.THROUGHPUT: "all at once",
        Strategy.CONSTANT: f"rate {planned.step - 2} of {planned.steps - 2}",
    }[planned.strategy]


def outcome_text(cell: Cell) -> str:
    """Return in a word what became of a cell."""
    return {
        Outcome.MEASURED: "measured",
        Outcome.PARTIAL: "cut off",
        Outcome.DROPPED: "not sent",
        Outcome.FAILED: "failed",
    }[cell.outcome]
