"""Where vLLM is installed, its planner and ours agree on configurations made afresh."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.bounds import Bounds
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.batch import batches_in_flight
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import AcceleratorKind, AttentionKind

NAMES = (
    "google/gemma-4-E2B-it", "google/gemma-4-E4B-it", "google/gemma-4-12B-it", "google/gemma-4-26B-A4B-it",
    "google/gemma-4-31B-it", "google/gemma-3-27b-it", "google/gemma-2-9b-it", "openai/gpt-oss-20b", "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-5.2",
)  # fmt: skip
ROWS = 200


@pytest.fixture(scope="module")
def vllm_python():
    """An interpreter with vLLM 0.32: this one, or the one that VLLM_PYTHON names."""
    named = os.environ.get("VLLM_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed here; name an interpreter that has it in VLLM_PYTHON")
    return sys.executable


def drawn(catalogue, chance):
    model = catalogue.models.find(chance.choice(NAMES))
    tp = chance.choice([size for size in (1, 2, 4) if not any(layer.heads % size for layer in model.layers)])
    fp8, overlapping = chance.random() < 0.5, chance.random() < 0.5
    length, batch = chance.randrange(1, model.max_position), chance.choice([2048, 4096, 8192, 16384])
    available = chance.randrange(2**28, 2**36)
    flags = parse_flags(
        f"-tp {tp} --kv-cache-dtype {'fp8' if fp8 else 'auto'} --max-model-len {length} --max-num-batched-tokens {batch} "
        f"--{'' if overlapping else 'no-'}async-scheduling --kv-cache-memory-bytes {available} --max-num-seqs 64"
    )
    layers = [spec for layer in model.layers if layer.owns_kv for spec in specs_of(layer, tp)]
    flight = batch * batches_in_flight(AcceleratorKind.CUDA, flags, catalogue.rules("0.32"))
    row = {
        "layers": layers,
        "bytes": 1 if fp8 else 2,
        "length": length,
        "batch": batch,
        "in_flight": flight,
        "available": available,
    }
    return model, tp, flags, row


def specs_of(layer, tp):
    """What the planner is told of these layers: kind, count, heads, elements, window, block."""
    if layer.kind is not AttentionKind.LATENT:
        kind = "sliding" if layer.kind is AttentionKind.SLIDING else "full"
        return [[kind, layer.count, max(1, layer.kv_heads // tp), layer.head_dim, layer.window_tokens, 16]]
    if layer.index_bytes is None:
        return [["latent", layer.count, 1, layer.latent_elements, None, 16]]
    kind = "sparse" if layer.index_bytes else "follower"
    indexer = [["indexer", layer.count, 1, layer.index_bytes, None, 64]] if layer.index_bytes else []
    return [[kind, layer.count, 1, layer.latent_elements, None, 64], *indexer]


def test_both_planners_agree_on_configurations_made_afresh(vllm_python):
    """Two hundred configurations from one seed; takes some 20 s, most of it vLLM's own import."""
    catalogue = load_fit_catalogue()
    chance = random.Random(20261121)
    asked = [drawn(catalogue, chance) for _ in range(ROWS)]
    done = subprocess.run(
        [vllm_python, str(Path(__file__).parent / "vllm_planner.py")],
        input="\n".join(json.dumps(row) for *_, row in asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    card, rules = catalogue.accelerator("nvidia-b300"), catalogue.rules("0.32")
    wrong = []
    for (model, tp, flags, row), theirs in zip(asked, answers, strict=True):
        ours = predict(model, card, tp, flags, rules)
        if "refused" in theirs:
            same = ours.num_gpu_blocks.best - 1 < ours.kv_blocks_per_request  # one block is held back
        else:
            same = ours.num_gpu_blocks == Bounds.exactly(theirs["blocks"]) and ours.kv_tokens == Bounds.exactly(
                theirs["tokens"]
            )
        if not same:
            wrong.append((model.name, row, theirs, ours.reason, ours.num_gpu_blocks, ours.kv_tokens))
    assert wrong == []
    assert sum("refused" in each for each in answers) >= 5
