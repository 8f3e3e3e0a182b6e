"""vLLM flags are read as vLLM reads them, and nothing that is not understood is lost."""

import contextlib
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import InputRejected
from agent.fit.flags.flags import AUTO, Flags, OtherFlag, human_int, parse_flags


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("--max-model-len 8192", "max_model_len", 8192),
        ("--max-model-len=32K", "max_model_len", 32768),
        ("--max_model_len 25.6k", "max_model_len", 25600),
        ("--max-model-len auto", "max_model_len", AUTO),
        ("--max-model-len -1", "max_model_len", AUTO),
        ("-tp 4", "tensor_parallel_size", 4),
        ("-tp=4", "tensor_parallel_size", 4),
        ("--enforce-eager", "enforce_eager", True),
        ("--no-async-scheduling", "async_scheduling", False),
        ("--no-enable-prefix-caching", "enable_prefix_caching", False),
        ("--kv-cache-dtype FP8", "kv_cache_dtype", "fp8"),
        ("--kv-cache-memory 5G", "kv_cache_memory_bytes", 5 * 2**30),
        ("--cpu-offload-gb 0.5", "cpu_offload_gb", 0.5),
        ("--cudagraph-capture-sizes 1 2 4 8", "cudagraph_capture_sizes", (1, 2, 4, 8)),
        ("-cc.max_cudagraph_capture_size 16", "max_cudagraph_capture_size", 16),
        ("""--compilation-config '{"cudagraph_mode": "none"}'""", "cudagraph_mode", "NONE"),
        ("-O0", "compilation_level", 0),
        ("--compilation-config 3", "compilation_level", 3),
        (
            """--limit-mm-per-prompt '{"image": 0, "audio": {"count": 1}}'""",
            "limit_mm_per_prompt",
            (("audio", 1), ("image", 0)),
        ),
        ("--limit-mm-per-prompt.image 0", "limit_mm_per_prompt", (("image", 0),)),
        ("--limit-mm-per-prompt image=2,video=1", "limit_mm_per_prompt", (("image", 2), ("video", 1))),
        ("VLLM_CPU_KVCACHE_SPACE=4 vllm serve google/gemma-4-31B-it", "kv_cache_space_gib", 4.0),
        ("--device-memory-utilization 0.8", "gpu_memory_utilization", 0.8),
    ],
)
def test_a_flag_is_read_as_vllm_reads_it(text, field, value):
    assert getattr(parse_flags(text), field) == value


def test_limits_as_words_name_each_kind_once():
    with pytest.raises(InputRejected, match="names one of them twice"):
        parse_flags("--limit-mm-per-prompt image=2,image=0")


def test_the_last_of_two_equal_flags_wins():
    assert parse_flags("--max-num-seqs 8 --max-num-seqs=16").max_num_seqs == 16


def test_unknown_flags_are_kept_in_order_and_word_for_word():
    flags = parse_flags("--lora-modules a=b c=d --max-model-len 10 --new_thing=1.5 --alone")
    assert flags.others == (
        OtherFlag(name="lora-modules", value="a=b c=d"),
        OtherFlag(name="new-thing", value="1.5"),
        OtherFlag(name="alone", value=None),
    )


def test_a_speculative_config_may_come_whole_or_by_key():
    whole = parse_flags("""--speculative-config '{"method":"eagle3","model":"a/b","num_speculative_tokens":3}'""")
    by_key = parse_flags("--speculative-config.method eagle3 -sc.model a/b -sc.num_speculative_tokens 3")
    assert whole.speculative_config == by_key.speculative_config
    assert whole.speculative_config.tokens == 3


@pytest.mark.parametrize(
    ("text", "limits", "method", "model"),
    [
        ("""--limit-mm-per-prompt '{"image":0}' --limit-mm-per-prompt '{"video":0}'""", (("video", 0),), None, None),
        ("--limit-mm-per-prompt.image 0 --limit-mm-per-prompt.video 1", (("image", 0), ("video", 1)), None, None),
        ("""--limit-mm-per-prompt.image 0 --limit-mm-per-prompt '{"video":0}'""", (("image", 0),), None, None),
        ("--limit-mm-per-prompt.image.count 2 --limit-mm-per-prompt.image.width 9", (("image", 2),), None, None),
        (
            """--speculative-config '{"method":"ngram","num_speculative_tokens":3}' --speculative-config '{"model":"a/b"}'""",
            None,
            "",
            "a/b",
        ),
        ("""--speculative-config '{"method":"ngram"}' --speculative-config.model a/b""", None, "", "a/b"),
    ],
)
def test_of_two_json_flags_the_last_counts_alone_and_dotted_keys_stand_last(text, limits, method, model):
    """An earlier "ngram" must not make a later draft model free, nor an earlier limit keep a tower away."""
    flags = parse_flags(text)
    assert flags.limit_mm_per_prompt == limits
    if method is not None:
        assert (flags.speculative_config.method, flags.speculative_config.model) == (method, model)


