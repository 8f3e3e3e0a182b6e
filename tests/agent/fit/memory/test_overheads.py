"""Calibrated terms cover the residuals that recorded start-ups leave."""

import pytest

from agent.fit.bounds import GIB, independent_sum
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.batch import effective
from agent.fit.memory.overheads import (
    activation_peak,
    descriptor_memory,
    draft_allowance,
    experts_workspace,
    graph_estimate,
    graph_memory,
    non_torch,
)

GEMMA_26B = "RedHatAI/gemma-4-26B-A4B-it-NVFP4"


@pytest.fixture
def residual(catalogue):
    """Budget less weights less pool, GiB: (low, best, high)."""

    def asked(name, accelerator, flags, version):
        model, card, rules = catalogue.models.find(name), catalogue.accelerator(accelerator), catalogue.rules(version)
        parsed = parse_flags(flags)
        run = effective(model, card, parsed, rules)
        terms = [activation_peak(model, parsed, run, rules), non_torch(card, parsed, rules)]
        if rules.graph_estimate_subtracted:
            terms.append(graph_estimate(model, parsed, run))
        whole = independent_sum(terms)
        return whole.low / GIB, whole.best / GIB, whole.high / GIB

    return asked


@pytest.mark.parametrize(
    ("name", "accelerator", "flags", "version", "seen"),
    [
        (
            "google/gemma-4-12B-it-qat-w4a16-ct",
            "nvidia-a100-80gb",
            "--max-num-batched-tokens 4096 --max-num-seqs 8",
            "0.25.1",
            0.74,
        ),
        ("google/gemma-4-E4B-it", "nvidia-rtx-5090", "", "0.28", 2.04),
        ("google/gemma-4-26B-A4B-it", "nvidia-a100-80gb", "--enforce-eager", "0.19", 1.33),
        (GEMMA_26B, "nvidia-rtx-5090", "--max-num-batched-tokens 2048", "0.19", 1.41),
        (GEMMA_26B, "nvidia-rtx-5090", "--max-num-batched-tokens 8192", "0.19", 2.21),
        (GEMMA_26B, "nvidia-rtx-5090", "--max-num-batched-tokens 16384 --max-num-seqs 2", "0.19", 4.24),
        ("google/gemma-4-26B-A4B-it-qat-w4a16-ct", "nvidia-l4", "", "0.33", 2.01),
        (
            "google/gemma-4-31B-it",
            "nvidia-rtx-pro-6000",
            "--max-num-batched-tokens 8192 --max-num-seqs 20",
            "0.23",
            1.87,
        ),
        ("google/gemma-4-31B-it", "nvidia-b300", "--max-num-batched-tokens 8192 --max-num-seqs 1024", "0.26", 4.91),
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", "nvidia-a10g", "", "0.19", 1.42),
    ],
)
def test_recorded_residuals_lie_within_the_bounds(residual, name, accelerator, flags, version, seen):
    low, best, high = residual(name, accelerator, flags, version)
    assert low <= seen <= high
    assert abs(best - seen) <= 0.6


def test_fewer_sequences_are_the_cheapest_lever(residual):
    many = residual("google/gemma-4-31B-it", "nvidia-b300", "--max-num-seqs 1024", "0.26")
    few = residual("google/gemma-4-31B-it", "nvidia-b300", "--max-num-seqs 16", "0.26")
    assert many[1] - few[1] > 1.5


def test_eager_mode_has_no_graphs(catalogue):
    model, card, rules = (
        catalogue.models.find("Qwen/Qwen3-8B"),
        catalogue.accelerator("nvidia-l4"),
        catalogue.rules("0.33"),
    )
    flags = parse_flags("--enforce-eager")
    run = effective(model, card, flags, rules)
    assert graph_memory(model, flags, run, rules).high == graph_estimate(model, flags, run).high == 0


def test_ranks_add_communication_buffers(catalogue):
    card = catalogue.accelerator("nvidia-l4")
    alone, split = (non_torch(card, parse_flags(flags), catalogue.rules("0.33")) for flags in ("", "-tp 2"))
    assert split.best > alone.best


def test_switched_cards_give_nccl_two_gib_and_stages_give_it_none(catalogue):
    """Printed by 0.19.0 on H100: 2.06 to 2.21 GiB with TP 2 and 4, 0.07 with two and four stages, 0.25 alone."""
    card, rules = catalogue.accelerator("nvidia-h100-80gb"), catalogue.rules("0.19")
    for flags, least, most in (("-tp 2", 2.06, 2.21), ("-tp 4", 2.13, 2.21), ("-pp 4", 0.07, 0.07), ("", 0.24, 0.27)):
        found = non_torch(card, parse_flags(flags), rules)
        assert found.low / GIB <= least <= most <= found.high / GIB
    assert non_torch(card, parse_flags("-tp 2"), rules).best / GIB == pytest.approx(2.1, abs=0.1)


