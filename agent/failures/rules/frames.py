"""Whose work failed: the frames of a traceback name it where the text of the exception is unknown."""

import re
from dataclasses import dataclass

from agent.failures.rules.rule_input import Fixes, RuleInput, Ruling
from agent.failures.signature import FailureClass, Phase
from agent.failures.text.log_text import TRACEBACK
from agent.failures.text.no_evidence import ENGINE_LOOP

_CALL = re.compile(r'file "([^"\n]{1,300})", line \d{1,6}, in (<?\w{1,80})')
_CALLS_SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class _Work:
    """A kind of work: parts of a file's path and names of functions, and what it means when it fails."""

    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    class_: FailureClass
    fixes: Fixes

    def holds(self, file: str, function: str) -> bool:
        return function in self.functions or any(part in file for part in self.files)


_QUANTISATION = _Work(
    files=(
        *("quantization/", "quant_utils", "quark/", "compressed_tensors/", "scaled_mm/", "/kernels/linear/"),
        *("fused_moe/experts/", "fused_moe/oracle/"),
    ),
    class_=FailureClass.UNSUPPORTED_DTYPE_OR_QUANT,
    fixes=("change_model_or_quantization", "upgrade_version", "none_code_bug"),
)
_SETTINGS = _Work(
    files=(
        *("vllm/config/", "vllm/config.py", "engine/arg_utils.py", "entrypoints/cli/", "openai/cli_args.py"),
        *("vllm/envs.py", "sglang/srt/server_args.py", "sglang/srt/arg_groups/", "text_generation_server/cli.py"),
        *("lmdeploy/messages.py", "lmdeploy/cli/", "vllm_ascend/ascend_config.py", "vllm_ascend/platform.py"),
    ),
    class_=FailureClass.INVALID_FLAG,
    fixes=("fix_command_line", "upgrade_version"),
)
_PARSER = _Work(
    files=("srt/function_call/", "/tool_parser", "/reasoning_parser", "vllm/reasoning/", "vllm/parser/"),
    class_=FailureClass.TOOL_PARSER_ERROR,
    fixes=("upgrade_version", "set_flag tool_call_parser", "none_code_bug"),
)
_CONNECTOR = _Work(
    files=("kv_transfer/", "kv_offload/", "ec_transfer/", "lmcache/"),
    class_=FailureClass.INVALID_FLAG,
    fixes=_SETTINGS.fixes,
)
_MODEL_CODE = _Work(
    files=(
        *("model_executor/models/", "transformers/models/", "transformers_modules/", "vllm/models/"),
        *("transformers/configuration_utils", "transformers/modeling_", "transformers/core_model_loading"),
        *("transformers/tokenization_", "transformers/convert_slow_tokenizer", "transformers/processing_utils"),
        *("transformers/dynamic_module_utils", "transformers/integrations/", "transformers/image_processing_"),
        *("vllm/transformers_utils/", "vllm/tokenizers/", "vllm/platforms/", "vllm/lora/", "sglang/srt/models/"),
        *("sglang/srt/configs/", "sglang/srt/utils/hf_transformers", "text_generation_server/models/"),
        *("lmdeploy/pytorch/models/", "lmdeploy/turbomind/models/", "vllm_ascend/models/", "vllm_ascend/ops/"),
    ),
    class_=FailureClass.UNSUPPORTED_ARCHITECTURE,
    fixes=("upgrade_version", "none_code_bug", "change_model_or_quantization"),
)
_LOADER = _Work(
    files=("model_loader/", "safetensors/"),
    functions=("safetensors_weights_iterator", "pt_weights_iterator", "safe_open"),
    class_=FailureClass.WEIGHTS_UNREADABLE,
    fixes=("redownload_weights", "fix_mount_permissions"),
)
_HAS_WEIGHTS = frozenset({"_initialize_kv_caches", "get_kv_cache_configs", "determine_available_memory", "profile_run"})
"""What an engine does once its weights are loaded, whichever file helps it."""
_WORK = (
    _Work(
        files=("jinja2/",),
        functions=("apply_chat_template", "render_jinja_template"),
        class_=FailureClass.CHAT_TEMPLATE_ERROR,
        fixes=("set_flag chat_template", "upgrade_version", "none_client_side"),
    ),
    _PARSER,
    _QUANTISATION,
    _LOADER,
    _Work(
        files=("sentencepiece/",),
        class_=FailureClass.WEIGHTS_UNREADABLE,
        fixes=("redownload_weights", "upgrade_version", "set_flag tokenizer"),
    ),
    _Work(
        functions=("init_distributed_environment", "init_process_group", "__init_pynccl"),
        files=("pynccl",),
        class_=FailureClass.NCCL_FAILURE,
        fixes=("fix_network_nccl", "restart"),
    ),
    _MODEL_CODE,
)
"""Read in vLLM 0.10 to 0.33. Of one traceback the innermost frame that is known decides: it is where the error rose."""

_NUMBERS = ("fp8", "fp4", "int8", "int4", "bf16", "bfloat16", "float16", "dtype", "quant", "awq", "gptq", "gguf")
_FEATURES = (
    *("speculative", "prefix caching", "chunked prefill", "async scheduling", "cudagraph", "cuda graph", "lora"),
    *("eplb", "parallelism", "parallel_size", "sequence-parallel", "parallel is not", "pipeline parallel"),
    *("tensor parallel", "data parallel", "expert parallel", "context parallel", "logits processor"),
    *("elastic ep", "structured output backend", "vit attention", "kv connector", "dcp ", "pcp "),
)
"""What a flag turns on: of 139 texts in vLLM 0.10 to 0.33 that call one of them unsupported, all end without it."""


