"""Builds, flags and requests: which value or package the message names."""

import re

from agent.failures.rules.rule_input import Fixes, RuleInput, Ruling
from agent.failures.signature import FailureClass, Phase

_FLAG_FIXES: tuple[tuple[str, Fixes], ...] = (
    ("limit-mm-per-prompt", ("set_flag limit_mm_per_prompt", "fix_command_line")),
    ("limit_mm_per_prompt", ("set_flag limit_mm_per_prompt", "fix_command_line")),
    ("kv-cache-dtype", ("set_flag kv_cache_dtype auto", "fix_command_line")),
    ("cache_dtype", ("set_flag kv_cache_dtype auto", "fix_command_line")),
    ("argument --dtype", ("set_flag dtype auto", "fix_command_line")),
    ("tool-call-parser", ("set_flag tool_call_parser", "fix_command_line")),
)

_BAD_LENGTHS = ("max_tokens must be at least", "max_completion_tokens' is too large", "max_tokens' is too large")
"""How vLLM refuses the length that a client gives its answer."""
_IMPORT_WORDS = (
    "failed to be inspected",
    "error in inspecting",
    "error raised in subprocess",
    "undefined symbol",
    "importerror",
)
_DRAFTS = ("_mtp.py", "eagle", "dflash", "dspark", "medusa")
"""Names in the frames of a draft model: what it is built from belongs to the server's version."""
_QUANTISERS = ("quantiz", "awq", "gptq", "compressed_tensors", "compressed-tensors", "qwix", "nvfp4", "bitsandbytes")
_QUANTISED_PARAMETER = re.compile(
    r"\.(?:\w{0,20}_scale(?:_inv|_2)?|g_idx|qweight|qzeros|scales|scb|absmax|weight_packed|weight_shape|zero_point)\b"
)

_ENCODER = ("visual.", "vision_", "model.vis")
"""How the names of an image encoder's weights begin."""
_OWN_NAME = re.compile(r"cannot import name '\w{1,80}' from '(?:vllm|sglang)\.")
"""A name that a module of the server itself does not have: what imports it is of another version."""
_OF_ATTENTION = (
    'decode_attention.py"',
    'unified_attention.py"',
    'prefix_prefill.py"',
    'extend_attention.py"',
    'paged_attn.py"',
)
"""Frames that compute attention from a KV cache in FP8."""
_OF_WEIGHTS = ("w8a8", 'fp8_utils.py"', "scaled_mm", 'fused_moe.py"')
"""Frames that multiply by weights in FP8, which no format of the cache changes."""


def import_failure(case: RuleInput) -> Ruling:
    """A missing or broken package; NVIDIA libraries are the driver's, an unknown name in transformers is age."""
    if case.has("libcuda", "libcudart", "libcublas", "libnvidia"):
        return Ruling(class_=FailureClass.CUDA_DRIVER_MISMATCH, fixes=("fix_image_or_driver",))
    if case.has("from 'transformers", "module 'transformers"):
        return Ruling(fixes=("upgrade_version", "fix_image_or_driver"))
    if _OWN_NAME.search(case.line):
        return Ruling(fixes=("upgrade_version", "none_code_bug", "fix_image_or_driver"))
    return Ruling()


def architecture(case: RuleInput) -> Ruling:
    """'Not supported' after an import or environment failure is that failure, not a missing architecture."""
    hidden = {"hidden_import_failure"} & case.also
    if hidden and case.mentions(*_IMPORT_WORDS):
        return Ruling(fixes=("fix_image_or_driver", "upgrade_version"), confidence=0.75)
    return Ruling()


def block_split(case: RuleInput) -> Ruling:
    """On one rank nothing was split: the checkpoint itself has a layer that is no whole number of blocks."""
    if case.number("tensor_parallel_size") == 1:
        fixes: Fixes = ("change_model_or_quantization", "upgrade_version")
        return Ruling(class_=FailureClass.UNSUPPORTED_DTYPE_OR_QUANT, fixes=fixes)
    return Ruling()


def dtype(case: RuleInput) -> Ruling:
    """The message names the dtypes that would do."""
    supported = re.search(r"supported dtypes: \[?torch\.(\w{4,10})", case.line)
    if supported:
        return Ruling(fixes=(f"set_flag dtype {_short(supported.group(1))}", "change_model_or_quantization"))
    if case.has(
        "does not support float16", "float16 is not supported", "only supports bfloat16", "only support bfloat16"
    ):
        return Ruling(fixes=("set_flag dtype bfloat16", "set_flag dtype auto", "change_accelerator"))
    if case.has("only supports float16", "must be float16", "torch.bfloat16 is not supported"):
        return Ruling(fixes=("set_flag dtype half", "change_model_or_quantization"))
    if case.has("expected scalar type half but found bfloat16"):
        return Ruling(fixes=("set_flag dtype half", "change_model_or_quantization", "upgrade_version"))
    return Ruling()


