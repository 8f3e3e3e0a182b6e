"""An advice in words for a terminal: what runs, what would, what it costs, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.fit.advice.advice import Advice, Change, Cost, Option, Reach
from agent.fit.advice.advise import SLOWEST_TOKENS_PER_S
from agent.fit.flags.flag_text import flag_line
from agent.fit.report import FitReport
from agent.presentation.cost_text import source_text, start_text
from agent.presentation.fit_text import fit_sentence

_GROUPS = {
    Reach.FLAGS: "Same model",
    Reach.CHECKPOINT: "Other checkpoint",
    Reach.HARDWARE: "Other hardware",
}
_WIDEST = 56  # characters of a cell; the paragraph below the table has it whole
_COLUMNS = ("#", "change", "loses", "context", "users", "tokens/s", "USD/h", "proof")


def advice_text(advice: Advice, *, detailed: int | None = None) -> str:
    """The answer: a table by group, then the options with their flags and how sure each is.

    Args:
        advice: What was found.
        detailed: How many options of the table are written out below it, the best first; None is all.
    """
    return "\n".join(_lines(advice, detailed))


def _lines(advice: Advice, detailed: int | None) -> Iterator[str]:
    yield f"now: {_verdict(advice.current)}"
    if not advice.options and advice.ruled_out is None:
        yield "nothing has to change"
    yield from _table(advice)
    for rank, option in enumerate(advice.options[:detailed], start=1):
        yield f"\n{rank}. {_changes(option.changes)}"
        yield from _body(option)
    if detailed is not None and len(advice.options) > detailed:
        yield f"\nthe other {len(advice.options) - detailed} with their flags: --top {len(advice.options)}"
    if advice.ruled_out is not None:
        yield f"\nno change of flags helps ({advice.ruled_out.obstacle.value}): {advice.ruled_out.why}"
    if advice.marginal:
        yield "\nnot proved, therefore not offered:"
    for option in advice.marginal:
        yield f"\n?  {_changes(option.changes)}"
        yield from _body(option)
    yield from _moves(advice)
    yield f"\n{advice.searched} configuration{' was' if advice.searched == 1 else 's were'} computed."


def _moves(advice: Advice) -> Iterator[str]:
    if not advice.moves:
        return
    yield "\nthe same on another platform:" if advice.demand.platform else "\nthe same can be rented on:"
    for move in advice.moves:
        price = "price unknown" if move.shape.usd_per_h is None else f"{move.shape.usd_per_h:.2f} USD/h"
        before = "" if move.usd_per_h_before is None else f" (now {move.usd_per_h_before:.2f})"
        yield f"   {move.shape.name} ({move.shape.platform}, {move.shape.region}): {price}{before}"
        yield from (f"      speaks against it: {why}" for why in move.misses)
        if move.start is not None:
            yield f"      start on {start_text(move.start)}"
            yield f"      limits by: {source_text(move.start)}"


def _table(advice: Advice) -> Iterator[str]:
    """The proposals by group; the number is the rank over all groups."""
    ranked = list(enumerate(advice.options, start=1))
    rows = {rank: _row(rank, option) for rank, option in ranked}
    if not rows:
        return
    widths = [max(len(row[at]) for row in (_COLUMNS, *rows.values())) for at in range(len(_COLUMNS))]
    yield ""
    yield _joined(_COLUMNS, widths)
    groups: dict[Reach, list[int]] = {}
    for rank, option in ranked:  # the group of the best comes first
        groups.setdefault(option.reach, []).append(rank)
    for reach, group in groups.items():
        yield f"{_GROUPS[reach]}:"
        yield from (_joined(rows[rank], widths) for rank in group)
    slow = [str(rank) for rank, option in ranked if option.misses_needs]
    if slow:
        yield f"ranked last because one request gets less than {SLOWEST_TOKENS_PER_S:g} tokens/s: {', '.join(slow)}"
    late = [str(rank) for rank, option in ranked if option.start is not None and option.start.misses]
    if late:
        yield f"ranked last because their platform does not wait for a slow start: {', '.join(late)}"


def _joined(cells: Iterable[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _row(rank: int, option: Option) -> tuple[str, ...]:
    cost, speed = option.cost, option.cost.decode_tokens_per_s
    return (
        str(rank),
        _cut(_short(option)),
        _cut("; ".join(option.tradeoff.taken) or "nothing"),
        f"{cost.context_tokens:,}",
        str(cost.users),
        "unknown" if speed is None else f"{speed[0]:.1f} to {speed[1]:.1f}",
        "unknown" if cost.usd_per_h is None else f"{cost.usd_per_h:.2f}",
        option.proof,
    )


def _short(option: Option) -> str:
    """The change in few words: flags as one writes them; the model without its owner."""
    parts = []
    for change in option.changes:
        after = str(change.after)
        match change.flag:
            case "model":
                parts.append(after.rpartition("/")[2])
            case "accelerator":
                parts.append(f"{option.count} x {after}")
            case "count" if any(other.flag == "accelerator" for other in option.changes):
                continue
            case "count":
                parts.append(f"{option.count} x {option.accelerator}")
            case "platform":
                parts.append(f"on {after}")
            case flag:
                parts.append(_flag_change(flag, change.after))
    return ", ".join(parts)


def _flag_change(flag: str, after: object) -> str:
    name = f"--{flag.replace('_', '-')}"
    if after is None:
        return f"without {name}"
    if isinstance(after, bool):
        return name if after else f"--no-{flag.replace('_', '-')}"
    return f"{name} {after}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _body(option: Option) -> Iterator[str]:
    yield f"   serve: {option.model} on {option.count} x {option.accelerator}"
    yield f"   flags: {flag_line(option.flags) or '(none)'}"
    yield f"   costs: {_cost(option.cost)}"
    yield f"   trade-off: {option.tradeoff.line}"
    yield (
        f"   requests: at most {option.concurrency.container} per instance; "
        f"from {option.concurrency.queues_from + 1} of full length on they queue"
    )
    if option.start is not None:
        yield f"   start on {start_text(option.start)}"
    yield f"   sure: {option.note}"


def _verdict(report: FitReport) -> str:
    doubt = report.assumptions[0] if report.fits is None and report.assumptions else ""
    return f"{fit_sentence(report)}{f' ({doubt})' if doubt else ''}"


def _changes(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{change.flag} {_value(change.before)} -> {_value(change.after)}" for change in changes)


def _value(value: object) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _cost(cost: Cost) -> str:
    speed = cost.decode_tokens_per_s
    parts = [
        f"{cost.context_tokens:,} tokens of context",
        f"{cost.users} at once",
        *cost.quality,
        "speed unknown" if speed is None else f"{speed[0]:.1f} to {speed[1]:.1f} tokens/s",
        "price unknown"
        if cost.usd_per_h is None
        else f"{cost.usd_per_h:.2f} USD/h ({cost.price_source.split(':')[0]})",
    ]
    return ", ".join(parts)
