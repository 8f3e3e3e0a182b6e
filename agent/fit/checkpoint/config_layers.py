"""The decoder layers that a config.json describes, as groups of layers that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.fit.checkpoint.config_reader import ConfigReader
from agent.fit.model_and_hardware import AttentionKind, LayerGroup, RecurrentState

_MAX_LAYERS: Final = 4096
_PERIODS: Final = {"gemma2": 2, "gemma3_text": 6}  # the models' own defaults where the config leaves the key out
_NOTHING: Final = LayerGroup(count=1, kind=AttentionKind.FULL, heads=0, kv_heads=0, head_dim=0, owns_kv=False)
_INDEXER: Final = frozenset({"index_topk", "index_n_heads", "index_head_dim", "indexer_rope_interleave"})
_SPARSE: Final = frozenset({"deepseek_v32", "glm_moe_dsa"})
_INDEX_BYTES: Final = 132
"""128 elements in 8 bits and a scale: vllm/model_executor/models/deepseek_v2.py of 0.21.0, read 2026-11-23."""

_MAMBA: Final = ("mamba_d_state", "mamba_expand", "mamba_num_heads")
_UNREAD: Final = (
    "attention_chunk_size", "attn_layer_indices", "attn_layer_period", "attn_type_list", "block_configs", "block_types",
    "compress_ratios", "cross_attention_layers", "full_attn_idxs", "hybrid_layer_pattern", "is_encoder_decoder",
    "layer_group_size", "layers_block_type", "linear_attn_config", "mamba_d_ssm", "nsa_config", "num_attention_groups",
    "num_key_value_heads_per_layer", "sparse_attention_config", "ssm_cfg", "state_size", "swa_num_key_value_heads",
)  # fmt: skip
"""Keys of models whose layers keep what this grammar has no word for: Mamba beside attention (Jamba, Bamba, Falcon H1),
chunks (Llama 4), encoders (Whisper, Mllama), Kimi Linear, MiniMax 01, MiMo V2,
Step 3.5, Nemotron NAS, DeepSeek V4. Names as in transformers 5.23 and vllm/transformers_utils/configs of 0.33.0, read
2026-11-23."""

_KINDS: Final = {
    "full_attention": AttentionKind.FULL,
    "attention": AttentionKind.FULL,
    "sliding_attention": AttentionKind.SLIDING,
    "linear_attention": AttentionKind.RECURRENT,
    "mamba": AttentionKind.RECURRENT,
    "conv": AttentionKind.RECURRENT,
}
_PATTERN: Final = {"M": "mamba", "*": "full_attention", "-": "mlp", "E": "moe"}
"""Layers of Nemotron H, each of which has one part alone."""

_NO_ATTENTION: Final = frozenset({"mlp", "moe"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoder:
    """What the config says of the decoder.

    Attributes:
        layers: Groups of equal layers, in order of first appearance; those of an unknown type stand as full attention.
        unmodelled: What this grammar cannot say, "" if nothing.
    """

    layers: tuple[LayerGroup, ...]
    unmodelled: str = ""


def decoder_of(text: ConfigReader) -> Decoder:
    """Group a decoder's layers by shape.

    Key names follow transformers 5.23 (configuration_gemma4.py, configuration_qwen3_next.py and the Llama,
    Mistral, Mixtral and DeepSeek configurations), read 2026-11-21.

    Args:
        text: The language model's level of the config.

    Returns:
        Groups whose counts add up to ``num_hidden_layers``.

    Raises:
        InputRejected: A missing or impossible size, or ``layer_types`` of another length.
    """
    count = text.positive("num_hidden_layers")
    if count > _MAX_LAYERS:
        raise text.refuse(f"'num_hidden_layers' is {count}, want at most {_MAX_LAYERS}")
    types = _layer_types(text, count)
    strange = sorted({name for name in types if name not in _KINDS and name not in _NO_ATTENTION})
    why = f"layers of type {strange[0][:60]!r} are not known here" if strange else _unread(text, frozenset(types))
    shared_from = count - text.size("num_kv_shared_layers", 0)
    groups: Counter[LayerGroup] = Counter()
    for index, name in enumerate(types):
        shape = _NOTHING if name in _NO_ATTENTION else replace(_attention(text, name), owns_kv=index < shared_from)
        if name in _NO_ATTENTION or _NO_ATTENTION.isdisjoint(types):
            shape = _feed_forward(text, shape, index=index, shares_kv=index >= shared_from)
        groups[shape] += 1
    layers = tuple(replace(shape, count=number) for shape, number in groups.items())
    return Decoder(layers=layers, unmodelled=why)


def _unread(text: ConfigReader, types: frozenset[str]) -> str:
    """What the first key does that announces memory of a kind not read here; "" if none does."""
    strange = (key for key in text.values if key.startswith("index") and key not in _INDEXER)
    has_types = bool(text.words("layer_types"))  # all of them known: sizes of layers that it lacks were left in
    for key in (*_UNREAD, *(() if "mamba" in types or has_types else _MAMBA), *strange):
        value = text.values.get(key)
        if value and not (key == "attn_type_list" and set(value) == {1}):
            return f"what {key[:60]!r} of its config does to memory is not known here"
    if "mamba" in types and not _heads_of_mamba2(text):
        return "layers of type 'mamba' without heads, of its first kind, are not known here"
    if "hybrid_override_pattern" in text.values and not text.text("mamba_ssm_cache_dtype"):
        return "its config does not say how wide a Mamba state is, and versions of vLLM differ"
    return ""


def _layer_types(text: ConfigReader, count: int) -> Sequence[str]:
    given = text.words("layer_types")
    if given:
        if len(given) != count:
            raise text.refuse(f"'layer_types' has {len(given)} entries for {count} layers")
        return given
    if pattern := text.text("hybrid_override_pattern"):
        if len(pattern) != count:
            raise text.refuse(f"'hybrid_override_pattern' has {len(pattern)} layers, want {count}")
        return [_PATTERN.get(letter, letter) for letter in pattern]
    if period := text.size("full_attention_interval", 0):  # Qwen 3 Next
        return ["linear_attention" if (index + 1) % period else "full_attention" for index in range(count)]
    slides = text.values.get("sliding_window") is not None and text.truth("use_sliding_window", default=True)
    if not slides:
        return ["full_attention"] * count
    period = text.size("sliding_window_pattern", _PERIODS.get(text.text("model_type"), 0))
    if period:  # Gemma 2 and 3: every period-th layer sees everything
        return ["full_attention" if (index + 1) % period == 0 else "sliding_attention" for index in range(count)]
    first = text.size("max_window_layers", 0)  # Qwen 2: full attention up to here
    return ["full_attention" if index < first else "sliding_attention" for index in range(count)]


def _attention(text: ConfigReader, name: str) -> LayerGroup:
    kind = _KINDS.get(name, AttentionKind.FULL)
    if name == "mamba" and not _heads_of_mamba2(text):
        kind = AttentionKind.FULL
    if kind is AttentionKind.RECURRENT:
        state = {"mamba": _mamba2, "conv": _short_convolution}.get(name, _recurrent)(text)
        return LayerGroup(count=1, kind=kind, heads=0, kv_heads=0, head_dim=0, recurrent=state)
    rank = text.size("kv_lora_rank", 0)
    if rank:
        return _latent(text, rank)
    heads = text.positive("num_attention_heads")
    head_dim = text.positive("head_dim", text.positive("hidden_size") // heads or None)
    kv_heads = text.positive("num_key_value_heads", heads)
    full = kind is AttentionKind.FULL
    keys_are_values = full and text.truth("attention_k_eq_v", default=False)
    if full and keys_are_values:
        kv_heads = text.positive("num_global_key_value_heads", kv_heads)
    return LayerGroup(
        count=1,
        kind=kind,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=text.positive("global_head_dim", head_dim) if full else head_dim,
        window_tokens=None if full else text.positive("sliding_window"),
        keys_are_values=keys_are_values,
        has_bias=text.truth("attention_bias", default=text.text("model_type").startswith("qwen2")),
        gated_output=text.truth("attn_output_gate", default=text.text("model_type").startswith("qwen3_next")),
    )


def _latent(text: ConfigReader, rank: int) -> LayerGroup:
    """Multi-head latent attention (DeepSeek): one compressed vector per token, shared by all heads."""
    heads, hidden = text.positive("num_attention_heads"), text.positive("hidden_size")
    rope, nope = text.size("qk_rope_head_dim", 0), text.size("qk_nope_head_dim", 0)
    value, query_rank = text.positive("v_head_dim", text.size("head_dim", 0) or None), text.size("q_lora_rank", 0)
    query = heads * (nope + rope)
    params = hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden
    params += query_rank * (hidden + query) if query_rank else hidden * query
    return LayerGroup(
        count=1,
        kind=AttentionKind.LATENT,
        heads=heads,
        kv_heads=1,
        head_dim=nope + rope,
        latent_elements=rank + rope,
        index_bytes=_INDEX_BYTES if text.size("index_topk", 0) or text.text("model_type") in _SPARSE else None,
        attention_params=params,
        replicated_params=hidden * (query_rank + rank + rope),
    )


def _recurrent(text: ConfigReader) -> RecurrentState:
    """Gated delta net as in transformers' Qwen3Next: convolution over q, k, v; one matrix per value head."""
    hidden = text.positive("hidden_size")
    key_heads, value_heads = text.positive("linear_num_key_heads"), text.positive("linear_num_value_heads")
    key_dim, value_dim = text.positive("linear_key_head_dim"), text.positive("linear_value_head_dim")
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolved = 2 * keys + values
    return RecurrentState(
        conv_elements=convolved * (text.positive("linear_conv_kernel_dim", 4) - 1),
        ssm_elements=value_heads * key_dim * value_dim,
        ssm_bytes_per_element=4 if text.text("mamba_ssm_dtype") == "float32" else 2,
        weight_params=hidden * (2 * keys + 2 * values + 2 * value_heads) + values * hidden,
        conv_elements_per_token=convolved,
    )


