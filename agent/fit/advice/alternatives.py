"""Other checkpoints of the family and other hardware, nearest first, with the flags fitted to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.fit.advice.cost import parameters
from agent.fit.assessment import Setup
from agent.fit.flags.flags import Flags
from agent.fit.memory.splits import is_split_by
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts
from agent.fit.speed.price import Shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Market:
    """What else there is.

    Attributes:
        models: Checkpoints, any family.
        accelerators: By contract name.
        shapes: What can be rented, usual ones first.
    """

    models: Sequence[ModelFacts]
    accelerators: Mapping[str, AcceleratorFacts]
    shapes: Sequence[Shape]


def other_checkpoints(setup: Setup, market: Market) -> Iterator[Setup]:
    """The same size stored otherwise, the best kept first; then smaller sizes, the largest first.

    Args:
        setup: What runs.
        market: Its ``models`` of the same family are looked at, one per size and way to store: the same publisher's if
            there is one.

    Yields:
        Setups with the same flags, offload taken out.
    """
    family = {model.name: model for model in market.models if model.family == setup.model.family}
    kin = [model for model in family.values() if model.name != setup.model.name and not model.unmodelled]
    now, mine = setup.model, parameters(setup.model)
    same = [m for m in kin if m.size == now.size and m.quant.bytes_per_param < now.quant.bytes_per_param]
    smaller = [m for m in kin if m.size != now.size and parameters(m) < mine]

    def nearness(model: ModelFacts) -> tuple[float, bool, bool, float, str]:
        stranger = _owner(model) != _owner(now)
        return (
            -parameters(model),
            stranger,
            model.quant.scheme != now.quant.scheme,
            -model.quant.bytes_per_param,
            model.name,
        )

    flags = replace(setup.flags, cpu_offload_gb=None)
    seen: set[tuple[str, str]] = set()
    for model in (*sorted(same, key=nearness), *sorted(smaller, key=nearness)):
        if (model.size, model.quant.scheme) not in seen:
            seen.add((model.size, model.quant.scheme))
            yield replace(setup, model=model, flags=flags)


def _owner(model: ModelFacts) -> str:
    """Who publishes it; a name without owner is nobody's."""
    return model.name.rpartition("/")[0]


def other_hardware(setup: Setup, market: Market, *, platform: str | None) -> Iterator[Setup]:
    """Every rentable accelerator and count but the present one: the present platform's first, then by price.

    Args:
        setup: What runs.
        market: Its shapes.
        platform: Where it runs now, if known.

    Yields:
        Setups with tensor parallelism over all devices of the shape, and flags that the device refuses taken out.
    """
    seen = {(setup.accelerator.name, setup.count)}
    far = float("inf")
    for shape in sorted(
        market.shapes,
        key=lambda shape: (shape.platform != platform, shape.usd_per_h if shape.usd_per_h is not None else far),
    ):
        accelerator = market.accelerators.get(shape.accelerator)
        if accelerator is None or (shape.accelerator, shape.count) in seen:
            continue
        seen.add((shape.accelerator, shape.count))
        flags = flags_for_devices(setup.flags, accelerator, shape.count)
        if is_split_by(setup.model, flags):
            yield replace(setup, accelerator=accelerator, count=shape.count, flags=flags)


def flags_for_devices(flags: Flags, accelerator: AcceleratorFacts, count: int) -> Flags:
    """Flags for other devices: spread over all of them, without offload, an fp8 cache only where it runs."""
    narrow = (flags.kv_cache_dtype or "").startswith("fp8")
    refused = accelerator.kind is AcceleratorKind.CUDA and not accelerator.supports((8, 9))
    return replace(
        flags,
        cpu_offload_gb=None,
        pipeline_parallel_size=None,
        tensor_parallel_size=count if count > 1 else None,
        kv_cache_dtype=None if narrow and refused else flags.kv_cache_dtype,
    )