def test_deeper_models_capture_larger_graphs(catalogue):
    card, flags = catalogue.accelerator("nvidia-h100-80gb"), parse_flags("-tp 2")
    sizes = []
    for name, seen in (("Qwen/Qwen2.5-7B-Instruct", 0.71), ("Qwen/Qwen2.5-72B-Instruct", 1.61)):
        model = catalogue.models.find(name)
        rules = catalogue.rules("0.19")
        found = graph_memory(model, flags, effective(model, card, flags, rules), rules)
        assert found.low / GIB <= seen <= found.high / GIB
        sizes.append(found.best)
    assert sizes[0] < sizes[1]


def test_only_a_draft_that_is_not_counted_gets_an_allowance(catalogue):
    model = catalogue.models.find("Qwen/Qwen3-8B")

    def allowed(flags, *, known):
        return draft_allowance(model, parse_flags(flags), known=known, length=8192).high

    assert allowed("--speculative-config.model a/b", known=False) > 0
    assert allowed("--speculative-config.model a/b", known=True) == 0
    assert allowed("", known=False) == 0


def test_an_unknown_draft_of_one_layer_is_counted_as_wide_as_its_target(ask):
    """Other methods may bring any number of layers, and beside windows one more layer may change every block."""

    def fits(method, model="Qwen/Qwen3-8B", card="nvidia-h100-80gb", more="--max-num-seqs 64"):
        draft = f"--speculative-config.model nobody/knows --speculative-config.method {method}"
        flags = f"--max-model-len 8192 {more} {draft} --speculative-config.num_speculative_tokens 3"
        return ask(model, card, flags, vllm="0.27").fits

    assert fits("eagle3") is True
    assert fits("dflash") is None
    assert fits("eagle3", model="openai/gpt-oss-20b") is None
    assert fits("eagle3", card="nvidia-l4", more="--max-num-seqs 64 --gpu-memory-utilization 0.85") is None


def test_an_assistant_weighs_what_was_printed_and_caches_nothing(ask):
    """Recorded: 26B-A4B W4A16 prints 15.76 GiB alone and 16.55 with images and its assistant."""
    draft = """--speculative-config '{"method":"mtp","model":"google/gemma-4-26B-A4B-it-assistant","num_speculative_tokens":4}'"""
    flags = "--max-model-len 16384"
    alone, paired = (ask("gemma-4-26B-A4B-it-W4A16", "nvidia-l40s", f"{flags} {more}") for more in ("", draft))
    assert paired.weights_bytes.best / GIB == pytest.approx(16.55, rel=0.005)
    assert paired.kv_bytes_per_request == alone.kv_bytes_per_request
    assert paired.fits is True


@pytest.mark.parametrize(
    ("batch", "fits", "printed"), [("", True, 3.0), ("--max-num-batched-tokens 16384", None, 1.42)]
)
def test_a_tower_keeps_buffers_of_a_whole_batch(ask, batch, fits, printed):
    """Recorded: a 5090 left 3.0 GiB for the cache at 2,048 tokens and 1.42, too little, at 16,384 (0.27.1)."""
    draft = """--speculative-config '{"method":"mtp","num_speculative_tokens":3}'"""
    flags = f"{draft} {batch} --kv-cache-dtype fp8 --max-num-seqs 8 --max-model-len 32768 --gpu-memory-utilization 0.90"
    report = ask("unsloth/Qwen3.8-27B-NVFP4", "nvidia-rtx-5090", flags, vllm="0.27.1")
    assert report.fits is fits
    assert report.kv_cache_bytes.low <= printed * GIB <= report.kv_cache_bytes.high


@pytest.mark.parametrize(("card", "mib"), [("nvidia-rtx-5090", 3728), ("nvidia-gb10", 1077)])
def test_blackwell_keeps_memory_for_tensor_descriptors_where_delta_nets_use_them(catalogue, card, mib):
    """Measured in pull request 37088 of vllm-project/vllm; 0.20 uses descriptors on Hopper alone, and if asked."""
    hybrid, plain = (catalogue.models.find(name) for name in ("Qwen/Qwen3.5-9B", "Qwen/Qwen3-8B"))
    blackwell, hopper = catalogue.accelerator(card), catalogue.accelerator("nvidia-h100-80gb")
    kept = descriptor_memory(hybrid, blackwell, catalogue.rules("0.19.0"))
    assert kept.low <= mib * 2**20 <= kept.high
    assert kept.best == pytest.approx(mib * 2**20, rel=0.03)
    for model, where, version in (
        (plain, blackwell, "0.19.0"),
        (hybrid, hopper, "0.19.0"),
        (hybrid, blackwell, "0.17.0"),
        (hybrid, blackwell, "0.20.0"),
    ):
        assert descriptor_memory(model, where, catalogue.rules(version)).high == 0


