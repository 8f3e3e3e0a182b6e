"""An advice in words for a terminal: what runs, what would, what it costs, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator

from agent.fit.advice import Advice, Change, Cost, Option
from agent.fit.bounds import GIB, Bounds
from agent.fit.flag_words import flag_line
from agent.fit.report import FitReport


def advice_text(advice: Advice) -> str:
    """The whole answer, one option per paragraph."""
    return "\n".join(_lines(advice))


def _lines(advice: Advice) -> Iterator[str]:
    yield f"now: {_verdict(advice.current)}"
    if not advice.options and advice.ruled_out is None:
        yield "nothing has to change"
    for rank, option in enumerate(advice.options, start=1):
        yield f"\n{rank}. {_changes(option.changes)}"
        yield from _body(option)
    if advice.ruled_out is not None:
        yield f"\nno change of flags helps ({advice.ruled_out.obstacle.value}): {advice.ruled_out.why}"
    if advice.marginal:
        yield "\nmay work and may not, so no fix:"
    for option in advice.marginal:
        yield f"\n?  {_changes(option.changes)}"
        yield from _body(option)
    yield f"\n{advice.searched} configurations were computed."


def _body(option: Option) -> Iterator[str]:
    yield f"   serve: {option.model} on {option.count} x {option.accelerator}"
    yield f"   flags: {flag_line(option.flags) or '(none)'}"
    yield f"   costs: {_cost(option.cost)}"
    yield (
        f"   requests: at most {option.concurrency.container} per instance; "
        f"from {option.concurrency.queues_from + 1} of full length on they queue"
    )
    yield f"   sure: {option.note}"


def _verdict(report: FitReport) -> str:
    if report.fits:
        return "fits"
    short = report.shortfall_bytes
    missing = f", {_gib(short)} missing" if short is not None and short.high else ""
    told = report.assumptions[0] if report.assumptions and (report.fits is None or not missing) else ""
    word = "does not fit" if report.fits is False else "cannot be told whether it fits"
    return f"{word}: {report.reason.value}{missing}{f' ({told})' if told else ''}"


def _gib(size: Bounds) -> str:
    if size.is_exact:
        return f"{size.best / GIB:.2f} GiB"
    return f"{size.best / GIB:.2f} GiB ({size.low / GIB:.2f} to {size.high / GIB:.2f})"


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