def bfloat16(case: RuleInput) -> Ruling:
    """Below compute capability 7.0 no other dtype helps: vLLM has no kernels for such a card."""
    capability = case.number("compute_capability")
    if capability is not None and capability < 7.0:
        return Ruling(fixes=("change_accelerator", "set_flag dtype half"))
    return Ruling()


def capability(case: RuleInput) -> Ruling:
    """Below compute capability 7.0 no quantisation helps: vLLM has no kernels for such a card."""
    if case.has(" --") and not case.has("capability"):  # a setting that does not go with the quantisation
        return Ruling(confidence=0.7)
    if case.has("fp8e4nv") and case.mentions(*_OF_ATTENTION) and not case.mentions(*_OF_WEIGHTS):
        return Ruling(fixes=("set_flag kv_cache_dtype auto", "set_flag attention_backend", "change_accelerator"))
    has = case.number("current_capability")
    if has is not None and has < 70:
        return Ruling(fixes=("change_accelerator", "change_model_or_quantization"))
    return Ruling()


def _short(name: str) -> str:
    return {"float16": "half"}.get(name, name)


def flag(case: RuleInput) -> Ruling:
    """A flag with a fix of its own gets it; all others are corrected on the command line."""
    if case.has("unrecognized arguments"):
        return Ruling()
    for word, fixes in _FLAG_FIXES:
        if word in case.line:
            return Ruling(fixes=fixes)
    return Ruling()


def context(case: RuleInput) -> Ruling:
    """Where the client asks for more than the model can take, or for an answer of no length, only it can fix it."""
    limit, asked = case.number("max_model_len"), case.number("prompt_tokens")
    answer = case.number("output_tokens")
    if case.has(*_BAD_LENGTHS) or (limit and answer and answer >= limit):
        return Ruling(fixes=("none_client_side", "set_flag max_model_len up"))
    if limit and asked and limit >= 131_072:
        return Ruling(fixes=("none_client_side", "set_flag max_model_len up"))
    return Ruling()


def tool_parser(case: RuleInput) -> Ruling:
    """Streaming, reasoning and Harmony faults are bugs of a version; all else is the wrong parser first."""
    if re.search(r"\w{3,40}reasoningparser reasoning parser", case.line):  # its tokens are not in this tokenizer
        return Ruling(fixes=("set_flag reasoning_parser", "set_flag tool_call_parser", "upgrade_version"))
    if case.has(
        "reasoning parser", "extract_reasoning", "streaming", "harmony", "expecting start token", "message header"
    ):
        return Ruling(fixes=("upgrade_version", "set_flag tool_call_parser", "none_code_bug"), confidence=0.7)
    return Ruling()


def _missing_names(line: str) -> list[str]:
    """Return the weights that a line says no file held; nothing where a parameter of a quantisation is among them."""
    listed = line.partition("were not initialized from checkpoint: {")[2]
    return [] if _QUANTISED_PARAMETER.search(listed) else re.findall(r"'([\w.]{1,200})'", listed)


def weights_shape(case: RuleInput) -> Ruling:
    """A missing name is a version or scheme that names layers otherwise; a size is a file that does not belong.

    A server that was up had its weights: there a size is one of its own tensors, and its code is wrong.
    """
    if case.phase in {Phase.READY, Phase.SERVING}:
        return Ruling(
            class_=FailureClass.ENGINE_DEAD, fixes=("upgrade_version", "none_code_bug", "restart"), confidence=0.6
        )
    if case.has("tried to load weights of size") and case.mentions(*_DRAFTS):
        return Ruling(fixes=("upgrade_version", "change_model_or_quantization", "none_code_bug", "redownload_weights"))
    missing = _missing_names(case.line)
    if missing and all(name.startswith(_ENCODER) for name in missing):
        return Ruling(
            class_=FailureClass.UNSUPPORTED_ARCHITECTURE,
            fixes=("change_model_or_quantization", "upgrade_version", "fix_command_line", "redownload_weights"),
        )
    if case.mentions(*_QUANTISERS) or _QUANTISED_PARAMETER.search(case.line):
        return Ruling(
            class_=FailureClass.UNSUPPORTED_DTYPE_OR_QUANT,
            fixes=("change_model_or_quantization", "upgrade_version", "none_code_bug"),
            confidence=0.6,
        )
    if case.has("keyerror", "no module or parameter named", "unexpected weight"):
        return Ruling(
            class_=FailureClass.UNSUPPORTED_ARCHITECTURE,
            fixes=("upgrade_version", "change_model_or_quantization", "none_code_bug"),
            confidence=0.6,
        )
    return Ruling()