def test_a_card_whose_multiprocessors_are_not_known_may_keep_none_or_the_most(catalogue):
    model, rules = catalogue.models.find("Qwen/Qwen3.5-9B"), catalogue.rules("0.18.0")
    unknown = descriptor_memory(model, catalogue.accelerator("nvidia-b300"), rules)
    assert (unknown.low, unknown.high >= 4 * GIB) == (0, True)


@pytest.mark.parametrize(
    ("model", "flags", "vllm", "count", "pool_gib"),
    [
        (
            "google/gemma-3-27b-it",
            "--max-model-len 4096 --limit-mm-per-prompt '{\"image\": 2}'",
            "0.11.0rc2",
            1,
            109.86,
        ),
        (
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
            "--tensor-parallel-size 2 --max-model-len 4096 --distributed-executor-backend ray",
            None,
            2,
            151.25,
        ),
    ],
    ids=["alone", "two-under-ray"],
)
def test_pools_of_instinct_cards_lie_in_their_range(ask, model, flags, vllm, count, pool_gib):
    """Rows held186 and held201 of held_out.json: 1.5 and 4.3 GiB less were left than the least expected."""
    pool = ask(model, "amd-mi300x", flags, vllm=vllm, count=count).kv_cache_bytes
    assert pool.low / GIB < pool_gib < pool.high / GIB


@pytest.mark.parametrize("split", ["-tp 2", "-pp 2"])
def test_a_second_machine_takes_its_part_however_the_model_is_split(catalogue, split):
    """Two GB10 share nothing but the network, and each keeps memory for its host."""
    card = catalogue.accelerator("nvidia-gb10")
    one, two = (non_torch(card, parse_flags(flags), catalogue.rules("0.29")) for flags in ("", split))
    assert two.best >= one.best + 8 * GIB
    assert two.high >= one.high + 8 * GIB


def test_replicas_meet_at_the_experts_that_they_share(ask):
    """Printed with four replicas on L4s (0.29.0): 6.0 GiB for the cache; two of two ranks died while sampling."""
    flags = (
        "--max-model-len 8192 --max-num-batched-tokens 8192 --max-num-seqs 768 --gpu-memory-utilization 0.88"
        " --max-cudagraph-capture-size 512 --enable-expert-parallel"
    )
    model = "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8"
    four, two = (
        ask(model, "nvidia-l4", f"{flags} -tp {tp} --data-parallel-size {dp}", vllm="0.29.0", count=4)
        for tp, dp in ((1, 4), (2, 2))
    )
    assert four.kv_cache_bytes.low <= 6.0 * 2**30 <= four.kv_cache_bytes.high
    assert two.fits is None
    alone = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192 --data-parallel-size 4", vllm="0.29.0", count=4)
    assert (
        alone.overheads.activations
        == ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192", vllm="0.29.0").overheads.activations
    )
    large = "-tp 1 --data-parallel-size 8 --enable-expert-parallel --max-model-len 32768 --max-num-seqs 128"
    assert ask("deepseek-ai/DeepSeek-R1", "nvidia-h200", large, vllm="0.27", count=8).fits is True
    deep = ask(
        "deepseek-ai/DeepSeek-R1", "nvidia-h200", f"{large} --all2all-backend deepep_low_latency", vllm="0.27", count=8
    )
    assert deep.fits is None


@pytest.mark.parametrize("vllm", ["0.20.0", "0.33.0"])
def test_experts_work_on_the_gathered_tokens_of_all_replicas(ask, vllm):
    """All ranks' tokens are gathered before experts are chosen: two buffers of 32 GiB for 16 x 65,536 of them."""
    flags = (
        "--data-parallel-size 16 --enable-expert-parallel --max-num-batched-tokens 65536 --max-model-len 131072 "
        "--max-num-seqs 64 --gpu-memory-utilization 0.92"
    )
    model = "Qwen/Qwen3-30B-A3B-Instruct-2507"
    report = ask(model, "nvidia-h100-80gb", flags, vllm=vllm, count=16)
    assert report.fits is not True
    assert report.overheads.activations.high > 64 * GIB
    assert ask(model, "nvidia-h100-80gb", flags.replace("65536", "2048"), vllm=vllm, count=16).fits is True


