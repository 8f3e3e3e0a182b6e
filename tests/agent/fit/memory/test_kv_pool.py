"""A pool of known bytes prints what the version prints."""

import pytest

from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.batch import effective
from agent.fit.memory.kv_cache import plan_layout
from agent.fit.memory.kv_pool import fill_pool, spare_states
from agent.fit.needs import Needs


@pytest.fixture
def filled(catalogue):
    def asked(name, gib, flags, version, needs=None):
        model, rules, parsed = catalogue.models.find(name), catalogue.rules(version), parse_flags(flags)
        width = 1 if parsed.kv_cache_dtype == "fp8" else 2
        layout = plan_layout(model, parsed, block_tokens=16, bytes_per_element=width, rules=rules)
        run = effective(model, catalogue.accelerator("nvidia-h100-80gb"), parsed, rules)
        return fill_pool(layout, Bounds.exactly(int(gib * GIB)), parsed, rules, run=run, needs=needs or Needs())

    return asked


@pytest.mark.parametrize(
    ("name", "gib", "flags", "version", "tokens"),
    [
        ("google/gemma-4-31B-it", 28.41, "--max-model-len 32768 --max-num-batched-tokens 8192", "0.23", 97_541),
        (
            "RedHatAI/gemma-4-26B-A4B-it-NVFP4",
            7.15,
            "--max-model-len 256000 --max-num-batched-tokens 16384 --kv-cache-dtype fp8",
            "0.19",
            62_496,
        ),
        (
            "nvidia/Gemma-4-26B-A4B-NVFP4",
            4.58,
            "--max-model-len 256000 --max-num-batched-tokens 16384 --kv-cache-dtype fp8",
            "0.20.2",
            286_007,
        ),
        (
            "RedHatAI/Qwen3.6-35B-A3B-NVFP4",
            2.95,
            "--max-model-len 65536 --max-num-batched-tokens 8192 --kv-cache-dtype fp8 --enable-prefix-caching",
            "0.20.0",
            75_456,
        ),
        (
            "google/gemma-4-12B-it",
            8.16,
            "-tp 2 --max-model-len 131072 --max-num-batched-tokens 4096",
            "0.25.1",
            384_019,
        ),
        ("meta-llama/Llama-3.1-8B", 19.28, "--max-model-len 131072", "0.33", 157_936),
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", 9.10, "--max-model-len 4096", "0.19", 49_696),
        ("openai/gpt-oss-20b", 8.01, "--max-model-len 131072 --max-num-batched-tokens 2048", "0.33", 338_928),
    ],
)
def test_recorded_tokens_of_recorded_pools(filled, name, gib, flags, version, tokens):
    assert filled(name, gib, flags, version).tokens.best == pytest.approx(tokens, rel=0.001)


@pytest.mark.parametrize(("gib", "longest"), [(48.66, 205_728), (55.65, 235_296)])
def test_recorded_estimates_of_the_longest_context(filled, gib, longest):
    pool = filled("Qwen/Qwen3-Coder-480B-A35B-Instruct", gib, "--max-model-len 262144", "0.25.1")
    assert pool.bytes_per_request / GIB == pytest.approx(62.0)
    assert pool.longest == pytest.approx(longest, rel=0.0002)


def test_printed_tokens_are_no_capacity(filled):
    pool = filled("google/gemma-4-31B-it", 28.41, "--max-model-len 32768 --max-num-batched-tokens 8192", "0.33")
    whole = int(pool.concurrency[1])
    assert whole * 32_768 <= pool.capacity.best < (whole + 1) * 32_768
    assert pool.capacity.best != pool.tokens.best


def test_an_override_of_blocks_decides_the_pool(filled):
    assert filled("Qwen/Qwen3-8B", 1, "--num-gpu-blocks-override 777", "0.33").blocks == Bounds.exactly(777)


def test_needs_are_counted_in_their_own_context(filled):
    flags = "--max-model-len 40960"
    one = filled("Qwen/Qwen3-8B", 20, flags, "0.33")
    four = filled("Qwen/Qwen3-8B", 20, flags, "0.33", Needs(context_tokens=40_960, users=4))
    small = filled("Qwen/Qwen3-8B", 20, flags, "0.33", Needs(context_tokens=16, users=2))
    assert four.demand_bytes == 4 * one.demand_bytes
    assert small.demand_bytes == one.demand_bytes


def test_cached_prefixes_and_guessed_tokens_hold_further_states(catalogue):
    rules = catalogue.rules("0.33")
    assert spare_states(parse_flags(""), rules) == 1
    assert spare_states(parse_flags("--no-enable-prefix-caching"), rules) == 0
    assert (
        spare_states(parse_flags("-sc.method mtp -sc.num_speculative_tokens 3 --no-enable-prefix-caching"), rules) == 3
    )
    for version, states in (("0.23", 0), ("0.26", 0), ("0.27.1", 0), ("0.28", 1)):  # only if asked up to 0.27
        assert spare_states(parse_flags(""), catalogue.rules(version)) == states
    assert spare_states(parse_flags("--enable-prefix-caching"), catalogue.rules("0.11")) == 0


def test_an_encoder_needs_its_weights_and_no_cache(ask):
    """Granite's encoder of the shape of ModernBERT printed 0.29 GiB and started at a utilisation of 0.10 (0.19.0)."""
    report = ask(
        "ibm-granite/granite-embedding-english-r2",
        "nvidia-rtx-3060-12gb",
        "--gpu-memory-utilization 0.10",
        vllm="0.19.0",
    )
    assert report.weights_bytes.best / GIB == pytest.approx(0.29, rel=0.04)
    assert report.fits is True
    assert report.kv_bytes_per_request.best == 0
    assert report.max_concurrency == (256, 256, 256)


@pytest.mark.parametrize(("card", "vllm"), [("cpu", "0.30.0"), ("tpu-v5e", "0.30.0"), ("nvidia-l4", "0.10.2")])
def test_an_encoder_where_its_start_was_not_read_cannot_be_told(ask, card, vllm):
    assert ask("BAAI/bge-m3", card, vllm=vllm).fits is None
