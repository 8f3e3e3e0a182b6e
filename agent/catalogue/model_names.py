"""What a checkpoint's name says of its shape: packaging words left out, and the known size it was tuned from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from agent.fit.model_and_hardware import ModelFacts

_CARD = re.compile(r"rtx\d{4}")
"""A card that a checkpoint was made for stands in some names."""

_NOISE = frozenset([
    "it", "instruct", "hf", "chat", "ct", "qat", "awq", "gptq", "int4", "int8", "nvfp4", "fp4", "fp8",
    "mxfp4", "dynamic", "w4a16", "w8a8", "w8a16", "4bit", "8bit", "bit", "bnb", "autoround", "quantized",
    "marlin", "unsloth", "base", "meta", "block", "static", "g128", "g32", "bf16", "fp16", "bfloat16",
    "mobile", "local", "mount", "g64", "compressed", "tensors", "text", "asym", "sym", "w4", "a16",
    "mtp",
])  # fmt: skip

_OTHER_SHAPES = frozenset([
    "adapter", "asr", "audio", "draft", "drafter", "eagle", "embed", "embedding", "embeddings", "ggml", "gguf", "guard",
    "head", "hydra", "long", "longcontext", "lora", "medusa", "mini", "mlx", "moe", "nano", "ocr",
    "omni", "onnx", "openvino", "prm", "prune", "pruned", "qlora", "reap", "rerank", "reranker", "reward", "rm", "rope",
    "slim", "small", "sparse", "speculator", "swift", "tiny", "tts", "upscaled", "vision", "vl", "vlm", "yarn",
])  # fmt: skip
"""A name with one of these words is no checkpoint of the size it names besides, or not with that context."""

_OTHER_INPUTS = re.compile(
    r"llava|vision|video|audio|speech|voice|vox|image|visual|multimodal|vla|vit|clip|siglip|whisper|long"
    r"|^(?:interleaved?|ov|cambrian|minigpt|mm|chinese|expanded|extended|frankenmerge|passthrough|double)$"
)
"""What names of checkpoints that read more than the text of their base have in a word, or a word that widens the base.

Towers, vocabularies and layers that a tuner added are not counted: the size in such a name is not what is served.
"""

_SIZE = re.compile(r"e?\d+(?:\.\d+)?[bm]|\d+x\d+b")
_WORD, _NUMBER = re.compile(r"[a-z]{2,}|v\d+(?:\.\d+)*"), re.compile(r"r?\d+(?:\.\d+)*")


def shape_of(name: str) -> tuple[str, ...]:
    """What is left of a lower-case name without packaging words: ("gemma", "4", "31b")."""
    words = re.split(r"[-_\s]+|\.(?!\d)|(?<!\d)\.", re.sub(r"\([^)]*\)", "", name))
    kept = (word for word in words if word and word not in _NOISE and not _CARD.fullmatch(word))
    return tuple(part for word in kept for part in re.sub(r"^([a-z]{3,})(\d)", r"\1 \2", word).split())


def tuned_from(
    shape: tuple[str, ...], by_shape: Mapping[tuple[str, ...], ModelFacts], announced: AbstractSet[str]
) -> ModelFacts | None:
    """The size that a tuner's name contains whole, where all other words are plain ones: Qwen3-14B-abliterated.

    A tuner's checkpoint has the layers of its base. It may be stored otherwise: a base that is published in fewer than
    16 bits is found only where the name announces the same, and one with recurrent layers only where it announces none
    (a tuner's NVFP4 of Qwen 3.6 27B weighed 6.89 GiB on each card where 4.95 are counted).

    Args:
        shape: The name's words.
        by_shape: Every known size.
        announced: The storages that the name announces.
    """
    ends = range(len(shape), 0, -1)
    runs = ((start, end) for length in ends for start in range(len(shape) - length + 1) for end in (start + length,))
    for start, end in runs:
        base = by_shape.get(shape[start:end])
        if base is None or not any(_SIZE.fullmatch(word) for word in shape[start:end]):
            continue
        before, after = shape[:start], shape[end:]
        plain = all(_is_plain(word) or _NUMBER.fullmatch(word) for word in before) and all(map(_is_plain, after))
        recurrent = any(each.recurrent is not None for each in base.layers)
        wide = base.quant.scheme == "bf16" and not (recurrent and announced - {"bf16"})
        same = wide or announced == {base.quant.scheme}
        return base if plain and same else None
    return None


def _is_plain(word: str) -> bool:
    other = word in _OTHER_SHAPES or _OTHER_INPUTS.search(word) is not None
    return _WORD.fullmatch(word) is not None and not other and "quant" not in word and "bit" not in word
