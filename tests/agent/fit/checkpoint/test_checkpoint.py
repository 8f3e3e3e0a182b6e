"""Profiles made of configs and headers."""

import json
from dataclasses import replace

import pytest

from agent.errors import InputRejected
from agent.fit.checkpoint.checkpoint import contradictions, profile_of
from agent.fit.checkpoint.safetensors import parse_header
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import TensorGroup as G
from agent.fit.model_and_hardware import TowerFacts

CONFIG = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "model_type": "gemma4",
    "text_config": {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "vocab_size": 1000,
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "attention_k_eq_v": True,
        "head_dim": 16,
        "global_head_dim": 32,
        "sliding_window": 8,
        "intermediate_size": 256,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
    },
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
    },
}
TENSORS = [
    ("model.language_model.embed_tokens.weight", "BF16", [1000, 64]),
    ("model.language_model.layers.0.mlp.up_proj.weight_packed", "I32", [256, 8]),
    ("model.language_model.layers.0.mlp.up_proj.weight_scale", "BF16", [256, 2]),
    ("model.language_model.layers.1.self_attn.q_proj.weight", "BF16", [64, 64]),
    ("model.language_model.norm.weight", "BF16", [64]),
    ("model.vision_tower.patch.weight", "BF16", [10, 10]),
]


def header_of(tensors):
    sizes = {"BF16": 2, "I32": 4, "F8_E4M3": 1}
    entries, end = {}, 0
    for name, dtype, shape in tensors:
        size = sizes[dtype]
        for dimension in shape:
            size *= dimension
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    return parse_header(json.dumps(entries).encode(), file="t")


def profile(config=CONFIG, tensors=TENSORS, name="me/tiny", bundled=()):
    return profile_of(
        name=name,
        source="here",
        read_at="2026-11-21T00:00:00Z",
        config=json.dumps(config).encode(),
        headers=[header_of(tensors[:3]), header_of(tensors[3:])],
        bundled=bundled,
    )


def test_bytes_are_exact_per_group_and_dtype():
    made = profile()
    assert dict(made.facts.measured_bytes) == {
        G.EMBEDDINGS: 128_000,
        G.MLP: 8192 + 1024,
        G.ATTENTION: 8192,
        G.OTHER: 128,
        G.VISION: 200,
    }
    assert made.facts.checkpoint_bytes == sum(size for _, size in made.facts.measured_bytes)
    assert dict(made.dtype_bytes) == {"BF16": 128_000 + 1024 + 8192 + 128 + 200, "I32": 8192}
    assert (made.tensors, made.shards) == (6, 2)


def test_only_the_groups_that_hold_narrow_tensors_are_called_quantised():
    """The config says all linears; in this checkpoint attention stayed bf16, as in NVIDIA's NVFP4 of 31B."""
    quant = profile().facts.quant
    assert (quant.scheme, quant.groups, quant.bytes_per_param) == ("w4a16", {G.MLP}, 0.5625)


def test_what_vllm_builds_beyond_the_tensors_is_known():
    facts = profile().facts
    assert facts.tied
    assert facts.head_built_before_tying
    assert facts.rope_cache_bytes == 4096 * (16 + 32) * 2
    assert facts.vision.params == 100
    assert facts.audio is None


@pytest.mark.parametrize(
    ("stored", "said", "tied"),
    [(False, None, True), (True, None, False), (True, True, True), (True, False, False), (False, False, True)],
)
def test_a_head_is_tied_when_the_config_says_so_or_when_there_is_none_to_load(stored, said, tied):
    config = {**CONFIG, "architectures": ["LlamaForCausalLM"]}
    config["text_config"] = {**CONFIG["text_config"], "tie_word_embeddings": said}
    extra = [("lm_head.weight", "BF16", [1000, 64])] if stored else []
    facts = profile(config, TENSORS + extra).facts
    assert facts.tied is tied
    assert not facts.head_built_before_tying


def test_a_checkpoint_that_differs_from_the_bundled_entry_wins_and_says_so():
    bundled = profile().facts
    wider = [(n, d, [1200, 64] if "embed" in n else s) for n, d, s in TENSORS]
    config = {**CONFIG, "text_config": {**CONFIG["text_config"], "vocab_size": 1200}}
    made = profile(config, wider, name="mirror/tiny", bundled=[bundled])
    assert made.facts.vocab == 1200
    assert any(line.startswith("vocab: bundled 1000, checkpoint 1200") for line in made.contradictions)
    assert any(line.startswith("checkpoint_bytes") for line in made.contradictions)
    assert contradictions(bundled, bundled) == ()


