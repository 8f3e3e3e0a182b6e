"""The answer to "does it fit": figures per device, their ranges, and the step that fails."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.fit.bounds import Bounds


class FitReason(StrEnum):
    """Why ``fits`` is what it is; all but the first, ``unsupported`` and ``unknown`` name the first failing step."""

    FITS = "fits"
    LOAD_PEAK = "load_peak"
    FREE_MEMORY = "free_memory"
    PROFILE = "profile"
    NO_KV = "no_kv"
    ONE_REQUEST = "one_request"
    GRAPH_CAPTURE = "graph_capture"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Overheads:
    """What is neither weights nor KV cache, bytes per device.

    Attributes:
        load_transient: Allocated while loading and given back (the output head before it is tied).
        activations: Peak of the profile run over the weights.
        non_torch: CUDA context growth, NCCL, cuBLAS.
        cuda_graphs: What the captured graphs take in the end.
    """

    load_transient: Bounds | None = None
    activations: Bounds | None = None
    non_torch: Bounds | None = None
    cuda_graphs: Bounds | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FitReport:
    """One prediction; bytes are per GPU or chip, None means unknown.

    Attributes:
        fits: True if the pessimistic end fits, False if the optimistic end does not, None between.
        reason: The closed list of the contract; with ``fits`` None always ``unknown``.
        weights_bytes: What "Model loading took" prints, without the transient.
        kv_cache_bytes: "Available KV cache memory".
        kv_bytes_per_request: KV need of one request of ``max_model_len`` tokens.
        num_gpu_blocks: Blocks of the pool.
        kv_block_tokens: Tokens of the smallest block.
        kv_blocks_per_request: Blocks of one request of full length.
        kv_tokens: What this version prints as "GPU KV cache size".
        kv_capacity_tokens: Distinct tokens that can be held at that length.
        max_concurrency: Requests of full length at once.
        budget_bytes: ceil(total x utilisation).
        total_bytes: Device memory as vLLM reports it.
        required_bytes: Highest need at any step.
        shortfall_bytes: What is missing at the first failing step; 0 if it fits.
        max_model_len, max_num_batched_tokens, max_num_seqs: The values used, given or default.
        estimated_max_model_len: Longest context one request may have in this pool; None if unknown.
        differs_under: Versions of vLLM with another verdict, where no version was given.
    """

    fits: bool | None
    reason: FitReason
    weights_bytes: Bounds | None = None
    kv_cache_bytes: Bounds | None = None
    kv_bytes_per_request: Bounds | None = None
    num_gpu_blocks: Bounds | None = None
    kv_block_tokens: int | None = None
    kv_blocks_per_request: int | None = None
    kv_tokens: Bounds | None = None
    kv_capacity_tokens: Bounds | None = None
    max_concurrency: tuple[float, float, float] | None = None
    overheads: Overheads = Overheads()
    budget_bytes: Bounds | None = None
    total_bytes: Bounds | None = None
    required_bytes: Bounds | None = None
    shortfall_bytes: Bounds | None = None
    decode_tokens_per_s: tuple[float, float] | None = None
    cost_usd_per_h: float | None = None
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    estimated_max_model_len: int | None = None
    differs_under: tuple[str, ...] = ()

    @property
    def version_doubt(self) -> str:
        """That the version decides, or nothing."""
        return f"the verdict differs under vLLM {', '.join(self.differs_under)}" if self.differs_under else ""

    def to_contract(self) -> dict[str, Any]:
        """The report as the command line's JSON object: exactly the contract's keys, ``id`` excepted."""
        answer: dict[str, Any] = {"fits": self.fits, "reason": self.reason.value}
        ranges: dict[str, list[float]] = {}
        for key in _KEYS:
            answer[key] = _scalar(key, getattr(self, key), ranges)
        answer["overheads"] = {
            key: _scalar(f"overheads.{key}", getattr(self.overheads, key), ranges) for key in _OVERHEADS
        }
        speed = self.decode_tokens_per_s
        answer["decode_tokens_per_s"] = None if speed is None else round((speed[0] * speed[1]) ** 0.5, 2)
        if speed is not None:
            ranges["decode_tokens_per_s"] = [round(speed[0], 2), round(speed[1], 2)]
        answer["cost_usd_per_h"] = self.cost_usd_per_h
        answer["assumptions"] = [*self.assumptions, *filter(None, [self.version_doubt])]
        answer["sources"] = list(self.sources)
        answer["ranges"] = ranges
        return {key: answer[key] for key in _ORDER}


_KEYS = ("weights_bytes", "kv_cache_bytes", "kv_bytes_per_request", "num_gpu_blocks", "kv_block_tokens",
         "kv_blocks_per_request", "kv_tokens", "kv_capacity_tokens", "max_concurrency", "budget_bytes", "total_bytes",
         "required_bytes", "shortfall_bytes")  # fmt: skip
_OVERHEADS = ("load_transient", "activations", "non_torch", "cuda_graphs")
_ORDER = ("fits", "reason", *_KEYS[:9], "overheads", *_KEYS[9:], "ranges", "decode_tokens_per_s", "cost_usd_per_h",
          "assumptions", "sources")  # fmt: skip


def _scalar(key: str, value: object, ranges: dict[str, list[float]]) -> int | float | None:
    if isinstance(value, Bounds):
        ranges[key] = [value.low, value.high]
        return value.best
    if isinstance(value, tuple):
        ranges[key] = [round(value[0], 4), round(value[2], 4)]
        return round(float(value[1]), 4)
    assert value is None or isinstance(value, int)
    return value
