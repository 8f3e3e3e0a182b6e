"""Defaults are the version's own."""

import pytest

from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.memory.batch import batches_in_flight, captured_sizes, effective


def run_of(catalogue, model, accelerator, flags="", version="0.33"):
    return effective(
        catalogue.models.find(model), catalogue.accelerator(accelerator), parse_flags(flags), catalogue.rules(version)
    )


@pytest.mark.parametrize(
    ("accelerator", "version", "batch", "seqs"),
    [
        ("nvidia-l4", "0.33", 2048, 256),
        ("nvidia-h100-80gb", "0.33", 8192, 1024),
        ("nvidia-a100-80gb", "0.33", 2048, 256),
        ("nvidia-b300", "0.27", 8192, 1024),
        ("nvidia-b300", "0.33", 16384, 1024),
        ("cpu", "0.33", 2048, 128),
    ],
)
def test_batch_and_sequences_follow_the_card(catalogue, accelerator, version, batch, seqs):
    run = run_of(catalogue, "Qwen/Qwen3-8B", accelerator, version=version)
    assert (run.max_num_batched_tokens, run.max_num_seqs) == (batch, seqs)


def test_gemma_4_raises_a_default_batch_to_one_video(catalogue):
    name = "google/gemma-4-31B-it"
    assert run_of(catalogue, name, "nvidia-l4").max_num_batched_tokens == 2496
    assert run_of(catalogue, name, "nvidia-l4", version="0.21").max_num_batched_tokens == 2048
    assert run_of(catalogue, name, "nvidia-l4", "--language-model-only").max_num_batched_tokens == 2048
    assert run_of(catalogue, name, "nvidia-l4", "--max-num-batched-tokens 4096").max_num_batched_tokens == 4096


@pytest.mark.parametrize(
    ("flags", "tokens"),
    [
        ("", 2496),
        ("""--limit-mm-per-prompt '{"video":0}'""", 280),
        ("""--limit-mm-per-prompt '{"video":0,"image":0,"audio":0}'""", 0),
        ("--language-model-only", 0),
    ],
)
def test_the_largest_item_shrinks_with_what_is_allowed(catalogue, flags, tokens):
    assert run_of(catalogue, "google/gemma-4-12B-it", "nvidia-l4", flags).item_tokens == tokens


@pytest.mark.parametrize(("version", "pool", "printed"), [("0.25.1", 22.01, 1_033_831), ("0.31.0", 19.08, 731_921)])
def test_the_small_gemma_4_attend_to_the_past_alone_so_their_batch_stays(ask, version, pool, printed):
    """Rows of two authors on L40S: 5 and 7 % less would be printed with a batch of 2,496."""
    flags = f"--max-model-len 16384 --kv-cache-memory-bytes {int(pool * 2**30)}"
    report = ask("google/gemma-4-E4B-it", "nvidia-l40s", flags, vllm=version)
    assert report.max_num_batched_tokens == 2048
    assert report.kv_tokens.best == pytest.approx(printed, rel=0.0005)


def test_utilisation_and_context_come_from_version_and_model(catalogue):
    old, new = (run_of(catalogue, "Qwen/Qwen3-8B", "nvidia-l4", version=v) for v in ("0.19", "0.21"))
    assert (old.utilisation, new.utilisation) == (0.9, 0.92)
    assert new.max_model_len == 40_960


@pytest.mark.parametrize(
    ("flags", "seqs", "count"),
    [
        (Flags(), 256, 51),
        (Flags(), 1024, 51),
        (Flags(), 8, 5),
        (Flags(), 1, 2),
        (Flags(enforce_eager=True), 256, 0),
        (Flags(cudagraph_mode="NONE"), 256, 0),
        (Flags(max_cudagraph_capture_size=40), 256, 8),
        (Flags(cudagraph_capture_sizes=(1, 2, 2, 4096)), 256, 2),
    ],
)
def test_capture_sizes_are_counted_as_vllm_lists_them(catalogue, flags, seqs, count):
    assert len(captured_sizes(flags, seqs, 2048, catalogue.rules(None))) == count


