"""TPU workers: one number for all chips, blocks that grow with the context."""

import pytest

from agent.fit.memory.on_tpu import block_tokens


@pytest.mark.parametrize(
    ("length", "tokens"), [(1024, 16), (8192, 16), (16384, 32), (16385, 64), (32768, 64), (131072, 256), (10**6, 256)]
)
def test_blocks_grow_with_the_context(length, tokens):
    assert block_tokens(length) == tokens


def test_every_layer_keeps_every_token(ask):
    report = ask("google/gemma-4-E2B-it", "tpu-v6e", "--max-model-len 32768")
    assert report.kv_bytes_per_request.best == 32768 * (12 * 256 + 3 * 512) * 2 * 2
    assert report.kv_tokens == report.kv_capacity_tokens


def test_heads_are_padded_up_to_the_ranks(ask):
    one, four = (ask("google/gemma-4-E2B-it", "tpu-v6e", f"-tp {tp} --max-model-len 32768") for tp in (1, 4))
    assert one.kv_bytes_per_request == four.kv_bytes_per_request
    wide = [
        ask("Qwen/Qwen3-8B", "tpu-v6e", f"-tp {tp} --max-model-len 32768").kv_bytes_per_request.best for tp in (1, 4)
    ]
    assert wide[0] == 4 * wide[1]


def test_needs_count_on_tpu_too(ask):
    from agent.fit.needs import Needs

    flags = "--max-model-len 32768 --gpu-memory-utilization 0.9"
    assert ask("google/gemma-4-E2B-it", "tpu-v6e", flags).fits is True
    assert ask("google/gemma-4-E2B-it", "tpu-v6e", flags, needs=Needs(users=1000)).reason == "one_request"


def test_bytes_are_per_chip(ask):
    one, four = (ask("google/gemma-4-E4B-it", "tpu-v6e", f"-tp {tp} --max-model-len 16384") for tp in (1, 4))
    assert one.total_bytes == four.total_bytes
    assert four.weights_bytes.best < one.weights_bytes.best / 2


@pytest.mark.parametrize("flags", ["", "--language-model-only"], ids=["tower", "text"])
@pytest.mark.parametrize(
    "model", ["google/gemma-4-E2B-it-qat-mobile", "google/gemma-4-E4B-it", "Qwen/Qwen3-VL-2B-Instruct"]
)
def test_eight_chips_hold_what_one_holds(ask, model, flags):
    """Whatever flags leave out or ranks share: a chip's part is an eighth, and what each holds of its own."""
    one, eight = (ask(model, "tpu-v5e", f"-tp {tp} --max-model-len 4096 {flags}").weights_bytes for tp in (1, 8))
    assert one.best // 8 <= eight.best * 1.01
    assert eight.best < one.best / 2
