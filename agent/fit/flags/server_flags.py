"""One server's flags as values: the ones that move memory typed, all others word for word."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

AUTO = -1
"""``--max-model-len auto``: vLLM shortens the context until one request fits."""

NO_ITEMS = (("audio", 0), ("image", 0), ("video", 0))
"""The limits that leave text alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeculativeFlags:
    """The memory-relevant part of ``--speculative-config``.

    Attributes:
        method: "mtp", "eagle3", "draft_model", "ngram" ...; "" when not given.
        model: Draft checkpoint; "" when the method needs none or it is not given.
        tokens: Tokens guessed per step.
        draft_tensor_parallel_size: None: as the target.
        others: Keys that are not typed, sorted, each with its value as JSON.
    """

    method: str = ""
    model: str = ""
    tokens: int = 0
    draft_tensor_parallel_size: int | None = None
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherFlag:
    """A flag that this module does not type: name without dashes (hyphens inside), value as written or None."""

    name: str
    value: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Flags:
    """One server's flags; None means "not given, the version's default rules".

    Sizes are in tokens unless the name says bytes or GiB. Two are environment variables, which may stand before the
    flags: ``kv_cache_space_gib`` is VLLM_CPU_KVCACHE_SPACE, ``allows_longer`` VLLM_ALLOW_LONG_MAX_MODEL_LEN. ``model``
    is what the words serve, for whoever asked to compare. ``compilation_others`` are keys of ``--compilation-config``
    that are not typed, each with its JSON value. ``as_written`` names the flags whose value stands in a field of
    another name, or in one that other flags set too.
    """

    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    mamba_ssm_cache_dtype: str | None = None
    mm_encoder_tp_mode: str | None = None
    performance_mode: str | None = None
    block_size: int | None = None
    enforce_eager: bool | None = None
    cpu_offload_gb: float | None = None
    cpu_offload_params: str | None = None
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    async_scheduling: bool | None = None
    enable_chunked_prefill: bool | None = None
    enable_prefix_caching: bool | None = None
    enable_expert_parallel: bool | None = None
    language_model_only: bool | None = None
    skip_mm_profiling: bool | None = None
    disable_chunked_mm_input: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    disable_sliding_window: bool | None = None
    limit_mm_per_prompt: tuple[tuple[str, int], ...] | None = None
    limit_mm_as_words: bool = False
    compilation_as_level: bool = False
    max_cudagraph_capture_size: int | None = None
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    cudagraph_mode: str | None = None
    compilation_level: int | None = None
    compilation_others: tuple[tuple[str, str], ...] = ()
    speculative_config: SpeculativeFlags | None = None
    kv_cache_space_gib: float | None = None
    allows_longer: bool | None = None
    model: str | None = None
    others: tuple[OtherFlag, ...] = ()
    as_written: tuple[str, ...] = field(default=(), compare=False)

    @property
    def tp(self) -> int:
        """Tensor-parallel size, 1 unless given."""
        return self.tensor_parallel_size or 1

    @property
    def pp(self) -> int:
        """Pipeline-parallel size, 1 unless given."""
        return self.pipeline_parallel_size or 1

    @property
    def world(self) -> int:
        """Devices one replica needs."""
        return self.tp * self.pp

    @property
    def devices(self) -> int:
        """Devices all replicas need."""
        return self.world * (self.data_parallel_size or 1)

    @property
    def is_text_only(self) -> bool:
        """True when every input but text is switched off."""
        limits = dict(self.limit_mm_per_prompt or ())
        return bool(self.language_model_only) or all(limits.get(kind, 1) == 0 for kind, _ in NO_ITEMS)

    @property
    def pools(self) -> bool:
        """True when the flags ask for an embedding, score or class instead of text."""
        return self.untyped("runner") == "pooling" or any(
            self.untyped(name) not in {None, "auto", "none", "generate"} for name in ("task", "convert")
        )

    def untyped(self, name: str) -> str | None:
        """Value of a flag that is kept word for word; None when it is not given or has no value."""
        if not self.others:
            return None
        return next((other.value for other in reversed(self.others) if other.name == name), None)

    def asks_for(self, names: AbstractSet[str]) -> bool:
        """True when one of these flags is given and kept word for word."""
        return bool(self.others) and any(other.name in names for other in self.others)

    def json_object(self, name: str) -> dict[str, Any] | None:
        """The JSON object that a flag kept word for word holds: {} where it is not given, None where it holds none."""
        if not self.asks_for({name}):
            return {}
        try:
            value = json.loads(self.untyped(name) or "")  # not strict: as vLLM itself reads it
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None
