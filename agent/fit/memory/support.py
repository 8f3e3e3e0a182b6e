"""What vLLM refuses before it touches the device, and what it would do that we cannot compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from agent.fit.bounds import NOTHING
from agent.fit.flags.flags import Flags
from agent.fit.memory import connector, held_by_loading, lora, rope_flags, turboquant
from agent.fit.memory.batch import Effective
from agent.fit.memory.compressed import unseen_caches
from agent.fit.memory.encoders import items_counted, unread_profile
from agent.fit.memory.flags_of_version import NEVER_TAKEN, missing_flags, reads_limits
from agent.fit.memory.held_by_kernels import (
    beside_narrow_experts,
    graphs_of_narrow_experts,
    is_counted_while_loading,
)
from agent.fit.memory.kv_cache import BYTE_CACHES, PLAIN_CACHES, states_counted
from agent.fit.memory.least_capability import below_least_capability
from agent.fit.memory.overheads import is_bounded_draft, is_counted, replicas
from agent.fit.memory.splits import judge_blocks
from agent.fit.memory.v0_engine import of_v0_engine
from agent.fit.memory.weights import tower_is_built
from agent.fit.model_and_hardware import (
    AcceleratorFacts,
    AcceleratorKind,
    AttentionKind,
    ModelFacts,
    TensorGroup,
)
from agent.fit.needs import Needs
from agent.fit.version_rules import VersionRules

_BF16 = (8, 0)
_FP8_CACHE = (8, 9)
_FLASHINFER_BYTES = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2"})
_FLASHINFER_HEADS = frozenset({64, 128, 256})
_NOT_ON_FLASHINFER = frozenset({"gemma-3", "gemma3", "gpt-oss", "gpt_oss"})
_SHARED_MEMORY = (8, 0)
_SPARSE = (9, 0)
_FLASHINFER_SPARSE = (10, 0)
_WORKSTATION = (12, 0)
_NOT_ON_TPU = frozenset({AttentionKind.RECURRENT, AttentionKind.LATENT, AttentionKind.CROSS})
_CACHES = PLAIN_CACHES | BYTE_CACHES | {"float32"}
_DTYPES = frozenset({None, "auto", "bfloat16", "bf16", "float16", "fp16", "half"})
_KEPT_ON_ROCM = frozenset({"bf16", "fp8", "fp8-block", "mxfp4", "awq", "gptq", "w4a16", "w4a16-g32"})
_PLAIN_EXCHANGES = frozenset({None, "naive", "allgather_reducescatter"})
_KERNEL_BLOCK = 16
"""Blocks are multiples of it on CUDA: vllm/v1/attention/backends/{flash,triton}_attn.py of 0.32, read 2026-11-21."""

_UNNAMED = {
    True: ("layers beside the decoder have a name that tells no tower: they may be loaded still",),
    None: ("whether all layers beside the decoder are a tower's was not recorded: read the checkpoint again",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is known before any byte is counted.

    Attributes:
        refusals: It stops before memory is looked at: ``unsupported``.
        flag_refusals: ``unsupported`` too, but one flag mends it without touching the KV cache's shape: told only if
            memory does not already fail.
        doubts: Make ``fits`` null: what is not modelled may need more or less.
        left_out: Make a "fits" null: what is not counted can only need more.
        notes: Assumptions only.
    """

    refusals: tuple[str, ...] = ()
    flag_refusals: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Findings:
    """What was found so far; lists that the checks below add to."""

    refusals: list[str] = field(default_factory=list)
    flag_refusals: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    run: Effective,
    *,
    count: int,
    draft: ModelFacts | None,
    needs: Needs,
) -> Verdict:
    """Everything that stops the server for another reason than memory, or keeps us from knowing.

    Source: vllm/config/model.py, platforms/cuda.py, v1/core/encoder_cache_manager.py; facts on Gemma 4's kernels. Of
    what is older: vllm/worker/worker.py (determine_num_available_blocks) of 0.6.0, 0.6.6 and 0.7.3, read 2026-11-24:
    what the budget leaves beside weights, peak and libraries must hold one request.
    """
    findings = _Findings()
    findings.left_out.extend(rules.unread())
    if rules.is_dated:
        _judge_dated(model, accelerator, flags, rules, findings, run=run)
    _judge_model(model, accelerator, flags, rules, findings)
    findings.left_out.extend(unseen_caches(model, accelerator, flags, rules))
    if flags.max_model_len is None and model.other_positions:
        known = ", ".join(f"{positions:,}" for positions in (model.max_position, *model.other_positions))
        findings.left_out.append(f"max_model_len is not given and this model is published with {known} positions")
    if model.min_vllm and _older(rules.asked or rules.version, model.min_vllm):
        place = findings.doubts if _may_be_on_the_way(rules, model.min_vllm) else findings.refusals
        place.append(f"{model.architecture} needs vLLM {model.min_vllm} or newer")
    _judge_lengths(model, flags, run, needs, findings)
    _judge_item(rules, run, findings)
    _judge_weights(model, accelerator, flags, findings)
    refused, doubted = judge_blocks(model, flags, rules)
    findings.refusals.extend(refused)
    findings.doubts.extend(doubted)
    if accelerator.kind is AcceleratorKind.CUDA:
        findings.refusals.extend(below_least_capability(model, accelerator, flags, rules))
        _judge_device(model, accelerator, flags, rules, findings)
        _judge_sparse(model, accelerator, flags, findings)
    elif accelerator.kind is AcceleratorKind.ROCM:
        _judge_rocm(model, flags, findings)
    elif accelerator.kind is AcceleratorKind.TPU and any(layer.kind in _NOT_ON_TPU for layer in model.layers):
        findings.doubts.append("recurrent, latent and cross-attention layers on a TPU are not modelled")
    _judge_flags(model, accelerator, flags, rules, findings, draft=draft)
    if count < flags.devices:
        findings.doubts.append(
            f"{flags.data_parallel_size} data-parallel replicas need {flags.devices} devices, {count} given: "
            "the others must stand elsewhere"
        )
    return Verdict(
        refusals=tuple(findings.refusals),
        flag_refusals=tuple(findings.flag_refusals),
        doubts=tuple(findings.doubts),
        left_out=tuple(findings.left_out),
        notes=tuple(findings.notes),
    )