def test_a_relative_lends_what_no_checkpoint_says():
    from dataclasses import replace

    facts = profile().facts
    kin = replace(facts, name="google/other", family="gemma-4", size="tiny", min_vllm="0.19.0")
    made = profile(bundled=[kin]).facts
    assert (made.family, made.size, made.min_vllm) == ("gemma-4", "tiny", "0.19.0")
    assert any("google/other" in line for line in made.assumptions)


@pytest.mark.parametrize(
    ("section", "scheme", "per_param"),
    [
        ({"quant_method": "fp8"}, "fp8", 1.0),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 0.5625),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq", 0.515625),
        ({"quant_method": "mxfp4"}, "mxfp4", 0.53125),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
            1.0,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            },
            "nvfp4",
            0.5625,
        ),
    ],
)
def test_each_published_way_to_quantise_is_read(section, scheme, per_param):
    quant = profile({**CONFIG, "quantization_config": section}).facts.quant
    assert (quant.scheme, quant.bytes_per_param) == (scheme, per_param)


def test_without_a_section_plain_tensors_are_bf16():
    config = {key: value for key, value in CONFIG.items() if key != "quantization_config"}
    tensors = [entry for entry in TENSORS if entry[1] == "BF16"]
    quant = profile(config, tensors).facts.quant
    assert (quant.scheme, quant.groups, quant.bytes_per_param) == ("bf16", frozenset(), 2.0)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "'num_hidden_layers' is None"),
        ({"text_config": [1]}, "'text_config' is [1], want an object"),
        ({**CONFIG, "architectures": "Gemma"}, "want a list of strings"),
        ({**CONFIG, "text_config": {**CONFIG["text_config"], "vocab_size": 2**50}}, "'vocab_size'"),
        ({**CONFIG, "quantization_config": {"quant_method": "awq", "bits": "four"}}, "'bits' is 'four'"),
    ],
)
def test_a_config_with_an_impossible_value_is_refused_by_its_key(config, why):
    with pytest.raises(InputRejected) as caught:
        profile(config)
    assert why in str(caught.value)


def test_a_checkpoint_without_tensors_is_refused():
    with pytest.raises(InputRejected, match="holds no tensors"):
        profile(tensors=[])


def with_layers(*numbers, name="model.layers.{}.mlp.up_proj.weight"):
    embedding = ("model.embed_tokens.weight", "BF16", [1000, 64])
    return [embedding, *((name.format(number), "BF16", [256, 64]) for number in numbers)]


PLAIN = {key: value for key, value in CONFIG.items() if key != "quantization_config"}


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [((0,), "1"), ((1,), "0"), ((0, 2), "1"), ((7, 8), "0, 1")],
)
def test_a_checkpoint_that_lacks_layers_is_refused_with_their_numbers(numbers, missing):
    with pytest.raises(InputRejected) as caught:
        profile(PLAIN, with_layers(*numbers))
    assert f"of 2 layers it holds nothing of {missing}" in caught.value.why
    assert "download" in caught.value.hint


def test_many_missing_layers_are_counted_not_listed():
    config = {**PLAIN, "text_config": {**CONFIG["text_config"], "num_hidden_layers": 60, "layer_types": None}}
    with pytest.raises(InputRejected, match="nothing of 58: 1, 2, 3, 4, 5, 6, 7, 8 and more"):
        profile(config, with_layers(0, 59))


def test_a_layer_that_only_a_tower_has_does_not_count():
    tensors = [*with_layers(0), ("model.vision_tower.encoder.layers.1.mlp.fc1.weight", "BF16", [8, 8])]
    with pytest.raises(InputRejected, match="holds nothing of 1"):
        profile(PLAIN, tensors)


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.{}.mlp.up_proj.weight",
        "transformer.h.{}.mlp.c_fc.weight",
        "gpt_neox.layers.{}.mlp.w",
        "blocks.{}.ffn.w",
    ],
)
def test_layers_are_found_under_every_usual_name_and_more_than_needed_are_no_fault(name):
    assert profile(PLAIN, with_layers(0, 1, 2, name=name)).facts.layer_count == 2