def test_experts_in_a_latent_space_work_as_wide_as_it_is(catalogue):
    """Nemotron 3 Ultra: 22 experts of 5,120 on 2,048, which are counted as 853 of 8,192."""
    model = catalogue.models.find("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16")
    found = experts_workspace(model, parse_flags("-tp 8"), 1024, catalogue.rules("0.20.0"))
    assert found == 2 * 1024 * (22 * (2048 + 2048) + 3 * 8192)


@pytest.mark.parametrize("stored", ["NVFP4", "FP8"])
def test_a_cache_of_8_bits_that_the_config_asks_for_is_taken(ask, stored):
    model = f"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-{stored}"
    report = ask(model, "nvidia-b200", "-tp 8 --max-model-len 8192 --max-num-seqs 16", vllm="0.20.0")
    assert any("the KV cache is fp8" in told for told in report.assumptions)


@pytest.mark.parametrize(
    ("name", "card", "flags", "version", "seen"),
    [
        ("Qwen/Qwen3-8B", "nvidia-a100-40gb", "", "0.19.1", 2.44),
        ("Qwen/Qwen2.5-72B-Instruct", "nvidia-l40s", "-tp 4", "0.19.1", 2.62),
        ("meta-llama/Llama-3.1-70B-Instruct", "nvidia-a100-40gb", "-tp 2", "0.19.0", 1.73),
    ],
)
def test_flash_attention_2_hardly_grows_with_depth_since_0_17(catalogue, name, card, flags, version, seen):
    model, parsed, rules = catalogue.models.find(name), parse_flags(flags), catalogue.rules(version)
    run = effective(model, catalogue.accelerator(card), parsed, rules)
    most = graph_memory(model, parsed, run, rules, flash_2=True).high
    assert seen < most / GIB < 3.5
    before = graph_memory(model, parsed, run, catalogue.rules("0.9.2"), flash_2=True).high
    assert before > most or model.layer_count == 36


@pytest.mark.parametrize(
    ("name", "card", "flags", "version", "seen"),
    [
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", "nvidia-rtx-3090", "-tp 4", "0.11.0", 1.92),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "nvidia-l40s", "-tp 8 --enable-expert-parallel", "0.10.2", 3.45),
    ],
)
def test_graphs_of_every_eighth_size_may_take_more(catalogue, name, card, flags, version, seen):
    model, parsed, rules = catalogue.models.find(name), parse_flags(flags), catalogue.rules(version)
    run = effective(model, catalogue.accelerator(card), parsed, rules)
    assert graph_memory(model, parsed, run, rules).high / GIB > seen


def test_what_others_release_meanwhile_is_left_for_the_cache_where_the_host_shares_its_memory(ask):
    """Recorded: 4.85 GiB of a budget of 59.6 were left beside weights of 56.88, another server was just started."""
    flags = "--gpu-memory-utilization 0.49 --max-model-len 16384 --enforce-eager"
    shared = ask("Qwen/Qwen3-30B-A3B", "nvidia-gb10", flags, vllm="0.19.0")
    assert shared.kv_cache_bytes.low == 0
    assert shared.kv_cache_bytes.high > 4.85 * GIB
    alone = ask("Qwen/Qwen3-30B-A3B", "nvidia-h200", flags, vllm="0.19.0")
    assert alone.kv_cache_bytes.high < alone.budget_bytes.high - alone.weights_bytes.low


def test_a_host_that_shares_its_memory_grew_by_less_before_0_14(ask):
    """Rows held62 and held255: both started at 0.3 of a GB10 (0.13.0); later ones left up to 6.2 GiB less."""
    flags = "--max-model-len 32768 --gpu-memory-utilization 0.3 --kv-cache-dtype fp8"
    once, since = (ask("Qwen/Qwen3-30B-A3B-FP8", "nvidia-gb10", flags, vllm=v) for v in ("0.13.0", "0.20.0"))
    assert (once.fits, since.fits) == (True, None)


def test_an_embedding_model_samples_nothing(ask):
    """Row held447: 56.24 GiB left of an H100 (0.12.0); as a chat model's, the sampler would take 5.6."""
    flags = "--trust-remote-code --max-model-len 8192"
    pool = ask("Qwen/Qwen3-Embedding-8B", "nvidia-h100-80gb", flags, vllm="0.12.0").kv_cache_bytes
    assert pool.low / GIB < 56.24 < pool.high / GIB
