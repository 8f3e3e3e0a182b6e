"""How fast it decodes: what a token needs crosses the memory bus once per step, or the PCIe bus if offloaded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from agent.fit.flags.flags import Flags
from agent.fit.memory.weights import plan_weights
from agent.fit.model_and_hardware import (
    LINEAR_GROUPS,
    AcceleratorFacts,
    AcceleratorKind,
    ModelFacts,
    TensorGroup,
)
from agent.fit.version_rules import VersionRules

_MEMORY_SHARE: Final = (0.50, 0.92)
"""Share of the data sheet's bandwidth that decoding reaches: worst, best. Seen: 26B-A4B QAT on an L4 0.66 at 61.7
tokens/s (2026-06), 12B QAT on an A100 0.42 at 98.7 tokens/s; neither counts the wait for its first token in
(docs/seeds-checked.md). All recorded figures beside the prediction: `python benchmarks/decode_speed.py`."""

_PCIE_SHARE: Final = (0.90, 1.10)
"""Around the measured rate of the catalogue. Seen on an L4: 14 GiB offloaded at 0.8 steps/s (12.0 GB/s), 5 GiB at 2.0
(10.7 GB/s)."""

_STEP_S: Final = (0.006, 0.0005)
"""Scheduling and launches of one step, worst and best. Seen: E2B on four v6e chips, 4.8 ms per token of which 0.7 ms
are weights."""

_EAGER_S_PER_LAYER: Final = (0.0003, 0.00005)
"""What a layer's launches add without CUDA graphs, worst and best; assumed, some twenty kernels of 2.5 to 15 us."""

SHORT_PROMPT: Final = 64
"""Tokens of a prompt of some words, with the turns that a chat template puts around it."""

