"""Weights per device are what vLLM prints, and shards sum to the whole."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.bounds import GIB, MIB
from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.memory.weights import (
    _held,
    _remembered,
    _weighing,
    device_tensors,
    head_bytes,
    plan_weights,
)
from agent.fit.model_and_hardware import TensorGroup

CATALOGUE = load_fit_catalogue()
NAMES = st.sampled_from(CATALOGUE.models.names)


def plan(name, flags="", version="0.33", batch=2048):
    return plan_weights(CATALOGUE.models.find(name), parse_flags(flags), CATALOGUE.rules(version), batched_tokens=batch)


@pytest.mark.parametrize(
    ("name", "flags", "gib", "share"),
    [
        ("google/gemma-4-31B-it", "", 58.99, 0.001),
        ("google/gemma-4-26B-A4B-it", "", 48.5, 0.001),
        ("google/gemma-4-12B-it", "", 22.8, 0.001),
        ("google/gemma-4-E4B-it", "", 15.2, 0.005),
        ("google/gemma-4-E2B-it", "", 9.8, 0.005),
        ("google/gemma-4-12B-it-qat-w4a16-ct", "", 8.29, 0.001),
        ("google/gemma-4-31B-it-qat-w4a16-ct", "", 19.8, 0.01),
        ("nvidia/Gemma-4-31B-IT-NVFP4", "", 31.18, 0.005),
        ("RedHatAI/gemma-4-26B-A4B-it-NVFP4", "", 15.77, 0.005),
        ("gemma-4-26B-A4B-it-W4A16", "--language-model-only", 14.69, 0.005),
        ("meta-llama/Llama-3.1-8B", "", 14.99, 0.001),
        ("Qwen/Qwen3-32B", "-tp 2", 30.59, 0.001),
        ("Qwen/Qwen3-14B-AWQ", "", 9.3619, 0.01),
        ("nvidia/Qwen3-30B-A3B-NVFP4", "", 16.86, 0.001),
        ("mistralai/Mistral-Nemo-Instruct-2407", "", 22.8447, 0.001),
        ("openai/gpt-oss-20b", "", 13.72, 0.005),
        ("openai/gpt-oss-120b", "", 65.97, 0.002),
        ("google/gemma-3-4b-it", "", 8.58, 0.002),
        ("google/gemma-3-12b-it", "", 23.31, 0.004),
        ("google/gemma-3-27b-it", "", 51.45, 0.002),
        ("nvidia/Gemma-4-26B-A4B-NVFP4", "", 17.89, 0.006),
        ("RedHatAI/Qwen3.6-35B-A3B-NVFP4", "", 21.86, 0.01),
        ("Sehyo/Qwen3.5-122B-A10B-NVFP4", "", 70.47, 0.012),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "", 69.62, 0.005),
        ("meta-llama/Llama-3.1-8B-Instruct", "--pipeline-parallel-size 2", 7.51, 0.001),
        ("meta-llama/Llama-3.1-8B-Instruct", "--pipeline-parallel-size 4", 4.26, 0.005),
        ("RedHatAI/Mistral-Small-3.1-24B-Instruct-2503-quantized.w8a8", "--tensor-parallel-size 2", 12.11, 0.012),
    ],
)
def test_the_printed_load_is_met(name, flags, gib, share):
    loaded = plan(name, flags).loaded
    assert loaded.best / GIB == pytest.approx(gib, rel=share)
    assert loaded.low <= gib * GIB * 1.005
    assert loaded.high >= gib * GIB * 0.995


def test_a_distilled_sibling_has_an_output_head_of_its_own():
    printed = 3.3465  # by vLLM in 2025 for a 1.5B distill
    assert plan("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", version="0.19").loaded.best / GIB == pytest.approx(
        printed, rel=0.002
    )


def test_published_parameter_counts_are_the_sum_of_the_shapes():
    """Every architecture entry with a published count: shapes explain all but norms, biases and routers."""
    for name in CATALOGUE.models.names:
        model = CATALOGUE.models.find(name)
        counted = sum(t.stored_params for t in device_tensors(model, Flags()) if t.group is not TensorGroup.OTHER)
        assert 0 <= model.norm_params <= max(counted * 0.004, 2_000_000), name


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", 3.97),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 8.89),
        ("ibm-granite/granite-4.0-h-small", 32.2),
        ("ibm-granite/granite-4.0-h-tiny", 6.94),
        ("ibm-granite/granite-4.0-h-micro", 3.19),
        ("ibm-granite/granite-4.0-micro", 3.40),
    ],
)
def test_sizes_derived_from_shapes_alone_are_the_published_ones(name, billions):
    assert CATALOGUE.models.find(name).checkpoint_bytes / 2e9 == pytest.approx(billions, rel=0.002)


@given(NAMES, st.sampled_from([1, 2, 4, 8]))
def test_shards_of_divided_tensors_sum_to_the_whole(name, tp):
    model = CATALOGUE.models.find(name)
    divided = {TensorGroup.MLP, TensorGroup.EXPERTS}
    one = [t for t in device_tensors(model, Flags()) if t.group in divided]
    shards = [t for t in device_tensors(model, Flags(tensor_parallel_size=tp)) if t.group in divided]
    padded = any(layer.expert_padding for layer in model.layers)
    for whole, shard in zip(one, shards, strict=True):
        if padded and whole.group is TensorGroup.EXPERTS:
            assert whole.stored_params <= shard.params * tp
        else:
            assert 0 <= whole.params - shard.params * tp < tp


@given(NAMES, st.sampled_from([1, 2, 4, 8]))
def test_a_rank_never_holds_more_than_one_device_nor_less_than_its_share(name, tp):
    model = CATALOGUE.models.find(name)
    assume(not any(layer.heads % tp or (layer.kv_heads > tp and layer.kv_heads % tp) for layer in model.layers))
    one = sum(t.params for t in device_tensors(model, Flags()))
    rank = sum(t.params for t in device_tensors(model, Flags(tensor_parallel_size=tp)))
    assert one // tp <= rank <= one + 64 * model.hidden * tp


@given(NAMES, st.floats(0, 200), st.sampled_from(["0.19", "0.27", "0.33"]))
def test_bytes_are_never_negative_and_offload_only_takes(name, offload, version):
    model, rules = CATALOGUE.models.find(name), CATALOGUE.rules(version)
    plain = plan_weights(model, Flags(), rules, batched_tokens=2048)
    moved = plan_weights(model, Flags(cpu_offload_gb=offload), rules, batched_tokens=2048)
    assert 0 <= moved.loaded.low <= moved.loaded.best <= moved.loaded.high
    assert moved.loaded.best <= plain.loaded.best
    assert moved.offloaded_bytes >= 0


def test_key_value_heads_are_replicated_when_there_are_fewer_than_ranks():
    model = CATALOGUE.models.find("google/gemma-4-E2B-it")
    qkv = [t for t in device_tensors(model, Flags(tensor_parallel_size=4)) if t.group is TensorGroup.ATTENTION]
    assert qkv[0].params > qkv[0].stored_params // 4


def test_the_offloader_stops_after_the_parameter_that_reaches_the_limit():
    moved = plan("google/gemma-4-31B-it-qat-w4a16-ct", "--cpu-offload-gb 14").offloaded_bytes
    largest = 2 * 5376 * 21504 * 0.5625
    assert 14 * GIB <= moved < 14 * GIB + largest


def test_only_experts_are_offloaded_where_the_flag_names_them():
    """GLM 5.2 in four bits ran on four GH200 with 40 GiB of experts in host memory (0.23.1)."""
    model = CATALOGUE.models.find("Qwen/Qwen3-30B-A3B")
    experts = sum(t.params * 2 for t in device_tensors(model, Flags()) if t.group is TensorGroup.EXPERTS)
    every, named = (plan(model.name, f"--cpu-offload-gb 1000 {more}") for more in ("", "--cpu-offload-params experts"))
    assert named.offloaded_bytes == experts < every.offloaded_bytes


def test_embeddings_are_never_offloaded():
    left = plan("google/gemma-4-31B-it", "--cpu-offload-gb 1000 --language-model-only").loaded
    assert left.low >= 262_144 * 5376 * 2


def test_newer_versions_take_towers_first():
    old, new = (plan("google/gemma-4-31B-it", "--cpu-offload-gb 1", version=v) for v in ("0.27", "0.33"))
    assert old.offloaded_bytes == pytest.approx(GIB, rel=0.3)
    assert new.offloaded_bytes == GIB


@pytest.mark.parametrize(
    ("size", "gib"), [("31B", 2.625), ("12B", 1.875), ("26B-A4B", 1.375), ("E4B", 1.25), ("E2B", 0.75)]
)
def test_the_output_head_is_built_before_it_is_tied(size, gib):
    model = CATALOGUE.models.find(f"google/gemma-4-{size}-it")
    assert head_bytes(model, Flags()) == gib * GIB
    assert head_bytes(model, Flags(tensor_parallel_size=2)) == gib * GIB / 2


def test_text_only_leaves_the_tower_out():
    whole, text = plan("google/gemma-4-31B-it"), plan("google/gemma-4-31B-it", "--language-model-only")
    none = plan("google/gemma-4-31B-it", """--limit-mm-per-prompt '{"image":0,"video":0}'""")
    some = plan("google/gemma-4-31B-it", """--limit-mm-per-prompt '{"image":0}'""")
    assert (whole.loaded.best - text.loaded.best) / GIB == pytest.approx(1.07, abs=0.02)
    assert none.loaded == text.loaded
    assert some.loaded == whole.loaded


def test_measured_bytes_win_over_arithmetic():
    model = CATALOGUE.models.find("meta-llama/Llama-3.1-8B")
    doubled = replace(model, measured_bytes=((TensorGroup.MLP, 2 * 2 * 32 * 3 * 4096 * 14336),))
    rules = CATALOGUE.rules("0.33")
    plain, measured = (plan_weights(m, Flags(), rules, batched_tokens=2048).loaded for m in (model, doubled))
    assert measured.best - plain.best == pytest.approx(2 * 32 * 3 * 4096 * 14336, abs=MIB)


@pytest.mark.parametrize("name", ["google/gemma-4-31B-it", "google/gemma-4-E2B-it", "Qwen/Qwen3-30B-A3B"])
@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--tensor-parallel-size 2 --max-num-seqs 4",
        "-pp 2 --cpu-offload-gb 3 --kv-cache-dtype fp8",
        "--language-model-only --max-model-len 4096",
        '--limit-mm-per-prompt \'{"image":0,"video":0}\' --cpu-offload-gb 0.5',
        "--speculative-config.method mtp --speculative-config.num_speculative_tokens 2",
    ],
)
def test_a_remembered_sum_is_the_one_that_all_flags_together_give(name, flags):
    """What is remembered is found by some of the flags alone; the others must not change it."""
    model, asked = CATALOGUE.models.find(name), parse_flags(flags)
    afresh = _held(model, asked, whole=True, towers_first=False)
    assert _remembered(model, _weighing(asked), True, False) == afresh
    assert _remembered(model, _weighing(asked), True, False) == afresh


def test_awq_4bit_is_stored_in_groups_of_32(ask):
    """A Qwen3 Coder 30B-A3B printed 8.52 GiB on each of two cards (public file, index id 60026265908)."""
    report = ask("cyankiwi/Qwen3-Coder-30B-A3B-Instruct-AWQ-4bit", "nvidia-rtx-5090", "-tp 2", count=2)
    assert report.weights_bytes.best / GIB == pytest.approx(8.52, rel=0.01)


@pytest.mark.parametrize(
    ("name", "card", "count", "flags", "vllm", "gib"),
    [
        ("moonshotai/Kimi-K2.5", "nvidia-h100-80gb", 8, "-tp 8 --mm-encoder-tp-mode data", "0.15.0", 72.02),
        ("zai-org/GLM-4.7-NVFP4", "nvidia-rtx-pro-6000", 4, "-tp 4", "0.15.1", 47.11),
        ("zai-org/GLM-4-9B-Chat", "nvidia-h200", 1, "", "0.19.1", 17.56),
        ("nvidia/Qwen3.6-27B-NVFP4", "nvidia-gb10", 1, "", "0.23.1", 19.78),
        ("RedHatAI/Qwen3.6-35B-A3B-NVFP4", "nvidia-gb10", 1, "", "0.20.0", 21.86),
        ("nvidia/NVIDIA-Nemotron-3-Nano-4B-FP8", "nvidia-gb10", 1, "", "0.13.0", 4.9054),
        ("ibm-granite/granite-4.0-micro", "nvidia-l40s", 1, "--quantization fp8", "0.11.0", 3.4244),
        ("Qwen/Qwen2.5-3B-Instruct", "nvidia-rtx-4060", 1, "--quantization bitsandbytes", "0.18.0", 2.07),
        ("openai/gpt-oss-120b", "nvidia-h100-80gb", 1, "", "0.25.1", 61.29),
        ("openai/gpt-oss-120b", "nvidia-h100-80gb", 1, "", "0.24.0", 65.97),
        ("openai/gpt-oss-120b", "nvidia-a100-80gb", 1, "", "0.25.1", 65.97),
    ],
    ids=[
        "latent-attention-and-experts-in-4-bits",
        "experts-by-name",
        "few-key-heads",
        "attention-in-8-bits-beside-4",
        "recurrent-layers-in-16-bits-beside-4",
        "attention-in-16-bits-beside-8",
        "quantised-at-load",
        "quantised-at-load-to-4-bits",
        "experts-unpadded-on-hopper",
        "experts-padded-before",
        "experts-padded-elsewhere",
    ],
)
def test_models_read_from_their_configs_load_what_was_printed(ask, name, card, count, flags, vllm, gib):
    """Printed by public start-ups (file index ids 31505324900, 29233847939, 54092400981, and rows of held_out.json)."""
    report = ask(name, card, flags, vllm=vllm, count=count)
    assert report.weights_bytes.best / GIB == pytest.approx(gib, rel=0.01)


def test_projections_down_to_latent_vectors_are_on_every_rank():
    """vllm/model_executor/models/deepseek_v2.py of 0.17.1: ``fused_qkv_a_proj`` is replicated."""
    one, eight = (plan("moonshotai/Kimi-K2-Instruct", f"-tp {tp}").by_group for tp in (1, 8))
    whole, part = dict(one)[TensorGroup.ATTENTION], dict(eight)[TensorGroup.ATTENTION]
    assert part - whole / 8 == pytest.approx(61 * 7168 * (1536 + 576) * 7 / 8, rel=0.01)


def test_buffers_of_visual_features_grow_with_the_batch():
    small, large = (plan("Qwen/Qwen3-VL-8B-Instruct", batch=batch).loaded.best for batch in (2048, 8192))
    assert large - small == 3 * 6144 * 4096 * 2


def test_an_encoder_in_data_mode_is_whole_on_every_rank():
    model = "Qwen/Qwen3-VL-8B-Instruct"
    split, whole = (plan(model, f"-tp 4 {more}").loaded.best for more in ("", "--mm-encoder-tp-mode data"))
    assert whole - split == pytest.approx(CATALOGUE.models.find(model).vision.params * 2 * 3 / 4, rel=0.02)


def test_recurrent_layers_that_names_do_not_tell_from_attention_are_counted_once():
    model = CATALOGUE.models.find("Qwen/Qwen3.5-9B")
    apart = ((TensorGroup.ATTENTION, GIB), (TensorGroup.RECURRENT, 3 * GIB))
    flags, rules = Flags(), CATALOGUE.rules("0.33")
    told, untold = (
        plan_weights(replace(model, measured_bytes=bytes_read), flags, rules, batched_tokens=2048).loaded.best
        for bytes_read in (apart, ((TensorGroup.ATTENTION, 4 * GIB),))
    )
    assert told == pytest.approx(untold, rel=0.003)


def test_bytes_that_were_read_and_that_no_layer_explains_stay():
    """A config without the width of its feed-forward would otherwise lose the heaviest part of the checkpoint."""
    model = CATALOGUE.models.find("Qwen/Qwen3-8B")
    thin = replace(model, layers=tuple(replace(layer, intermediate=0) for layer in model.layers))
    read = ((TensorGroup.ATTENTION, 2 * GIB), (TensorGroup.MLP, 9 * GIB))
    flags, rules = Flags(), CATALOGUE.rules("0.33")
    told, untold = (
        plan_weights(replace(each, measured_bytes=read), flags, rules, batched_tokens=2048).loaded.best
        for each in (model, thin)
    )
    assert told == pytest.approx(untold, rel=0.01)


def test_data_parallel_replicas_share_the_experts_and_nothing_else(ask):
    """A start-up of four L4 printed a pool of 6.0 GiB a rank, which holds 29 GiB of weights nowhere (0.29.0)."""
    flags = "--max-model-len 8192 --max-num-batched-tokens 8192 --max-num-seqs 64"
    whole, shared = (
        ask("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "nvidia-l4", f"{flags} {more}", vllm="0.29.0", count=4)
        for more in ("", "--data-parallel-size 4 --enable-expert-parallel")
    )
    experts = 48 * 128 * 3 * 2048 * 768
    saved = whole.weights_bytes.best - shared.weights_bytes.best
    assert saved == pytest.approx(experts * 3 / 4, rel=0.02)
    assert shared.fits is None
    dense = (
        ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", f"{flags} {more}", vllm="0.29.0", count=4).weights_bytes.best
        for more in ("", "--data-parallel-size 4")
    )
    assert len(set(dense)) == 1


def test_a_guessing_layer_weighs_beside_what_was_printed_without_it(ask):
    """Unsloth's NVFP4 of Qwen 3.8 27B: 21.34 GiB, 22.13 with MTP, and its config asks for a cache in 8 bits."""
    guessed = '--speculative-config \'{"method":"mtp","num_speculative_tokens":3}\' --max-num-seqs 32'
    plain, guessing = (
        ask("unsloth/Qwen3.8-27B-NVFP4", "nvidia-gb10", f"--max-model-len 262144 {flags}", vllm="0.25.1")
        for flags in ("--max-num-seqs 32", guessed)
    )
    assert (guessing.weights_bytes.best - plain.weights_bytes.best) / GIB == pytest.approx(0.79, abs=0.01)
    wide = ask(
        "unsloth/Qwen3.8-27B-NVFP4", "nvidia-gb10", "--max-model-len 262144 --kv-cache-dtype bfloat16", vllm="0.25.1"
    )
    assert plain.kv_bytes_per_request.best < 0.6 * wide.kv_bytes_per_request.best
