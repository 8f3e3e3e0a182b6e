"""Memory of the container or host that loading and serving take, beside the device's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.fit.assessment import Setup
from agent.fit.bounds import GIB, MIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import effective
from agent.fit.memory.overheads import activation_peak
from agent.fit.memory.weights import plan_weights
from agent.fit.model_and_hardware import AcceleratorKind, TensorGroup

_LAZY: Final = frozenset({None, "auto", "safetensors", "dummy", "hf"})
"""Load formats that map the file and copy tensor by tensor. What is mapped is page cache, which the kernel gives back.

Source: vllm/model_executor/model_loader/weight_utils.py ``safetensors_weights_iterator`` of 0.32.0, read 2026-11-21;
two pods of 32 and 116 GB held 4 GB of their own beside 28 and 100 GB of cache while one model loaded
(github.com/vllm-project/vllm/issues/3035, 2024-02-26); a checkpoint of 16.44 GB came up in a container of 16,384 MiB
(examples/gemma4-26b-l4-startup-probe, 2026-06-08).
"""

_READ_WHOLE: Final = frozenset({"eager", "prefetch"})

_PROCESSES: Final = Bounds(low=int(2.5 * GIB), best=4 * GIB, high=8 * GIB)
"""API server, engine and one worker. Measured 2.65 to 2.7 GB for 0.32 on a CPU (runs of our own, 2026-11-21) and 4 GB
on a GPU (issue 3035 above); the high end is twice the measured one, assumed."""

_CPU_PROCESSES: Final = Bounds(low=1900 * MIB, best=int(2.5 * GIB), high=8 * GIB)
"""The same on the CPU backend: killed with a limit of 1,900 MiB, 2.65 to 2.7 GB in use (runs of our own with a made-up
model of a few megabytes, 0.32.0, 2026-11-21); the high end, with torch.compile, is assumed."""

_FURTHER_WORKER: Final = Bounds(low=int(1.5 * GIB), best=3 * GIB, high=4 * GIB)
"""Each worker more. Measured 1,600 MB on a CPU (the same); the high end is assumed."""

_SHARED: Final = Bounds(low=0, best=GIB // 4, high=GIB)
"""Shared memory of several workers, which counts: ten chunks of 16 MiB per queue and NCCL's own buffers.
Source: vllm/distributed/device_communicators/shm_broadcast.py and VLLM_MQ_MAX_CHUNK_BYTES_MB in vllm/envs.py of 0.32.0,
read 2026-11-21; NCCL's part is assumed."""

_PINNED_ROUNDING: Final = 2
"""PyTorch rounds each pinned block up to a power of two (aten/src/ATen/core/CachingHostAllocator.h of 2.11)."""

_PROCESSOR_CACHE_GIB: Final = 4.0
"""Default of --mm-processor-cache-gb, held by each API process and each engine: vllm/config/multimodal.py of 0.32.0,
read 2026-11-21. Empty after a start; it fills with the images that are sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostPart:
    """One part of the need: what it is, how much, and where that is from."""

    name: str
    size: Bounds
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HostNeed:
    """What is taken of the container's memory.

    Attributes:
        parts: Every part; () where it cannot be computed.
        unknown: Why it cannot be computed; empty where it can.
    """

    parts: tuple[HostPart, ...] = ()
    unknown: str = ""

    @property
    def total(self) -> Bounds:
        """All parts together, bytes; the ends add up, for nothing says that they do not meet."""
        return sum((part.size for part in self.parts), start=NOTHING)

    def fits(self, limit_bytes: int) -> bool | None:
        """True if the pessimistic end fits, False if the optimistic end does not, else None."""
        if self.unknown:
            return None
        total = self.total
        return True if total.high <= limit_bytes else False if total.low > limit_bytes else None


def host_need(setup: Setup, *, files_in_memory: Bounds) -> HostNeed:
    """Compute the need from the load.

    Args:
        setup: What runs.
        files_in_memory: Bytes of the checkpoint's files that lie in the container's memory.

    Returns:
        The parts; unknown where the loader, or what the CPU backend does with the weights, is not modelled.
    """
    flags = setup.flags
    on_cpu = setup.accelerator.kind is AcceleratorKind.CPU
    if on_cpu and (reason := next(_untold_on_cpu(setup), "")):
        return HostNeed(unknown=reason)
    given = {flag.name: flag.value for flag in flags.others}
    if given.get("load-format") not in _LAZY:
        return HostNeed(unknown=f"what --load-format {given['load-format']} holds in host memory is not modelled")
    if setup.model.checkpoint_bytes is None and (given.get("safetensors-load-strategy") or files_in_memory.high):
        return HostNeed(unknown="the size of the checkpoint's files is not known")
    device = _on_cpu(setup) if on_cpu else ()
    return HostNeed(parts=(*_parts(setup, flags, given, files_in_memory), *device))


def _untold_on_cpu(setup: Setup) -> Iterator[str]:
    """Why the CPU backend's share cannot be computed; nothing where it can."""
    model, flags = setup.model, setup.flags
    if model.unmodelled:
        yield model.unmodelled
    if model.quant.groups:
        yield f"how the CPU backend repacks weights of type {model.quant.scheme} was not read"
    if any(layer.experts or layer.recurrent is not None for layer in model.layers):
        yield "how the CPU backend repacks experts and recurrent layers was not read"
    if flags.speculative_config is not None:
        yield "what guessing tokens takes on the CPU backend was not read"
    if setup.rules.is_dated or setup.rules.is_unread:
        yield f"the CPU backend of vLLM {setup.rules.asked or setup.rules.version} was not read"
    if not _kv_space(flags):
        yield "without VLLM_CPU_KVCACHE_SPACE or --kv-cache-memory-bytes the KV cache takes a share of the whole host"


