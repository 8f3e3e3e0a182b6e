"""What vLLM fills in for flags that were not given: batch sizes, context, utilisation, captured graph sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from agent.fit.bounds import GIB
from agent.fit.flags.flags import AUTO, Flags
from agent.fit.memory.v0_engine import chunks_prefill, default_batch
from agent.fit.memory.weights import tower_is_built
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts, TensorGroup
from agent.fit.version_rules import VersionRules

_FINE_SIZES = 32
_OVERLAPPING_METHODS = frozenset({
    "mtp", "eagle", "eagle3", "extract_hidden_states", "dflash", "dspark", "draft_model", "ngram_gpu",
})  # fmt: skip
"""Methods that leave asynchronous scheduling on: vllm/config/speculative.py 38-72, config/vllm.py 1598, 0.32.0."""

_WITH_OUTPUTS = ("nvidia-rtx-", "nvidia-quadro-", "amd-rx-", "amd-strix-")
"""Cards and chips that a screen can be plugged into."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effective:
    """The values a server runs with.

    Attributes:
        max_model_len: Context, tokens (the model's own when not given or automatic).
        auto_length: vLLM shortens the context by itself.
        max_num_batched_tokens: Tokens of one step.
        max_num_seqs: Sequences of one step.
        chunked: A prompt may be spread over steps.
        utilisation: Share of device memory.
        captured: Batch sizes of CUDA graphs; 0 without graphs.
        largest_captured: The largest of them; 0 without graphs.
        item_tokens: Largest multimodal item; 0 if none or not attended to as a whole.
        item_splits: It may be split over steps; else it must fit in one.
        batch_given: ``max_num_batched_tokens`` stood among the flags.
        batches_in_flight: Batches that may be scheduled and not yet settled, each of ``max_num_batched_tokens``.
    """

    max_model_len: int
    auto_length: bool
    max_num_batched_tokens: int
    max_num_seqs: int
    chunked: bool
    utilisation: float
    captured: int
    largest_captured: int
    item_tokens: int
    item_splits: bool
    batch_given: bool
    batches_in_flight: int