def test_without_chunked_prefill_the_batch_holds_a_whole_prompt(catalogue):
    run = run_of(catalogue, "Qwen/Qwen3-8B", "nvidia-l4", "--no-enable-chunked-prefill --max-model-len 16384")
    assert run.max_num_batched_tokens == 16384


@pytest.mark.parametrize(
    ("accelerator", "flags", "vllm", "batches"),
    [
        ("nvidia-l4", "", "0.25.1", 1),
        ("nvidia-l4", "", "0.32", 2),
        ("nvidia-l4", "--no-async-scheduling", "0.32", 1),
        ("nvidia-l4", "-pp 2", "0.27", 2),
        ("nvidia-l4", "-pp 2", "0.32", 3),
        ("nvidia-l4", "-pp 2 --no-async-scheduling", "0.32", 2),
        ("nvidia-l4", "--runner pooling", "0.32", 1),
        ("nvidia-l4", "--runner pooling --async-scheduling", "0.32", 2),
        ("nvidia-l4", "--task embed", "0.32", 1),
        ("nvidia-l4", "--task generate", "0.32", 2),
        ("nvidia-l4", "--distributed-executor-backend ray", "0.32", 1),
        ("nvidia-l4", "--distributed-executor-backend mp", "0.32", 2),
        ("nvidia-l4", "--speculative-config.method ngram", "0.32", 1),
        ("nvidia-l4", "--speculative-config.method eagle3", "0.32", 2),
        ("nvidia-l4", "--speculative-config.method qwen3_5_mtp", "0.32", 2),
        ("cpu", "", "0.32", 1),
        ("cpu", "--async-scheduling", "0.32", 1),
        ("cpu", "--pipeline-parallel-size 2", "0.32", 2),
    ],
)
def test_what_overlaps_is_the_last_word_of_platform_task_and_executor(catalogue, accelerator, flags, vllm, batches):
    """VLLM 0.32 config/vllm.py 577-589 and 1584-1644, platforms/cpu.py 331."""
    parsed, device = parse_flags(flags), catalogue.accelerator(accelerator)
    assert batches_in_flight(device.kind, parsed, catalogue.rules(vllm)) == batches


def test_a_card_whose_size_nvml_does_not_tell_gets_the_batch_of_small_cards(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-gb10", "")
    assert (report.max_num_batched_tokens, report.max_num_seqs) == (2048, 256)


@pytest.mark.parametrize(("share", "fits"), [("", None), ("--gpu-memory-utilization 0.9", True)])
def test_what_a_host_holds_of_shared_memory_may_be_more_than_the_default_share_leaves(ask, share, fits):
    """Recorded: 9.97 of 119.63 GiB were held before a start with the default share of 0.92, which then ended (0.24.0)."""
    assert ask("Qwen/Qwen3-8B", "nvidia-gb10", f"--max-model-len 4096 {share}", vllm="0.24.0").fits is fits


def test_a_performance_mode_doubles_defaults_or_captures_every_small_size(catalogue):
    model, card, rules = (
        catalogue.models.find("Qwen/Qwen3-8B"),
        catalogue.accelerator("nvidia-l40s"),
        catalogue.rules("0.27"),
    )
    plain, wide, fine = (
        effective(model, card, parse_flags(flags), rules)
        for flags in ("", "--performance-mode throughput", "--performance-mode interactivity")
    )
    assert (wide.max_num_batched_tokens, wide.max_num_seqs) == (
        2 * plain.max_num_batched_tokens,
        2 * plain.max_num_seqs,
    )
    assert fine.captured == plain.captured + 32 - len([1, 2, 4, 8, 16, 24, 32])
    assert fine.largest_captured == plain.largest_captured
    asked = effective(model, card, parse_flags("--performance-mode throughput --max-num-seqs 8"), rules)
    assert asked.max_num_seqs == 8
