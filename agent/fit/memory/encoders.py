"""What the profile run takes for images, videos and sounds: the encoder's peak, and embeddings that it holds."""

from __future__ import annotations

from agent.fit.bounds import GIB
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective
from agent.fit.memory.weights import tower_is_built, tower_share
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts, TensorGroup, TowerFacts
from agent.fit.version_rules import VersionRules

ENCODER_BATCH_BYTES = int(0.63 * GIB)
ITEM_TOKENS = 2496

WIDEST_VIDEO = 2048
"""Hidden size of the widest model whose profile run of a whole video was recorded and explained."""

UNEXPLAINED_VIDEO = 24 * GIB
_PROFILES_IMAGES_FROM = (0, 13)
_MOST_OF_UNSEEN, _WIDEST_SEEN, _BATCH_OF_UNSEEN = 32 * GIB, 1_300_000_000, 8192
"""Twice the most that a recorded tower took (15.3 GiB: Qwen2.5-VL, a video of 114,688 tokens), for towers with as many
parameters as the largest of those at the most; larger ones are wider by the root of that, larger batches hold more."""

_BATCH_OF_CODE = 2048
"""The batch for which ``TowerFacts.most_bytes_per_batch`` holds; a larger one may encode more items at once."""

_WITH_FLASH_ATTENTION = ("amd-mi2", "amd-mi3")
_NO_FLASH_ATTENTION = (
    "what its image encoder takes on this card is not known: it may have no FlashAttention "
    '(--limit-mm-per-prompt \'{"image":0,"video":0}\' leaves images out)'
)
_VIDEO_TOKENS = 12 * 1024

PROCESSOR = "mm-processor-kwargs"
_OF_PROCESSOR = frozenset({"max_pixels", "min_pixels", "fps", "use_fast"})
_ATTENTION = "mm-encoder-attn-backend"
_FLASHINFER_FROM = (0, 20)
_PIXELS_PER_TOKEN = 28 * 28
"""The least that a token of Qwen's towers stands for: 2 x 2 patches of 14 pixels."""


