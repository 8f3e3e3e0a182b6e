"""Refusals, doubts and assumptions are told apart."""

from dataclasses import replace

import pytest

from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import TowerFacts


@pytest.mark.parametrize(
    ("model", "accelerator", "flags", "vllm"),
    [
        ("google/gemma-4-12B-it", "nvidia-h100-80gb", "--max-model-len 8192", "0.21"),
        ("google/gemma-4-31B-it", "nvidia-b300", "--max-model-len 8192 --max-num-batched-tokens 1024", None),
        ("google/gemma-4-31B-it", "nvidia-b300", "--max-model-len 8192 --kv-cache-dtype fp8_e5m2", None),
        ("google/gemma-4-E2B-it", "nvidia-rtx-3090", "--max-model-len 8192 --kv-cache-dtype fp8", None),
        ("google/gemma-4-E2B-it", "nvidia-t4", "--max-model-len 8192 --dtype half", None),
        ("Qwen/Qwen3-8B", "nvidia-h100-80gb", "--max-model-len 131072", None),
        ("Qwen/Qwen3-1.7B", "nvidia-t4", "--max-model-len 8192 --dtype bfloat16", None),
        ("Qwen/Qwen3-8B", "nvidia-h100-80gb", "--max-num-seqs 512 --max-num-batched-tokens 256", None),
    ],
)
def test_what_vllm_refuses_does_not_fit(ask, model, accelerator, flags, vllm):
    report = ask(model, accelerator, flags, vllm=vllm)
    assert (report.fits, report.reason) == (False, "unsupported")


def test_an_item_that_can_be_split_needs_no_larger_batch(ask):
    """E4B attends to no item as a whole: 0.22.1 started it with a batch of 2,048 and printed 4.1 GiB."""
    report = ask(
        "google/gemma-4-E4B-it", "nvidia-rtx-4090", "--max-model-len 32768 --gpu-memory-utilization 0.9", vllm="0.22.1"
    )
    assert report.fits is True
    assert report.kv_cache_bytes.best / GIB == pytest.approx(4.1, rel=0.05)
    whole = ask("google/gemma-4-12B-it", "nvidia-l40s", "--max-model-len 8192", vllm="0.21")
    assert (whole.fits, whole.reason) == (False, "unsupported")


def test_replicas_without_a_device_of_their_own_are_a_doubt(ask):
    flags = "--max-model-len 8192 --data-parallel-size 2"
    assert ask("Qwen/Qwen3-8B", "nvidia-l4", flags, count=2).fits is True
    report = ask("Qwen/Qwen3-8B", "nvidia-l4", flags, count=1)
    assert (report.fits, report.reason) == (None, "unknown")
    assert any("need 2 devices, 1 given" in told for told in report.assumptions)


def test_memory_that_fails_for_certain_is_told_before_a_flag_that_is_refused(ask):
    flags = "--max-model-len 131072 --max-num-batched-tokens 2048 --kv-cache-memory-bytes 2G"
    report = ask("google/gemma-4-31B-it", "nvidia-b300", flags)
    assert (report.fits, report.reason) == (False, "one_request")


@pytest.mark.parametrize(
    "flags",
    [
        "--enable-lora --fully-sharded-loras",
        "--decode-context-parallel-size 2",
        "--offload-group-size 4",
        "--never-heard-of 3",
        "--dtype float32",
        "--quantization torchao",
        "--dtype weird",
        "--kv-cache-dtype nvfp4",
        "--block-size 7",
        "--compilation-config.pass_config '{\"enable_sp\":true}'",
        '--compilation-config \'{"mode":3,"compile_mm_encoder":true}\'',
        '--speculative-config \'{"method":"ngram","num_speculative_tokens":3,"draft_sample_method":"probabilistic"}\'',
        "--speculative-config.method ngram --speculative-config.never_heard_of 1",
    ],
)
def test_a_flag_that_may_touch_memory_is_never_ignored(ask, flags):
    report = ask("Qwen/Qwen3-1.7B", "nvidia-h100-80gb", f"--max-model-len 8192 {flags}")
    assert (report.fits, report.reason) == (None, "unknown")
    assert report.weights_bytes.best > 0