_REFUSES = (
    "must",
    "require",
    "unknown",
    "cannot be",
    "invalid",
    "unsupported",
    "not support",
    "incompatible",
    "'dict' object has no attribute",
)
"""How the code that moves the KV cache refuses its settings, in vLLM 0.20 to 0.32 and LMCache 0.5.

The last is what it raises of settings that were given as a dict.
"""

_CALLED_WRONGLY = ("positional argument", "unexpected keyword argument")
"""A call that its function does not take: two versions of code meet, whatever the file holds that it reads."""

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]{3,60}")
_OTHER_PROGRAM = re.compile(r"\b(?:pip3?|docker|nvcc|ray start)\b")
"""What stands before a flag that is none of the server's."""

_QUANTISATION_SOURCE = re.compile(r"/quantization/\S*\.(?:cuh?|cpp|h)\b")


def frames(case: RuleInput) -> Ruling:
    """The frames above an exception say whose work failed; without any that is known, there is no answer."""
    if _QUANTISATION_SOURCE.search(case.line):  # C++ names its own file, which is further in than any frame
        return Ruling(class_=_QUANTISATION.class_, fixes=_QUANTISATION.fixes)
    calls = _calls(case)
    if calls and _SETTINGS.holds(*calls[-1]):
        return _refused_setting(case)
    starting = case.phase is not Phase.SERVING and not _serves(calls)
    if starting and calls and (_CONNECTOR.holds(*calls[-1]) or _makes_loader(*calls[-1])) and case.has(*_REFUSES):
        return Ruling(class_=_CONNECTOR.class_, fixes=_CONNECTOR.fixes)
    work = _innermost(calls)
    if work is _LOADER and not _HAS_WEIGHTS.isdisjoint(function for _, function in calls):
        work = None
    if work is _LOADER and case.has(*_CALLED_WRONGLY):
        work = _MODEL_CODE
    if work is _MODEL_CODE and case.phase is Phase.SERVING:
        work = None
    if work is None and starting and calls and (flag := _FLAG.search(case.line)):
        work = None if _OTHER_PROGRAM.search(case.line, 0, flag.start()) else _SETTINGS
    if work is not None:
        return Ruling(class_=work.class_, fixes=work.fixes)
    return Ruling() if _serves(calls) else Ruling(class_=FailureClass.UNKNOWN)


def captured(case: RuleInput) -> Ruling:
    """What the driver refuses while graphs are captured does not come in eager mode."""
    if case.phase is Phase.GRAPH_CAPTURE:
        return Ruling(fixes=("set_flag enforce_eager", "upgrade_version", "restart", "fix_image_or_driver"))
    return Ruling()


def conflict(case: RuleInput) -> Ruling:
    """Settings are refused before anything is served: what a step of the engine raises is none."""
    return Ruling(class_=FailureClass.UNKNOWN) if _serves(_calls(case)) else Ruling()


def unsupported(case: RuleInput) -> Ruling:
    """The words around 'not supported', then the frames, say whether a number format, a flag or the model is meant."""
    calls = _calls(case)
    if calls and _CONNECTOR.holds(*calls[-1]):
        if _serves(calls):
            return Ruling(class_=FailureClass.UNKNOWN)
        return Ruling(class_=_CONNECTOR.class_, fixes=_CONNECTOR.fixes)
    if case.has(*_NUMBERS, "kv cache", "kv-cache"):
        return Ruling(
            class_=FailureClass.UNSUPPORTED_DTYPE_OR_QUANT,
            fixes=("change_model_or_quantization", "set_flag kv_cache_dtype auto", "change_accelerator"),
        )
    if case.has("--", "argument", "option", "flag", "config", *_FEATURES) or (calls and _SETTINGS.holds(*calls[-1])):
        return Ruling(class_=FailureClass.INVALID_FLAG, fixes=_SETTINGS.fixes)
    work = _innermost(calls)
    if work is _QUANTISATION or work is _PARSER:
        return Ruling(class_=work.class_, fixes=work.fixes)
    return Ruling()


def _refused_setting(case: RuleInput) -> Ruling:
    """Settings are checked against each other, against the checkpoint's numbers, and against the devices there are."""
    if case.has("quant", "dtype"):
        return Ruling(class_=_QUANTISATION.class_, fixes=_QUANTISATION.fixes)
    if case.has("heads", "divisible by tensor"):
        return Ruling(class_=FailureClass.TP_SHAPE_MISMATCH, fixes=("set_flag tensor_parallel_size",))
    if case.has("device") and not _FLAG.search(case.line):
        return Ruling(class_=FailureClass.UNKNOWN)
    return Ruling(class_=_SETTINGS.class_, fixes=_SETTINGS.fixes)


def _calls(case: RuleInput) -> list[tuple[str, str]]:
    """File and function of the frames of the last traceback above the decisive line, outermost first."""
    above = case.text.partition(case.line)[0] if case.line else ""
    return _CALL.findall(above.rpartition(TRACEBACK.lower())[2])[-_CALLS_SHOWN:]


def _makes_loader(file: str, function: str) -> bool:
    """Whether it is the constructor of a weight loader: it reads settings, and no weights yet."""
    return "model_loader/" in file and function == "__init__"


def _serves(calls: list[tuple[str, str]]) -> bool:
    """Whether a step of the engine raised it; older releases execute the model to profile memory as well."""
    functions = {function for _, function in calls}
    return not functions.isdisjoint(ENGINE_LOOP) or ("execute_model" in functions and "profile_run" not in functions)


def _innermost(calls: list[tuple[str, str]]) -> _Work | None:
    found = (work for call in reversed(calls) for work in _WORK if work.holds(*call))
    return next(found, None)
