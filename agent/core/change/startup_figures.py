"""What a start-up log printed, beside what the approved plan predicted: where the arithmetic is wrong."""

from collections.abc import Mapping
from typing import Final

from pydantic import AwareDatetime

from agent.core.value import Value

GIB: Final = 2**30

# The figure of a log, and where a fit report predicts it; sizes are bytes there and GiB in the log.
PREDICTED_AS: Final[dict[str, tuple[str, ...]]] = {
    "weights_gib": ("weights_bytes",),
    "available_kv_gib": ("kv_cache_bytes",),
    "kv_tokens": ("kv_tokens",),
    "num_gpu_blocks": ("num_gpu_blocks",),
    "max_concurrency": ("max_concurrency",),
    "cuda_graph_gib": ("overheads", "cuda_graphs"),
    "peak_activation_gib": ("overheads", "activations"),
    "decode_tokens_per_s": ("decode_tokens_per_s",),
}


class Figure(Value):
    """One figure as it was printed.

    Attributes:
        name: A key of ``PREDICTED_AS``; the unit stands in it.
        predicted: None where the plan holds no prediction of it.
        off: ``predicted / observed - 1``, None without a prediction or where 0 was observed.
        inside: Whether it lies in the predicted range; None where no range was told.
    """

    name: str
    predicted: float | None
    observed: float
    off: float | None
    inside: bool | None = None


class Observed(Value):
    """One start that came up: what it ran on and with, and its figures; enough to become a row of known start-ups.

    Attributes:
        flags: The server's words after the model, shell-quoted; untrusted text without secrets.
        vllm: As the log tells, otherwise as services.toml says.
    """

    at: AwareDatetime
    revision: str
    model: str | None = None
    accelerator: str | None = None
    accelerator_count: int | None = None
    vllm: str | None = None
    flags: str | None = None
    figures: tuple[Figure, ...]


def compare_figures(printed: Mapping[str, float], report: Mapping[str, object] | None) -> tuple[Figure, ...]:
    """Set what was printed beside what was predicted.

    Args:
        printed: By key of ``PREDICTED_AS``; other keys are left out.
        report: The plan's fit report with the keys of the contract, None where nothing was computed.
    """
    return tuple(_figure(name, float(printed[name]), report or {}) for name in PREDICTED_AS if name in printed)


def with_speed(
    observed: Observed | None, tokens_per_s: float | None, report: Mapping[str, object] | None
) -> Observed | None:
    """Return what was observed with the speed as it was measured last; None where no log was read."""
    if observed is None or tokens_per_s is None:
        return observed
    printed = {each.name: each.observed for each in observed.figures} | {"decode_tokens_per_s": round(tokens_per_s, 2)}
    return observed.with_(figures=compare_figures(printed, report))


def _figure(name: str, seen: float, report: Mapping[str, object]) -> Figure:
    path = PREDICTED_AS[name]
    scale = GIB if name.endswith("_gib") else 1
    value: object = report
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    best = _number(value)
    predicted = None if best is None else best / scale
    limits = bounds(report, ".".join(path))
    return Figure(
        name=name,
        predicted=None if predicted is None else round(predicted, 4),
        observed=seen,
        off=round(predicted / seen - 1, 4) if predicted is not None and seen else None,
        inside=None if limits is None else limits[0] <= seen * scale * _UP and seen * scale * _DOWN <= limits[1],
    )


_UP, _DOWN = 1.005, 0.995  # logs round to two digits


def bounds(report: Mapping[str, object], key: str) -> tuple[float, float] | None:
    """Return the range that a report gives for a key, or None where it gives none."""
    ranges = report.get("ranges")
    found = ranges.get(key) if isinstance(ranges, Mapping) else None
    if not isinstance(found, list | tuple) or len(found) != 2:
        return None
    low, high = _number(found[0]), _number(found[1])
    return (low, high) if low is not None and high is not None and low <= high else None


def _number(value: object) -> float | None:
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if fine and isinstance(value, int | float) and abs(value) < 2**70 else None