def _may_be_on_the_way(rules: VersionRules, first: str) -> bool:
    """A build after the release before the first that has it, or from a checkout: a fork may hold newer models."""
    if rules.is_of_a_checkout:
        return True
    major, minor, *_ = map(int, first.split("."))
    close = rules.numbers[:2] >= (major, minor - 1)
    return close and (bool(rules.assumptions) or rules.numbers[2] > 0)


def _judge_weights(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, findings: _Findings) -> None:
    quantises = model.quant.scheme == "bf16" and flags.quantization not in {None, "auto", "none"}
    if quantises and not is_counted_while_loading(model, accelerator, flags):
        findings.doubts.append(f"quantising while loading (--quantization {flags.quantization}) is not modelled here")
    if flags.cpu_offload_params not in {None, TensorGroup.EXPERTS.value}:
        findings.doubts.append("which parameters --cpu-offload-params names is known for experts alone")


def _judge_model(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, findings: _Findings
) -> None:
    """What is not known of the model's own memory."""
    notes, left_out = unread_profile(model, accelerator, flags, rules)
    findings.notes.extend(notes)
    findings.left_out.extend(left_out)
    if model.unmodelled:
        findings.doubts.append(model.unmodelled)
    towers = ((TensorGroup.VISION, model.vision), (TensorGroup.AUDIO, model.audio))
    if model.vision and not tower_is_built(TensorGroup.VISION, model.vision, flags):
        findings.left_out.extend(_UNNAMED.get(model.vision.unnamed, ()))
    if (model.vision or model.audio) and flags.limit_mm_per_prompt and not flags.language_model_only:
        left = [group.value for group, tower in towers if tower and not tower_is_built(group, tower, flags)]
        if left and not reads_limits(model, rules):
            findings.left_out.append(
                f"before vLLM 0.16 its {' and '.join(left)} tower is loaded though nothing uses it"
            )
    _judge_hybrid_cache(model, flags, rules, findings)


