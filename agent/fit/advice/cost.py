"""What an option costs the user: context, users at once, quality, speed, money."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import floor, sqrt

from agent.fit.advice.advice import Concurrency, Cost, Demand
from agent.fit.advice.tradeoff import Tradeoff
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB
from agent.fit.flags.flags import Flags
from agent.fit.memory.weights import device_tensors, tower_is_built
from agent.fit.model_and_hardware import ModelFacts, TensorGroup
from agent.fit.report import FitReport
from agent.fit.speed.price import Shape, find_shapes, usd_per_million_tokens

_IMAGES, _CACHE, _STORED, _SMALLER = 2, 1, 3, 10
"""Ranks of losses; only their order counts."""


def cost_of(setup: Setup, report: FitReport, *, before: Setup, demand: Demand, shapes: Sequence[Shape]) -> Cost:
    """Everything the user pays for one setup.

    Args:
        setup: The option.
        report: Its fit report.
        before: What runs now, to tell what is lost.
        demand: Its platform, and whether images are used.
        shapes: The price table.

    Returns:
        Known figures; None for unknown ones.
    """
    users = users_at_once(report)
    shape = shape_of(setup, shapes, demand.platform)
    moved = (setup.accelerator.name, setup.count) != (before.accelerator.name, before.count)
    if shape is None and moved:
        shape = shape_of(setup, shapes, None)  # other hardware may stand elsewhere
    price = None if shape is None else shape.usd_per_h
    together = setup.speed(users)
    rank, words = _quality(setup, before, demand)
    return Cost(
        context_tokens=report.max_model_len or 0,
        users=users,
        quality=words,
        quality_rank=rank,
        decode_tokens_per_s=setup.speed(),
        usd_per_h=price,
        usd_per_million_tokens=_rounded(
            usd_per_million_tokens(price, None if together is None else sqrt(together[0] * together[1]))
        ),
        platform="" if shape is None else shape.platform,
        price_source="" if shape is None or price is None else f"{shape.name}, {shape.as_of}: {shape.source}",
        host_bytes=int((setup.flags.cpu_offload_gb or 0) * GIB),
    )


def shape_of(setup: Setup, shapes: Sequence[Shape], platform: str | None) -> Shape | None:
    """The usual shape with exactly these devices; a larger machine is another offer."""
    found = find_shapes(shapes, setup.accelerator.name, setup.count, platform=platform)
    return next((shape for shape in found if shape.count == setup.count), None)


def users_at_once(report: FitReport) -> int:
    """Requests of full length that run without queueing, at the pessimistic end; at least 1 where it fits."""
    if report.max_concurrency is None or report.max_num_seqs is None:
        return 1
    return max(1, min(report.max_num_seqs, floor(report.max_concurrency[0])))


def concurrency_of(report: FitReport) -> Concurrency:
    """What to tell the platform: never more than ``max_num_seqs`` requests per instance.

    Beyond ``queues_from`` requests of full length vLLM makes the rest wait; shorter ones share the pool.
    """
    return Concurrency(container=max(1, report.max_num_seqs or 1), queues_from=users_at_once(report))


@lru_cache(maxsize=512)
def parameters(model: ModelFacts) -> int:
    """Parameters of the text model and its towers."""
    return sum(tensor.stored_params for tensor in device_tensors(model, Flags()))


def compare(before: Setup, after: Setup, *, now: Cost, then: Cost, demand: Demand, users: int | None) -> Tradeoff:
    """Say what one setup takes away from another.

    Args:
        before: What runs, or was tried.
        after: What would run.
        now: What ``before`` costs.
        then: What ``after`` costs.
        demand: Whether images are used at all.
        users: Full-length requests at once to compare with; None where nobody knows, as of a server that never ran.
    """
    had, has = _inputs(before.model, before.flags), _inputs(after.model, after.flags)
    lost = tuple(name for name in had if name not in has) if demand.images is not False else ()
    share = 1 - parameters(after.model) / max(1, parameters(before.model)) if after.model != before.model else 0.0
    moved = (before.model.size, after.model.size) if before.model.size != after.model.size else None
    return Tradeoff(
        modalities=lost,
        model=moved,
        context_tokens=(now.context_tokens or None, then.context_tokens or None),
        users=(users, then.users),
        tokens_per_s=(_slow(now), _slow(then)),
        usd_per_h=(now.usd_per_h, then.usd_per_h),
        modality_share=len(lost) / (1 + len(had)),
        model_share=max(0.0, share) if moved else 0.0,
    )


def _inputs(model: ModelFacts, flags: Flags) -> tuple[str, ...]:
    towers = (("images", TensorGroup.VISION, model.vision), ("sound", TensorGroup.AUDIO, model.audio))
    return tuple(name for name, group, tower in towers if tower is not None and tower_is_built(group, tower, flags))


def _slow(cost: Cost) -> float | None:
    return cost.decode_tokens_per_s[0] if cost.decode_tokens_per_s is not None else None


def _quality(setup: Setup, before: Setup, demand: Demand) -> tuple[int, tuple[str, ...]]:
    losses: list[tuple[int, str]] = []
    model, old = setup.model, before.model
    if model.name != old.name:
        if (model.family, model.size) != (old.family, old.size):
            share = parameters(model) / max(1, parameters(old))
            losses.append((_SMALLER + max(0, int(20 * (1 - share))), f"another size: {model.size} for {old.size}"))
        elif model.quant.bytes_per_param < old.quant.bytes_per_param:
            loss = f"weights as {model.quant.scheme} for {old.quant.scheme}"
            losses.append((_STORED + int(2 * (old.quant.bytes_per_param - model.quant.bytes_per_param)), loss))
    if setup.flags.is_text_only and not before.flags.is_text_only and demand.images is not False:
        losses.append((_IMAGES, "no images or sound: text only"))
    narrow = (setup.flags.kv_cache_dtype or "auto").startswith("fp8")
    if narrow and not (before.flags.kv_cache_dtype or "auto").startswith("fp8"):
        losses.append((_CACHE, "KV cache in 8 bits"))
    losses.sort(reverse=True)
    return sum(rank for rank, _ in losses), tuple(words for _, words in losses)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