def _heads_of_mamba2(text: ConfigReader) -> int:
    return text.size("mamba_n_heads", 0) or text.size("mamba_num_heads", 0)


def _mamba2(text: ConfigReader) -> RecurrentState:
    """Mamba 2 by the names of Granite 4.0 H or of Nemotron H.

    Source: vllm/model_executor/layers/mamba/mamba_utils.py mamba2_state_shape of 0.33.0, read 2026-11-23.
    """
    hidden, heads = text.positive("hidden_size"), _heads_of_mamba2(text)
    head_dim = text.size("mamba_d_head", 0) or text.positive("mamba_head_dim")
    state = text.size("mamba_d_state", 0) or text.positive("ssm_state_size")
    groups = text.size("mamba_n_groups", 0) or text.positive("n_groups", 1)
    kernel = text.size("mamba_d_conv", 0) or text.positive("conv_kernel", 4)
    inner = heads * head_dim
    convolved = inner + 2 * groups * state
    return RecurrentState(
        conv_elements=convolved * (kernel - 1),
        ssm_elements=inner * state,
        ssm_bytes_per_element=4 if text.text("mamba_ssm_cache_dtype") == "float32" else 2,
        weight_params=hidden * (inner + convolved + heads) + inner * hidden + convolved * (kernel + 1),
        conv_elements_per_token=convolved,
        is_mamba2=True,
    )