def effective(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> Effective:
    """Fill in the version's defaults.

    Source: vllm/engine/arg_utils.py get_batch_defaults and _set_default_max_num_seqs_and_batched_tokens_args,
    vllm/config/vllm.py for capture sizes, version 0.32.0, read 2026-11-21.
    """
    given = flags.max_model_len
    length = model.max_position if given is None or given == AUTO else given
    chunked = flags.enable_chunked_prefill is not False
    usual_batch, default_seqs = _defaults(accelerator, flags, rules)
    if rules.is_v0:
        chunked = chunks_prefill(model, accelerator, flags, length)
        usual_batch, default_seqs = default_batch(model, flags, rules, length, chunked=chunked), 256
    if flags.performance_mode == "throughput":
        usual_batch, default_seqs = 2 * usual_batch, 2 * default_seqs
    item = _item_tokens(model, flags)
    batch, seqs = flags.max_num_batched_tokens, flags.max_num_seqs or default_seqs
    if batch is None:
        batch = usual_batch if chunked else max(length, usual_batch)
        batch = max(batch, item) if rules.raises_batch_to_mm_item else batch
        batch = batch if rules.is_v0 else min(seqs * length, batch)
    if flags.max_num_seqs is None:
        seqs = min(seqs, batch)
    captured = captured_sizes(flags, seqs, batch, rules) if accelerator.is_gpu else frozenset()
    return Effective(
        max_model_len=length,
        auto_length=flags.max_model_len == AUTO,
        max_num_batched_tokens=batch,
        max_num_seqs=seqs,
        chunked=chunked,
        utilisation=flags.gpu_memory_utilization or rules.default_utilisation,
        captured=len(captured),
        largest_captured=max(captured, default=0),
        item_tokens=item,
        item_splits=model.vision is not None and model.vision.splittable,
        batch_given=flags.max_num_batched_tokens is not None,
        batches_in_flight=batches_in_flight(accelerator.kind, flags, rules),
    )


def batches_in_flight(kind: AcceleratorKind, flags: Flags, rules: VersionRules) -> int:
    """Batches that vLLM schedules before the first of them is settled; sliding windows are sized for all of them.

    Before 0.26 one batch counts. Later two overlap under asynchronous scheduling, which is on unless it is refused or
    something switches it off: the CPU platform always does, whatever is asked; pooling models, speculative methods
    outside vLLM's list and an executor without support do so by default. Pipeline stages count one batch each, and one
    more under asynchronous scheduling where Model Runner V2 serves every model.

    Source: vllm/config/vllm.py 577-589 (max_concurrent_batches) and 1584-1644, vllm/platforms/cpu.py 329-331, version
    0.32.0, read 2026-11-22; measured on that version's CPU worker.
    """
    if not rules.counts_in_flight_batches:
        return 1
    overlapping = flags.async_scheduling
    if kind is AcceleratorKind.CPU:
        overlapping = False
    elif overlapping is None:
        overlapping = (
            not flags.pools and flags.untyped("distributed-executor-backend") != "ray" and _overlaps_guesses(flags)
        )
    if overlapping and (flags.pp == 1 or rules.overlaps_stages):
        return flags.pp + 1
    return flags.pp


def _overlaps_guesses(flags: Flags) -> bool:
    asked = flags.speculative_config
    return asked is None or not asked.method or asked.method.endswith("_mtp") or asked.method in _OVERLAPPING_METHODS


def captured_sizes(flags: Flags, seqs: int, batched_tokens: int, rules: VersionRules) -> frozenset[int]:
    """Which batch sizes are captured: 1, 2, 4, steps of 8 to 256 and of 16 to min(512, 2 x seqs); once 8 throughout.

    ``--performance-mode interactivity`` adds every size up to 32; ``throughput`` doubles the default batch and
    sequences. The V0 engine captures every eighth size up to the sequences of one step.

    Source: vllm/config/vllm.py 807-882, version 0.11.2; vllm/config.py 4000-4036, version 0.8.5; read 2026-11-22; of
    the performance mode the same and vllm/engine/arg_utils.py of 0.17.0, 0.25.1 and 0.33.0, read 2026-11-26.
    """
    if flags.enforce_eager or flags.cudagraph_mode == "NONE" or flags.compilation_level == 0:
        return frozenset()
    if flags.cudagraph_capture_sizes is not None:
        return frozenset(size for size in flags.cudagraph_capture_sizes if size <= batched_tokens)
    if rules.is_v0:
        return _usual_sizes(seqs if seqs <= 4 else -(-seqs // 8) * 8, by_eights=True)
    usual = 512 if rules.captures_all_sizes else min(512, 2 * seqs)
    largest = min(flags.max_cudagraph_capture_size or usual, batched_tokens)
    usual_sizes = _usual_sizes(largest, by_eights=rules.captures_by_eights)
    if flags.performance_mode == "interactivity":
        return usual_sizes | frozenset(range(1, min(largest, _FINE_SIZES) + 1))
    return usual_sizes


@lru_cache(maxsize=64)
def _usual_sizes(largest: int, *, by_eights: bool) -> frozenset[int]:
    sizes = frozenset(size for size in (1, 2, 4) if size <= largest)
    if by_eights:
        return sizes | frozenset(range(8, largest + 1, 8))
    return sizes | frozenset(range(8, min(largest + 1, 256), 8)) | frozenset(range(256, largest + 1, 16))


def _defaults(accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> tuple[int, int]:
    if accelerator.kind is AcceleratorKind.CPU:
        return 2048 * flags.world, 128 * flags.world
    if accelerator.default_batched_tokens is not None:
        return accelerator.default_batched_tokens, 256
    total = accelerator.total_bytes.best if accelerator.total_bytes else 0
    if rules.very_large_card_batch and total >= 160 * GIB:
        return 16384, 1024
    if total >= 70 * GIB and (not accelerator.small_batch or rules.large_batch_on_a100):
        return 8192, 1024
    return 2048, 256


def _item_tokens(model: ModelFacts, flags: Flags) -> int:
    """Gemma 4 attends to an image or a video as a whole, so an item cannot be split over steps.

    E2B and E4B, which embed every layer, attend to the past alone: 1,033,831 and 731,921 tokens of E4B were printed
    with a batch of 2,048 (0.25.1 and 0.31.0).

    Source: vllm/model_executor/models/gemma4_mm.py get_mm_max_tokens_per_item, version 0.32.0, read 2026-11-21;
    is_mm_prefix_lm in vllm/transformers_utils/model_arch_config_convertor.py of 0.31.0, read 2026-11-27.
    """
    if model.family != "gemma-4" or model.per_layer_hidden:
        return 0
    if model.vision is None or not tower_is_built(TensorGroup.VISION, model.vision, flags):
        return 0
    limits = dict(flags.limit_mm_per_prompt or ())
    return model.vision.tokens_per_item if limits.get("video", 1) else model.vision.image_tokens


def assumptions_of(
    model: ModelFacts,
    rules: VersionRules,
    run: Effective,
    flags: Flags,
    notes: tuple[str, ...],
    *,
    device: AcceleratorFacts,
) -> tuple[str, ...]:
    """Everything a reader must believe for the figures to hold, each once, the weightiest first."""
    alone = "nothing else uses the device" + (", no screen either" if device.name.startswith(_WITH_OUTPUTS) else "")
    if device.unified:
        alone = f"no other program uses the memory of {device.name}, which is the host's too"
    findings = [*notes, *model.assumptions, *rules.assumptions, alone]
    if flags.max_model_len is None:
        findings.append(f"max_model_len was not given: the model's own {run.max_model_len}")
    if flags.max_num_batched_tokens is None:
        findings.append(f"max_num_batched_tokens was not given: {run.max_num_batched_tokens} by default")
    if flags.max_num_seqs is None:
        findings.append(f"max_num_seqs was not given: {run.max_num_seqs} by default")
    if flags.gpu_memory_utilization is None:
        findings.append(f"gpu_memory_utilization was not given: {run.utilisation} by default")
    return tuple(dict.fromkeys(findings))
