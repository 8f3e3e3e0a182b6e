"""What vLLM refuses before it touches the device, and what it would do that we cannot compute."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import InputRejected
from agent.fit.batch import Effective
from agent.fit.facts import AcceleratorFacts, AcceleratorKind, ModelFacts, VersionRules
from agent.fit.flags import Flags
from agent.fit.kv import own_mtp
from agent.fit.needs import Needs

_BF16 = (8, 0)
_FP8_CACHE = (8, 9)
_SHARED_MEMORY = (8, 0)
_DRAFTLESS = frozenset({"ngram", "ngram_gpu", "suffix"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is known before any byte is counted.

    Attributes:
        refusals: Nothing but other hardware, another version or another model helps: ``unsupported``.
        flag_refusals: One flag mends it: ``unsupported`` too, told only if memory does not already fail.
        doubts: Make ``fits`` null: what is not modelled may need more or less.
        left_out: Make a "fits" null: what is not counted can only need more.
        notes: Assumptions only.
    """

    refusals: tuple[str, ...] = ()
    flag_refusals: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_shape(model: ModelFacts, accelerator: AcceleratorFacts, count: int, flags: Flags) -> None:
    """Refuse what can never be meant.

    Raises:
        InputRejected: No device, fewer devices than ranks, or a tensor-parallel size that does not divide the heads.
    """
    if count < 1:
        raise InputRejected(
            f"count is {count}", why="a model needs at least one device", mend="Give --count 1 or more."
        )
    if count < flags.world:
        raise InputRejected(
            f"{count} x {accelerator.name} cannot run tensor x pipeline parallel {flags.tp} x {flags.pp}",
            why=f"that needs {flags.world} devices",
            mend=f"Give --count {flags.world}, or --tensor-parallel-size {count}.",
        )
    heads = {layer.heads for layer in model.layers if layer.heads}
    if any(number % flags.tp for number in heads):
        known = [str(size) for size in (1, 2, 4, 8, 16, 32) if not any(number % size for number in heads)]
        raise InputRejected(
            f"--tensor-parallel-size {flags.tp} does not work for {model.name}",
            why=f"{min(heads)} attention heads must be divisible by it",
            mend=f"Sizes that work: {', '.join(known)}.",
        )


def judge(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    run: Effective,
    *,
    draft: ModelFacts | None,
    needs: Needs,
) -> Verdict:
    """Everything that stops the server for another reason than memory, or keeps us from knowing.

    Source: vllm/config/model.py, platforms/cuda.py, v1/core/encoder_cache_manager.py; facts on Gemma 4's kernels.
    """
    refusals: list[str] = []
    mended: list[str] = []
    doubts: list[str] = []
    left_out: list[str] = []
    notes: list[str] = []
    if rules.is_unread:
        doubts.append(f"vLLM before {rules.version} counts memory by other rules")
    if flags.max_model_len is None and model.other_positions:
        known = ", ".join(f"{positions:,}" for positions in (model.max_position, *model.other_positions))
        left_out.append(f"max_model_len is not given and this model is published with {known} positions")
    if model.unmodelled:
        doubts.append(model.unmodelled)
    if model.min_vllm and _older(rules.version, model.min_vllm):
        refusals.append(f"{model.architecture} needs vLLM {model.min_vllm} or newer")
    if run.max_model_len > model.max_position:
        mended.append(f"max_model_len {run.max_model_len} is over the model's {model.max_position} positions")
    if flags.enable_chunked_prefill is False and run.max_num_batched_tokens < run.max_model_len:
        mended.append("without chunked prefill max_num_batched_tokens must reach max_model_len")
    if run.max_num_batched_tokens < run.max_num_seqs:
        mended.append(f"max_num_batched_tokens {run.max_num_batched_tokens} is under max_num_seqs {run.max_num_seqs}")
    if needs.context_tokens is not None and not run.auto_length and needs.context_tokens > run.max_model_len:
        mended.append(f"the needed context of {needs.context_tokens} is over max_model_len {run.max_model_len}")
    _judge_item(rules, run, mended, doubts, notes)
    if accelerator.kind is AcceleratorKind.CUDA:
        _judge_device(model, accelerator, flags, refusals, doubts, notes)
    _judge_flags(model, flags, rules, doubts, left_out, notes, draft=draft)
    return Verdict(
        refusals=tuple(refusals),
        flag_refusals=tuple(mended),
        doubts=tuple(doubts),
        left_out=tuple(left_out),
        notes=tuple(notes),
    )


