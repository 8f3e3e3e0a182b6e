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
    "mtp", "kv",
])  # fmt: skip

_TUNED = frozenset([
    "abliterated", "abliteration", "obliterated", "uncensored", "unfiltered", "heretic", "derestricted",
    "finetune", "finetuned", "finetuning", "ft", "tuned", "sft", "dpo", "orpo", "kto", "simpo", "grpo", "ppo", "rl",
    "rlhf", "rlvr", "aligned", "merged", "slerp", "distill", "distilled", "reasoning", "reasoner", "reason", "think",
    "thinking", "thinker", "cot", "code", "coder", "coding", "swe", "sql", "agent", "agentic", "tool", "tools",
    "toolcall", "toolcalling", "function", "calling", "json", "assistant", "math", "medical", "med", "clinical", "bio",
    "biomedical", "legal", "law", "finance", "financial", "security", "cybersecurity", "roleplay", "rp", "story",
    "writer", "writing", "creative", "translate", "translation", "translator", "judge",
    "final", "preview", "latest", "test", "demo", "r1", "o1", "opus", "claude", "sonnet",
    "arliai", "dolphin", "hermes", "huihui", "josiefied", "lexi", "nous", "phind", "reflection", "rpr", "toolace",
])  # fmt: skip
"""What a name adds for training that leaves layers, vocabulary and inputs alone, and tuners of such checkpoints.

Any other word may tell of a tower, a draft, another head, layers or tokens that were added: such a name is unknown.
"""

_SIZE = re.compile(r"e?\d+(?:\.\d+)?[bm]|\d+x\d+b")
_EDITION, _NUMBER = re.compile(r"v\d+(?:\.\d+)*"), re.compile(r"r?\d+(?:\.\d+)*")


def shape_of(name: str) -> tuple[str, ...]:
    """What is left of a lower-case name without packaging words: ("gemma", "4", "31b")."""
    words = re.split(r"[-_\s]+|\.(?!\d)|(?<!\d)\.", re.sub(r"\([^)]*\)", "", name))
    kept = (word for word in words if word and word not in _NOISE and not _CARD.fullmatch(word))
    return tuple(part for word in kept for part in re.sub(r"^([a-z]{3,})(\d)", r"\1 \2", word).split())


def after_training(name: str) -> str:
    """What follows the last word about training in a lower-case name; the whole name where it has none."""
    ends = [word.end() for word in re.finditer(r"[a-z][a-z0-9]*", name) if word[0] in _TUNED]
    return name[max(ends, default=0) :]


def tuned_from(
    shape: tuple[str, ...],
    by_shape: Mapping[tuple[str, ...], ModelFacts],
    announced: AbstractSet[str],
    kept: AbstractSet[str],
) -> ModelFacts | None:
    """The size that a tuner's name contains whole, where all other words tell of training: Qwen3-14B-abliterated.

    A tuner's checkpoint has the layers of its base. It may be stored otherwise: a base that is published in fewer than
    16 bits is found only where the name announces the same, and one with recurrent layers only where it announces none
    (a tuner's NVFP4 of Qwen 3.6 27B weighed 6.89 GiB on each card where 4.95 are counted). What is announced before the
    words about training tells what was trained: merged with its adapter, a "bnb-4bit" is stored in 16 bits.

    Args:
        shape: The name's words.
        by_shape: Every known size.
        announced: The storages that the name announces.
        kept: Those of them that it announces after all words about training.
    """
    ends = range(len(shape), 0, -1)
    runs = ((start, end) for length in ends for start in range(len(shape) - length + 1) for end in (start + length,))
    for start, end in runs:
        base = by_shape.get(shape[start:end])
        if base is None or not any(_SIZE.fullmatch(word) for word in shape[start:end]):
            continue
        before, after = shape[:start], shape[end:]
        plain = all(_keeps_shape(word) or _NUMBER.fullmatch(word) for word in before) and all(map(_keeps_shape, after))
        recurrent = any(each.recurrent is not None for each in base.layers)
        wide = base.quant.scheme == "bf16" and not (recurrent and announced - {"bf16"})
        same = wide or announced == {base.quant.scheme}
        stored = announced <= kept | {base.quant.scheme}
        return base if plain and same and stored else None
    return None


def _keeps_shape(word: str) -> bool:
    return word in _TUNED or _EDITION.fullmatch(word) is not None
