"""A model profile from the checkpoint itself: exact bytes from the headers, the architecture from config.json."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.errors import InputRejected
from agent.fit.checkpoint.config_layers import decoder_of
from agent.fit.checkpoint.config_reader import ConfigReader
from agent.fit.checkpoint.config_rope import rope_cache_bytes
from agent.fit.checkpoint.safetensors import SafetensorsHeader
from agent.fit.checkpoint.tensor_groups import TensorCount, count_tensors
from agent.fit.model_and_hardware import LINEAR_GROUPS, LayerGroup, ModelFacts, QuantFacts, TensorGroup, TowerFacts

_TIES_LATE: Final = ("Gemma4",)
"""Architectures whose vLLM class builds the output head and ties it afterwards (vLLM 0.19 to 0.33, gemma4.py)."""

_COMPARED: Final = (
    "hidden", "vocab", "max_position", "layer_count", "layers", "tied", "per_layer_hidden", "quant", "checkpoint_bytes",
)  # fmt: skip
_NEGLIGIBLE: Final = 0.002
"""Share by which two sizes in bytes may differ before they contradict: bundled ones are partly arithmetic."""

_AS_LARGE: Final = 1.05
"""Bundled sizes of towers are partly rounded, and projectors follow the decoder's width."""

_LISTED: Final = 8
"""Missing layers that are listed one by one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelProfile:
    """One checkpoint as it was read.

    Attributes:
        name: What ``--model`` takes.
        source: Where it was read, without credentials.
        read_at: ISO 8601, UTC.
        facts: What the prediction uses.
        dtype_bytes: Bytes per stored dtype.
        tensors, shards: How many.
        contradictions: Where it differs from the bundled entry; the checkpoint wins.
    """

    name: str
    source: str
    read_at: str
    facts: ModelFacts
    dtype_bytes: tuple[tuple[str, int], ...]
    tensors: int
    shards: int
    contradictions: tuple[str, ...] = ()


def profile_of(
    *,
    name: str,
    source: str,
    read_at: str,
    config: bytes,
    headers: Iterable[SafetensorsHeader],
    bundled: Iterable[ModelFacts] = (),
) -> ModelProfile:
    """Turn a checkpoint's config and headers into the facts that predictions use.

    Args:
        name: Name for the profile.
        source: Where it was read.
        read_at: When, ISO 8601.
        config: Bytes of config.json.
        headers: One per shard.
        bundled: The catalogue: an entry of the same name (its owner aside) is contradicted aloud, an entry of the same
            architecture lends what a checkpoint cannot say (oldest vLLM, size of a profiled image).

    Returns:
        The profile; ``facts.measured_bytes`` are exact.

    Raises:
        InputRejected: The config is hostile or lacks a size, there is no tensor, or layers are missing.
    """
    parsed = list(headers)
    read = ConfigReader.of(config)
    text = read.section("text_config") or read
    wanted = text.positive("num_hidden_layers", 2**16)
    count = count_tensors(
        (tensor for header in parsed for tensor in header.tensors),
        decoder_layers=wanted,
        guessing_layers=_guessing_layers(text),
    )
    if not count.total_tensors:
        raise InputRejected(f"no profile was made of {source!r}", why="it holds no tensors", hint="name the folder")
    known = tuple(bundled)
    facts = facts_of(read, count, name=name, source=f"{source}, read {read_at[:10]}", known=known)
    facts = replace(facts, assumptions=(*facts.assumptions, *_all_layers(wanted, count, source=source)))
    same = next((entry for entry in known if _last_word(entry.name) == _last_word(name)), None)
    return ModelProfile(
        name=name,
        source=source,
        read_at=read_at,
        facts=facts,
        dtype_bytes=tuple(count.by_dtype.items()),
        tensors=count.total_tensors,
        shards=len(parsed),
        contradictions=() if same is None else contradictions(same, facts),
    )


def facts_of(
    config: ConfigReader, count: TensorCount, *, name: str, source: str, known: tuple[ModelFacts, ...] = ()
) -> ModelFacts:
    """The facts of one checkpoint.

    Args:
        config: Its config.json.
        count: Its tensors.
        name: Its name.
        source: Source and date, for the report.
        known: Catalogue entries that may be relatives.

    Returns:
        Facts that rest on the checkpoint; what was borrowed or assumed stands in ``assumptions``.

    Raises:
        InputRejected: A size is missing or impossible.
    """
    text = config.section("text_config") or config
    decoder = decoder_of(text)
    base = 4 if set(count.by_dtype) == {"F32"} else 2
    vocab, max_position = text.positive("vocab_size"), text.positive("max_position_embeddings", 2**20)
    architecture = next(iter(config.words("architectures")), "")
    untold = TensorGroup.LM_HEAD not in count.by_group or architecture.startswith("Gemma")
    tied = text.truth("tie_word_embeddings", default=config.truth("tie_word_embeddings", default=untold))
    facts = ModelFacts(
        name=name,
        family=text.text("model_type", config.text("model_type")).removesuffix("_text"),
        size=f"{sum(count.by_group.values()) / base / 1e9:.1f}B",
        architecture=architecture,
        hidden=text.positive("hidden_size"),
        vocab=vocab,
        max_position=max_position,
        layers=decoder.layers,
        quant=quant_of(config, count),
        tied=tied or TensorGroup.LM_HEAD not in count.by_group,
        head_built_before_tying=architecture.startswith(_TIES_LATE),
        per_layer_hidden=text.size("hidden_size_per_layer_input", 0),
        rope_cache_bytes=rope_cache_bytes(text, decoder.layers, max_position, base),
        norm_params=count.by_group.get(TensorGroup.OTHER, 0) // base,
        vision=_tower(count, TensorGroup.VISION, base),
        audio=_tower(count, TensorGroup.AUDIO, base),
        mtp=_guessing(text, decoder.layers) if count.guessing_bytes else None,
        mtp_bytes=count.guessing_bytes,
        measured_bytes=tuple(count.by_group.items()),
        checkpoint_bytes=count.total_bytes,
        unmodelled=decoder.unmodelled,
        sources=(source,),
    )
    return _with_relative(facts, known)


def _guessing(text: ConfigReader, layers: tuple[LayerGroup, ...]) -> LayerGroup | None:
    """The layers that guess tokens have the shape of the decoder's last ones that cache tokens."""
    caching = [group for group in layers if group.owns_kv and group.recurrent is None]
    return replace(caching[-1], count=_guessing_layers(text) or 1) if caching else None