def _judge_hybrid_cache(model: ModelFacts, flags: Flags, rules: VersionRules, findings: _Findings) -> None:
    """Recurrent states and keys cannot be held as one kind of cache, which is all there is without the manager.

    Source: unify_hybrid_kv_cache_specs in vllm/v1/core/kv_cache_utils.py of 0.18.0, 0.19.0, 0.19.1, 0.20.1, 0.25.1,
    0.27.0 and 0.30.0, and in kv_cache_planning.py of 0.33.0; vLLM issue 42911; read 2026-11-23.
    """
    mixed = len({layer.recurrent is None for layer in model.layers if layer.owns_kv}) > 1
    if mixed and flags.disable_hybrid_kv_cache_manager:
        read = not rules.assumptions and not _older(rules.asked or rules.version, "0.18.0")
        place = findings.refusals if read else findings.doubts
        place.append(
            "with --disable-hybrid-kv-cache-manager, or a connector that implies it, recurrent layers cannot share a "
            "cache with attention"
        )


def _judge_dated(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    findings: _Findings,
    *,
    run: Effective,
) -> None:
    """Before 0.19 the rules were read for CUDA and layers that keep keys and values of equal size."""
    version = rules.asked or rules.version
    if not accelerator.is_gpu:
        findings.doubts.append(f"vLLM {version} on {accelerator.name} was not read")
    kinds = {layer.kind for layer in model.layers}
    if AttentionKind.RECURRENT in kinds and not rules.lays_out_recurrent:
        findings.doubts.append(f"how vLLM {version} lays out recurrent layers was not read")
    pages = {layer.kv_heads * layer.head_dim for layer in model.layers if layer.owns_kv and layer.kv_heads}
    if not rules.equalises_pages and AttentionKind.SLIDING in kinds and len(pages) > 1:
        findings.refusals.append(f"layers whose caches differ in size need vLLM 0.12, not {version}")
    if beside := beside_narrow_experts(model, accelerator, flags, rules, run):
        findings.left_out.append(beside)
    if graphs_of_narrow_experts(model, accelerator, flags, rules, run) is not NOTHING:
        findings.notes.append("graphs of NVFP4 experts may take 14 GiB a device here before 0.19")
    if not rules.takes_pool_size and flags.kv_cache_memory_bytes is not None:
        findings.flag_refusals.append(f"vLLM {version} has no --kv-cache-memory-bytes; 0.10.2 has")
    doubts, left_out = of_v0_engine(model, accelerator, flags, rules)
    findings.doubts.extend(doubts)
    findings.left_out.extend(left_out)


def _judge_lengths(model: ModelFacts, flags: Flags, run: Effective, needs: Needs, findings: _Findings) -> None:
    if run.max_model_len > model.max_position:
        place = findings.doubts if rope_flags.stretches(flags) else findings.refusals
        place = findings.notes if flags.allows_longer else place
        place.append(f"max_model_len {run.max_model_len} is over the model's {model.max_position} positions")
    if not run.chunked and run.max_num_batched_tokens < run.max_model_len:
        findings.refusals.append("without chunked prefill max_num_batched_tokens must reach max_model_len")
    if (batch := run.max_num_batched_tokens) < run.max_num_seqs:
        findings.refusals.append(f"max_num_batched_tokens {batch} is under max_num_seqs {run.max_num_seqs}")
    if needs.context_tokens is not None and not run.auto_length and needs.context_tokens > run.max_model_len:
        findings.refusals.append(
            f"the needed context of {needs.context_tokens} is over max_model_len {run.max_model_len}"
        )


def _judge_item(rules: VersionRules, run: Effective, findings: _Findings) -> None:
    if run.item_splits or run.item_tokens <= run.max_num_batched_tokens:
        return
    sentence = (
        f"one multimodal item of {run.item_tokens} tokens is larger than max_num_batched_tokens "
        f"{run.max_num_batched_tokens} and cannot be split"
    )
    if not rules.tokens_from_concurrency:
        findings.notes.append(f"{sentence}; start-ups of vLLM {rules.version} with such a batch were seen")
    elif run.batch_given or not rules.assumptions:
        findings.flag_refusals.append(sentence)
    else:
        findings.doubts.append(f"{sentence}, unless this version raises the batch")