@pytest.mark.parametrize(
    "flags",
    [
        "--port 8000",
        "--served-model-name a b",
        "--no-enable-log-requests",
        "--tool-call-parser gemma4",
        "--api-key x",
        "--compilation-config.cache_dir /tmp/x",
        '--compilation-config \'{"compile_cache_save_format":"binary"}\'',
    ],
)
def test_a_flag_that_leaves_memory_alone_changes_nothing(ask, flags):
    plain, more = (ask("Qwen/Qwen3-1.7B", "nvidia-h100-80gb", f"--max-model-len 8192 {extra}") for extra in ("", flags))
    assert plain == more


def test_an_unknown_draft_model_makes_a_fit_unknown_and_leaves_a_misfit_certain(ask):
    draft = "--speculative-config.model nobody/knows --speculative-config.num_speculative_tokens 3"
    assert ask("Qwen/Qwen3-1.7B", "nvidia-h100-80gb", f"--max-model-len 8192 {draft}").fits is None
    assert ask("google/gemma-4-31B-it", "nvidia-l4", f"--max-model-len 8192 {draft}").fits is False


def test_guessing_from_the_prompt_takes_no_memory(ask):
    flags = "--max-model-len 8192 --speculative-config.method ngram --speculative-config.num_speculative_tokens 3"
    assert ask("Qwen/Qwen3-1.7B", "nvidia-h100-80gb", flags).fits is True


def test_how_far_a_prompt_is_searched_takes_no_memory(ask):
    keys = '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4,"prompt_lookup_min":2}'
    assert (
        ask("Qwen/Qwen3-1.7B", "nvidia-h100-80gb", f"--max-model-len 8192 --speculative-config '{keys}'").fits is True
    )


