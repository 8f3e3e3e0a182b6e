"""What a model costs, as text for a terminal: a table over platforms, and where to run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent.fit.cost.answer import OLD_DAYS, CostAnswer, age_days, why_no_input_price
from agent.fit.cost.offers import Offer
from agent.fit.speed.platform_start import StartThere
from agent.fit.speed.price import price_change
from agent.presentation.report.document import Table
from agent.presentation.report.plain_text import text_table

_COLUMNS = ("platform", "shape", "USD/h", "USD/month", "tokens/s", "USD/M output", "USD/M input", "needs")


def cost_text(answer: CostAnswer) -> str:
    """Return the load, the costs of each platform, the recommendation and the notes to them."""
    return "\n".join(_lines(answer))


def _lines(answer: CostAnswer) -> Iterator[str]:
    yield f"{answer.model}: {_load(answer)}"
    if answer.now is not None:
        yield f"now: {_one(answer.now)}"
    for plan in answer.plans:
        yield _plan(plan)
    if answer.rows:
        yield ""
        rows = tuple(map(_row, answer.rows))
        yield from text_table(Table(columns=_COLUMNS, rows=rows, numbers=len(_COLUMNS)), own=True)
    yield ""
    yield _where(answer)
    yield from _why(answer)
    yield from _starts(answer)
    yield from _ages(answer)
    if any(why_no_input_price(row) for row in answer.rows):
        yield (
            "  input unknown: how many input tokens an hour holds depends on the prompts, and no speed of reading them "
            "is recorded; a sweep measures it (--measured DIR)"
        )
    for note in answer.notes:
        yield f"note: {note}"


def _load(answer: CostAnswer) -> str:
    load, needs = answer.load, answer.needs
    said = [f"{load.busy:.0%} busy, {load.requests} request{'s' * (load.requests != 1)} at once"]
    said += [f"at least {load.min_instances} running"] if load.min_instances else []
    said += [f"woken {load.wakes_per_day:g} times a day"] if load.wakes_per_day else []
    said += [f"needs {needs.context_tokens:,} tokens of context"] if needs.context_tokens else []
    said += [f"needs {needs.users} users at once"] if needs.users > 1 else []
    return ", ".join(said)


def _one(row: Offer) -> str:
    return (
        f"{row.shape.platform}, {row.shape.count} x {row.shape.accelerator}: {_usd(row.bill.usd_per_h)} USD/h, "
        f"{_usd(row.bill.usd_per_month, 0)} USD/month, {_output(row)} USD per million output tokens"
    )


def _plan(plan: Mapping[str, Any]) -> str:
    hourly = price_change(plan["cost_before_usd_per_h"], plan["cost_after_usd_per_h"])
    per_token = tuple(plan[f"usd_per_million_output_tokens_{end}"] for end in ("before", "after"))
    said = f"open plan {plan['id']}: {hourly} USD/h"
    if per_token == (None, None):
        return said
    return f"{said}, {price_change(*per_token)} USD per million output tokens of one busy request"


def _row(row: Offer) -> tuple[str, ...]:
    speed = row.throughput
    rate = "unknown" if speed.output is None else f"{speed.output[0]:.0f} to {speed.output[1]:.0f}"
    if speed.measured and speed.output is not None:
        rate = f"{speed.output[0]:.0f} measured"
    return (
        row.shape.platform,
        row.shape.name,
        _usd(row.bill.usd_per_h),
        _usd(row.bill.usd_per_month, 0),
        rate,
        _output(row),
        _usd(row.bill.busy_input),
        "met" if row.meets else "unknown" if row.fits is None else "missed",
    )


def _output(row: Offer) -> str:
    prices = row.bill.output
    if prices is None:
        return "unknown"
    return _usd(prices[1]) if prices[0] == prices[2] else f"{_usd(prices[0])} to {_usd(prices[2])}"


def _usd(price: float | None, digits: int = 2) -> str:
    return "unknown" if price is None else f"{price:,.{digits}f}"


def _where(answer: CostAnswer) -> str:
    best = answer.best
    if best is None:
        return "where to run it: nothing here that has a price meets the needs"
    speed = "measured" if best.throughput.measured else "computed, not measured"
    return (
        f"where to run it: {best.shape.name} ({best.shape.platform}, {best.shape.region}), the cheapest that meets the "
        f"needs: {_usd(best.bill.usd_per_month, 0)} USD/month at this load; its speed is {speed}"
    )


def _why(answer: CostAnswer) -> Iterator[str]:
    for row in answer.rows:
        if row.misses:
            yield f"  {row.shape.name}: {'; '.join(row.misses)}"


def _starts(answer: CostAnswer) -> Iterator[str]:
    """Yield one line for each platform on which something fits."""
    found = {row.start.limits.platform: row.start for row in answer.rows if row.start is not None}
    for there in found.values():
        yield f"  start on {start_text(there)}"


def _ages(answer: CostAnswer) -> Iterator[str]:
    unknown = [row.shape.name for row in answer.rows if row.bill.usd_per_h is None]
    if unknown:
        yield f"  unknown price: {', '.join(unknown)}"
    old: dict[str, list[str]] = {}
    for row in answer.rows:
        if age_days(row.shape.as_of, answer.today) > OLD_DAYS:
            old.setdefault(row.shape.as_of, []).append(row.shape.name)
    for as_of, names in sorted(old.items()):
        age = age_days(as_of, answer.today)
        yield f"  price of {as_of}, {age} days old, look it up before you rely on it: {', '.join(names)}"


def start_text(there: StartThere) -> str:
    """Return how long a start takes on a platform, how long it waits, what to set for that, and the largest image."""
    start, probe, limits = there.start_s, there.probe, there.limits
    said = ["the time of a start is unknown" if start is None else f"a start takes {start.low:,} to {start.high:,} s"]
    if limits.probe is None:
        said.append("the platform has no startup deadline")
    elif there.longest_s is None:
        said.append("its startup probe has no upper limit")
    else:
        said.append(f"its startup probe allows {there.longest_s:,} s at most")
    if probe is not None and probe.enough:
        delay = f"initialDelaySeconds {probe.initial_delay_s}, " if probe.initial_delay_s else ""
        said.append(f"set {delay}periodSeconds {probe.period_s}, failureThreshold {probe.failure_threshold}")
    if there.engine_ready_timeout_s is not None:
        said.append(f"set VLLM_ENGINE_READY_TIMEOUT_S={there.engine_ready_timeout_s}")
    if limits.image_gb is not None:
        said.append(f"an image of {limits.image_gb:g} GB at most ({limits.image_note})")
    return f"{limits.platform}: {'; '.join(said)}"


def source_text(there: StartThere) -> str:
    """Return the documents that state the limits, with the date on which each was read."""
    limits = there.limits
    source = f"{limits.source}, {limits.date}"
    return source if limits.probe is None else f"{source}; probe: {limits.probe.source}, {limits.probe.date}"