def test_keys_of_a_json_flag_that_are_not_typed_are_kept():
    flags = parse_flags(
        """--speculative-config '{"method":"mtp","quantization":"fp8","tokens":9,"others":1}' """
        """--compilation-config '{"mode":"VLLM_COMPILE","pass_config":{"fuse_norm_quant":true},"compile_mm_encoder":true}'"""
    )
    assert flags.speculative_config.others == (("others", "1"), ("quantization", '"fp8"'), ("tokens", "9"))
    assert flags.speculative_config.tokens == 0
    assert flags.compilation_others == (
        ("compile_mm_encoder", "true"),
        ("pass_config", '{"fuse_norm_quant":true}'),
    )
    assert flags.compilation_level == 3


@pytest.mark.parametrize(
    ("text", "level"),
    [("NONE", 0), ("none", 0), ("stock_torch_compile", 1), ("DYNAMO_TRACE_ONCE", 2), ("VLLM_COMPILE", 3)],
)
def test_a_compilation_mode_may_be_named(text, level):
    assert parse_flags(f'--compilation-config \'{{"mode":"{text}"}}\'').compilation_level == level
    assert parse_flags(f"--compilation-config '{{\"mode\":{level}}}'").compilation_level == level


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("vllm serve google/gemma-4-31B-it --max-model-len 5", "google/gemma-4-31B-it"),
        ("serve google/gemma-4-31B-it", "google/gemma-4-31B-it"),
        ("--model google/gemma-4-31B-it", "google/gemma-4-31B-it"),
        ("vllm serve a/b --model=c/d", "c/d"),
        ("vllm serve --max-model-len 5", None),
    ],
)
def test_the_model_that_the_words_serve_is_told(text, model):
    assert parse_flags(text).model == model


@pytest.mark.parametrize(
    "text",
    [
        '--compilation-config \'{"mode":"FASTER"}\'',
        "--compilation-config '{\"mode\":true}'",
        '--compilation-config \'{"max_cudagraph_capture_size":"8"}\'',
        "--compilation-config '{\"cudagraph_capture_sizes\":[true]}'",
        "--compilation-config '{\"cudagraph_mode\":3}'",
        "--max-model-len -5",
        "--max-model-len many",
        "--max-model-len",
        "--max-model-len 1 2",
        "--gpu-memory-utilization 1.5",
        "--gpu-memory-utilization nan",
        "--tensor-parallel-size 0",
        "--limit-mm-per-prompt {image:0}",
        "--limit-mm-per-prompt '{\"image\": -1}'",
        "--speculative-config '[1]'",
        "--enforce-eager maybe",
        "--flag 'unclosed",
        "stray --max-model-len 5",
        "--kv-cache-memory-bytes 1.5G",
    ],
)
def test_what_cannot_be_read_is_refused_with_a_way_to_mend_it(text):
    with pytest.raises(InputRejected) as refused:
        parse_flags(text)
    assert refused.value.why
    assert "shell-quoted" in refused.value.hint


def test_lost_json_quotes_are_named_as_the_likely_cause():
    with pytest.raises(InputRejected, match="quotes are easily lost in a deploy command"):
        parse_flags("--limit-mm-per-prompt {image:0,audio:0}")


@given(
    st.fixed_dictionaries(
        {
            "max_model_len": st.integers(1, 10**7),
            "max_num_seqs": st.integers(1, 4096),
            "tensor_parallel_size": st.integers(1, 64),
            "enforce_eager": st.booleans(),
            "limit_mm_per_prompt": st.dictionaries(
                st.sampled_from(["image", "video", "audio"]), st.integers(0, 9), min_size=1
            ),
        }
    ),
    st.booleans(),
)
def test_every_way_of_writing_the_same_flags_reads_the_same(values, equals):
    words = []
    for key, value in values.items():
        name = key.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            words += [f"--{name}={text}"] if equals else [f"--{name}", text]
    read = parse_flags(shlex.join(words))
    assert read == parse_flags(words)
    assert dict(read.limit_mm_per_prompt) == values["limit_mm_per_prompt"]
    assert read.max_model_len == values["max_model_len"]
    assert read.enforce_eager is values["enforce_eager"]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_never_a_crash(text):
    with contextlib.suppress(InputRejected):
        assert isinstance(parse_flags(text), Flags)


def test_human_numbers_follow_vllms_two_alphabets():
    assert (human_int("1k"), human_int("1K"), human_int("2m"), human_int("2M")) == (1000, 1024, 2 * 10**6, 2**21)


def test_an_empty_kv_space_in_the_environment_is_refused_as_vllm_refuses_it():
    """Seen with vLLM 0.32 on a CPU: the worker ends with "invalid literal for int() with base 10: ''"."""
    with pytest.raises(InputRejected, match="VLLM_CPU_KVCACHE_SPACE"):
        parse_flags("VLLM_CPU_KVCACHE_SPACE= vllm serve m --kv-cache-memory-bytes 64M")
