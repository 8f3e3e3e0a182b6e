"""Measurements of this installation, in words and as rows."""

from typing import Any, Final

from agent.fit.speed.calibration import Calibration, Kind, Measurement

_GIB = 2**30


def value_text(kind: Kind, value: float) -> str:
    """Return a figure in the unit that people use for it."""
    if kind is Kind.BANDWIDTH_SHARE:
        return f"{value:.0%} of the bandwidth"
    return f"{value / 1e6:.1f} MB/s" if kind is Kind.LOAD_RATE else f"{value / _GIB:.2f} GiB"


GROUP_COLUMNS: Final = ("KIND", "FAMILY", "ACCELERATOR", "VLLM", "STORAGE", "MEASURED", "RANGE", "USED")


def group_cells(group: Calibration) -> tuple[str, ...]:
    """Return one group as a row of the table with these headings; the last says why it is not used where it is not."""
    first, ends = group.measurements[0], group.range
    spread = " to ".join(value_text(first.kind, end) for end in ends) if ends is not None else "-"
    used = (
        f"no: {group.why_not}" if ends is None else f"shown only: {group.not_applied}" if group.not_applied else "yes"
    )
    of = (first.family, first.accelerator, first.vllm, first.storage or "-")
    return first.kind.value, *of, str(len(group.measurements)), spread, used


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
