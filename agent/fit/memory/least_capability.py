"""Devices too old for the way a checkpoint is stored: vLLM stops before it loads a byte."""

from __future__ import annotations

from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts
from agent.fit.version_rules import VersionRules

_TURING, _AMPERE = (7, 5), (8, 0)
_ON_TURING_FROM = {
    "fp8": (0, 14), "fp8-block": (0, 14), "nvfp4": (0, 14), "w4a16": (0, 12), "w4a16-g32": (0, 12), "w8a16": (0, 12),
    "awq": (0, 6), "w8a8": (0, 6),
}  # fmt: skip
"""Versions in which compute capability 7.5 does; it was 8.0 before. None serves them on anything older."""

_ON_AMPERE = frozenset({"mxfp4"})


def below_least_capability(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> tuple[str, ...]:
    """Why a CUDA device cannot serve this type of weights, or nothing.

    Source: _get_quantization_config in vllm/config/vllm.py (config.py before 0.11) and get_min_capability of {fp8,awq,
    modelopt,mxfp4}.py and compressed_tensors/schemes/*.py in vllm/model_executor/layers/quantization of 0.8.5, 0.9.2,
    0.10.2, 0.11.0, 0.12.0, 0.13.0, 0.14.1, 0.16.0, 0.20.0 and 0.33.0, read 2026-11-26.
    """
    scheme = model.quant.scheme
    if scheme == "bf16" and flags.quantization in {"fp8", "mxfp4"}:
        scheme = flags.quantization
    if scheme in _ON_AMPERE:
        least = _AMPERE
    elif scheme in _ON_TURING_FROM:
        least = _TURING if rules.numbers >= _ON_TURING_FROM[scheme] else _AMPERE
    else:
        return ()
    if accelerator.compute_capability is None or accelerator.supports(least):
        return ()
    has = ".".join(map(str, accelerator.compute_capability))
    return (f"weights of type {scheme} need compute capability {least[0]}.{least[1]}, this device has {has}",)