def _guessing_layers(text: ConfigReader) -> int:
    return text.size("num_nextn_predict_layers", 0) or text.size("mtp_num_hidden_layers", 0)


def contradictions(bundled: ModelFacts, read: ModelFacts) -> tuple[str, ...]:
    """Where a checkpoint differs from the bundled entry of its name.

    Args:
        bundled: The catalogue's entry.
        read: What the checkpoint says; it wins.

    Returns:
        One sentence per difference; sizes within 0.2 % do not differ.
    """
    found = []
    for field in _COMPARED:
        before, after = getattr(bundled, field), getattr(read, field)
        if field == "layers":
            before, after = _shape(before), _shape(after)
        elif field == "quant":
            before, after = before.scheme, after.scheme
        elif field == "checkpoint_bytes" and (before is None or abs(before - after) <= _NEGLIGIBLE * after):
            continue
        if before != after:
            found.append(f"{field}: bundled {before!r}, checkpoint {after!r}; the checkpoint's is used")
    return tuple(found)


def _all_layers(wanted: int, count: TensorCount, *, source: str) -> tuple[str, ...]:
    """Refuse a checkpoint that lacks layers; return what has to be taken for granted where names do not tell."""
    if not count.layers and LINEAR_GROUPS & count.by_group.keys():
        return (f"that all {wanted} layers are there, for the tensors' names do not tell",)
    missing = sorted(set(range(wanted)) - count.layers)
    if missing:
        listed = ", ".join(map(str, missing[:_LISTED]))
        which = listed if len(missing) <= _LISTED else f"{len(missing)}: {listed} and more"
        raise InputRejected(
            f"no profile was made of {source!r}",
            why=f"of {wanted} layers it holds nothing of {which}",
            hint="download all files again; the size of a part of a model cannot be computed",
        )
    return ()


