"""A known size whose name announces a storage that no entry describes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from agent.catalogue.fit_entries import QuantScheme
from agent.fit.flags.flags import Flags
from agent.fit.memory.weights import device_tensors
from agent.fit.model_and_hardware import ModelFacts, QuantFacts, TensorGroup

_WIDE_RECURRENT = 0.4
"""Publishers of four-bit checkpoints leave recurrent layers in 16 bits, some attention too: Qwen 3.8 27B as NVFP4
prints 23.94 GiB (Inferact) and 21.34 (unsloth, 0.27.1), where 18.6 are counted with all linear layers narrow."""

_WIDE_EXPERTS, _NARROW_REST = 0.17, 0.12
"""With experts beside them they mostly quantise the experts alone: Qwen 3 Next 80B and Qwen 3.5 122B as AWQ print 22.53
and 36.73 GiB on each of two cards (0.13.0, 0.16.1), 35B-A3B as GPTQ 21.05. In NVFP4 recurrent layers alone stay wide:
70.47 GiB for the 122B (Sehyo), 21.86 for Qwen 3.6 35B-A3B (RedHatAI). One layer in ten of the experts wider is the
heaviest that was seen (QuantTrio, Qwen 3.6 35B-A3B as AWQ: 11.62 GiB on each of two), everything narrow the lightest
that can be. NVIDIA's own of Nemotron quantise every linear layer; those that do not are listed."""

_UNCERTAIN_BY_NAME, _HEAVIER_IN_EIGHT_BITS = 0.03, 0.01
"""What a name leaves open. A byte a parameter and its scales leave less: 57 start-ups of 30 checkpoints in 8 bits, by
eight publishers, printed at most 1.1 % more than counted (Qwen 3.5 4B, RedHatAI; the rest 0.7 % and less), but for
experts of others (``_BEYOND_SHAPE``)."""

_BEYOND_SHAPE = 0.04
"""Twice what was seen beyond that share: GLM 4.7 Flash as FP8-Dynamic (unsloth) prints 30.8 GiB where all linear layers
in 8 bits are 28.8 (0.30.0), 7 % more, and 5 % of them stand beside its experts."""

_LEAVE_RECURRENT_WIDE = frozenset({"redhatai", "neuralmagic"})
"""Qwen 3.5 4B as FP8-dynamic (RedHatAI) loads 5.67 GiB without its tower by 0.21.0, and would 4.67 if all linear layers
were narrow; their tool's examples for Qwen 3.5 name ``linear_attn`` among what stays wide, in every scheme."""


def stored_as_named(base: ModelFacts, name: str, schemes: Mapping[str, QuantScheme]) -> ModelFacts:
    """The size that a name resembles, stored as the name announces; what a name leaves open widens its high end.

    Args:
        base: The known size.
        name: As it was asked for, with its publisher where there is one.
        schemes: Every storage by its key, in the order in which names are searched for them.
    """
    last = name.strip().rstrip("/").lower().rsplit("/", 1)[-1]
    taken_as = f"{name} is taken as {base.name}"
    announced = {scheme.facts: words for scheme in schemes.values() if (words := scheme.words_in(last))}
    if {facts.scheme for facts in announced} <= {base.quant.scheme}:
        return replace(base, name=name, assumptions=(*base.assumptions, taken_as))
    chosen = next(iter(announced))
    widest = max(facts.bytes_per_param for facts in announced)
    if not any(re.search(r"\d", word) for words in announced.values() for word in words):
        widest = max(widest, schemes[chosen.scheme].untold)
    heavier = max(chosen.heavier, widest / chosen.bytes_per_param - 1)
    quant = _beside_recurrent(base, name, _in_eight_bits(base, name, replace(chosen, heavier=heavier)))
    groups = ", ".join(sorted(quant.groups)) or "all tensors"
    note = f"{taken_as} stored as {quant.scheme} in {groups}, by its name"
    return replace(
        base,
        name=name,
        quant=_with_uncertainty(quant),
        checkpoint_bytes=None,
        served_bytes=None,
        assumptions=(*base.assumptions, note),
    )


def _with_uncertainty(quant: QuantFacts) -> QuantFacts:
    if _is_in_eight_bits(quant):
        return replace(quant, uncertainty=max(_HEAVIER_IN_EIGHT_BITS, quant.uncertainty), lighter=_UNCERTAIN_BY_NAME)
    return replace(quant, uncertainty=max(_UNCERTAIN_BY_NAME, quant.uncertainty))


def _is_in_eight_bits(quant: QuantFacts) -> bool:
    return 1 <= quant.bytes_per_param < quant.base_bytes_per_param


def _in_eight_bits(base: ModelFacts, name: str, quant: QuantFacts) -> QuantFacts:
    """Others than its publisher may leave all beside the experts wide, or what is recurrent."""
    if not _is_in_eight_bits(quant) or _publisher(name) == _publisher(base.name):
        return quant
    if _is_recurrent(base) and _publisher(name) in _LEAVE_RECURRENT_WIDE:
        quant = replace(quant, groups=quant.groups - {TensorGroup.RECURRENT})
    params = _narrow_params(base, quant)
    beside = 1 - params[TensorGroup.EXPERTS] / params.total() if params[TensorGroup.EXPERTS] else 0.0
    recurrent = params[TensorGroup.RECURRENT] / params.total()
    wider = max(beside, recurrent) * (quant.base_bytes_per_param / quant.bytes_per_param - 1)
    return replace(quant, heavier=max(quant.heavier, wider + _BEYOND_SHAPE)) if wider else quant


def _beside_recurrent(base: ModelFacts, name: str, quant: QuantFacts) -> QuantFacts:
    """In four bits recurrent layers mostly stay wide.

    Qwen's own GPTQ leaves attention of both kinds, shared experts and what guesses wide: its quantization_config names
    them as ``dynamic`` exceptions, and 21.05, 68.36 and 27.51 GiB were printed for 35B-A3B, 122B-A10B and 27B.
    """
    if quant.bytes_per_param >= 1 or not _is_recurrent(base):
        return quant
    if quant.scheme == "gptq" and _publisher(name) == _publisher(base.name) == "qwen":
        experts = any(layer.experts for layer in base.layers)
        return replace(quant, groups=frozenset({TensorGroup.EXPERTS if experts else TensorGroup.MLP}))
    if not any(layer.experts for layer in base.layers) or base.architecture == "NemotronHForCausalLM":
        return replace(quant, heavier=max(quant.heavier, _WIDE_RECURRENT))
    narrow = quant.groups - {TensorGroup.RECURRENT} if quant.scheme == "nvfp4" else {TensorGroup.EXPERTS}
    return replace(
        quant,
        groups=quant.groups & narrow,
        heavier=max(quant.heavier, _WIDE_EXPERTS),
        uncertainty=max(quant.uncertainty, _NARROW_REST),
    )


def _narrow_params(base: ModelFacts, quant: QuantFacts) -> Counter[TensorGroup]:
    params = Counter[TensorGroup]()
    for tensor in device_tensors(base, Flags()):
        if tensor.group in quant.groups:
            params[tensor.group] += tensor.stored_params
    return params


def _is_recurrent(base: ModelFacts) -> bool:
    return any(layer.recurrent is not None for layer in base.layers)


def _publisher(name: str) -> str:
    return name.partition("/")[0].lower()