def test_layers_under_a_name_that_we_do_not_know_are_an_assumption():
    made = profile(PLAIN, with_layers(0, 1, name="model.stage_{}.mlp.up_proj.weight"))
    assert any("that all 2 layers are there" in told for told in made.facts.assumptions)


def test_a_checkpoint_of_embeddings_alone_is_refused():
    with pytest.raises(InputRejected, match="of 2 layers it holds nothing of 0, 1"):
        profile(PLAIN, with_layers())


PLAIN = {
    "architectures": ["GuessingForCausalLM"],
    "model_type": "guessing",
    "hidden_size": 64,
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
DECODER = [
    ("model.embed_tokens.weight", "BF16", [1000, 64]),
    ("model.layers.0.mlp.up_proj.weight", "BF16", [256, 64]),
    ("model.layers.1.self_attn.q_proj.weight", "BF16", [64, 64]),
    ("lm_head.weight", "BF16", [1000, 64]),
]


@pytest.mark.parametrize(
    ("told", "guessing"),
    [
        ({}, [("mtp.layers.0.mlp.up_proj.weight", "BF16", [256, 64]), ("mtp.fc.weight", "BF16", [64, 128])]),
        (
            {"num_nextn_predict_layers": 1},
            [
                ("model.layers.2.mlp.up_proj.weight", "BF16", [256, 64]),
                ("model.layers.2.eh_proj.weight", "BF16", [64, 128]),
                ("model.layers.2.embed_tokens.weight", "BF16", [1000, 64]),
                ("model.layers.2.shared_head.head.weight", "BF16", [1000, 64]),
            ],
        ),
    ],
)
def test_layers_that_guess_tokens_weigh_only_when_they_are_asked_for(ask_of, told, guessing):
    """Qwen names them, DeepSeek numbers on; vLLM shares embedding and output head with the decoder."""
    without, facts = (profile({**PLAIN, **told}, tensors).facts for tensors in (DECODER, DECODER + guessing))
    assert (facts.measured_bytes, without.mtp) == (without.measured_bytes, None)
    assert facts.mtp_bytes == (256 * 64 + 64 * 128) * 2
    assert (facts.mtp.count, facts.mtp.heads) == (1, 4)
    asked = '--speculative-config \'{"method":"mtp","num_speculative_tokens":1}\''
    alone, beside, plain = (ask_of(facts, ""), ask_of(facts, asked), ask_of(without, ""))
    assert alone.weights_bytes == plain.weights_bytes
    assert beside.weights_bytes.best - alone.weights_bytes.best == facts.mtp_bytes
    assert beside.kv_bytes_per_request.best > alone.kv_bytes_per_request.best
    assert beside.fits is True


@pytest.fixture
def ask_of(catalogue):
    def asked(facts, flags, *, card="nvidia-l4", version=None):
        parsed = parse_flags(f"--max-model-len 1024 {flags}")
        return predict(facts, catalogue.accelerator(card), 1, parsed, catalogue.rules(version))

    return asked


@pytest.mark.parametrize("card", ["nvidia-l4", "cpu", "tpu-v6e", "amd-mi300x"])
@pytest.mark.parametrize(
    "told",
    [
        {"mamba_d_ssm": 128},
        {"attn_type_list": [1, 0]},
        {"is_encoder_decoder": True},
        {"index_topk_blocks": 4},
        {"layer_types": ["odd", "full_attention"]},
    ],
)
def test_a_model_that_keeps_what_is_not_known_here_is_never_said_to_fit_nor_not_to(ask_of, told, card):
    facts = profile({**PLAIN, **told}, DECODER).facts
    report = ask_of(facts, "--kv-cache-memory-bytes 1G", card=card)
    assert (report.fits, facts.unmodelled in report.assumptions, bool(facts.unmodelled)) == (None, True, True)
    assert ask_of(profile({**PLAIN, "attn_type_list": [1, 1]}, DECODER).facts, "").fits is True


NARROW = {"num_bits": 8, "type": "float", "dynamic": False}


@pytest.mark.parametrize(
    ("section", "version", "narrow"),
    [
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": NARROW}, "0.14.0", True),
        ({"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}, "0.33.0", True),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": NARROW}, "0.12.0", False),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": None}, "0.33.0", False),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": NARROW}, "0.19.0", True),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": NARROW}, "0.16.0", False),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, "0.33.0", False),
        ({"quant_method": "fp8", "kv_cache_scheme": NARROW}, "0.33.0", False),
    ],
)
def test_a_config_may_ask_for_a_cache_of_8_bit_floats_and_a_flag_wins(ask_of, section, version, narrow):
    facts = profile({**PLAIN, "quantization_config": section}, DECODER).facts
    by_config, wide = (ask_of(facts, flags, version=version) for flags in ("", "--kv-cache-dtype bfloat16"))
    assert by_config.kv_bytes_per_request.best * (2 if narrow else 1) == wide.kv_bytes_per_request.best
    assert any("fp8, as the checkpoint" in told for told in by_config.assumptions) is narrow