def _last_word(name: str) -> str:
    """A mounted folder carries the repository's name without its owner."""
    return name.rstrip("/").rpartition("/")[2].lower()


def _shape(layers: tuple[LayerGroup, ...]) -> list[tuple[Any, ...]]:
    return sorted(
        (g.kind.value, g.count, g.heads, g.kv_heads, g.head_dim, g.owns_kv, g.intermediate, g.experts) for g in layers
    )


def _tower(count: TensorCount, group: TensorGroup, base: int) -> TowerFacts | None:
    held = count.by_group.get(group, 0)
    unnamed = group is TensorGroup.VISION and count.unnamed_bytes > 0
    return TowerFacts(params=held // base, unseen=True, unnamed=unnamed) if held else None


def _with_relative(facts: ModelFacts, known: tuple[ModelFacts, ...]) -> ModelFacts:
    """Borrow what no checkpoint says from a bundled model of the same architecture and shape."""
    alike = [
        entry
        for entry in known
        if (entry.hidden, entry.layer_count, entry.vocab) == (facts.hidden, facts.layer_count, facts.vocab)
    ]
    if not alike:
        return _with_towers(facts, known)
    kin = next((entry for entry in alike if _last_word(entry.name) == _last_word(facts.name)), alike[0])
    return replace(
        facts,
        family=kin.family,
        size=kin.size,
        min_vllm=kin.min_vllm,
        head_built_before_tying=kin.head_built_before_tying,
        rope_cache_bytes=kin.rope_cache_bytes,
        vision=_lend(facts.vision, kin.vision),
        audio=_lend(facts.audio, kin.audio),
        unmodelled=facts.unmodelled or kin.unmodelled,
        assumptions=(*facts.assumptions, f"oldest vLLM and profiled image size as for {kin.name}"),
    )


def _with_towers(facts: ModelFacts, known: tuple[ModelFacts, ...]) -> ModelFacts:
    """Borrow what profiling images takes from the bundled model of this architecture that takes most."""
    kin = [
        entry for entry in known if entry.architecture == facts.architecture and _is_covered(facts.vision, entry.vision)
    ]
    if not kin or facts.vision is None:
        return facts
    most = max(kin, key=lambda entry: (entry.vision and entry.vision.profile_bytes_per_token) or 0)
    assumption = f"size and memory of a profiled image as for {most.name}"
    return replace(facts, vision=_lend(facts.vision, most.vision), assumptions=(*facts.assumptions, assumption))


def _lend(read: TowerFacts | None, kin: TowerFacts | None) -> TowerFacts | None:
    """What a relative's tower takes to profile, unless the tower that was read is larger."""
    return (
        read
        if read is None or kin is None or not _is_covered(read, kin)
        else replace(kin, params=read.params, unnamed=read.unnamed)
    )


def _is_covered(read: TowerFacts | None, kin: TowerFacts | None) -> bool:
    return read is not None and kin is not None and read.params <= kin.params * _AS_LARGE


_CACHE_KEYS: Final = ("kv_cache_scheme", "kv_cache_quant_algo")
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
    return QuantFacts(
        scheme=scheme,
        bytes_per_param=per_param,
        groups=count.narrow or LINEAR_GROUPS,
        narrows_cache=_narrows_cache(section),
    )


def _narrows_cache(section: ConfigReader) -> str:
    """Which tool asks for a KV cache of 8-bit floats in this section; "" if none does.

    Source: vllm/utils/torch_utils.py get_kv_cache_quant_algo_string of 0.14.0 and 0.19.0; for compressed-tensors
    vllm/model_executor/layers/attention/attention.py of 0.17.1 to 0.33.0, read 2026-11-23.
    """
    tool = section.text("quant_method", section.text("quant_algo")).lower()
    tool = "modelopt" if tool.startswith("modelopt") else tool
    inner = section.section("quantization") or section
    asked = next((v for at in (inner, section) for key in _CACHE_KEYS if (v := at.values.get(key))), None)
    if isinstance(asked, dict):
        asked = "fp8" if (asked.get("num_bits"), asked.get("type")) == (8, "float") else None
    return tool if tool in {"modelopt", "compressed-tensors"} and str(asked).lower() == "fp8" else ""


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