def _judge_rocm(model: ModelFacts, flags: Flags, findings: _Findings) -> None:
    """What the CUDA rules leave open on AMD cards: kernels of quantised weights, sparse attention and cache types.

    Layers in four bits stay as they are published (quantization/awq.py of 0.14.1, kernels/linear/mixed_precision/
    {exllama,triton_w4a16,rdna3_w4a16}.py of 0.33.0, read 2026-11-26): 9.49 GiB printed by an RX 9070 XT for a 14B as
    AWQ, 9.45 counted. Experts are somewhat heavier, or padded (see ``held_by_kernels``).
    """
    if model.attends_sparsely:
        findings.doubts.append("sparse attention on ROCm was not read")
    if model.quant.scheme not in _KEPT_ON_ROCM:
        findings.doubts.append(f"how ROCm stores weights of type {model.quant.scheme} was not read")
    if flags.kv_cache_dtype in BYTE_CACHES:
        findings.notes.append("an fp8 KV cache on ROCm depends on the card and the attention backend")


def _judge_sparse(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, findings: _Findings) -> None:
    """Sparse attention needs Hopper or later, and each backend packs a token in its own way.

    Source: vllm/v1/attention/backends/mla/flash{mla,infer_mla}_sparse*.py and
    vllm/model_executor/layers/attention/mla_attention.py of 0.33.0, read 2026-11-23.
    """
    asked = flags.kv_cache_dtype or "auto"
    if asked == "fp8_ds_mla" and not model.attends_sparsely:
        findings.doubts.append("a KV cache of type fp8_ds_mla is known for sparse attention alone")
    if not model.attends_sparsely:
        return
    if not accelerator.supports(_SPARSE):
        findings.doubts.append("sparse attention below compute capability 9.0 was not read")
    elif accelerator.supports(_WORKSTATION) or (accelerator.supports(_FLASHINFER_SPARSE) and asked not in PLAIN_CACHES):
        findings.doubts.append("how this device's backend of sparse attention packs a token was not read")


def _judge_device(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, findings: _Findings
) -> None:
    gemma4 = model.family == "gemma-4"
    cache = flags.kv_cache_dtype or "auto"
    if gemma4 and not accelerator.supports(_SHARED_MEMORY):
        findings.refusals.append("Gemma 4's attention kernel needs 96 KiB of shared memory, this device has 64")
    if not accelerator.supports(_BF16):
        if flags.dtype in {"bfloat16", "bf16"}:
            findings.refusals.append("bfloat16 needs compute capability 8.0")
        elif model.family in {"gemma-2", "gemma-3"} and flags.dtype in {None, "auto", "float16", "half"}:
            findings.notes.append("without bfloat16 vLLM runs Gemma in float32 or refuses float16")
            findings.doubts.append("Gemma is numerically unstable in float16 and this device has no bfloat16")
        else:
            findings.notes.append("this device has no bfloat16; float16 is used, of the same size")
    if cache.startswith("fp8") and not accelerator.supports(_FP8_CACHE):
        if gemma4 and cache != "fp8_per_token_head":
            findings.refusals.append("an fp8 KV cache for Gemma 4 (Triton) needs compute capability 8.9")
        else:
            findings.notes.append("below compute capability 8.9 FlashInfer alone reads an fp8 KV cache")
            if cache not in _FLASHINFER_BYTES or not _reads_bytes_by_flashinfer(model, accelerator, rules):
                findings.doubts.append("that FlashInfer serves this model here with an fp8 KV cache was not read")
    if flags.block_size is not None and flags.block_size % _KERNEL_BLOCK:
        findings.doubts.append(f"blocks of {flags.block_size} tokens: the kernels take multiples of {_KERNEL_BLOCK}")
    if gemma4 and cache == "fp8_e5m2":
        findings.refusals.append("Gemma 4 refuses an fp8_e5m2 KV cache")