def test_a_tower_that_nobody_saw_profiled_is_never_said_to_fit_unless_it_is_left_out(ask_of, catalogue):
    """Profiling took 0.6 to 15 GiB, by model; a relative of the same architecture lends the most that was seen."""
    seen = catalogue.models.find("Qwen/Qwen3.5-4B")
    tensors = [*DECODER, ("model.visual.patch.weight", "BF16", [10, 10])]
    strange = profile(PLAIN, tensors).facts
    related = profile({**PLAIN, "architectures": [seen.architecture]}, tensors, bundled=[seen]).facts
    assert (strange.vision.unseen, related.vision.unseen) == (True, False)
    assert related.vision.profile_bytes_per_token == seen.vision.profile_bytes_per_token
    assert ask_of(strange, "").fits is None
    assert any("vision tower" in told for told in ask_of(strange, "").assumptions)
    assert [ask_of(strange, flag).fits for flag in ("--language-model-only", "--skip-mm-profiling")] == [True, True]
    assert ask_of(related, "").fits is True


def test_a_tower_larger_than_its_relatives_borrows_nothing(ask_of, catalogue):
    """What profiling takes grows with the tower, and nobody saw this one profiled."""
    seen = catalogue.models.find("Qwen/Qwen3.5-4B")
    rows = seen.vision.params * 11 // 10 // 1024
    named = {**PLAIN, "architectures": [seen.architecture]}
    larger, equal = (
        profile(named, [*DECODER, ("model.visual.patch.weight", "BF16", [at, 1024])], bundled=[seen]).facts
        for at in (rows, seen.vision.params // 1024)
    )
    assert (larger.vision.unseen, ask_of(larger, "").fits) == (True, None)
    assert (equal.vision.unseen, ask_of(equal, "").fits) == (False, True)


def test_a_larger_tower_beside_a_bundled_decoder_borrows_nothing(ask_of):
    kin = replace(profile().facts, vision=TowerFacts(params=50, tokens_per_item=4), layers=profile().facts.layers)
    assert profile(bundled=[kin]).facts.vision.unseen
    assert not profile(bundled=[replace(kin, vision=TowerFacts(params=100))]).facts.vision.unseen


def test_a_tower_of_an_unknown_name_is_one_that_nobody_saw_profiled(ask_of):
    blocks = [(f"eyes.blocks.{number}.mlp.fc1.weight", "BF16", [64, 64]) for number in range(5)]
    facts = profile(PLAIN, [*DECODER, *blocks]).facts
    assert (facts.vision.params, facts.vision.unseen, facts.mtp) == (5 * 64 * 64, True, None)
    assert ask_of(facts, "").fits is None


def test_layers_of_an_unknown_name_may_be_loaded_though_towers_are_left_out(ask_of):
    """Counted with the tower, they would leave the weights too light, and a server would be said to fit that does not."""
    blocks = [(f"eyes.blocks.{number}.mlp.fc1.weight", "BF16", [64, 64]) for number in range(5)]
    named = [("model.visual.patch.weight", "BF16", [64, 64])]
    strange, known = (profile(PLAIN, [*DECODER, *more]).facts for more in (blocks, named))
    assert ask_of(strange, "--language-model-only").fits is None
    assert any("no tower" in told for told in ask_of(strange, "--language-model-only").assumptions)
    assert ask_of(known, "--language-model-only").fits is True
