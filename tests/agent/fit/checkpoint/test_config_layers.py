"""Layers as config.json describes them."""

import json

import pytest

from agent.errors import InputRejected
from agent.fit.checkpoint.config_layers import decoder_of
from agent.fit.checkpoint.config_reader import ConfigReader
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