def encoder_peak(model: ModelFacts, flags: Flags, run: Effective) -> int:
    """Highest activation of an encoder over a full batch of its largest items, bytes per device; 0 without one."""
    tower, batch = model.vision, run.max_num_batched_tokens
    if tower is None or flags.skip_mm_profiling or not tower_is_built(TensorGroup.VISION, tower, flags):
        return 0
    if tower.profile_bytes_per_token is not None:
        tokens = _profiled_tokens(tower, flags, run)
        if tower.alone_bytes_per_token is not None and flags.world == 1 and model.quant.scheme != "nvfp4":
            return tower.alone_bytes_per_token * tokens
        return tower.profile_bytes_per_token * tokens // tower_share(tower, flags)
    if tower.profile_bytes_per_batch is not None:
        return tower.profile_bytes_per_batch * max(1, batch // (tower.tokens_per_item or ITEM_TOKENS))
    return ENCODER_BATCH_BYTES


def _profiled_tokens(tower: TowerFacts, flags: Flags, run: Effective) -> int:
    """Tokens of the items that the profile run encodes at once: as many of the largest kind as the batch holds.

    Source: vllm/multimodal/encoder_budget.py; recorded start-ups print "profiled with 1 image items", "4 image items"
    (batch of 65,536) and "1 video items". A video is no longer than the context.
    """
    limits = dict(flags.limit_mm_per_prompt or ())
    item, most = tower.image_tokens, limits.get("image", run.max_num_seqs)
    if limits.get("video", 1) and tower.tokens_per_item > tower.image_tokens:
        whole = min(tower.tokens_per_item, run.max_model_len) // tower.image_tokens
        item, most = max(1, whole) * tower.image_tokens, limits.get("video", 1)
    return item * max(1, min(run.max_num_batched_tokens // item, most * run.max_num_seqs))


def _unseen_towers(model: ModelFacts, flags: Flags) -> dict[str, TowerFacts]:
    """The towers that the flags build whose profile run was never recorded, by name."""
    if flags.skip_mm_profiling:
        return {}
    towers = ((TensorGroup.VISION, model.vision), (TensorGroup.AUDIO, model.audio))
    return {
        group.value: tower for group, tower in towers if tower and tower.unseen and tower_is_built(group, tower, flags)
    }


def unread_profile(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> tuple[list[str], list[str]]:
    """What is not known of the profile run, a sentence each: what its bounds cover, and what they do not."""
    notes, left_out = [], []
    if _profiles_by_pytorch(model, accelerator, flags):
        if flags.skip_mm_profiling:
            notes.append("an image may ask for more than this card has: its encoder may have no FlashAttention here")
        else:
            left_out.append(_NO_FLASH_ATTENTION)
    if whole_video(model, flags, rules):
        notes.append("before 0.13 a whole video is profiled, and its embeddings are held beside the text")
        if model.hidden > WIDEST_VIDEO:
            left_out.append("what a whole video takes of a model this wide was not recorded")
    if unseen := _unseen_towers(model, flags):
        place = notes if _bounds_unseen(rules) else left_out
        place.append(f"what the profile run of its {' and '.join(unseen)} tower takes was not recorded")
    return notes, left_out


def _profiles_by_pytorch(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags) -> bool:
    """Whether an image encoder attends by PyTorch on this card, which may hold the scores of all patches at once.

    So it is on all of AMD's but the MI200 and MI300 series (of those with an image of vLLM's own, which has
    FlashAttention); from 0.15 on a Radeon may have FlashAttention too, where it is installed and a variable asks for
    it. A Qwen3-VL 2B, whose largest image is 65,536 patches, asked a 16 GB card for 256 GiB.

    Source: vllm/platforms/rocm.py get_vit_attn_backend of 0.11.1 to 0.32.0, read 2026-11-28; vllm-project/vllm 27706.
    """
    without = accelerator.kind is AcceleratorKind.ROCM and not accelerator.name.startswith(_WITH_FLASH_ATTENTION)
    return without and model.vision is not None and tower_is_built(TensorGroup.VISION, model.vision, flags)


def unseen_peak(model: ModelFacts, flags: Flags, run: Effective, rules: VersionRules) -> int:
    """The most that a tower may take which nobody saw profiled, bytes per device; before 0.13 nothing bounds it.

    What the code of all of them tells is less than what may be said of any.
    """
    towers = _unseen_towers(model, flags)
    if not towers or not _bounds_unseen(rules):
        return 0
    batch = run.max_num_batched_tokens
    bounds = [tower.most_bytes_per_batch for tower in towers.values() if tower.most_bytes_per_batch is not None]
    if len(bounds) == len(towers):
        return int(max(bounds) * max(1.0, batch / _BATCH_OF_CODE))
    params = max(tower.params for tower in (model.vision, model.audio) if tower is not None)
    wider = max(1.0, params / _WIDEST_SEEN) ** 0.5
    return int(_MOST_OF_UNSEEN * wider * max(1.0, batch / _BATCH_OF_UNSEEN))


def _bounds_unseen(rules: VersionRules) -> bool:
    """Whether the profile run takes items of a size that was recorded, not whole videos."""
    return rules.numbers >= _PROFILES_IMAGES_FROM


def whole_video(model: ModelFacts, flags: Flags, rules: VersionRules, *, length: int = _VIDEO_TOKENS) -> int:
    """What the profile run of Qwen 3-VL held before 0.13, when it took a whole video, bytes per device.

    It counted 12.5 tokens for each of the video's 12,288 and held an embedding of each, as wide as the model and its
    deepstack levels, while text and sampler were profiled ("a budget of 153600 tokens, and profiled with 1 video
    items"): 2.34 GiB of the 30B, not split by ranks. Over four 3090 (0.11.0) it left 2.46 GiB less than its sampler
    explains, over two H100 2.57 and 2.68 (0.12.0). The 235B over eight A100 had 24 GiB a card beside its weights and
    ran out of them: what it took there is not explained.

    Source: vllm/model_executor/models/qwen3_vl.py get_max_video_tokens and v1/worker/gpu_model_runner.py profile_run of
    0.11.0 and 0.12.0, read 2026-11-26. 0.13.0 profiled an image of 16,384.
    """
    if not model.deepstack_levels or rules.numbers >= _PROFILES_IMAGES_FROM or flags.skip_mm_profiling:
        return 0
    videos = dict(flags.limit_mm_per_prompt or ()).get("video", 1)
    if not videos or not tower_is_built(TensorGroup.VISION, model.vision, flags):
        return 0
    return int(min(_VIDEO_TOKENS, length) * 12.5) * model.hidden * (1 + model.deepstack_levels) * 2


def items_counted(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> frozenset[str]:
    """The flags about images that leave the bounds of profiling as they are.

    One that limits their size, where it makes them no larger than the tower's largest: a smaller image takes less to
    profile, and what remains is the rest of the run. And a choice of the tower's attention among kernels whose memory
    grows with the tokens of an image, not with their square: FlashAttention, and on CUDA FlashInfer from the version
    on that was seen to run it (vllm/v1/attention/ops/vit_attn_wrappers.py, read 2026-11-28; docs/fit.md, round 27).
    """
    attention = (flags.untyped(_ATTENTION) or "").upper()
    flashinfer = accelerator.kind is AcceleratorKind.CUDA and rules.numbers >= _FLASHINFER_FROM
    linear = attention == "FLASH_ATTN" or (attention == "FLASHINFER" and flashinfer)
    counted = frozenset({_ATTENTION}) if linear else frozenset[str]()
    asked = flags.json_object(PROCESSOR)
    if asked is None or not asked.keys() <= _OF_PROCESSOR:
        return counted
    most = model.vision.image_tokens * _PIXELS_PER_TOKEN if model.vision is not None else 0
    sizes = [asked[key] for key in ("max_pixels", "min_pixels") if key in asked]
    return counted | {PROCESSOR} if all(type(size) is int and 0 < size <= most for size in sizes) else counted
