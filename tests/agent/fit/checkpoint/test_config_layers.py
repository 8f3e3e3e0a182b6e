"""Layers as config.json describes them."""

import json
from dataclasses import replace

import pytest

from agent.errors import InputRejected
from agent.fit.checkpoint.config_layers import decoder_of
from agent.fit.checkpoint.config_reader import ConfigReader
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import AttentionKind as K
from tests.outside import shared


def decoder(**values):
    return decoder_of(ConfigReader(values={"hidden_size": 64, "num_hidden_layers": 4, **values}, where="config.json"))


@pytest.mark.parametrize("size", ["E2B", "E4B", "12B", "26B-A4B", "31B"])
def test_the_layers_of_gemma_4_add_up_to_the_parameters_of_its_checkpoint(size):
    """Widths, shared KV, K=V, double-wide MLP and experts at once: one wrong shape breaks the sum."""
    entry = json.loads(shared("data", "models.json").read_text())["models"][size]
    text = dict(entry["text"])
    full = set(text["full_attention_layer_indices"])
    text["layer_types"] = [
        "full_attention" if index in full else "sliding_attention" for index in range(text["num_hidden_layers"])
    ]
    layers = decoder_of(ConfigReader(values=text, where="x")).layers
    linears = experts = 0
    for group in layers:
        projections = 2 * group.heads + group.kv_heads * (1 if group.keys_are_values else 2)
        linears += group.count * text["hidden_size"] * (projections * group.head_dim + 3 * group.intermediate)
        experts += group.count * 3 * text["hidden_size"] * group.experts * group.expert_intermediate
    assert (linears, experts) == (entry["params"]["decoder_linears"], entry["params"]["experts"])
    owning = {kind: sum(g.count for g in layers if g.kind is kind and g.owns_kv) for kind in (K.SLIDING, K.FULL)}
    assert owning == {K.SLIDING: text["own_kv_layers"]["sliding"], K.FULL: text["own_kv_layers"]["full"]}


def test_a_plain_llama_is_one_group_with_its_head_size_derived():
    (group,) = decoder(num_attention_heads=8, num_key_value_heads=2, intermediate_size=256).layers
    assert (group.count, group.kind, group.heads, group.kv_heads, group.head_dim) == (4, K.FULL, 8, 2, 8)


def test_gemma_3_lets_every_sixth_layer_see_everything_even_where_the_config_does_not_say_so():
    layers = decoder(
        model_type="gemma3_text", num_hidden_layers=12, num_attention_heads=4, sliding_window=512, intermediate_size=8
    ).layers
    assert {(g.kind, g.count, g.window_tokens) for g in layers} == {(K.SLIDING, 10, 512), (K.FULL, 2, None)}


def test_qwen_2_with_its_window_switched_off_is_all_full_and_has_biases():
    (group,) = decoder(
        model_type="qwen2", num_attention_heads=4, sliding_window=4096, use_sliding_window=False, intermediate_size=8
    ).layers
    assert (group.kind, group.has_bias) == (K.FULL, True)


def test_mixture_layers_are_told_from_the_dense_ones_before_them():
    layers = decoder(
        num_attention_heads=4,
        intermediate_size=100,
        n_routed_experts=16,
        n_shared_experts=2,
        num_experts_per_tok=4,
        moe_intermediate_size=10,
        first_k_dense_replace=1,
    ).layers
    assert [(g.count, g.intermediate, g.experts, g.expert_intermediate, g.shared_intermediate) for g in layers] == [
        (1, 100, 0, 0, 0),
        (3, 0, 16, 10, 20),
    ]


def test_latent_attention_caches_one_vector_for_all_heads():
    (group,) = decoder(
        num_attention_heads=4,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        intermediate_size=8,
    ).layers
    assert (group.kind, group.latent_elements) == (K.LATENT, 576)


def test_a_layer_type_nobody_here_knows_is_said_not_guessed():
    read = decoder(num_attention_heads=4, intermediate_size=8, layer_types=["mamba"] * 4)
    assert "'mamba'" in read.unmodelled
    assert sum(group.count for group in read.layers) == 4  # a decoder without layers once broke the prediction


@pytest.mark.parametrize(
    ("values", "why"),
    [
        pytest.param(
            {"num_hidden_layers": 5, "layer_types": ["full_attention"]}, "1 entries for 5", id="list too short"
        ),
        pytest.param({"num_hidden_layers": 10**9}, "at most 4096", id="a billion layers"),
        pytest.param({"num_hidden_layers": 0}, "at least 1", id="no layers"),
        pytest.param({"num_attention_heads": -1}, "whole number", id="negative heads"),
        pytest.param({"num_attention_heads": "8"}, "whole number", id="heads as text"),
        pytest.param({"num_attention_heads": True}, "whole number", id="heads as a truth"),
        pytest.param({"num_attention_heads": None}, "'num_attention_heads' is None", id="no heads"),
    ],
)
def test_an_impossible_size_is_refused_by_its_key(values, why):
    with pytest.raises(InputRejected, match=r"config\.json") as caught:
        decoder(**{"num_attention_heads": 4, "intermediate_size": 8, **values})
    assert why in str(caught.value)


