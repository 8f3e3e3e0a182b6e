"""The data on platforms: shapes with prices, load rates, probe limits; read whole, checked, and passed on as values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, TypeVar

from pydantic import ConfigDict, Field

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.core.value import Value
from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.speed.calibration import START_STORAGE
from agent.fit.speed.platform_start import PlatformStart
from agent.fit.speed.price import Rates, Shape
from agent.fit.speed.startup import LoadRate, ProbeLimits, WarmUp, startup_time

_MB: Final = 10**6
_Value = TypeVar("_Value")

_Date = Annotated[str, Field(pattern=r"^20\d\d-[01]\d-[0-3]\d$")]
_Amount = Annotated[float, Field(ge=0)]
_Limit = Annotated[int | None, Field(ge=0)]
_Ends = Annotated[tuple[int, int, int], Field(strict=False)]


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
    shapes = _entries(prices, "prices.toml", "shapes", "name", lambda entry: _Shape(**entry).value())
    idle = _entries(prices, "prices.toml", "idle", "platform", lambda entry: int(_Idle(**entry).seconds), optional=True)
    rates = _entries(starts, "startup.toml", "load_rates", "storage", lambda entry: _LoadRate(**entry).value())
    limits = _entries(starts, "startup.toml", "probe_limits", "platform", lambda entry: _ProbeLimits(**entry).value())
    begun = _entries(
        starts, "startup.toml", "starts", "platform", lambda entry: _Start(**entry).value(limits), optional=True
    )
    mistakes = Mistakes("startup.toml")
    with mistakes.of("warm_up"):
        warm_up = _WarmUp(**starts.get("warm_up", {})).value()
    mistakes.refuse()
    return PlatformCatalogue(
        shapes=tuple(shapes.values()),
        load_rates=rates,
        warm_up=warm_up,
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
    document: Mapping[str, Any],
    file: str,
    key: str,
    name_key: str,
    parse: Callable[[Mapping[str, Any]], _Value],
    *,
    optional: bool = False,
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
    if not seen and not (optional and key not in document):
        mistakes.found.append(f"it has no {key}")
    mistakes.refuse()
    return found


class _Sourced(Value):
    """An entry of a table, with the document that says it."""

    model_config = ConfigDict(strict=True)

    source: str = Field(min_length=8)


class _Shape(_Sourced):
    name: str
    platform: str
    accelerator: str
    count: int = Field(ge=1)
    vcpus: _Amount
    memory_gib: _Amount
    usd_per_h: _Amount | None = None
    gpu_usd_per_s: _Amount | None = None
    vcpu_usd_per_s: _Amount | None = None
    gib_usd_per_s: _Amount | None = None
    sleeps: bool
    commitment: str = ""
    region: str
    as_of: _Date

    def value(self) -> Shape:
        rates = self._rates()
        price = self.usd_per_h
        if rates is not None:
            price = rates.usd_per_h(count=self.count, vcpus=self.vcpus, memory_gib=self.memory_gib)
        return Shape(
            name=self.name,
            platform=self.platform,
            accelerator=self.accelerator,
            count=self.count,
            vcpus=int(self.vcpus),
            memory_bytes=int(self.memory_gib * GIB),
            usd_per_h=price,
            sleeps=self.sleeps,
            commitment=self.commitment,
            region=self.region,
            as_of=self.as_of,
            source=self.source,
            rates=rates,
        )

    def _rates(self) -> Rates | None:
        gpu, vcpu, gib = self.gpu_usd_per_s, self.vcpu_usd_per_s, self.gib_usd_per_s
        if gpu is None and vcpu is None and gib is None:
            return None
        if self.usd_per_h is not None:
            raise ValueError("it has a price and rates, want one of them")
        if gpu is None or vcpu is None or gib is None:
            raise ValueError("it has some rates, want gpu_usd_per_s, vcpu_usd_per_s and gib_usd_per_s")
        return Rates(gpu_usd_per_s=gpu, vcpu_usd_per_s=vcpu, gib_usd_per_s=gib)


class _Idle(_Sourced):
    platform: str
    seconds: _Amount
    as_of: _Date


class _LoadRate(_Sourced):
    storage: str
    low_mb_per_s: _Amount
    best_mb_per_s: _Amount
    high_mb_per_s: _Amount
    date: _Date

    def value(self) -> LoadRate:
        low, best, high = (int(rate * _MB) for rate in (self.low_mb_per_s, self.best_mb_per_s, self.high_mb_per_s))
        ends = Bounds(low=low, best=best, high=high)
        return LoadRate(storage=self.storage, bytes_per_s=ends, source=self.source, date=self.date)


class _WarmUp(_Sourced):
    compile_s: _Ends
    rest_s: _Ends
    date: _Date

    def value(self) -> WarmUp:
        compiled, rest = (Bounds(low=ends[0], best=ends[1], high=ends[2]) for ends in (self.compile_s, self.rest_s))
        return WarmUp(compile_s=compiled, rest_s=rest, source=self.source)


class _ProbeLimits(_Sourced):
    platform: str
    max_initial_delay_s: _Limit = None
    max_period_s: _Limit = None
    max_failures: _Limit = None
    max_product_s: _Limit = None
    date: _Date

    def value(self) -> ProbeLimits:
        return ProbeLimits(**dict(self))


class _Start(_Sourced):
    platform: str
    probe: str | None = None
    image_gb: _Amount | None = None
    image_note: str = ""
    date: _Date

    def value(self, limits: Mapping[str, ProbeLimits]) -> PlatformStart:
        if self.probe not in {None, *limits}:
            raise ValueError(f"probe {self.probe!r} is none of {', '.join(sorted(limits))}")
        probe = limits[self.probe] if self.probe is not None else None
        return PlatformStart(**{**dict(self), "probe": probe})
