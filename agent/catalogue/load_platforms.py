"""The data on platforms: shapes with prices, load rates, probe limits; read whole, checked, and passed on as values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from math import isfinite
from typing import Any, Final, TypeVar

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.speed.calibration import START_STORAGE
from agent.fit.speed.platform_start import PlatformStart
from agent.fit.speed.price import Rates, Shape
from agent.fit.speed.startup import LoadRate, ProbeLimits, WarmUp, startup_time

_DATE: Final = re.compile(r"20\d\d-[01]\d-[0-3]\d")
_SHAPE_KEYS: Final = frozenset({
    "name", "platform", "accelerator", "count", "vcpus", "memory_gib", "usd_per_h", "gpu_usd_per_s", "vcpu_usd_per_s",
    "gib_usd_per_s", "sleeps", "region", "as_of", "source",
})  # fmt: skip
_MB: Final = 10**6
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformCatalogue:
    """Everything known of platforms.

    Attributes:
        shapes: What can be rented, in the table's order.
        load_rates: By storage.
        warm_up: What a start takes beyond loading.
        probe_limits: By platform.
        idle_s: How long an instance without requests is kept and billed, by platform; only those that scale to zero.
        starts: How servers start, by platform of the price table.
    """

    shapes: tuple[Shape, ...]
    load_rates: Mapping[str, LoadRate]
    warm_up: WarmUp
    probe_limits: Mapping[str, ProbeLimits]
    idle_s: Mapping[str, int] = field(default_factory=dict)
    starts: Mapping[str, PlatformStart] = field(default_factory=dict)


@cache
def load_platform_catalogue(folder: Any = None) -> PlatformCatalogue:
    """Read and check prices.toml and startup.toml, once per process.

    Args:
        folder: A path-like object that holds them; the bundled ones when None.

    Returns:
        The values.

    Raises:
        SettingsRejected: All mistakes of a file at once, each with its entry's name.
    """
    root = folder if folder is not None else resources.files("agent.catalogue")
    prices, starts = read_table(root / "prices.toml"), read_table(root / "startup.toml")
    shapes = _entries(prices, "prices.toml", "shapes", "name", _shape)
    rates = _entries(starts, "startup.toml", "load_rates", "storage", _rate)
    limits = _entries(starts, "startup.toml", "probe_limits", "platform", _limits)
    warm = _entries(
        {"warm_up": [{"name": "warm_up", **starts.get("warm_up", {})}]}, "startup.toml", "warm_up", "name", _warm
    )
    idle = _entries(prices, "prices.toml", "idle", "platform", _idle) if "idle" in prices else {}
    begun = (
        _entries(starts, "startup.toml", "starts", "platform", partial(_start, limits)) if "starts" in starts else {}
    )
    return PlatformCatalogue(
        shapes=tuple(shapes.values()),
        load_rates=rates,
        warm_up=warm["warm_up"],
        probe_limits=limits,
        idle_s=idle,
        starts=begun,
    )


def bundled_start(platforms: PlatformCatalogue, model: ModelFacts, flags: Flags) -> Bounds | None:
    """Return a fast, usual and slow start, seconds, by the bundled load rate; None if the size is unknown."""
    rate = platforms.load_rates.get(START_STORAGE)
    ends = rate.bytes_per_s if rate is not None else None
    return startup_time(model.checkpoint_bytes, ends, platforms.warm_up, eager=bool(flags.enforce_eager))


def _entries(
    document: Mapping[str, Any], file: str, key: str, name_key: str, parse: Callable[[Mapping[str, Any]], _Value]
) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    mistakes = Mistakes(file)
    seen: set[str] = set()
    for entry in document.get(key, []):
        name = str(entry.get(name_key, "an entry without a name"))
        if name in seen:
            mistakes.found.append(f"{name}: stands twice")
        seen.add(name)
        with mistakes.of(name):
            found[name] = parse(entry)
    if not seen:
        mistakes.found.append(f"it has no {key}")
    mistakes.refuse()
    return found


def _shape(entry: Mapping[str, Any]) -> Shape:
    strange = set(entry) - _SHAPE_KEYS
    if strange:
        msg = f"unknown keys {sorted(strange)}"
        raise ValueError(msg)
    count, vcpus, memory_gib = (_number(entry, key) for key in ("count", "vcpus", "memory_gib"))
    if count < 1 or not isinstance(entry["sleeps"], bool):
        msg = "count must be at least 1 and sleeps a truth"
        raise ValueError(msg)
    rates = _rates(entry)
    memory_bytes = int(memory_gib * GIB)
    own = _number(entry, "usd_per_h") if "usd_per_h" in entry else None
    return Shape(
        name=entry["name"],
        platform=entry["platform"],
        accelerator=entry["accelerator"],
        count=int(count),
        vcpus=int(vcpus),
        memory_bytes=memory_bytes,
        usd_per_h=own if rates is None else rates.usd_per_h(count=int(count), vcpus=vcpus, memory_gib=memory_gib),
        sleeps=entry["sleeps"],
        region=entry["region"],
        as_of=_date(entry["as_of"]),
        source=_source_text(entry["source"]),
        rates=rates,
    )


def _rates(entry: Mapping[str, Any]) -> Rates | None:
    rates = [key for key in ("gpu_usd_per_s", "vcpu_usd_per_s", "gib_usd_per_s") if key in entry]
    if not rates:
        return None
    if "usd_per_h" in entry:
        msg = "it has a price and rates, want one of them"
        raise ValueError(msg)
    gpu, vcpu, gib = (_number(entry, key) for key in ("gpu_usd_per_s", "vcpu_usd_per_s", "gib_usd_per_s"))
    return Rates(gpu_usd_per_s=gpu, vcpu_usd_per_s=vcpu, gib_usd_per_s=gib)


def _idle(entry: Mapping[str, Any]) -> int:
    _date(entry["as_of"])
    _source_text(entry["source"])
    return int(_number(entry, "seconds"))


def _number(entry: Mapping[str, Any], key: str) -> float:
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        msg = f"{key} is {value!r}, want a number of at least 0"
        raise ValueError(msg)
    return float(value)


def _rate(entry: Mapping[str, Any]) -> LoadRate:
    low, best, high = (int(_number(entry, f"{end}_mb_per_s") * _MB) for end in ("low", "best", "high"))
    return LoadRate(
        storage=entry["storage"],
        bytes_per_s=Bounds(low=low, best=best, high=high),
        source=_source_text(entry["source"]),
        date=_date(entry["date"]),
    )


def _warm(entry: Mapping[str, Any]) -> WarmUp:
    compiled, rest = (Bounds(low=ends[0], best=ends[1], high=ends[2]) for ends in (entry["compile_s"], entry["rest_s"]))
    return WarmUp(compile_s=compiled, rest_s=rest, source=_source_text(entry["source"]))


def _limits(entry: Mapping[str, Any]) -> ProbeLimits:
    keys = ("max_initial_delay_s", "max_period_s", "max_failures", "max_product_s")
    delay, period, failures, product = (int(_number(entry, key)) if key in entry else None for key in keys)
    return ProbeLimits(
        platform=entry["platform"],
        max_initial_delay_s=delay,
        max_period_s=period,
        max_failures=failures,
        max_product_s=product,
        source=_source_text(entry["source"]),
        date=_date(entry["date"]),
    )


def _start(limits: Mapping[str, ProbeLimits], entry: Mapping[str, Any]) -> PlatformStart:
    if entry.get("probe") not in {None, *limits}:
        msg = f"probe {entry['probe']!r} is none of {', '.join(sorted(limits))}"
        raise ValueError(msg)
    return PlatformStart(
        platform=entry["platform"],
        probe=limits[entry["probe"]] if "probe" in entry else None,
        image_gb=_number(entry, "image_gb") if "image_gb" in entry else None,
        image_note=entry.get("image_note", ""),
        source=_source_text(entry["source"]),
        date=_date(entry["date"]),
    )


def _date(text: Any) -> str:
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        msg = f"{text!r} is no date"
        raise ValueError(msg)
    return text


def _source_text(text: Any) -> str:
    if not isinstance(text, str) or len(text) < 8:
        msg = f"{text!r} is no source"
        raise ValueError(msg)
    return text
