"""Tensors are told apart by their names."""

import pytest

from agent.fit.checkpoint.safetensors import StoredTensor
from agent.fit.checkpoint.tensor_groups import count_tensors, group_of
from agent.fit.model_and_hardware import TensorGroup as G

NAMES = {
    "model.language_model.embed_tokens.weight": G.EMBEDDINGS,
    "model.language_model.embed_tokens_per_layer.weight": G.PER_LAYER_EMBEDDINGS,
    "lm_head.weight": G.LM_HEAD,
    "model.language_model.layers.0.self_attn.q_proj.weight_packed": G.ATTENTION,
    "model.language_model.layers.0.self_attn.q_norm.weight": G.OTHER,
    "model.language_model.layers.0.mlp.gate_proj.weight_scale": G.MLP,
    "model.language_model.layers.0.experts.gate_up_proj": G.EXPERTS,
    "model.layers.3.mlp.experts.17.down_proj.weight": G.EXPERTS,
    "model.layers.3.mlp.gate.weight": G.OTHER,
    "model.layers.3.mlp.shared_expert.up_proj.weight": G.MLP,
    "model.layers.3.mlp.shared_expert_gate.weight": G.OTHER,
    "model.layers.3.block_sparse_moe.experts.0.w1.weight": G.EXPERTS,
    "model.language_model.layers.0.router.proj.weight": G.OTHER,
    "model.language_model.layers.0.layer_scalar": G.OTHER,
    "model.language_model.layers.0.per_layer_input_gate.weight": G.PER_LAYER_PROJECTIONS,
    "model.language_model.per_layer_model_projection.weight": G.PER_LAYER_PROJECTIONS,
    "model.language_model.per_layer_projection_norm.weight": G.OTHER,
    "model.vision_tower.encoder.layers.3.mlp.fc1.weight": G.VISION,
    "model.vision_tower.encoder.layers.3.self_attn.q_proj.weight": G.VISION,
    "model.embed_vision.embedding_projection.weight": G.VISION,
    "multi_modal_projector.mm_input_projection_weight": G.VISION,
    "visual.blocks.0.attn.qkv.weight": G.VISION,
    "model.audio_tower.conformer.0.attention.attn.k_proj.weight": G.AUDIO,
    "model.norm.weight": G.OTHER,
    "model.layers.0.input_layernorm.weight": G.OTHER,
    "model.layers.0.linear_attn.in_proj_qkvz.weight": G.RECURRENT,
    "model.layers.0.mamba.in_proj.weight": G.RECURRENT,
    "model.layers.0.conv.in_proj.weight": G.RECURRENT,
    "backbone.layers.0.mixer.in_proj.weight": G.RECURRENT,
    "backbone.layers.1.mixer.up_proj.weight": G.MLP,
    "backbone.layers.1.mixer.shared_experts.up_proj.weight": G.MLP,
    "backbone.layers.1.mixer.experts.0.up_proj.weight": G.EXPERTS,
    "backbone.layers.7.mixer.q_proj.weight": G.ATTENTION,
    "transformer.h.0.attn.c_attn.weight": G.ATTENTION,
    "transformer.wte.weight": G.EMBEDDINGS,
    "x": G.OTHER,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_belongs_to_the_group_its_name_says(name):
    assert group_of(name) is NAMES[name]


def test_counting_adds_packed_values_and_scales_to_one_group_and_names_what_is_quantised():
    layer = "model.layers.0.mlp.up_proj."
    count = count_tensors(
        [
            StoredTensor(name=layer + "weight_packed", dtype="I32", shape=(64, 8), n_bytes=2048),
            StoredTensor(name=layer + "weight_scale", dtype="BF16", shape=(64, 2), n_bytes=256),
            StoredTensor(name=layer + "weight_shape", dtype="I64", shape=(2,), n_bytes=16),
            StoredTensor(name="model.layers.0.self_attn.o_proj.weight", dtype="BF16", shape=(8, 8), n_bytes=128),
        ],
        decoder_layers=1,
    )
    assert count.by_group == {G.MLP: 2320, G.ATTENTION: 128}
    assert count.by_dtype == {"BF16": 384, "I32": 2048, "I64": 16}
    assert count.narrow == {G.MLP}
    assert (count.total_bytes, count.total_tensors) == (2448, 4)


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "quantised"),
    [
        ("a.mlp.up_proj.weight", "F8_E4M3", (4, 4), True),
        ("a.mlp.up_proj.weight_scale", "F8_E4M3", (4, 1), False),
        ("a.mlp.up_proj.qweight", "I32", (4, 4), True),
        ("a.mlp.up_proj.qzeros", "I32", (4, 4), False),
        ("a.mlp.up_proj.weight", "U8", (4, 4), True),
        ("a.mlp.up_proj.weight", "F32", (4, 4), False),
    ],
)
def test_scales_and_zero_points_alone_do_not_make_a_group_quantised(name, dtype, shape, quantised):
    count = count_tensors([StoredTensor(name=name, dtype=dtype, shape=shape, n_bytes=16)], decoder_layers=1)
    assert (count.narrow == {G.MLP}) is quantised


@pytest.mark.parametrize(
    "tower",
    ["vision", "vpm", "perception", "visual_tokenizer", "model.image_embed", "some_encoder", "model.strange.layers.2"],
)
@pytest.mark.parametrize("guessing_layers", [0, 1])
def test_a_tower_deeper_than_the_decoder_is_weights_whatever_its_name(tower, guessing_layers):
    """Once the blocks of a tower from the decoder's depth on counted as layers that guess tokens: 3000 of 7800 bytes."""
    decoder = [tensor(f"model.layers.{number}.mlp.up_proj.weight", 400) for number in range(12)]
    blocks = [tensor(f"{tower}.blocks.{number}.mlp.fc1.weight", 200) for number in range(15)]
    count = count_tensors(decoder + blocks, decoder_layers=12, guessing_layers=guessing_layers)
    assert (count.by_group, count.guessing_bytes) == ({G.MLP: 4800, G.VISION: 3000}, 0)
    assert count.layers == set(range(12))


@pytest.mark.parametrize("tower", ["apm.layers", "whisper_encoder.layers"])
def test_towers_for_sound_are_known_by_name(tower):
    count = count_tensors([tensor(f"{tower}.{number}.fc1.weight", 8) for number in range(3)], decoder_layers=2)
    assert (count.by_group, count.layers) == ({G.AUDIO: 24}, frozenset())


@pytest.mark.parametrize(("guessing_layers", "guessing"), [(0, 0), (1, 10), (2, 20)])
def test_a_layer_beyond_the_decoders_guesses_tokens_only_where_the_config_says_so(guessing_layers, guessing):
    stored = [tensor(f"model.layers.{number}.mlp.up_proj.weight", 10) for number in range(4)]
    count = count_tensors(stored, decoder_layers=2, guessing_layers=guessing_layers)
    assert (count.guessing_bytes, count.by_group[G.MLP]) == (guessing, 40 - guessing)


def tensor(name, n_bytes):
    return StoredTensor(name=name, dtype="BF16", shape=(2, n_bytes // 4), n_bytes=n_bytes)
