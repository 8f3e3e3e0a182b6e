"""A flag, or a value, that one version does not take is said, not passed over."""

import pytest

from agent.fit.flags.flags import parse_flags
from agent.fit.memory.flags_of_version import missing_flags, reads_limits


@pytest.mark.parametrize(
    ("flags", "version", "said"),
    [
        ("--disable-log-requests", "0.28.0", "vLLM 0.28.0 has no --disable-log-requests; versions until 0.16.0 have"),
        ("--disable-log-requests", "0.16.0", None),
        ("--performance-mode throughput", "0.16.0", "vLLM 0.16.0 has no --performance-mode; 0.17.0 has"),
        ("--performance-mode throughput", "0.17.0", None),
        ("--task embed", "0.13.0", "vLLM 0.13.0 has no --task; versions until 0.12.0 have"),
        ("--no-async-scheduling", "0.8.5", "vLLM 0.8.5 has no --async-scheduling; 0.10.0 has"),
        ("--no-such-flag", "0.28.0", None),
        ("--max-model-len 4096 --tensor-parallel-size 1", "0.6.3", None),
    ],
)
def test_a_flag_is_missing_before_its_first_and_after_its_last_version(catalogue, flags, version, said):
    assert missing_flags(parse_flags(flags), catalogue.rules(version)) == ((said,) if said else ())


def test_between_two_versions_of_which_one_takes_it_nothing_is_said(catalogue):
    """0.16.0 takes --disable-log-requests, 0.17.0 does not; what a build between them does was not read."""
    assert missing_flags(parse_flags("--disable-log-requests"), catalogue.rules("0.16.1")) == ()


@pytest.mark.parametrize(
    ("flags", "version"),
    [
        ("--task generate", "0.30.0"),
        ("--swap-space 4", "0.30.0"),
        ("--max-num-partial-prefills 2", "0.31.0"),
        ("--language-model-only", "0.13.0"),
        ("--performance-mode throughput", "0.15.1"),
        ("--disable-log-requests", "0.24.0"),
        ("--disable-log-requests", "0.28.1rc1.dev3"),
        ("--structured-outputs-config.backend auto", "0.10.0"),
        ("--device-memory-utilization 0.9", "0.30.0"),
        ("--cudagraph-capture-sizes 1 2 4", "0.11.0"),
        ("--max-cudagraph-capture-size 8", "0.11.0"),
        ("--cuda-graph-sizes 8", "0.13.0"),
        ("--device cuda", "0.10.0"),
        ("--compilation-config {}", "0.6.4"),
        ("--speculative-model a/b --num-speculative-tokens 2", "0.8.3"),
        ('--speculative-config {"method":"ngram","num_speculative_tokens":2}', "0.8.1"),
    ],
)
def test_whatever_lies_between_two_versions_that_lack_it_lacks_it_too(catalogue, flags, version):
    assert missing_flags(parse_flags(flags.split(" ")), catalogue.rules(version))


@pytest.mark.parametrize(
    ("flags", "version"),
    [
        ("--device-memory-utilization 0.9", "0.31.0"),
        ("--performance-mode throughput", "0.16.0rc1.dev7+g1a2b3c4d5"),
        ('--compilation-config {"cudagraph_capture_sizes":[1]}', "0.11.0"),
        ("--disable-log-requests", "0.17.0rc1"),
        ("--structured-outputs-config.backend auto", "0.20.0"),
        ("--no-enable-lora", "0.33.0"),
    ],
)
def test_what_is_there_or_may_be_is_not_called_missing(catalogue, flags, version):
    """A candidate of 0.17 may still take what the release does not; a key of a JSON flag is no flag."""
    assert missing_flags(parse_flags(flags.split(" ")), catalogue.rules(version)) == ()


def test_a_version_that_is_asked_for_stops_and_where_none_is_it_is_an_assumption(ask):
    flags = "--max-model-len 4096 --disable-log-requests"
    stopped, between, ran, not_told = (
        ask("Qwen/Qwen3-8B", "nvidia-l40s", flags, vllm=vllm) for vllm in ("0.28.0", "0.24.0", "0.16.0", None)
    )
    assert (stopped.fits, stopped.reason) == (between.fits, between.reason) == (False, "unsupported")
    assert (ran.fits, not_told.fits) == (True, True)
    assert any("has no --disable-log-requests" in note for note in not_told.assumptions)
    assert any("the memory rules of vLLM 0.23.0 hold for 0.24.0" in note for note in between.assumptions)


@pytest.mark.parametrize(
    ("flags", "version", "said"),
    [
        ("--enable-lora --max-lora-rank 17", "0.20.0", "no vLLM version that was read takes --max-lora-rank 17"),
        ("--enable-lora --max-lora-rank 1", "0.11.0", "vLLM 0.11.0 takes no --max-lora-rank 1; 0.12.0 has"),
        ("--kv-cache-dtype bfloat16", "0.9.2", "vLLM 0.9.2 takes no --kv-cache-dtype bfloat16; 0.11.0 has"),
        ("--performance-mode fast", "0.20.0", "no vLLM version that was read takes --performance-mode fast"),
        ("--mm-encoder-tp-mode foo", "0.20.0", "no vLLM version that was read takes --mm-encoder-tp-mode foo"),
        ("--enable-lora --max-lora-rank 16", "0.20.0", None),
        ("--kv-cache-dtype bfloat16", "0.11.0", None),
        ("--kv-cache-dtype fp8_e5m2 --performance-mode balanced", "0.33.0", None),
    ],
)
def test_a_flag_with_few_values_takes_no_other(catalogue, flags, version, said):
    assert missing_flags(parse_flags(flags), catalogue.rules(version)) == ((said,) if said else ())


@pytest.mark.parametrize(
    ("model", "version", "reads"),
    [
        ("google/gemma-3-12b-it", "0.14.1", False),
        ("google/gemma-3-12b-it", "0.16.0", True),
        ("Qwen/Qwen3-VL-8B-Instruct", "0.12.0", True),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.10.0", False),
    ],
)
def test_a_tower_without_items_is_left_out_where_the_model_reads_the_limits(catalogue, model, version, reads):
    assert reads_limits(catalogue.models.find(model), catalogue.rules(version)) is reads


def test_a_tower_that_may_be_loaded_all_the_same_is_no_room(ask):
    flags = '--max-model-len 4096 --limit-mm-per-prompt \'{"image":0,"video":0}\''
    older, newer = (ask("google/gemma-3-4b-it", "nvidia-l40s", flags, vllm=vllm) for vllm in ("0.14.1", "0.16.0"))
    assert (older.fits, newer.fits) == (None, True)


@pytest.mark.parametrize("flags", ["--no-task", "--no-seed", "--performance-mode fast", "--kv-cache-dtype fp9"])
@pytest.mark.parametrize("version", ["0.10.0", "0.33.0", None])
def test_what_no_version_takes_stops_all_of_them(ask, flags, version):
    """A flag that needs a value has no form that switches it off."""
    report = ask("Qwen/Qwen3-8B", "nvidia-l40s", f"--max-model-len 4096 {flags}", vllm=version)
    assert (report.fits, report.reason) == (False, "unsupported")
