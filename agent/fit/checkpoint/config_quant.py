"""How a config.json says its tensors are stored, checked against the dtypes that really stand in the files."""

from __future__ import annotations

from typing import Final

from agent.fit.checkpoint.config_reader import ConfigReader
from agent.fit.checkpoint.tensor_groups import TensorCount
from agent.fit.facts import QuantFacts, TensorGroup

_LINEARS: Final = frozenset({TensorGroup.ATTENTION, TensorGroup.MLP, TensorGroup.EXPERTS})
_PLAIN: Final = frozenset({"BF16", "F16", "F32"})


def quant_of(config: ConfigReader, count: TensorCount) -> QuantFacts:
    """Read ``quantization_config`` and correct it by what was found.

    Args:
        config: The top level of the config (some publishers put the section under ``text_config``).
        count: The tensors found.

    Returns:
        The groups are those that hold narrow tensors; the scheme and bytes per parameter are the config's.
    """
    text = config.section("text_config")
    section = config.section("quantization_config") or (text and text.section("quantization_config"))
    base = 4 if set(count.by_dtype) == {"F32"} else 2
    if section is None:
        if count.narrow:
            narrow = next(name for name in count.by_dtype if name not in _PLAIN)
            per_param = 1.0 if narrow.startswith("F8") else 0.5625
            return QuantFacts(scheme=narrow.lower(), bytes_per_param=per_param, groups=count.narrow, uncertainty=0.03)
        scheme = "bf16" if "BF16" in count.by_dtype or base == 2 else "fp32"
        return QuantFacts(scheme=scheme, bytes_per_param=float(base), groups=frozenset(), base_bytes_per_param=base)
    scheme, per_param = _scheme(section)
    return QuantFacts(scheme=scheme, bytes_per_param=per_param, groups=count.narrow or _LINEARS)


def _scheme(section: ConfigReader) -> tuple[str, float]:
    """Scheme and bytes per parameter, a 2-byte scale per group included (nvfp4: one byte per 16 parameters)."""
    method = section.text("quant_method", section.text("quant_algo")).lower()
    algorithm = section.text("quant_algo").lower()
    if "fp4" in algorithm:
        return "nvfp4", 0.5 + 1 / 16
    if method == "mxfp4":
        return "mxfp4", 0.5 + 1 / 32
    if method in {"awq", "gptq", "auto-round", "auto_round", "intel/auto-round"}:
        bits = section.positive("bits", section.size("w_bit", 4) or 4)
        scheme = {"awq": "awq", "gptq": "gptq"}.get(method, f"w{bits}a16")
        return scheme, bits / 8 + 2 / section.positive("group_size", 128)
    if method == "compressed-tensors":
        return _compressed(section)
    if "fp8" in (method, algorithm) or method == "modelopt":
        return "fp8", 1.0
    return method or "unknown", 1.0


def _compressed(section: ConfigReader) -> tuple[str, float]:
    groups = section.section("config_groups")
    first = None if groups is None else next((groups.section(key) for key in sorted(groups.values)), None)
    weights = None if first is None else first.section("weights")
    if weights is None:
        return "compressed-tensors", 1.0
    bits, group = weights.positive("num_bits", 8), weights.size("group_size", 0)
    if weights.text("type", "int") == "float":
        return ("nvfp4", 0.5 + 1 / 16) if bits == 4 else ("fp8", bits / 8)
    activations = None if first is None else first.section("input_activations")
    return f"w{bits}a{16 if activations is None else activations.size('num_bits', 8)}", bits / 8 + (
        2 / group if group else 0
    )
