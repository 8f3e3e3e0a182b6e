"""Pages, groups, blocks and tokens are vLLM's own, to the unit."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.kv_cache import KvLayout, LayerCache, plan_layout
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import AttentionKind


def layout_of(catalogue, name, flags="", *, block=16, width=2, version="0.32"):
    model = catalogue.models.find(name)
    return plan_layout(
        model, parse_flags(flags), block_tokens=block, bytes_per_element=width, rules=catalogue.rules(version)
    )


def test_blocks_and_tokens_equal_vllms_own_planner_500_of_500(catalogue):
    rows = json.loads((Path(__file__).parents[3] / "data" / "kv-oracle-dev.json").read_text())["rows"]
    accelerator, rules = catalogue.accelerator("nvidia-b300"), catalogue.rules("0.32")
    wrong = []
    for row in rows:
        flags = parse_flags(
            f"--tensor-parallel-size {row['tp']} --kv-cache-dtype {'fp8' if row['kv_dtype'] == 'fp8' else 'auto'} "
            f"--max-model-len {row['max_model_len']} --max-num-batched-tokens {row['max_num_batched_tokens']} "
            f"--{'' if row['async_scheduling'] else 'no-'}async-scheduling --block-size {row['block_size']} "
            f"--kv-cache-memory-bytes {row['available_bytes']}"
        )
        report = predict(
            catalogue.models.find(f"google/gemma-4-{row['model']}-it"), accelerator, row["tp"], flags, rules
        )
        if not row["fits"]:
            same = report.fits is False and report.reason == "one_request"
        else:
            same = (
                report.num_gpu_blocks == Bounds.exactly(row["num_blocks"])
                and report.kv_tokens == Bounds.exactly(row["kv_tokens"])
                and abs(report.max_concurrency[1] - row["max_concurrency"]) < 1e-3
                and report.reason != "one_request"
            )
        if not same:
            wrong.append((row, report.reason, report.num_gpu_blocks, report.kv_tokens))
    assert len(rows) == 500
    assert wrong == []


@pytest.mark.parametrize(
    ("size", "tp", "bytes_per_block", "blocks"),
    [
        ("E2B", 1, 98_304, {"sliding": 32, "full": 16}),
        ("E2B", 4, 98_304, {"sliding": 32, "full": 16}),
        ("E4B", 2, 131_072, {"sliding": 32, "full": 16}),
        ("12B", 1, 1_048_576, {"sliding": 16, "full": 64}),
        ("12B", 4, 262_144, {"sliding": 16, "full": 16}),
        ("26B-A4B", 1, 655_360, {"sliding": 16, "full": 32}),
        ("31B", 1, 2_621_440, {"sliding": 16, "full": 32}),
        ("31B", 8, 327_680, {"sliding": 16, "full": 16}),
    ],
)
def test_gemma_4_blocks_have_the_published_bytes(catalogue, size, tp, bytes_per_block, blocks):
    layout = layout_of(catalogue, f"google/gemma-4-{size}-it", f"-tp {tp}")
    assert layout.bytes_per_block == bytes_per_block
    assert {cache.kind.value: cache.block_tokens for cache in layout.caches} == blocks


def test_an_fp8_cache_halves_a_block_and_changes_no_count(catalogue):
    bf16, fp8 = layout_of(catalogue, "google/gemma-4-31B-it"), layout_of(catalogue, "google/gemma-4-31B-it", width=1)
    assert bf16.bytes_per_block == 2 * fp8.bytes_per_block
    assert bf16.claims(8192).blocks(32768) == fp8.claims(8192).blocks(32768)


def test_without_the_hybrid_manager_every_layer_keeps_every_token(catalogue):
    hybrid = layout_of(catalogue, "google/gemma-4-31B-it")
    flat = layout_of(catalogue, "google/gemma-4-31B-it", "--disable-hybrid-kv-cache-manager")
    need = [each.claims(2048).blocks(131_072) * each.bytes_per_block for each in (hybrid, flat)]
    assert flat.groups == 1
    assert need[1] > 3 * need[0]


def test_only_full_layers_cost_with_context(catalogue):
    layout = layout_of(catalogue, "google/gemma-4-31B-it")
    more = layout.claims(2048).blocks(262_144) - layout.claims(2048).blocks(131_072)
    assert more == 131_072 // 32


def test_a_held_back_block_explains_the_cpu_logs_estimate(catalogue):
    """A Llama with 32 KiB a token printed 32,640 as the longest context in 1 GiB: 256 blocks of 128, less one."""
    cache = LayerCache(kind=AttentionKind.FULL, layers=1, block_tokens=128, page_bytes=GIB // 256)
    layout = KvLayout(caches=(cache,), group_layers=1, bytes_per_block=GIB // 256)
    assert layout.claims(4096).longest(256 - 1, 131_072) == 32_640


@pytest.mark.parametrize(
    ("flags", "pool_gib", "tokens"),
    [
        ("--mamba-ssm-cache-dtype bfloat16 --kv-cache-dtype fp8 --max-model-len 131072", 7.08, 222_822),
    ],
)
def test_recurrent_layers_share_the_pool(ask, flags, pool_gib, tokens):
    """A Qwen 3.8 27B on a 3090 printed 222,822 tokens in 7.08 GiB."""
    report = ask("Qwen/Qwen3.8-27B", "nvidia-rtx-3090", f"{flags} --kv-cache-memory-bytes {int(pool_gib * GIB)}")
    assert report.kv_tokens.best == tokens


@pytest.mark.parametrize(
    ("model", "card", "flags", "vllm", "pool_gib", "tokens", "requests"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "nvidia-h200", "-tp 2", "0.11.0", 44.59, 973_760, 14.77),
        ("Qwen/Qwen3.5-2B", "nvidia-rtx-4090", "--max-model-len 262144", "0.17.1", 5.95, 129_472, 1.97),
        (
            "Qwen/Qwen3.5-9B",
            "nvidia-l40s",
            "--max-model-len 16384 --kv-cache-dtype fp8 --enable-prefix-caching --max-num-batched-tokens 4096",
            "0.16.0",
            2.43,
            39_072,
            6.82,
        ),
    ],
    ids=["state-in-bf16", "state-in-fp32", "prefixes-aligned"],
)
def test_recurrent_layers_of_older_versions_print_what_they_printed(
    ask, model, card, flags, vllm, pool_gib, tokens, requests
):
    """Start-ups of 2025-10, 2026-03 (public GitHub files, index ids 7292846353, 58718033200, 54355267735)."""
    report = ask(model, card, f"{flags} --kv-cache-memory-bytes {int(pool_gib * GIB)}", vllm=vllm, count=2)
    assert report.kv_tokens.low == pytest.approx(tokens, rel=0.002)
    assert round(report.max_concurrency[1], 2) == requests
    assert report.reason != "unknown"


def test_mamba_2_states_lie_beside_attention_as_printed(ask):
    """Nemotron 3 Nano 30B in fp8 printed attention blocks of 4,176 tokens, Super 120B 8,432 (0.26.0, 0.19).

    Nano 4B in fp8 printed 992 (0.13.0), granite 4.0 h-small 528 (0.11.1).
    """
    nano = ask("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia-gb10", "--kv-cache-dtype fp8", vllm="0.33")
    flags = (
        "--kv-cache-dtype fp8 --no-enable-prefix-caching --max-model-len 131072 -sc.method mtp "
        f"-sc.num_speculative_tokens 3 --kv-cache-memory-bytes {int(36.25 * GIB)}"
    )
    large = ask("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", "nvidia-b300", flags, vllm="0.19.1")
    assert (nano.kv_block_tokens, large.kv_block_tokens) == (4176, 8432)
    small = ask("nvidia/NVIDIA-Nemotron-3-Nano-4B-FP8", "nvidia-gb10", "--kv-cache-dtype fp8", vllm="0.13.0")
    granite = ask("ibm-granite/granite-4.0-h-small", "nvidia-h100-80gb", vllm="0.11.1")
    assert (small.kv_block_tokens, granite.kv_block_tokens) == (992, 528)
    assert large.kv_tokens.best == 1_399_712
    assert round(large.max_concurrency[1], 2) == 27.81


def test_the_state_of_every_block_is_kept_where_prefixes_of_mamba_2_are_cached(ask):
    """Mamba 2 with prefix caching, 0.11.2 to 0.29: 4 tables of states grow like the one of keys."""
    flags = "--max-model-len 262144 --max-num-seqs 8"
    cached, plain = (
        ask("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia-h200", f"{flags} {more}", vllm="0.21")
        for more in ("--enable-prefix-caching", "")
    )
    assert (cached.fits, plain.fits) == (True, True)
    keys = plain.kv_blocks_per_request - 4
    assert cached.kv_blocks_per_request >= keys + 4 * keys


def test_one_state_and_a_spare_are_kept_of_mamba_2_from_0_30_on(ask):
    """A GB10 printed 7,778,304 tokens for requests of 32,768: 237.375 of them, each of 16 blocks of 3,798 (0.30.0)."""
    name = "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"
    report = ask(name, "nvidia-gb10", "--gpu-memory-utilization 0.55 --max-model-len 32768", vllm="0.30.0")
    assert (report.fits, report.kv_blocks_per_request) == (True, 16)


@pytest.mark.parametrize(("vllm", "bytes_per_token"), [("0.23.0", 61_464), ("0.23.1", 53_940)])
def test_every_sparse_layer_had_an_indexer_at_first(ask, vllm, bytes_per_token):
    """GLM 5.2 on eight H20 printed 418,368 tokens in 24.26 GiB with five guessed tokens (0.23.0)."""
    flags = "--tensor-parallel-size 8 --kv-cache-dtype fp8 --max-model-len 65536"
    report = ask("zai-org/GLM-5.2-FP8", "nvidia-h20-141gb", flags, vllm=vllm)
    assert report.kv_bytes_per_request.best == 65_536 * bytes_per_token


def test_the_type_of_convolution_states_is_counted_beside_that_of_the_recurrent_state(ask):
    flags = "--max-model-len 8192 --mamba-ssm-cache-dtype float16 --mamba-cache-dtype"
    plain, wide = (
        ask("Qwen/Qwen3.5-9B", "nvidia-h100-80gb", f"{flags} {asked}", vllm="0.27") for asked in ("float16", "float32")
    )
    assert (plain.fits, wide.fits) == (True, None)


def test_what_was_not_read_of_recurrent_layers_stays_open(ask):
    report = ask("Qwen/Qwen3-Next-80B-A3B-Instruct", "nvidia-h200", "-tp 2", vllm="0.10.1", count=2)
    assert any("recurrent layers was not read" in line for line in report.assumptions)


def test_a_guessing_layer_and_its_states_are_counted(ask):
    """A Qwen 27B NVFP4 with MTP needed 1.71 GiB for one request of 16,384 tokens."""
    flags = (
        "--no-enable-prefix-caching --max-model-len 16384 --speculative-config.method mtp "
        "--speculative-config.num_speculative_tokens 3"
    )
    report = ask("Qwen/Qwen3.6-27B-NVFP4", "nvidia-rtx-3090", flags)
    assert round(report.kv_bytes_per_request.best / GIB, 2) == 1.71


@given(st.integers(1, 10**6), st.integers(0, 40_000), st.integers(1, 10**6))
def test_the_longest_context_is_the_last_that_fits(blocks, flight, most):
    caches = (
        LayerCache(kind=AttentionKind.FULL, layers=10, block_tokens=32, page_bytes=64),
        LayerCache(kind=AttentionKind.SLIDING, layers=50, block_tokens=16, page_bytes=64, window_tokens=1024),
    )
    layout = KvLayout(caches=caches, group_layers=10, bytes_per_block=640)
    longest = layout.claims(flight).longest(blocks, most)
    assert longest == 0 or layout.claims(flight).blocks(longest) <= blocks
    assert longest == most or layout.claims(flight).blocks(longest + 1) > blocks


def test_cross_attention_claims_the_encoders_tokens_beside_the_decoders(ask):
    """Whisper large v3 printed 33,216 tokens in 10.14 GiB (0.15.1): 32 layers of each kind, in blocks of 16."""
    flags = f"--kv-cache-memory-bytes {int(10.14 * 2**30)}"
    report = ask("openai/whisper-large-v3", "nvidia-rtx-4080", flags, vllm="0.15.1")
    assert report.kv_tokens.best == 33_216
    assert report.kv_blocks_per_request == 448 // 16 + 2048 // 16
    assert report.weights_bytes.best / 2**30 == pytest.approx(2.88, abs=0.01)
    asked = ask("openai/whisper-large-v3", "nvidia-h100-80gb", "--max-num-batched-tokens 4096", vllm="0.33.0")
    assert asked.kv_blocks_per_request == 448 // 16 + 4096 // 16


@pytest.mark.parametrize("vllm", ["0.7.3", "0.9.2", "0.10.2"])
def test_cross_attention_before_the_next_engine_is_cannot_tell(ask, vllm):
    assert ask("openai/whisper-small", "nvidia-h100-80gb", vllm=vllm).fits is None


@pytest.mark.parametrize(("version", "tokens"), [("0.19.0", 1056), ("0.20.0", 1152), ("0.29.0", 1152)])
def test_blocks_beside_recurrent_states_grow_in_steps_of_a_given_size(ask, version, tokens):
    """Recorded: 207,842 tokens of 32,768 are 222 of 35 blocks, of 1,152 tokens each (0.29.0)."""
    report = ask(
        "nvidia/Qwen3.6-35B-A3B-NVFP4", "nvidia-rtx-5090", "--block-size 128 --max-model-len 32768", vllm=version
    )
    assert report.kv_block_tokens == tokens


@pytest.mark.parametrize(("version", "tokens"), [("0.12.0", 960), ("0.30.0", 1024)])
def test_latent_blocks_beside_recurrent_states_grow_in_wider_steps(ask, version, tokens):
    """Recorded: 75,840 tokens are 79 blocks of 960 for each of four groups (vLLM issue 28228, two cards)."""
    asked = "-tp 2 --max-model-len 120000"
    report = ask("moonshotai/Kimi-Linear-48B-A3B-Instruct", "nvidia-h100-80gb", asked, vllm=version, count=2)
    assert report.kv_block_tokens == tokens