_DECODER: Final = (*sorted(LINEAR_GROUPS), TensorGroup.PER_LAYER_PROJECTIONS)
_TOWERS: Final = (TensorGroup.VISION, TensorGroup.AUDIO)


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeSpeed:
    """Tokens per second of all sequences together, short context.

    Attributes:
        low, high: Bounds; a measured rate of a healthy server lies between.
        active_bytes: Weights read per step on one device, offloaded ones included.
        offloaded_bytes: Of these, what crosses the PCIe bus.
        sequences: How many decode at once.
    """

    low: float
    high: float
    active_bytes: int
    offloaded_bytes: int
    sequences: int

    @property
    def best(self) -> float:
        """Middle of the bounds, geometric."""
        return math.sqrt(self.low * self.high)

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high), as a fit report takes it."""
        return self.low, self.high


def decode_speed(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    *,
    sequences: int = 1,
    share: tuple[float, float] | None = None,
) -> DecodeSpeed | None:
    """Bound the decode rate by what has to be read.

    Weights are read once per step for all sequences; of experts, those that at least one sequence visits. The KV cache
    and arithmetic are left out, so the upper end is loose for long contexts and for more than some sixteen sequences.

    Args:
        model: The checkpoint.
        accelerator: One device.
        flags: Tensor and pipeline parallelism, offload, multimodal limits.
        rules: The version, for what is offloaded first.
        sequences: Sequences that decode at once, at least 1.
        share: Of the bandwidth, worst and best, that one request was measured to reach here with everything included;
            it replaces the bundled ranges for one sequence without offload.

    Returns:
        Bounds, or None when bandwidth (or, with offload, the host bus) or the model is unknown. Speculative decoding
        is not counted.
    """
    if accelerator.bandwidth_bytes_per_s is None or model.unmodelled or sequences < 1:
        return None
    plan = plan_weights(model, flags, rules, batched_tokens=1)
    held = dict(plan.by_group)
    active = active_bytes(model, held, sequences)
    offloaded = _offloaded_active(model, held, plan.offloaded_bytes, rules, sequences)
    bus = accelerator.pcie_bytes_per_s
    if offloaded and bus is None:
        return None
    if share is not None and sequences == 1 and not offloaded:
        low, high = (accelerator.bandwidth_bytes_per_s * end / active / flags.pp for end in share)
        return DecodeSpeed(low=low, high=high, active_bytes=active, offloaded_bytes=0, sequences=1)
    layers = model.layer_count if flags.enforce_eager and accelerator.kind is AcceleratorKind.CUDA else 0
    times = [
        flags.pp
        * (
            (active - offloaded) / (accelerator.bandwidth_bytes_per_s * memory)
            + offloaded / ((bus or 1) * pcie)
            + step
            + layers * eager
        )
        for memory, pcie, step, eager in zip(_MEMORY_SHARE, _PCIE_SHARE, _STEP_S, _EAGER_S_PER_LAYER, strict=True)
    ]
    return DecodeSpeed(
        low=sequences / times[0],
        high=sequences / times[1],
        active_bytes=active,
        offloaded_bytes=offloaded,
        sequences=sequences,
    )


def first_token_s(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> tuple[float, float] | None:
    """Bound the model's own work until the first token of a short prompt, seconds: one step over all of its tokens.

    A prompt of up to ``SHORT_PROMPT`` tokens is bound by memory like a batch of as many sequences: an L4 does some 400
    operations per byte that it reads, four-bit weights ask for four per byte and token. The request's way to the model
    is not in it. Seen, with the way: 0.124 s for 26B-A4B QAT on an L4 (2026-06), where 0.055 to 0.106 s are computed.

    Args:
        model: The checkpoint.
        accelerator: One device.
        flags: As for ``decode_speed``.
        rules: As for ``decode_speed``.

    Returns:
        Lower and upper bound, or None where ``decode_speed`` knows none.
    """
    step = decode_speed(model, accelerator, flags, rules, sequences=SHORT_PROMPT)
    return (SHORT_PROMPT / step.high, SHORT_PROMPT / step.low) if step is not None else None


def bandwidth_share(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, tokens_per_s: float
) -> float | None:
    """Return the share of the bandwidth that a measured rate of one request comes to, everything included.

    Returns:
        None where ``decode_speed`` knows nothing, or where the PCIe bus decides because weights are offloaded.
    """
    found = decode_speed(model, accelerator, flags, rules)
    if found is None or found.offloaded_bytes or accelerator.bandwidth_bytes_per_s is None:
        return None
    return tokens_per_s * flags.pp * found.active_bytes / accelerator.bandwidth_bytes_per_s


def active_bytes(model: ModelFacts, held: dict[TensorGroup, int], sequences: int = 1) -> int:
    """Bytes that one decode step reads on one device.

    Args:
        model: Says how many experts a token visits and whether the head is the embedding.
        held: Bytes per tensor group on the device, before offload.
        sequences: Tokens of the step.

    Returns:
        Decoder, visited experts, norms and output head; embedding look-ups and towers read next to nothing.
    """
    head = held.get(TensorGroup.EMBEDDINGS if model.tied else TensorGroup.LM_HEAD, 0)
    other = max(0, held.get(TensorGroup.OTHER, 0) - model.rope_cache_bytes)
    decoder = sum(held.get(group, 0) * _share(model, group, sequences) for group in _DECODER)
    return int(decoder) + head + other


def _share(model: ModelFacts, group: TensorGroup, sequences: int) -> float:
    if group is not TensorGroup.EXPERTS:
        return 1.0
    mixed = [layer for layer in model.layers if layer.experts]
    total = sum(layer.count for layer in mixed)
    if not total:
        return 1.0
    visited = sum(
        layer.count * (1 - (1 - min(1.0, layer.active_experts / layer.experts)) ** sequences) for layer in mixed
    )
    return visited / total


def _offloaded_active(
    model: ModelFacts, held: dict[TensorGroup, int], offloaded: int, rules: VersionRules, sequences: int
) -> int:
    """Of the offloaded bytes, those a step reads: towers lie idle, and most experts of a mixture too."""
    if rules.offloads_towers_first:
        offloaded = max(0, offloaded - sum(held.get(group, 0) for group in _TOWERS))
    decoder = sum(held.get(group, 0) for group in _DECODER)
    if not decoder:
        return 0
    read = sum(held.get(group, 0) * _share(model, group, sequences) for group in _DECODER)
    return int(min(offloaded, decoder) * read / decoder)