def _judge_item(rules: VersionRules, run: Effective, refusals: list[str], doubts: list[str], notes: list[str]) -> None:
    if run.item_tokens <= run.max_num_batched_tokens:
        return
    told = (
        f"one multimodal item of {run.item_tokens} tokens is larger than max_num_batched_tokens "
        f"{run.max_num_batched_tokens} and cannot be split"
    )
    if not rules.tokens_from_concurrency:
        notes.append(f"{told}; start-ups of vLLM {rules.version} with such a batch were seen")
    elif run.batch_given or not rules.assumptions:
        refusals.append(told)
    else:
        doubts.append(f"{told}, unless this version raises the batch")


def _judge_device(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    refusals: list[str],
    doubts: list[str],
    notes: list[str],
) -> None:
    gemma4 = model.family == "gemma-4"
    cache = flags.kv_cache_dtype or "auto"
    if gemma4 and not accelerator.supports(_SHARED_MEMORY):
        refusals.append("Gemma 4's attention kernel needs 96 KiB of shared memory, this device has 64")
    if not accelerator.supports(_BF16):
        if flags.dtype in {"bfloat16", "bf16"}:
            refusals.append("bfloat16 needs compute capability 8.0")
        elif model.family in {"gemma-2", "gemma-3"} and flags.dtype in {None, "auto", "float16", "half"}:
            notes.append("without bfloat16 vLLM runs Gemma in float32 or refuses float16")
            doubts.append("Gemma is numerically unstable in float16 and this device has no bfloat16")
        else:
            notes.append("this device has no bfloat16; float16 is used, of the same size")
    if cache.startswith("fp8") and not accelerator.supports(_FP8_CACHE):
        if gemma4 and cache != "fp8_per_token_head":
            refusals.append("an fp8 KV cache for Gemma 4 (Triton) needs compute capability 8.9")
        else:
            notes.append("an fp8 KV cache below compute capability 8.9 depends on the attention backend")
    if gemma4 and cache == "fp8_e5m2":
        refusals.append("Gemma 4 refuses an fp8_e5m2 KV cache")


def _judge_flags(
    model: ModelFacts,
    flags: Flags,
    rules: VersionRules,
    doubts: list[str],
    left_out: list[str],
    notes: list[str],
    *,
    draft: ModelFacts | None,
) -> None:
    for other in flags.others:
        name = other.name.removeprefix("no-")
        if other.name not in rules.harmless_flags and name not in rules.harmless_flags:
            doubts.append(f"what --{other.name} does to memory is not modelled")
    speculative = flags.speculative_config
    if speculative is not None and draft is None and not is_counted(model, flags):
        left_out.append(f"the memory of the draft model {speculative.model or speculative.method!r} is not known")
    unequal = len({(layer.head_dim, layer.kv_heads) for layer in model.layers}) > 1
    if unequal and (flags.kv_cache_dtype or "").endswith("per_token_head"):
        doubts.append("pages of unequal size: older versions refuse them, patched ones lay them out without waste")
    if flags.dtype in {"float32", "float"}:
        doubts.append("weights in float32 are not modelled")
    if (flags.data_parallel_size or 1) > 1 and any(layer.experts for layer in model.layers):
        doubts.append("experts over data-parallel ranks are not modelled")
    if flags.pp > 1:
        notes.append("pipeline stages are taken as even; the first one, with embedding and towers, is shown")
    if flags.quantization is not None and model.quant.scheme == "bf16" and flags.quantization not in {"auto", "none"}:
        doubts.append(f"quantising while loading (--quantization {flags.quantization}) is not modelled")


def is_counted(model: ModelFacts, flags: Flags) -> bool:
    """True when guessing tokens takes no memory beyond what is counted from the model's own facts."""
    asked = flags.speculative_config
    return asked is None or asked.method in _DRAFTLESS or own_mtp(model, flags) is not None


def _older(version: str, floor: str) -> bool:
    return tuple(map(int, version.split("."))) < tuple(map(int, floor.split(".")))


def assumptions_of(
    model: ModelFacts, rules: VersionRules, run: Effective, flags: Flags, notes: tuple[str, ...]
) -> tuple[str, ...]:
    """Everything a reader must believe for the figures to hold, each once, the weightiest first."""
    told = [*notes, *model.assumptions, *rules.assumptions, "nothing else uses the device"]
    if flags.max_model_len is None:
        told.append(f"max_model_len was not given: the model's own {run.max_model_len}")
    if flags.max_num_batched_tokens is None:
        told.append(f"max_num_batched_tokens was not given: {run.max_num_batched_tokens} by default")
    if flags.max_num_seqs is None:
        told.append(f"max_num_seqs was not given: {run.max_num_seqs} by default")
    if flags.gpu_memory_utilization is None:
        told.append(f"gpu_memory_utilization was not given: {run.utilisation} by default")
    return tuple(dict.fromkeys(told))