def _reads_bytes_by_flashinfer(model: ModelFacts, accelerator: AcceleratorFacts, rules: VersionRules) -> bool:
    """FlashAttention reads 8-bit floats from compute capability 9.0 on, Triton from 8.9; FlashInfer comes between them.

    It takes no attention sinks, no images that are attended to as a whole, and three head sizes.

    Source: vllm/platforms/cuda.py _get_backend_priorities and vllm/v1/attention/backends/{flashinfer,triton_attn}.py,
    flash_attn_supports_fp8, of 0.14.0, 0.19.0 and 0.33.0, read 2026-11-23; 0.33.0 left out capability 7.5.
    """
    sizes = {layer.head_dim for layer in model.layers if layer.heads}
    read = accelerator.supports(_BF16) and not _older(rules.asked or rules.version, "0.14.0")
    latent = any(layer.kind is AttentionKind.LATENT for layer in model.layers)
    return read and not latent and sizes <= _FLASHINFER_HEADS and model.family not in _NOT_ON_FLASHINFER


def _counted(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> frozenset[str]:
    """Names of the flags kept word for word whose effect on memory is none, or counted."""
    if not accelerator.is_gpu:
        return rules.harmless_flags
    by_model = lora.flags_counted(model, flags, rules) | connector.flags_counted(model, flags, rules)
    by_model |= items_counted(model, accelerator, flags, rules) | states_counted(model, flags)
    by_model |= rope_flags.flags_counted(model, flags, rules)
    return rules.harmless_flags | held_by_loading.flags_counted(accelerator, flags) | by_model


def _judge_names(flags: Flags, rules: VersionRules, findings: _Findings) -> None:
    for missing in missing_flags(flags, rules):
        (findings.flag_refusals if rules.asked or missing.startswith(NEVER_TAKEN) else findings.notes).append(missing)
    if _older(rules.asked or rules.version, "0.10.0"):
        return
    if flags.limit_mm_as_words:
        place = findings.doubts if rules.assumptions else findings.flag_refusals
        place.append("from vLLM 0.10 on --limit-mm-per-prompt takes JSON alone, such as '{\"image\": 0}'")
    if flags.compilation_as_level:
        findings.doubts.append("vLLM up to 0.9 takes a level for --compilation-config; newer ones may take JSON alone")


def _judge_flags(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    findings: _Findings,
    *,
    draft: ModelFacts | None,
) -> None:
    _judge_names(flags, rules, findings)
    counted = _counted(model, accelerator, flags, rules) if flags.others else frozenset()
    for other in flags.others:
        if other.name not in counted and other.name.removeprefix("no-") not in counted:
            findings.doubts.append(f"what --{other.name} does to memory is not modelled")
    speculative = flags.speculative_config
    keys = [f"compilation-config.{key}" for key, _ in flags.compilation_others]
    keys += [f"speculative-config.{key}" for key, _ in speculative.others] if speculative is not None else []
    unknown = [key for key in keys if key not in rules.harmless_flags]
    findings.doubts.extend(f"what {key} does to memory is not modelled" for key in unknown)
    if speculative is not None and draft is None and not is_counted(model, flags):
        place = findings.notes if is_bounded_draft(model, flags) else findings.left_out
        place.append(f"the memory of the draft model {speculative.model or speculative.method!r} is not known")
    unequal = len({(layer.head_dim, layer.kv_heads) for layer in model.layers}) > 1
    if unequal and (flags.kv_cache_dtype or "").endswith("per_token_head"):
        findings.doubts.append(
            "pages of unequal size: older versions refuse them, patched ones lay them out without waste"
        )
    if flags.kv_cache_dtype not in _CACHES and not turboquant.is_counted(model, accelerator, flags, rules):
        findings.doubts.append(f"a KV cache of type {flags.kv_cache_dtype!r} is not modelled")
    if flags.dtype not in _DTYPES:
        findings.doubts.append(f"weights in {flags.dtype} are not modelled")
    exchange = flags.untyped("all2all-backend")
    if replicas(model, flags) > 1 and exchange not in _PLAIN_EXCHANGES:
        findings.left_out.append(f"the buffers of {exchange}, by which replicas exchange tokens, are not modelled")
    if flags.pp > 1:
        findings.notes.append("pipeline stages are taken as even; the first one, with embedding and towers, is shown")


@lru_cache(maxsize=256)
def _older(version: str, floor: str) -> bool:
    return tuple(map(int, version.split("."))) < tuple(map(int, floor.split(".")))
