"""The memory bar of a page: the parts of one device from a fit report's contract, in words as well as in widths."""

from collections.abc import Mapping

from agent.core.value import Value

GIB = 2**30
_WIDTH = 1000

_PARTS = (
    ("weights", "weights", ("weights_bytes",)),
    ("transient", "output head while loading", ("overheads", "load_transient")),
    ("activations", "activations", ("overheads", "activations")),
    ("graphs", "CUDA graphs", ("overheads", "cuda_graphs")),
    ("other", "driver and libraries", ("overheads", "non_torch")),
    ("cache", "KV cache", ("kv_cache_bytes",)),
)
_AFTER_LOADING = frozenset({"activations", "graphs", "cache"})


class Part(Value):
    """One part of the bar, ``x`` and ``width`` in thousandths of it."""

    kind: str
    label: str
    gib: float
    x: float
    width: float


class Bar(Value):
    """One device, its parts, and where its memory ends; sizes in GiB, places in thousandths of the bar."""

    parts: tuple[Part, ...]
    total_gib: float
    end_x: float
    budget_x: float | None
    budget_gib: float | None
    short_gib: float

    @property
    def says(self) -> str:
        """The bar for somebody who cannot see it."""
        parts = ", ".join(f"{part.label} {part.gib:.2f} GiB" for part in self.parts)
        short = f"; {self.short_gib:.2f} GiB are missing" if self.short_gib >= 0.005 else ""
        return f"Of {self.total_gib:.2f} GiB: {parts}{short}"


def memory_bar(report: Mapping[str, object] | None) -> Bar | None:
    """Return the bar, or None where the report does not know the device or the weights.

    Args:
        report: The keys of the contract, bytes per GPU; the load transient is drawn only where loading is what fails.
    """
    if report is None:
        return None
    total = _bytes(report, ("total_bytes",))
    if not total or not _bytes(report, ("weights_bytes",)):
        return None
    loading = report.get("reason") == "load_peak"
    sizes = [
        (kind, label, _bytes(report, path) or 0)
        for kind, label, path in _PARTS
        if (kind not in _AFTER_LOADING if loading else kind != "transient")
    ]
    shown = [entry for entry in sizes if entry[2] > 0]
    used = sum(size for _, _, size in shown)
    whole = max(total, used)
    short = _bytes(report, ("shortfall_bytes",)) or 0
    budget = _bytes(report, ("budget_bytes",))
    return Bar(
        parts=_placed(shown, whole, total, free=max(total - used, 0)),
        total_gib=total / GIB,
        end_x=total / whole * _WIDTH,
        budget_x=budget / whole * _WIDTH if budget and budget < total else None,
        budget_gib=budget / GIB if budget else None,
        short_gib=max(short, 0) / GIB,
    )


def _placed(sizes: list[tuple[str, str, int]], whole: int, total: int, *, free: int) -> tuple[Part, ...]:
    parts, at = [], 0
    for kind, label, size in [*sizes, *([("free", "free", free)] if free else [])]:
        parts.append(Part(kind=kind, label=label, gib=size / GIB, x=at / whole * _WIDTH, width=size / whole * _WIDTH))
        at += size
    assert at <= max(whole, total) + 1
    return tuple(parts)


def _bytes(report: Mapping[str, object], path: tuple[str, ...]) -> int | None:
    """Read a size; a report is data of ours, but stored and loaded, so a wrong shape is no size."""
    value: object = report
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**60:
        return None
    return int(value)