def test_a_known_draft_model_is_counted(ask, catalogue):
    flags = (
        "--max-model-len 8192 --speculative-config.model Qwen/Qwen3-0.6B --speculative-config.num_speculative_tokens 3"
    )
    draft = catalogue.models.find("Qwen/Qwen3-0.6B")
    alone, paired = (ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", flags, draft=each) for each in (None, draft))
    assert paired.fits is True
    assert paired.weights_bytes.best - alone.weights_bytes.best > 10**9
    assert paired.kv_bytes_per_request.best > alone.kv_bytes_per_request.best


def test_versions_before_the_oldest_that_was_read_are_unknown(ask):
    assert ask("meta-llama/Llama-3.1-8B", "nvidia-h100-80gb", "--max-model-len 8192", vllm="0.5.4").fits is None


def test_pipeline_stages_stay_in_the_v1_engine(ask):
    """vllm/engine/arg_utils.py of 0.10 (_is_v1_supported_oracle): with the default, ray and mp executors alike."""
    flags = "--max-model-len 8192 --pipeline-parallel-size 2"
    assert ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", flags, vllm="0.10.0", count=2).fits is True


def test_a_size_published_with_two_contexts_needs_one_stated(ask):
    assert ask("Qwen3-30B-A3B", "nvidia-h100-80gb").fits is None
    assert ask("Qwen3-30B-A3B", "nvidia-h100-80gb", "--max-model-len 40960").fits is True
    assert ask("Qwen/Qwen3-30B-A3B", "nvidia-h100-80gb").fits is True


def test_siblings_of_one_shape_are_held_to_their_own_context(ask):
    def long(model):
        return ask(model, "nvidia-a100-80gb", "--max-model-len 65536").fits

    assert long("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B") is True
    assert long("Qwen/Qwen2.5-7B-Instruct") is False
    assert long("Qwen/Qwen2.5-Math-7B-Instruct") is False
    assert ask("Qwen/Qwen2.5-7B", "nvidia-a100-80gb").fits is None


def test_every_default_that_was_used_is_named(ask):
    told = " ".join(ask("Qwen/Qwen3-8B", "nvidia-l4").assumptions)
    for flag in ("max_model_len", "max_num_batched_tokens", "max_num_seqs", "gpu_memory_utilization"):
        assert f"{flag} was not given" in told


@pytest.mark.parametrize(
    ("version", "flags", "fits"),
    [
        ("0.11.0", "", None),
        ("0.11.0", '--limit-mm-per-prompt \'{"image":0,"video":0}\'', True),
        ("0.11.0", "--limit-mm-per-prompt.video 0", True),
        ("0.13.0", "", True),
    ],
)
def test_a_whole_video_that_is_profiled_is_not_called_safe(ask, version, flags, fits):
    """Recorded: four 3090 had 2.31 GiB left for the cache where at least 4.41 were counted (0.11.0)."""
    report = ask("Qwen/Qwen3-VL-8B-Instruct", "nvidia-l40s", f"--max-model-len 8192 {flags}", vllm=version)
    assert report.fits is fits
    assert any("whole video" in told for told in report.assumptions) is (fits is None)


def test_of_a_wider_model_than_was_recorded_a_whole_video_has_no_bound(ask):
    flags = "--tensor-parallel-size 8 --max-model-len 32768"
    report = ask("Qwen/Qwen3-VL-235B-A22B-Instruct", "nvidia-h200", flags, vllm="0.12.0")
    assert report.fits is None
    assert any("this wide" in told for told in report.assumptions)


def test_no_video_is_held_where_profiling_is_skipped(ask):
    report = ask("Qwen/Qwen3-VL-8B-Instruct", "nvidia-l40s", "--max-model-len 8192 --skip-mm-profiling", vllm="0.11.0")
    assert not any("whole video" in told for told in report.assumptions)


def test_adapters_that_are_switched_off_take_nothing(ask):
    on, off = (
        ask("Qwen/Qwen3-30B-A3B", "nvidia-h200", f"--max-model-len 4096 {f}", vllm="0.20")
        for f in ("--enable-lora", "--no-enable-lora")
    )
    assert (on.fits, off.fits) == (None, True)


def test_a_whole_video_is_called_safe_where_more_than_it_ever_took_is_free(ask):
    """Recorded: the 30B over two H100 ran and left 37.2 to 38.2 GiB, the 235B over eight A100 did not (0.11.0)."""
    flags = "--max-model-len 65536 --tensor-parallel-size 2 --max-num-seqs 64"
    assert ask("Qwen/Qwen3-VL-30B-A3B-Instruct", "nvidia-h100-80gb", flags, vllm="0.12.0").fits is True
    flags = "--max-model-len 128000 --tensor-parallel-size 8 --enable-expert-parallel"
    assert ask("Qwen/Qwen3-VL-235B-A22B-Instruct", "nvidia-a100-80gb", flags, vllm="0.11.0").fits is None


@pytest.mark.parametrize(
    ("version", "flags", "fits"),
    [
        ("0.15.1", "", None),
        ("0.15.1", "--enforce-eager", True),
        ("0.15.1", "--max-num-seqs 4", True),
        ("0.15.1", "--gpu-memory-utilization 0.7", True),
        ("0.20.0", "", True),
    ],
)
def test_graphs_of_experts_in_nvfp4_may_take_much_on_workstation_cards_before_0_19(ask, version, flags, fits):
    """Recorded: a start-up over four cards failed with 1.7 of 15.9 GiB left beside weights and pool (0.15.1)."""
    asked = f"-tp 4 --max-model-len 8192 {flags}"
    report = ask("zai-org/GLM-4.7-NVFP4", "nvidia-rtx-pro-6000", asked, vllm=version, count=4)
    assert report.fits is fits
    assert any("graphs of NVFP4 experts" in told for told in report.assumptions) is (
        not flags.startswith(("--enforce", "--max-num-seqs")) and version != "0.20.0"
    )


def test_graphs_of_narrower_experts_in_nvfp4_take_less(ask):
    """Recorded: Qwen3-Next 80B-A3B started on a GB10 at a utilisation of 0.85 (0.14.0)."""
    flags = "--gpu-memory-utilization 0.85 --max-model-len 32768"
    narrow = ask("RedHatAI/Qwen3-Next-80B-A3B-Instruct-NVFP4", "nvidia-gb10", flags, vllm="0.14.0")
    wide = ask("zai-org/GLM-4.7-NVFP4", "nvidia-rtx-pro-6000", "-tp 4", vllm="0.15.1", count=4)
    graphs = [report.overheads.cuda_graphs.high for report in (narrow, wide)]
    assert narrow.fits is True
    assert GIB < graphs[0] < 0.7 * graphs[1]


def test_graphs_of_wider_experts_in_nvfp4_are_a_doubt_there(ask):
    asked = "-tp 4 --max-model-len 8192 --gpu-memory-utilization 0.7 --enable-expert-parallel"
    report = ask("zai-org/GLM-4.7-NVFP4", "nvidia-rtx-pro-6000", asked, vllm="0.15.1", count=4)
    assert report.fits is None
    assert any("experts this wide" in told for told in report.assumptions)


def test_graphs_of_a_dense_model_in_nvfp4_are_counted(ask):
    """Llama 3.1 8B printed 5.65 GiB and a pool of 7.33 on an RTX 5070 Ti by 0.13.0 (index id 55618277543)."""
    report = ask("local/Llama-3.1-8B-Instruct-NVFP4", "nvidia-rtx-5070-ti", "--max-model-len 4096", vllm="0.13.0")
    assert report.fits is True


def test_quantising_at_load_is_counted_and_safe_only_where_8_bit_floats_are_native(ask):
    plain, narrow, older = (
        ask("Qwen/Qwen3-8B", card, f"--max-model-len 8192 {flags}")
        for card, flags in (
            ("nvidia-h100-80gb", ""),
            ("nvidia-h100-80gb", "--quantization fp8"),
            ("nvidia-a100-80gb", "--quantization fp8"),
        )
    )
    assert (plain.fits, narrow.fits, older.fits) == (True, True, None)
    assert narrow.weights_bytes.best < 0.65 * plain.weights_bytes.best


@pytest.mark.parametrize(
    ("model", "card", "fits"),
    [
        ("Qwen/Qwen3-8B", "nvidia-rtx-4090", True),
        ("Qwen/Qwen3-8B", "nvidia-t4", None),
        ("Qwen/Qwen3-30B-A3B", "nvidia-h100-80gb", None),
        ("Qwen/Qwen3-VL-8B-Instruct", "nvidia-h100-80gb", None),
    ],
    ids=["dense-text", "no-bfloat16", "experts", "vision"],
)
def test_bitsandbytes_at_load_is_counted_for_dense_text_models(ask, model, card, fits):
    """The one start-up read of it is Qwen 2.5 3B: 2.07 GiB on an RTX 4060 by 0.18.0."""
    assert ask(model, card, "--max-model-len 4096 --quantization bitsandbytes").fits is fits


def test_weights_known_only_as_printed_are_not_quantised_by_arithmetic(catalogue):
    printed = replace(catalogue.models.find("Qwen/Qwen3-8B"), served_bytes=Bounds.exactly(int(15.3 * GIB)))
    card, rules = catalogue.accelerator("nvidia-h100-80gb"), catalogue.rules("0.27.0")
    plain, narrow = (
        predict(printed, card, 1, parse_flags(f"--max-model-len 8192 {more}"), rules)
        for more in ("", "--quantization fp8")
    )
    assert (plain.fits, narrow.fits) == (True, None)


@pytest.mark.parametrize(
    ("version", "fits"),
    [("0.17.0", None), ("0.19.1", False), ("0.20.1", False), ("0.27.0", False), ("0.33.0", False), ("0.34.0", None)],
)
def test_recurrent_layers_need_the_hybrid_cache_manager(ask, version, fits):
    """Reported with 0.19.1 and 0.20.1: it "is disabled but failed to convert the KV cache specs"."""
    flags = "--max-model-len 8192 --max-num-seqs 16 --language-model-only"
    refused = ask("Qwen/Qwen3.5-27B", "nvidia-rtx-pro-6000", f"{flags} --disable-hybrid-kv-cache-manager", vllm=version)
    assert refused.fits is fits
    assert any("--disable-hybrid-kv-cache-manager" in told for told in refused.assumptions)
    for model, more in (
        ("Qwen/Qwen3.5-27B", "--no-disable-hybrid-kv-cache-manager"),
        ("google/gemma-3-27b-it", "--disable-hybrid-kv-cache-manager"),
    ):
        assert ask(model, "nvidia-rtx-pro-6000", f"{flags} {more}", vllm=version).fits is True


@pytest.mark.parametrize(("unnamed", "fits"), [(False, True), (True, None), (None, None)])
def test_layers_of_no_known_tower_may_be_loaded_whatever_is_left_out(catalogue, unnamed, fits):
    """A profile that was kept before such layers were told apart says nothing of them: it is no proof either."""
    tower = TowerFacts(params=2_000_000_000, unseen=True, unnamed=unnamed)
    model = replace(catalogue.models.find("Qwen/Qwen3-14B"), vision=tower)
    flags = parse_flags("--max-model-len 8192 --max-num-seqs 16 --language-model-only")
    report = predict(model, catalogue.accelerator("nvidia-l40s"), 1, flags, catalogue.rules("0.27.0"))
    assert report.fits is fits


@pytest.mark.parametrize(
    ("model", "accelerator", "vllm", "fits"),
    [
        ("nvidia/Qwen3-32B-NVFP4", "nvidia-a100-80gb", "0.14.0", True),
        ("nvidia/Qwen3-32B-NVFP4", "nvidia-a100-80gb", "0.33.0", True),
        ("Qwen/Qwen3-1.7B", "nvidia-rtx-3090", "0.19.0", True),
        ("Qwen/Qwen3-1.7B", "nvidia-a100-80gb", "0.12.0", None),
        ("Qwen/Qwen3-1.7B", "nvidia-t4", "0.33.0", None),
        ("google/gemma-3-4b-it", "nvidia-a100-80gb", "0.19.0", None),
        ("openai/gpt-oss-20b", "nvidia-a100-80gb", "0.19.0", None),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", "nvidia-a100-80gb", "0.19.0", None),
        ("microsoft/Phi-3-mini-4k-instruct", "nvidia-a100-80gb", "0.19.0", None),
    ],
)
def test_before_ada_a_cache_of_8_bit_floats_needs_flashinfer(ask, model, accelerator, vllm, fits):
    """Triton, which takes over where FlashInfer cannot, says since 0.33.0 that it needs compute capability 8.9."""
    flags = ["--kv-cache-dtype bfloat16", ""] if "NVFP4" in model else ["", "--kv-cache-dtype fp8"]
    wide, narrow = (
        ask(model, accelerator, f"--max-model-len 4096 --gpu-memory-utilization 0.8 {each}", vllm=vllm)
        for each in flags
    )
    assert wide.kv_bytes_per_request.best > narrow.kv_bytes_per_request.best
    assert (wide.fits, narrow.fits) == (True, fits)


@pytest.mark.parametrize(("cache", "fits"), [("fp8_e4m3", True), ("fp8_e5m2", True), ("fp8_per_token_head", None)])
def test_before_ada_8_bit_floats_with_a_scale_per_head_are_a_doubt(ask, cache, fits):
    """Triton alone keeps those scales, and it refuses 8-bit floats there."""
    flags = f"--max-model-len 4096 --gpu-memory-utilization 0.8 --kv-cache-dtype {cache}"
    assert ask("Qwen/Qwen3-1.7B", "nvidia-rtx-3090", flags, vllm="0.24.0").fits is fits


@pytest.mark.parametrize(
    ("model", "older", "first"),
    [
        ("Qwen/Qwen3.5-27B", "0.16.0", "0.17.0"),
        ("Qwen/Qwen3-VL-8B-Instruct", "0.10.0", "0.11.0"),
        ("openai/gpt-oss-20b", "0.9.0", "0.10.1"),
        ("google/gemma-3-12b-it", "0.7.0", "0.8.0"),
    ],
)
def test_what_a_version_does_not_have_is_never_said_to_fit(ask, model, older, first):
    """Each release's own registry names what it serves; a build between two of them may be either."""
    card = {"count": 4, "flags": "-tp 4 --max-model-len 8192 --max-num-seqs 16"}
    assert ask(model, "nvidia-h200", vllm=older, **card).fits is False
    assert ask(model, "nvidia-h200", vllm=f"{older[:-1]}1", **card).fits is None
    assert not any("needs vLLM" in line for line in ask(model, "nvidia-h200", vllm=first, **card).assumptions)


@pytest.mark.parametrize("version", ["0.9.2", "0.8.5", "0.9.1"])
def test_only_the_release_just_before_may_have_it_on_the_way(ask, version):
    report = ask("Qwen/Qwen3-VL-8B-Instruct", "nvidia-h200", "--max-model-len 8192", vllm=version)
    assert (report.fits, report.reason) == (False, "unsupported")


@pytest.mark.parametrize(
    ("version", "fits"),
    [("0.17.2", False), ("0.17.2rc1.dev133+g9279c59a0", None), ("0.17.0-g15d76f74e", None), ("0.17.0+cu130", False)],
)
def test_a_build_from_a_checkout_may_hold_a_model_that_its_release_lacks(ask, version, fits):
    """Gemma 4 31B was served on Cloud Run by such a build (held511), two releases before the first that has it."""
    report = ask(
        "google/gemma-4-31B-it", "nvidia-rtx-pro-6000", "--max-model-len 8192 --quantization fp8", vllm=version
    )
    assert report.fits is fits


@pytest.mark.parametrize(
    ("environment", "fits"),
    [("", False), ("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1", True), ("VLLM_ALLOW_LONG_MAX_MODEL_LEN=0", False)],
)
def test_a_length_over_the_models_own_is_refused_unless_the_environment_allows_it(ask, environment, fits):
    """Printed by 0.8.5 on an A6000: 517,264 tokens for requests of 131,072, four times Qwen 2.5 7B's positions."""
    flags = f"{environment} vllm serve --max-model-len 131072 --gpu-memory-utilization 0.92"
    report = ask("Qwen/Qwen2.5-7B-Instruct", "nvidia-a6000", flags, vllm="0.8.5")
    assert report.fits is fits
    assert any("over the model's 32768 positions" in line for line in report.assumptions)


def test_an_architecture_that_is_younger_than_the_oldest_rules_says_since_when(catalogue):
    """Those of 0.6.3's own registry need not; its names are listed here, read 2026-11-26."""
    old = {
        "BaichuanForCausalLM", "BloomForCausalLM", "CohereForCausalLM", "DeciLMForCausalLM", "DeepseekV2ForCausalLM", "ExaoneForCausalLM", "FalconForCausalLM",
        "GPT2LMHeadModel", "GPTJForCausalLM", "GPTNeoXForCausalLM", "OrionForCausalLM", "StableLmForCausalLM",
        "Gemma2ForCausalLM", "GemmaForCausalLM", "GraniteForCausalLM", "InternLM2ForCausalLM", "InternVLChatModel", "LlamaForCausalLM",
        "LlavaForConditionalGeneration", "LlavaNextForConditionalGeneration", "MiniCPM3ForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "OPTForCausalLM",
        "OlmoeForCausalLM", "Phi3ForCausalLM", "PhiForCausalLM", "PhiMoEForCausalLM", "PixtralForConditionalGeneration",
        "QWenLMHeadModel", "Qwen2ForCausalLM", "Qwen2MoeForCausalLM", "Qwen2VLForConditionalGeneration",
        "Starcoder2ForCausalLM",
    }  # fmt: skip
    assert {model.architecture for model in catalogue.models.entries if not model.min_vllm} <= old


@pytest.mark.parametrize(("card", "told"), [("nvidia-rtx-4090", True), ("amd-rx-9070-xt", True), ("nvidia-l4", False)])
def test_a_card_with_outputs_is_assumed_to_drive_no_screen(ask, card, told):
    assumptions = ask("Qwen/Qwen3-0.6B", card, "--max-model-len 4096", vllm="0.19.0").assumptions
    assert any(line.endswith("no screen either") for line in assumptions) is told


@pytest.mark.parametrize(
    ("model", "fits"),
    [("Qwen/Qwen3-14B-AWQ", True), ("Qwen/Qwen3-30B-A3B-AWQ", True), ("nvidia/Qwen3-30B-A3B-NVFP4", None)],
)
def test_four_bits_are_stored_on_rocm_as_they_are_published(ask, model, fits):
    assert ask(model, "amd-mi300x", "--max-model-len 4096", vllm="0.19.0").fits is fits


@pytest.mark.parametrize(
    ("limit", "vllm", "fits", "reason"),
    [
        ("image=0", "0.9.2", None, "unknown"),
        ("image=0", "0.10.0", False, "unsupported"),
        ("image=0", "0.11.0", False, "unsupported"),
        ("image=0", "0.33.0", False, "unsupported"),
        ("image=0", None, False, "unsupported"),
        ("image=0", "0.10.0rc1", None, "unknown"),
        ('{"image":0}', None, True, "fits"),
    ],
)
def test_from_0_10_on_limits_of_inputs_are_json_alone(ask, limit, vllm, fits, reason):
    """Earlier versions warn: "This will be removed in v0.10.0. Please use a JSON string instead."."""
    flags = f"--max-model-len 4096 --limit-mm-per-prompt '{limit}'"
    report = ask("google/gemma-3-4b-it", "nvidia-l4", flags, vllm=vllm)
    assert (report.fits, report.reason) == (fits, reason)
    refused = limit == "image=0" and vllm != "0.9.2"
    assert any("takes JSON alone" in told for told in report.assumptions) is refused


@pytest.mark.parametrize(
    "flag",
    [
        "--config /etc/vllm.yaml",
        "--additional-config '{\"a\": 1}'",
        "--worker-cls own.Worker",
        "--worker-extension-cls own.Extension",
        "--hf-config-path /other",
        "--scheduler-cls own.Scheduler",
    ],
)
def test_flags_that_bring_in_what_is_not_seen_are_a_doubt(ask, flag):
    report = ask("Qwen/Qwen3-8B", "nvidia-l40s", f"--max-model-len 4096 {flag}", vllm="0.27")
    assert report.fits is None
    assert any(flag.split()[0] in note for note in report.assumptions)


@pytest.mark.parametrize(
    ("flags", "fits"),
    [
        ("--enable-prefix-caching --mamba-cache-mode align", True),
        ("--mamba-cache-mode align", None),
        ("--enable-prefix-caching --mamba-cache-mode all", None),
    ],
)
def test_aligned_states_are_what_cached_prefixes_mean_anyway(ask, flags, fits):
    report = ask("Qwen/Qwen3.5-9B", "nvidia-l40s", f"--max-model-len 8192 --max-num-seqs 16 {flags}", vllm="0.27")
    assert report.fits is fits


@pytest.mark.parametrize(("vllm", "doubtful"), [("0.8.2", False), ("0.9.2", False), ("0.10.0", True), (None, True)])
def test_a_compilation_level_is_known_of_old_versions_alone(ask, vllm, doubtful):
    """Up to 0.9 ``CompilationConfig.from_cli`` takes one; newer parsers may take JSON alone."""
    report = ask("google/gemma-3-4b-it", "nvidia-l4", "--max-model-len 4096 --compilation-config 3", vllm=vllm)
    assert any("takes a level" in doubt for doubt in report.assumptions) is doubtful
    assert not (doubtful and report.fits)
