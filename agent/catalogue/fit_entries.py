"""One entry of the memory prediction's data files, turned into a value or refused with its mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from agent.fit.bounds import GIB, Bounds
from agent.fit.model_and_hardware import (
    AcceleratorFacts,
    AcceleratorKind,
    AttentionKind,
    LayerGroup,
    ModelFacts,
    QuantFacts,
    RecurrentState,
    TensorGroup,
    TowerFacts,
)
from agent.fit.version_rules import FlagVersions, VersionRules

_PEER_GIB = (0.05, 0.2, 0.7)
"""What tensor parallelism adds where nothing else was measured: recorded start-ups of two and four cards."""
_OF_SCHEME = frozenset({"patterns", "untold", "note"})
_OF_MODEL = frozenset({
    "aliases", "variants", "siblings", "source", "date", "stored", "stored_groups", "stored_widths", "stored_heavier",
    "assistant_gib", "assistant_note", "published_params", "published_text_params",
})  # fmt: skip
_OF_VARIANT = frozenset({"id", "source", "served_gib"})
_OF_SIBLING = frozenset({"id", "max_position", "source", "tied", "other_positions"})
_OF_CARD = frozenset({
    "aliases", "total_gib", "bandwidth_gb_per_s", "pcie_gb_per_s", "context_gib", "peer_gib", "peer_context_gib",
    "load_gib",
})  # fmt: skip
"""Keys of the files beside the names of the value's own fields; any other is a misspelled one, and refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantScheme:
    """A way to store weights and the name fragments that announce it.

    Attributes:
        facts: The storage.
        patterns: The fragments; one without a digit names a method ("gptq"), the others a width too.
        untold: Bytes per parameter at most where a name announces the method and no width.
    """

    facts: QuantFacts
    patterns: tuple[str, ...]
    untold: float

    def words_in(self, name: str) -> list[str]:
        """The fragments that stand alone in a lower-case name."""
        return [word for word in self.patterns if re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", name)]


def scheme_from_entry(name: str, entry: Mapping[str, Any]) -> QuantScheme:
    """A storage scheme: bytes per parameter, the groups it usually covers, and what announces it."""
    _refuse_strangers(entry, QuantFacts, _OF_SCHEME)
    bytes_per_param = float(entry["bytes_per_param"])
    if not 0.1 < bytes_per_param <= 4:
        raise ValueError(f"bytes_per_param is {bytes_per_param}")
    facts = QuantFacts(
        scheme=name,
        bytes_per_param=bytes_per_param,
        groups=frozenset(TensorGroup(group) for group in entry["groups"]),
        base_bytes_per_param=int(entry["base_bytes_per_param"]),
        uncertainty=float(entry["uncertainty"]),
        heavier=float(entry.get("heavier", 0.0)),
    )
    return QuantScheme(facts=facts, patterns=tuple(entry["patterns"]), untold=float(entry.get("untold", 0.0)))


def model_from_entry(entry: Mapping[str, Any], schemes: Mapping[str, QuantFacts]) -> ModelFacts:
    """A model as its publisher stores it (``stored``, bf16 unless named)."""
    _refuse_strangers(entry, ModelFacts, _OF_MODEL)
    layers = tuple(_layer(layer) for layer in entry["layers"])
    if not layers or not entry["source"] or not entry["date"]:
        raise ValueError("it needs layers, a source and a date")
    for key in ("hidden", "vocab", "max_position"):
        if int(entry[key]) <= 0:
            raise ValueError(f"{key} is {entry[key]!r}")
    return ModelFacts(
        name=entry["name"],
        family=entry["family"],
        size=entry["size"],
        architecture=entry["architecture"],
        hidden=int(entry["hidden"]),
        vocab=int(entry["vocab"]),
        max_position=int(entry["max_position"]),
        layers=layers,
        quant=_stored(entry, schemes),
        other_positions=tuple(int(positions) for positions in entry.get("other_positions", ())),
        tied=bool(entry.get("tied", False)),
        head_built_before_tying=bool(entry.get("head_built_before_tying", False)),
        per_layer_hidden=int(entry.get("per_layer_hidden", 0)),
        deepstack_levels=int(entry.get("deepstack_levels", 0)),
        rope_cache_bytes=int(entry["rope_cache_bytes"]),
        norm_params=int(entry["norm_params"]),
        vision=_tower(entry.get("vision")),
        audio=_tower(entry.get("audio")),
        mtp=_layer(entry["mtp"]) if "mtp" in entry else None,
        assistant_bytes=_gib(entry["assistant_gib"]) if "assistant_gib" in entry else None,
        min_vllm=str(entry.get("min_vllm", "")),
        unmodelled=str(entry.get("unmodelled", "")),
        sources=(f"{entry['name']}: {entry['source']} ({entry['date']})",),
    )


def variant_of(base: ModelFacts, entry: Mapping[str, Any], schemes: Mapping[str, QuantFacts]) -> ModelFacts:
    """Another checkpoint of the same architecture, stored otherwise."""
    _refuse_strangers(entry, QuantFacts, _OF_VARIANT)
    known = schemes.get(entry["scheme"])
    if known is None and "served_gib" not in entry:
        raise ValueError(f"variant {entry['id']!r} has an unknown scheme {entry['scheme']!r}")
    quant = known or replace(base.quant, scheme=entry["scheme"])
    quant = replace(
        quant,
        bytes_per_param=float(entry.get("bytes_per_param", quant.bytes_per_param)),
        groups=frozenset(TensorGroup(group) for group in entry["groups"]) if "groups" in entry else quant.groups,
        uncertainty=float(entry.get("uncertainty", 0.0)),
        heavier=float(entry.get("heavier", 0.0)),
        widths=tuple((TensorGroup(group), float(width)) for group, width in entry.get("widths", {}).items()),
        narrows_cache=str(entry.get("narrows_cache", "")),
    )
    if strangers := {group for group, _ in quant.widths} - quant.groups:
        raise ValueError(
            f"variant {entry['id']!r} gives a width of {min(strangers).value!r}, which it does not quantise"
        )
    served = None
    if "served_gib" in entry:
        low, high = (int(gib * GIB) for gib in entry["served_gib"])
        served = Bounds(low=low, best=(low + high) // 2, high=high)
    source = f"{entry['id']}: {entry['source']}" if entry.get("source") else f"{entry['id']}: published quantisation"
    return replace(base, name=entry["id"], quant=quant, served_bytes=served, sources=(*base.sources, source))


def is_publishers_own(facts: ModelFacts) -> bool:
    """True for mixed widths or a cache's type, which another publisher's checkpoint of that name need not share."""
    leaves_wide = TensorGroup.RECURRENT not in facts.quant.groups and facts.served_bytes is None
    own = bool(facts.quant.widths or facts.quant.narrows_cache)
    return own or (leaves_wide and any(layer.recurrent is not None for layer in facts.layers))


def sibling_of(base: ModelFacts, entry: Mapping[str, Any]) -> ModelFacts:
    """A checkpoint of the same shape that was published with another context, hence another rope table."""
    _refuse_strangers(entry, None, _OF_SIBLING)
    positions, source = int(entry["max_position"]), entry["source"]
    if positions <= 0 or not source:
        raise ValueError(f"sibling {entry['id']!r} needs its max_position and a source")
    return replace(
        base,
        name=entry["id"],
        max_position=positions,
        other_positions=tuple(int(others) for others in entry.get("other_positions", ())),
        rope_cache_bytes=base.rope_cache_bytes * positions // base.max_position,
        tied=bool(entry.get("tied", base.tied)),
        sources=(*base.sources, f"{entry['id']}: {source}"),
    )


def accelerator_from_entry(entry: Mapping[str, Any]) -> AcceleratorFacts:
    """An accelerator; memory in GiB in the file, bytes in the value."""
    _refuse_strangers(entry, AcceleratorFacts, _OF_CARD)
    kind = AcceleratorKind(entry["kind"])
    total = entry["total_gib"]
    if (total is None) != (kind is AcceleratorKind.CPU) or not entry["source"] or not entry["date"]:
        raise ValueError("it needs its memory (all but cpu), a source and a date")
    capability = entry["compute_capability"]
    return AcceleratorFacts(
        name=entry["name"],
        kind=kind,
        total_bytes=_gib(total) if total is not None else None,
        compute_capability=None if capability is None else (int(capability[0]), int(capability[1])),
        bandwidth_bytes_per_s=_per_s(entry["bandwidth_gb_per_s"]),
        pcie_bytes_per_s=_per_s(entry["pcie_gb_per_s"]),
        context_bytes=_gib(entry["context_gib"]),
        source=entry["source"],
        date=entry["date"],
        peer_bytes=_gib(entry.get("peer_gib", _PEER_GIB)),
        peer_context_bytes=_gib(entry.get("peer_context_gib", (0, 0, 0))),
        unified=bool(entry.get("unified", False)),
        small_batch=bool(entry.get("small_batch", False)),
        default_batched_tokens=entry.get("default_batched_tokens"),
        load_bytes=_gib(entry.get("load_gib", (0, 0, 0))),
        multiprocessors=entry.get("multiprocessors"),
    )


def flag_versions(document: Mapping[str, Any]) -> dict[str, FlagVersions]:
    """Which versions take a flag, or a value of it: the neighbours of each end are found in the list of those read."""
    read = [tuple(map(int, version.split("."))) for version in document["read"]]
    values = document.get("values", {})
    found: dict[str, FlagVersions] = {f"{name}=": (None, None, None, None) for name in values}
    named = {f"{name}={value}": ends for name, spans in values.items() for value, ends in spans.items()}
    for name, (first, last) in (document["names"] | named).items():
        start, end = (None if end is None else read.index(tuple(map(int, end.split(".")))) for end in (first, last))
        if start == 0 or end == len(read) - 1 or (start is not None and end is not None and start > end):
            raise ValueError(f"{name!r} has {first!r} and {last!r}: an end of the list is null, and first comes first")
        found[name] = (
            *((None, None) if start is None else (read[start - 1], read[start])),
            *((None, None) if end is None else (read[end], read[end + 1])),
        )
    switches = frozenset(document.get("switches", ()))
    found |= {f"no-{name}": found[name] for name in switches if name in found}
    return found | {f"no-{name}=": (None, None, None, None) for name in document.get("valued", ())}


def version_from_entry(
    entry: Mapping[str, Any], harmless: frozenset[str], spans: Mapping[str, FlagVersions]
) -> VersionRules:
    """One version's rules; the lists of flags are common to all."""
    if not 0 < float(entry["default_utilisation"]) <= 1 or str(entry["version"]).count(".") != 2:
        raise ValueError("it needs a version of three numbers and a utilisation between 0 and 1")
    _refuse_strangers(entry, VersionRules, frozenset({"date"}))
    known = {field.name: field.type for field in fields(VersionRules)}
    answers = {"bool", "bool | None"}
    rules: dict[str, Any] = {name: bool(value) for name, value in entry.items() if known.get(name) in answers}
    return VersionRules(
        version=str(entry["version"]),
        default_utilisation=float(entry["default_utilisation"]),
        group_padding_limit=float(entry.get("group_padding_limit", 1.5)),
        chunk_tokens=int(entry.get("chunk_tokens", 2048)),
        harmless_flags=harmless,
        flag_versions=spans,
        source=f"{entry['source']} ({entry['date']})",
        **rules,
    )


def _refuse_strangers(entry: Mapping[str, Any], value: Any, more: frozenset[str]) -> None:
    """Refuse an entry with a key that nobody reads: it would hold for the default without a word."""
    named = {field.name for field in fields(value)} if value is not None else set()
    if strangers := entry.keys() - named - more:
        raise ValueError(f"unknown key {min(strangers)!r}")


def _layer(entry: Mapping[str, Any]) -> LayerGroup:
    state = entry.get("recurrent")
    pairs = {"expert_padding", "expert_shape"}
    fields = {key: value for key, value in entry.items() if key not in {"kind", "recurrent", *pairs}}
    layer = LayerGroup(
        kind=AttentionKind(entry["kind"]),
        recurrent=None if state is None else RecurrentState(**state),
        expert_padding=_pair(entry.get("expert_padding")),
        expert_shape=_pair(entry.get("expert_shape")),
        **fields,
    )
    bounded = layer.kind in {AttentionKind.SLIDING, AttentionKind.CROSS}
    if layer.count <= 0 or bounded != (layer.window_tokens is not None):
        raise ValueError(f"layers {entry!r} need a count, and a window exactly when they slide or cross")
    return layer


def _pair(values: Any) -> tuple[int, int] | None:
    return None if values is None else (int(values[0]), int(values[1]))


def _stored(entry: Mapping[str, Any], schemes: Mapping[str, QuantFacts]) -> QuantFacts:
    """The publisher's own storage is known: what other publishers leave wider does not count."""
    name = entry.get("stored", "bf16")
    quant = replace(schemes[name], heavier=float(entry.get("stored_heavier", 0.0)))
    groups = entry.get("stored_groups", ["experts"] if name == "mxfp4" else None)
    widths = tuple((TensorGroup(group), float(width)) for group, width in entry.get("stored_widths", {}).items())
    kept = quant.groups if groups is None else frozenset(TensorGroup(group) for group in groups)
    return replace(quant, groups=kept, widths=widths)


def _tower(entry: Mapping[str, Any] | None) -> TowerFacts | None:
    return None if entry is None else TowerFacts(unnamed=False, **entry)


def _gib(values: Any) -> Bounds:
    low, best, high = (int(value * GIB) for value in values)
    return Bounds(low=low, best=best, high=high)


def _per_s(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else int(gigabytes * 10**9)
