"""Measurements of this installation, in words and as rows."""

from typing import Any

from agent.fit.speed.calibration import Calibration, Kind, Measurement

_GIB = 2**30


def value_text(kind: Kind, value: float) -> str:
    """Return a figure in the unit that people use for it."""
    if kind is Kind.BANDWIDTH_SHARE:
        return f"{value:.0%} of the bandwidth"
    return f"{value / 1e6:.1f} MB/s" if kind is Kind.LOAD_RATE else f"{value / _GIB:.2f} GiB"


def group_line(group: Calibration) -> str:
    """Return one group: what it is of, how many there are, and the range that rests on them or why none does."""
    first, ends, count = group.measurements[0], group.range, len(group.measurements)
    of = " ".join(part for part in (first.family, "on", first.accelerator, "vLLM", first.vllm, first.storage) if part)
    if ends is None:
        return f"{first.kind.value}: {of}: {count} measured, not used: {group.why_not}"
    low, high = (value_text(first.kind, end) for end in ends)
    used = f"shown only, {group.not_applied}" if group.not_applied else "used"
    return f"{first.kind.value}: {of}: {low} to {high}, {count} agree, {used}"


def group_row(group: Calibration) -> dict[str, Any]:
    """Return one group as programs read it."""
    first = group.measurements[0]
    return {
        "kind": first.kind.value,
        "family": first.family,
        "accelerator": first.accelerator,
        "vllm": first.vllm,
        "storage": first.storage,
        "n": len(group.measurements),
        "range": list(group.range) if group.range is not None else None,
        "used": group.range is not None and not group.not_applied,
        "why_not": group.why_not,
    }


def measurement_line(each: Measurement) -> str:
    """Return one measurement with its source."""
    place = f", {each.storage}" if each.storage else ""
    return (
        f"{each.id}  {each.kind.value}  {value_text(each.kind, each.value)}  {each.model} on {each.accelerator}, "
        f"vLLM {each.vllm}{place}  {each.at[:10]}  {each.source}"
    )


def measurement_row(each: Measurement) -> dict[str, Any]:
    """Return one measurement as programs read it."""
    return {
        "id": each.id,
        "kind": each.kind.value,
        "family": each.family,
        "model": each.model,
        "accelerator": each.accelerator,
        "vllm": each.vllm,
        "storage": each.storage,
        "value": each.value,
        "at": each.at,
        "source": each.source,
    }
