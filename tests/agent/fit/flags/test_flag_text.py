"""Typed flags are written so that they are read back equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fit.flags.flag_text import flag_args, flag_line, flag_settings
from agent.fit.flags.flags import AUTO, Flags, OtherFlag, SpeculativeFlags, parse_flags

LINES = [
    "",
    "--max-model-len 8192 --kv-cache-dtype fp8 --gpu-memory-utilization 0.95",
    "--enforce-eager --no-async-scheduling --language-model-only",
    '--limit-mm-per-prompt \'{"image":0,"video":0}\'',
    "--limit-mm-per-prompt image=0,video=1",
    "--cpu-offload-gb 0.5 --max-num-seqs 16 --tensor-parallel-size 2",
    '--speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'',
    "--max-model-len auto --block-size 32",
    "--cudagraph-capture-sizes 1 2 4 8",
    "--compilation-config 3 --max-model-len 8192",
    "-O3 --trust-remote-code --served-model-name gemma-4 other",
    "VLLM_CPU_KVCACHE_SPACE=40 --dtype bfloat16",
    '--compilation-config \'{"cudagraph_mode":"PIECEWISE"}\'',
    '--compilation-config \'{"cudagraph_mode":"PIECEWISE","mode":3,"pass_config":{"fuse_norm_quant":true}}\'',
    '--speculative-config \'{"method":"mtp","num_speculative_tokens":3,"quantization":"fp8"}\'',
    "--chat-template '/mnt/a b/template.jinja' --max-model-len 4096",
]


@pytest.mark.parametrize("line", LINES)
def test_what_was_read_is_written_so_that_it_reads_equal(line):
    flags = parse_flags(line)
    if not any(" " in (other.value or "") for other in flags.others):
        assert parse_flags(flag_line(flags)) == flags
    assert parse_flags(list(flag_args(flags))).max_model_len == flags.max_model_len


@pytest.mark.parametrize("line", LINES)
def test_a_flag_is_written_once_for_of_two_json_flags_vllm_takes_the_last(line):
    names = [word for word in flag_args(parse_flags(line)) if word.startswith("--")]
    assert len(names) == len(set(names))


@given(
    st.builds(
        Flags,
        tensor_parallel_size=st.none() | st.sampled_from([1, 2, 8]),
        gpu_memory_utilization=st.none() | st.floats(0.05, 1.0),
        max_model_len=st.none() | st.integers(1, 10**6) | st.just(AUTO),
        max_num_seqs=st.none() | st.integers(1, 4096),
        cpu_offload_gb=st.none() | st.floats(0, 64),
        enforce_eager=st.none() | st.booleans(),
        async_scheduling=st.none() | st.booleans(),
        kv_cache_dtype=st.none() | st.sampled_from(["auto", "fp8"]),
        limit_mm_per_prompt=st.none() | st.just((("audio", 0), ("image", 1))),
        speculative_config=st.none() | st.builds(SpeculativeFlags, method=st.just("eagle3"), tokens=st.integers(1, 8)),
        kv_cache_space_gib=st.none() | st.floats(1, 500),
        allows_longer=st.sampled_from([None, True]),
        others=st.just(()) | st.just((OtherFlag(name="seed", value="7"), OtherFlag(name="no-log-stats", value=None))),
    )
)
def test_any_flags_read_back_equal(flags):
    assert parse_flags(flag_line(flags)) == flags
    assert parse_flags(list(flag_args(flags))) == flags


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("--max-model-len 8192", "--max-model-len 4096", {"max-model-len": "4096"}),
        ("", "--language-model-only", {"language-model-only": ""}),
        ("--cpu-offload-gb 14", "", {"cpu-offload-gb": None}),
        ("--enforce-eager", "--no-enforce-eager", {"enforce-eager": None, "no-enforce-eager": ""}),
        ("--seed 7 --max-num-seqs 4", "--seed 7 --max-num-seqs 4", {}),
        ("", "--limit-mm-per-prompt '{\"image\":0}'", {"limit-mm-per-prompt": '{"image":0}'}),
    ],
)
def test_a_difference_is_told_as_an_editor_of_a_command_line_takes_it(before, after, changed):
    assert flag_settings(parse_flags(before), parse_flags(after)) == changed