def _short_convolution(text: ConfigReader) -> RecurrentState:
    """LFM2: the last inputs of a convolution alone.

    Source: vllm/model_executor/layers/mamba/mamba_utils.py short_conv_state_shape of 0.33.0, read 2026-11-23.
    """
    hidden, kernel = text.positive("hidden_size"), text.positive("conv_L_cache")
    return RecurrentState(
        conv_elements=hidden * (kernel - 1),
        ssm_elements=0,
        ssm_bytes_per_element=2,
        weight_params=4 * hidden * hidden + kernel * hidden,
        conv_elements_per_token=hidden,
    )


def _feed_forward(text: ConfigReader, shape: LayerGroup, *, index: int, shares_kv: bool) -> LayerGroup:
    widths = text.sizes("intermediate_size") if isinstance(text.values.get("intermediate_size"), list) else ()
    dense = widths[index] if index < len(widths) else 0 if widths else text.size("intermediate_size", 0)
    if shares_kv and text.truth("use_double_wide_mlp", default=False):
        dense *= 2
    experts = next((n for key in _EXPERT_KEYS if (n := text.size(key, 0))), 0)
    if not experts or not _is_sparse(text, index):
        return replace(shape, intermediate=dense)
    wide = text.size("moe_intermediate_size", 0) or dense
    shared = next((n for key in _SHARED_KEYS if (n := text.size(key, 0))), text.size("n_shared_experts", 0) * wide)
    return replace(
        shape,
        intermediate=dense if text.truth("enable_moe_block", default=False) else 0,  # Gemma 4 runs both and adds
        experts=experts,
        expert_intermediate=wide,
        shared_intermediate=shared,
        active_experts=next((n for key in _ACTIVE_KEYS if (n := text.size(key, 0))), 1),
    )


_EXPERT_KEYS: Final = ("num_experts", "num_local_experts", "n_routed_experts")
_SHARED_KEYS: Final = (
    "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
)  # fmt: skip
_ACTIVE_KEYS: Final = ("top_k_experts", "num_experts_per_tok")


def _is_sparse(text: ConfigReader, index: int) -> bool:
    if text.values.get("enable_moe_block") is False or index in text.sizes("mlp_only_layers"):
        return False
    if index < len(given := text.words("mlp_layer_types")):
        return given[index] != "dense"
    if index < (text.size("first_k_dense_replace", 0) or text.size("num_dense_layers", 0)):
        return False
    return (index + 1) % text.positive("decoder_sparse_step", 1) == 0
