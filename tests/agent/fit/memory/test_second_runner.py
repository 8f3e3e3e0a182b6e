"""Model Runner V2: what it takes to sample, by version, card and how tokens are guessed."""

import pytest

from agent.fit.bounds import GIB
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.batch import effective
from agent.fit.memory.second_runner import beyond_profile, estimates_graphs, second_runner


def sampling(catalogue, version, flags="--max-num-seqs 1024", *, model="Qwen/Qwen3.5-27B", card="nvidia-h100-80gb"):
    facts, device, rules = catalogue.models.find(model), catalogue.accelerator(card), catalogue.rules(version)
    parsed = parse_flags(flags)
    return second_runner(facts, device, parsed, rules, effective(facts, device, parsed, rules))


@pytest.mark.parametrize(
    ("version", "is_counted", "profiled", "warms_up_first", "is_profiled"),
    [
        ("0.25.1", False, 6, False, False),
        ("0.27", True, 6, False, False),
        ("0.28", True, 2, False, False),
        ("0.29", True, 2, False, False),
        ("0.30", True, 2, True, False),
        ("0.33", True, 14, True, True),
    ],
)
def test_each_version_profiles_and_counts_its_own(
    catalogue, version, is_counted, profiled, warms_up_first, is_profiled
):
    found = sampling(catalogue, version, model="Qwen/Qwen3-8B")
    logits = 1024 * 151_936
    assert (found.is_counted, found.warms_up_first, found.is_profiled) == (is_counted, warms_up_first, is_profiled)
    assert found.profiled == logits * profiled
    assert found.warm_up == pytest.approx(logits * 14, abs=GIB // 4)
    assert found.state.best == pytest.approx(logits * 4.125)


def test_the_recorded_warm_up_found_no_room(catalogue):
    """Pull request 48601: 4.29 GiB were free beside weights, libraries, cache and graphs, the state of 0.98 among them."""
    found = sampling(catalogue, "0.29")
    assert found.state.best / GIB == pytest.approx(0.98, abs=0.01)
    assert found.warm_up / GIB >= 4.29 - 0.98


def test_models_with_experts_or_recurrent_layers_have_it_from_0_29_on(catalogue):
    for model in ("Qwen/Qwen3.5-27B", "Qwen/Qwen3-30B-A3B"):
        assert sampling(catalogue, "0.28", model=model) is None
        assert sampling(catalogue, "0.29", model=model) is not None
    assert sampling(catalogue, "0.24", model="Qwen/Qwen3-8B") is None


def test_a_method_of_guessing_that_it_lacks_leaves_the_other_runner(catalogue):
    def guessing(version, method):
        flags = f"--speculative-config.method {method} --speculative-config.num_speculative_tokens 3"
        return sampling(catalogue, version, flags, model="Qwen/Qwen3-8B")

    assert guessing("0.30", "ngram") is None
    assert guessing("0.33", "ngram") is not None
    assert guessing("0.33", "suffix") is None
    assert guessing("0.26", "qwen3_next_mtp") is not None


def test_guessed_tokens_are_verified_by_chunks_of_one_gib_from_0_28_on(catalogue):
    flags = "--max-num-seqs 512 --speculative-config.method eagle3 --speculative-config.num_speculative_tokens 7"
    whole, chunked = (
        sampling(catalogue, version, flags, model="Qwen/Qwen3-8B").warm_up for version in ("0.27", "0.28")
    )
    rows = 512 * 8 * 151_936
    assert whole == pytest.approx(rows * 6, abs=GIB // 4)
    assert chunked == pytest.approx(rows * 2 + GIB, abs=GIB // 4)


def test_an_encoder_samples_nothing(catalogue):
    assert sampling(catalogue, "0.33", model="BAAI/bge-m3") is None


def test_a_question_without_a_version_may_mean_one_that_does_not_profile_its_warm_up(catalogue, ask):
    model = "Qwen/Qwen3-8B"
    activations = ask(model, "nvidia-h100-80gb", "--max-num-seqs 1024").overheads.activations
    assert beyond_profile(sampling(catalogue, None, model=model), activations).warm_up.high > 0
    assert beyond_profile(sampling(catalogue, "0.33", model=model), activations).warm_up.high == 0


def test_the_state_is_kept_beside_the_budget_before_0_27(ask):
    """Its 1.0 GiB are part of the pool then, and of what the device must hold."""
    flags = "--max-model-len 4096 --enforce-eager --max-num-seqs 1024"
    before, after = (ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", flags, vllm=version) for version in ("0.26", "0.27"))
    kept = 1024 * 151_936 * 4.125
    assert before.kv_cache_bytes.best - after.kv_cache_bytes.best == pytest.approx(kept, rel=0.01)
    assert after.overheads.non_torch.best - before.overheads.non_torch.best == pytest.approx(kept, rel=0.01)


@pytest.mark.parametrize(
    ("model", "card", "flags", "version", "printed"),
    [
        ("Qwen/Qwen3-4B", "nvidia-rtx-4090", f"--enable-lora --max-model-len 8192{util}", "0.27.1", pool)
        for util, pool in ((" --gpu-memory-utilization 0.80", 10.74), ("", 12.86), ("", 13.56))
    ]
    + [
        ("Qwen/Qwen3-32B-AWQ", "nvidia-rtx-5090", "--max-model-len 8192 --gpu-memory-utilization 0.70", "0.28.0", 3.0),
        ("Qwen/Qwen3-32B-AWQ", "nvidia-rtx-5090", "--max-model-len 8192 --gpu-memory-utilization 0.85", "0.28.0", 5.16),
        (
            "Qwen/Qwen3-14B-AWQ",
            "nvidia-rtx-5090",
            "--max-model-len 16384 --gpu-memory-utilization 0.70",
            "0.28.0",
            9.27,
        ),
        ("Qwen/Qwen2.5-3B-Instruct", "nvidia-rtx-5080", "--gpu-memory-utilization 0.85", "0.26.0", 7.07),
    ],
)
def test_before_0_29_the_cache_gets_what_graphs_will_take(ask, model, card, flags, version, printed):
    """It estimates no graphs; code that is compiled first makes the profiled peak up to 1.1 GiB higher (12.86, 13.56)."""
    pool = ask(model, card, flags, vllm=version).kv_cache_bytes
    assert pool.low / GIB <= printed <= pool.high / GIB


@pytest.mark.parametrize(
    ("model", "flags", "version", "estimates"),
    [
        ("Qwen/Qwen3-4B", "", "0.27.1", False),
        ("Qwen/Qwen3-4B", "", "0.29.0", True),
        ("Qwen/Qwen3-4B", "--logits-processors lamp:Wick", "0.27.1", None),
        ("Qwen/Qwen3-4B", "--enable-prompt-embeds", "0.27.1", None),
        ("Qwen/Qwen3-4B", "--runner pooling", "0.27.1", True),
        ("Qwen/Qwen3-30B-A3B", "", "0.27.1", True),
        ("deepseek-ai/DeepSeek-V4-Flash", "", "0.28.0", None),
        ("deepseek-ai/DeepSeek-V4-Flash", "", "0.27.1", True),
    ],
)
def test_who_serves_says_whether_graphs_are_estimated(catalogue, model, flags, version, estimates):
    """Source: _is_default_v2_model_runner_model and the features it lacks, vllm/config/vllm.py of 0.25.1 to 0.28.0."""
    model_facts = catalogue.models.find(model)
    assert estimates_graphs(model_facts, parse_flags(flags), catalogue.rules(version)) is estimates


def test_graphs_that_nothing_was_given_up_for_may_find_no_room(ask):
    """With an adapter's buffers graphs took 1.28 GiB: at 0.92 of a 4090 the server died, at 0.80 it ran (0.27.1)."""
    flags = "--enable-lora --max-model-len 8192 --gpu-memory-utilization"
    assert ask("Qwen/Qwen3-4B", "nvidia-rtx-4090", f"{flags} 0.92", vllm="0.27.1").fits is None
    assert ask("Qwen/Qwen3-4B", "nvidia-rtx-4090", f"{flags} 0.80", vllm="0.27.1").fits is True