DELTA = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
HYBRIDS = {
    "Qwen/Qwen3.5-9B": {
        **DELTA,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "intermediate_size": 12288,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 8,
        "attn_output_gate": True,
        "mamba_ssm_dtype": "float32",
    },
    "Qwen/Qwen3-Next-80B-A3B-Instruct": {
        **DELTA,
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "full_attention_interval": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "intermediate_size": 5120,
        "num_experts": 512,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_experts_per_tok": 10,
        "decoder_sparse_step": 1,
    },
    "ibm-granite/granite-4.0-h-micro": {
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        "shared_intermediate_size": 8192,
        "num_local_experts": 0,
        "layer_types": ["mamba"] * 36 + ["attention"] * 4,
        "mamba_n_heads": 64,
        "mamba_d_head": 64,
        "mamba_n_groups": 1,
        "mamba_d_state": 128,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
    },
}


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_config_that_is_read_makes_the_layers_that_are_bundled(catalogue, name):
    """Once the states of recurrent layers were not cached at all where a checkpoint was read."""
    read = decoder(**HYBRIDS[name])
    assert set(read.layers) == set(catalogue.models.find(name).layers)
    assert read.unmodelled == ""


def test_the_parts_of_nemotron_h_are_layers_of_their_own(catalogue):
    pattern = "M-" * 25 + "MM****"
    told = {
        "hidden_size": 4480,
        "num_hidden_layers": len(pattern),
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 15680,
        "hybrid_override_pattern": pattern,
        "mamba_num_heads": 128,
        "mamba_head_dim": 80,
        "n_groups": 8,
        "ssm_state_size": 128,
        "conv_kernel": 4,
    }
    read = decoder(**told, mamba_ssm_cache_dtype="float16")
    states = {(g.recurrent, g.count) for g in read.layers if g.recurrent is not None}
    bundled = catalogue.models.find("nvidia/NVIDIA-Nemotron-Nano-9B-v2")
    assert states == {(bundled.layers[0].recurrent, 27)}
    assert {(g.intermediate, g.count, g.owns_kv) for g in read.layers if g.intermediate} == {(15680, 25, False)}
    assert {(g.heads, g.kv_heads, g.count) for g in read.layers if g.heads} == {(40, 8, 4)}
    assert read.unmodelled == ""
    assert "how wide" in decoder(**told).unmodelled


def test_short_convolutions_keep_their_last_inputs(catalogue):
    """Recorded: LFM2.5 1.2B printed 2,324,244 tokens in 13.33 GiB (0.26.0, 8-bit cache, public file 60449471537)."""
    read = decoder(
        hidden_size=2048,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=8192,
        layer_types=["conv"] * 10 + ["full_attention"] * 6,
        conv_L_cache=3,
    )
    model = replace(catalogue.models.find("Qwen/Qwen3-1.7B"), layers=read.layers, max_position=32768)
    flags = parse_flags(
        "--max-model-len 32768 --kv-cache-dtype fp8 --max-num-batched-tokens 1024 --enable-prefix-caching"
    )
    pool = replace(flags, kv_cache_memory_bytes=int(13.33 * 2**30))
    report = predict(model, catalogue.accelerator("nvidia-h100-80gb"), 1, pool, catalogue.rules("0.26.0"))
    assert report.kv_tokens.best == pytest.approx(2_324_244, rel=0.001)


def test_qwen_3_next_names_an_interval_instead_of_types():
    layers = decoder(
        full_attention_interval=4,
        num_hidden_layers=8,
        num_attention_heads=4,
        intermediate_size=8,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
    ).layers
    assert {(g.kind, g.count) for g in layers} == {(K.RECURRENT, 6), (K.FULL, 2)}


def test_sparse_attention_brings_its_indexer():
    latent = {"kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
    plain, sparse = (
        decoder(num_attention_heads=4, intermediate_size=8, **latent, **more).layers[0]
        for more in ({}, {"index_topk": 64})
    )
    assert (plain.index_bytes, sparse.index_bytes) == (None, 132)
    (named,) = decoder(num_attention_heads=4, intermediate_size=8, model_type="glm_moe_dsa", **latent).layers
    assert named.index_bytes == 132


def test_layers_may_be_named_dense_or_sparse_one_by_one():
    layers = decoder(
        num_attention_heads=4,
        intermediate_size=100,
        num_experts=8,
        moe_intermediate_size=10,
        mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
    ).layers
    assert {(g.count, g.intermediate, g.experts) for g in layers} == {(1, 100, 0), (3, 0, 8)}


@pytest.mark.parametrize("left_in", ["mamba_d_state", "mamba_expand", "mamba_num_heads", "mamba_d_conv"])
def test_sizes_of_mamba_that_no_layer_uses_are_no_doubt(left_in):
    """A dense Granite 4.0 keeps them in its config."""
    told = {"num_attention_heads": 4, "intermediate_size": 8, "num_hidden_layers": 2, left_in: 128}
    assert decoder(**told, layer_types=["attention"] * 2).unmodelled == ""
    assert left_in == "mamba_d_conv" or left_in in decoder(**told).unmodelled
    beside = decoder(**told, layer_types=["attention"] * 2, mamba_d_ssm=128)
    assert "mamba_d_ssm" in beside.unmodelled
