"""The levers of a server: which flags can give memory back, and by which steps, from mildest to strongest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from agent.fit.advice.advice import Demand, Setting
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB
from agent.fit.flags.flags import AUTO, NO_ITEMS, Flags
from agent.fit.memory.batch import Effective, effective
from agent.fit.memory.flags_of_version import missing_flags, reads_limits
from agent.fit.memory.splits import is_split_by
from agent.fit.memory.weights import tower_is_built
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts, TensorGroup
from agent.fit.version_rules import VersionRules

OFFLOAD_GIB: Final = (
    0.5,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    6.0,
    7.0,
    8.0,
    10.0,
    12.0,
    14.0,
    16.0,
    20.0,
    24.0,
    32.0,
    48.0,
    64.0,
)
_SEQS: Final = (512, 256, 128, 64, 32, 16, 8, 4)
_BATCHES: Final = (8192, 4096, 2048, 1024)
_HIGHEST_SHARE: Final = 0.95
_LOWER_SHARES: Final = (0.92, 0.90, 0.85, 0.80)
_SHORTEST_CONTEXT: Final = 2048
_HOST_RESERVE: Final = 8 * GIB
"""Host memory that a server takes beside what is offloaded: the process, page cache of a shard being read."""

GRADED: Final = ("cpu_offload_gb", "max_model_len")
"""Levers whose every step hurts the user: worth spending a harmless lever to pull them less."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lever:
    """One flag and the values it may be set to, mildest first, strongest last."""

    flag: str
    values: tuple[Setting, ...]

    @property
    def strongest(self) -> Setting:
        """The value that gives back most memory."""
        return self.values[-1]


def levers(setup: Setup, demand: Demand) -> tuple[Lever, ...]:
    """Every lever that has a step left to go and keeps the demand.

    Args:
        setup: What runs, offload taken out (each search weighs it anew).
        demand: Floors for context and users; images kept or not; host memory.

    Returns:
        At most one lever per flag, but ``gpu_memory_utilization``: each of its values is a lever of its own, since
        neither direction is the stronger one.
    """
    model, accelerator, flags = setup.model, setup.accelerator, setup.flags
    run = effective(model, accelerator, flags, setup.rules)
    found = [
        *_parallel(model, setup.count, flags),
        *_text_only(model, flags, setup.rules, demand),
        *_graded(model, accelerator, flags, run, demand),
        *_batch(flags, run, demand),
    ]
    if accelerator.kind is AcceleratorKind.TPU:
        return (*found, *(Lever(flag="gpu_memory_utilization", values=(share,)) for share in _shares(run.utilisation)))
    if accelerator.kind is not AcceleratorKind.CUDA:
        return tuple(found)
    if not flags.enforce_eager:
        found.append(Lever(flag="enforce_eager", values=(True,)))
    if flags.kv_cache_dtype in {None, "auto", "bfloat16"} and accelerator.supports((8, 9)):
        found.append(Lever(flag="kv_cache_dtype", values=("fp8",)))
    if setup.rules.counts_in_flight_batches and flags.async_scheduling is not False and flags.pp == 1:
        found.append(Lever(flag="async_scheduling", values=(False,)))
    if flags.kv_cache_memory_bytes is None:
        found += [Lever(flag="gpu_memory_utilization", values=(share,)) for share in _shares(run.utilisation)]
    return tuple(found)


def _shares(now: float) -> tuple[float, ...]:
    """The highest share in use, and two lower ones: a little, and clearly, less."""
    higher = (_HIGHEST_SHARE,) if now < _HIGHEST_SHARE - 0.004 else ()
    return (*higher, *[share for share in _LOWER_SHARES if share < now - 0.004][:2])


def with_levers(flags: Flags, pulled: Mapping[str, Setting]) -> Flags:
    """Flags with levers at values, by the names of their flags."""
    return replace(flags, **pulled)  # type: ignore[arg-type]


def _parallel(model: ModelFacts, count: int, flags: Flags) -> list[Lever]:
    """Devices that are there and unused."""
    sizes = tuple(
        size
        for size in (2, 4, 8, 16)
        if flags.tp < size <= count // flags.pp and is_split_by(model, replace(flags, tensor_parallel_size=size))
    )
    return [Lever(flag="tensor_parallel_size", values=sizes)] if sizes else []


def _text_only(model: ModelFacts, flags: Flags, rules: VersionRules, demand: Demand) -> list[Lever]:
    """One switch, or before there is one the limits of every kind of input."""
    built = any(
        tower is not None and tower_is_built(group, tower, flags)
        for group, tower in ((TensorGroup.VISION, model.vision), (TensorGroup.AUDIO, model.audio))
    )
    if not built or demand.images is True:
        return []
    if not missing_flags(Flags(language_model_only=True), rules):
        return [Lever(flag="language_model_only", values=(True,))]
    return [Lever(flag="limit_mm_per_prompt", values=(NO_ITEMS,))] if reads_limits(model, rules) else []


def _graded(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, run: Effective, demand: Demand
) -> list[Lever]:
    found: list[Lever] = []
    if accelerator.kind is AcceleratorKind.CUDA and accelerator.pcie_bytes_per_s is not None:
        most = min(
            (model.checkpoint_bytes or 2**62) / GIB,
            64.0 if demand.host_bytes is None else (demand.host_bytes - _HOST_RESERVE) / GIB,
        )
        steps = tuple(size for size in OFFLOAD_GIB if size <= most)
        if steps:
            found.append(Lever(flag="cpu_offload_gb", values=steps))
    floor = demand.needs.context_tokens or min(_SHORTEST_CONTEXT, run.max_model_len)
    lengths = [size for size in (2**power for power in range(20, 10, -1)) if floor <= size < run.max_model_len]
    if demand.needs.context_tokens and floor < run.max_model_len and floor not in lengths:
        lengths.append(floor)
    if lengths and flags.max_model_len != AUTO:
        found.append(Lever(flag="max_model_len", values=tuple(lengths)))
    return found


def _batch(flags: Flags, run: Effective, demand: Demand) -> list[Lever]:
    found: list[Lever] = []
    seqs = tuple(size for size in _SEQS if max(4, demand.needs.users) <= size < run.max_num_seqs)
    if demand.needs.users < run.max_num_seqs and demand.needs.users > 4 and demand.needs.users not in seqs:
        seqs = (*seqs, demand.needs.users)
    if seqs:
        found.append(Lever(flag="max_num_seqs", values=seqs))
    steps = sorted({*_BATCHES, *([run.item_tokens] if run.item_tokens else [])}, reverse=True)
    batches = tuple(size for size in steps if size < run.max_num_batched_tokens)
    if batches and flags.enable_chunked_prefill is not False:
        found.append(Lever(flag="max_num_batched_tokens", values=batches))
    return found
