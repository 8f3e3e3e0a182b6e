"""Builds, flags and requests: the message names what to change."""

import pytest

from agent.failures.match.matcher import Matcher


@pytest.mark.parametrize(
    ("text", "class_", "fix"),
    [
        (
            "vllm serve: error: argument --limit-mm-per-prompt: Value {image:1} cannot be converted",
            "invalid_flag",
            "set_flag limit_mm_per_prompt",
        ),
        ("ValueError: max_tokens must be at least 1, got -1.", "context_length_exceeded", "none_client_side"),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 40000. This model's maximum context length is 32768 tokens",
            "context_length_exceeded",
            "none_client_side",
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 8292 tokens (292 in the messages, 8000 in the completion).",
            "context_length_exceeded",
            "none_client_side",
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5292 tokens (5000 in the messages, 292 in the completion).",
            "context_length_exceeded",
            "set_flag max_model_len up",
        ),
        ("vllm: error: unrecognized arguments: --swap-space 4", "invalid_flag", "fix_command_line"),
        (
            "vllm: error: argument --kv-cache-dtype: invalid choice: 'int8'",
            "invalid_flag",
            "set_flag kv_cache_dtype auto",
        ),
        (
            "ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [torch.float16]",
            "unsupported_dtype_or_quant",
            "set_flag dtype half",
        ),
        (
            "ValueError: The model type 'gemma3' does not support float16. Reason: Numerical instability.",
            "unsupported_dtype_or_quant",
            "set_flag dtype bfloat16",
        ),
        (
            "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your X has compute capability 6.1.",
            "unsupported_dtype_or_quant",
            "change_accelerator",
        ),
        (
            "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your X has compute capability 7.5.",
            "unsupported_dtype_or_quant",
            "set_flag dtype half",
        ),
        (
            "HarmonyError: Unexpected token 7 while expecting start token 200006",
            "tool_parser_error",
            "upgrade_version",
        ),
        (
            "KeyError: 'model.layers.0.mlp.down_proj.qweight_type' in compressed_tensors",
            "unsupported_dtype_or_quant",
            "change_model_or_quantization",
        ),
        ("ImportError: libcudart.so.13: cannot open shared object file", "cuda_driver_mismatch", "fix_image_or_driver"),
        (
            "ImportError: cannot import name 'LampUtil' from 'sglang.srt.lamps' (/srv/sglang/srt/lamps.py)",
            "unsupported_architecture",
            "upgrade_version",
        ),
        (
            "ImportError: cannot import name 'LampUtil' from 'lamps' (/srv/lamps.py)",
            "unsupported_architecture",
            "fix_image_or_driver",
        ),
        (
            (
                '  File "/srv/ops/decode_attention.py", line 7, in decode_attention_fwd\n    kernel[grid](\n'
                "ValueError(\"type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e5')\")"
            ),
            "unsupported_dtype_or_quant",
            "set_flag kv_cache_dtype auto",
        ),
        (
            "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e5')",
            "unsupported_dtype_or_quant",
            "change_model_or_quantization",
        ),
        (
            (
                "config: {'splitting_ops': ['vllm::unified_attention']}\n"
                '  File "/srv/quantization/utils/fp8_utils.py", line 9, in w8a8_block_fp8_matmul\n'
                "ValueError: type fp8e4nv not supported in this architecture"
            ),
            "unsupported_dtype_or_quant",
            "change_model_or_quantization",
        ),
        (
            "ValueError: Following weights were not initialized from checkpoint: {'visual.a.bias', 'vision_b.weight'}",
            "unsupported_architecture",
            "change_model_or_quantization",
        ),
        (
            "ValueError: Following weights were not initialized from checkpoint: {'visual.a.bias', 'lm_head.weight'}",
            "weights_unreadable",
            "redownload_weights",
        ),
        (
            "ValueError: Following weights were not initialized from checkpoint: {'visual.a.qweight', 'visual.a.scales'}",
            "unsupported_dtype_or_quant",
            "change_model_or_quantization",
        ),
        ("ValueError: invalid literal for int() with base 10: 'GPU-6f7b'", "invalid_flag", "upgrade_version"),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
            "context_length_exceeded",
            "set_flag max_model_len up",
        ),
        (
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "tool_parser_error",
            "set_flag tool_call_parser",
        ),
    ],
)
def test_the_message_names_what_to_change(matcher: Matcher, text: str, class_: str, fix: str) -> None:
    found = matcher.classify(text, whole_log=False, platform=None)
    assert (found.class_, found.fix_actions[0]) == (class_, fix)


@pytest.mark.parametrize(
    ("text", "prompt", "output"),
    [
        ("you requested 1 output tokens and your prompt contains 16384 input tokens, for a total of 16385", 16384, 1),
        ("you requested 1 output tokens and your prompt contains at least 16384 input tokens", 16384, 1),
        ("you requested 5000 tokens (4000 in the messages, 1000 in the completion).", 4000, 1000),
        ("You passed 16385 input tokens and requested 7 output tokens.", 16385, 7),
        ("your messages resulted in 9,000 tokens.", 9000, None),
        ("your request has 40960 input tokens (100 > 8 - 40960)", 40960, None),
    ],
)
def test_prompt_and_answer_are_told_apart(matcher: Matcher, text: str, prompt: int, output: int | None) -> None:
    line = f"ValueError: This model's maximum context length is 16384 tokens. However, {text}"
    fields = matcher.classify(line, whole_log=False, platform=None).fields
    assert (fields.get("prompt_tokens"), fields.get("output_tokens")) == (prompt, output)


def test_a_reasoning_parser_whose_tokens_are_not_in_the_tokenizer_is_the_wrong_parser(matcher: Matcher) -> None:
    text = (
        "RuntimeError: Gemma4ReasoningParser reasoning parser could not locate think start/end tokens in the tokenizer!"
    )
    found = matcher.classify(text, whole_log=False, platform=None)
    assert (found.class_, found.fix_actions[0]) == ("tool_parser_error", "set_flag reasoning_parser")


def test_a_quantisation_that_asks_for_a_flag_leaves_doubt(matcher: Matcher) -> None:
    found = matcher.classify("ValueError: NVFP4 requires --lamp-size 128", whole_log=False, platform=None)
    assert (found.class_, found.certain) == ("unsupported_dtype_or_quant", False)