def _kv_space(flags: Flags) -> int:
    """Bytes of KV cache of one worker; VLLM_CPU_KVCACHE_SPACE wins (vllm/platforms/cpu.py 324-327, 0.32.0)."""
    return int(flags.kv_cache_space_gib * GIB) if flags.kv_cache_space_gib else flags.kv_cache_memory_bytes or 0


def _on_cpu(setup: Setup) -> Iterator[HostPart]:
    """What the workers of the CPU backend hold beside their processes: weights, packed copies, cache and activations.

    A linear layer is packed for the kernel and its first copy dropped, one layer after the other; embedding and output
    head keep both. The cache is given whole to every worker and becomes resident as it fills.

    Source: vllm/model_executor/layers/utils.py dispatch_cpu_unquantized_gemm, vocab_parallel_embedding.py 67-71 and
    vllm/v1/worker/cpu_worker.py determine_available_memory of 0.32.0, read 2026-11-23.
    """
    model, flags, ranks = setup.model, setup.flags, setup.flags.devices
    run = effective(model, setup.accelerator, flags, setup.rules)
    plan = plan_weights(model, flags, setup.rules, batched_tokens=run.max_num_batched_tokens)
    yield HostPart(name="Weights", size=_times(plan.loaded, ranks), source="shapes of the checkpoint")
    packed = sum(size for group, size in plan.by_group if group in {TensorGroup.EMBEDDINGS, TensorGroup.LM_HEAD})
    copies = Bounds(low=0, best=packed, high=packed)
    yield HostPart(name="Packed copies", size=_times(copies, ranks), source="vLLM 0.32, layers/utils.py")
    space = _kv_space(flags)
    cache = Bounds(low=0, best=space, high=space)
    yield HostPart(name="KV cache", size=_times(cache, ranks), source="VLLM_CPU_KVCACHE_SPACE, which it fills in use")
    peak = activation_peak(model, flags, run, setup.rules)
    size = Bounds(low=0, best=peak.best, high=peak.high)
    yield HostPart(name="Activations", size=_times(size, ranks), source="calibrated on GPUs; the low end is none")


def _times(size: Bounds, count: int) -> Bounds:
    return Bounds(low=size.low * count, best=size.best * count, high=size.high * count)


def _parts(setup: Setup, flags: Flags, given: dict[str, str | None], files_in_memory: Bounds) -> Iterator[HostPart]:
    processes = _CPU_PROCESSES if setup.accelerator.kind is AcceleratorKind.CPU else _PROCESSES
    yield HostPart(name="Server processes", size=processes, source="measured starts, high end assumed")
    more = flags.devices - 1
    if more:
        size = Bounds(
            low=_FURTHER_WORKER.low * more, best=_FURTHER_WORKER.best * more, high=_FURTHER_WORKER.high * more
        )
        yield HostPart(name="Further workers", size=size + _SHARED, source="measured on a CPU, high end assumed")
    pinned = int((flags.cpu_offload_gb or 0) * GIB) * flags.devices
    if pinned:
        size = Bounds(low=pinned, best=pinned, high=pinned * _PINNED_ROUNDING)
        yield HostPart(name="Pinned by --cpu-offload-gb", size=size, source="PyTorch 2.11, CachingHostAllocator.h")
    swap = _bytes(given.get("swap-space"), default_gib=0.0) * flags.devices
    if swap:
        size = Bounds(low=0, best=0, high=swap)
        yield HostPart(name="Swap space", size=size, source="--swap-space; the V1 engine takes none")
    if given.get("safetensors-load-strategy") in _READ_WHOLE:
        whole = setup.model.checkpoint_bytes or 0
        size = Bounds(low=0, best=whole // 2, high=whole)
        yield HostPart(name="Checkpoint read whole", size=size, source="--safetensors-load-strategy")
    if files_in_memory.high:
        yield HostPart(name="Checkpoint files in memory", size=files_in_memory, source="the platform's file system")
    if (setup.model.vision or setup.model.audio) and not flags.is_text_only:
        cache = _bytes(given.get("mm-processor-cache-gb"), default_gib=_PROCESSOR_CACHE_GIB)
        size = Bounds(low=0, best=0, high=cache * (1 + (flags.data_parallel_size or 1)))
        yield HostPart(name="Cache of processed images", size=size, source="vLLM 0.32, vllm/config/multimodal.py")


def _bytes(given: str | None, *, default_gib: float) -> int:
    try:
        return int(float(given) * GIB) if given is not None else int(default_gib * GIB)
    except ValueError:
        return int(default_gib * GIB)
