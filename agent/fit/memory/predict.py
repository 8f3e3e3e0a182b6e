"""Does this model fit this accelerator with these flags: vLLM's start-up, step by step, in arithmetic."""

from __future__ import annotations

from dataclasses import replace

from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective, effective
from agent.fit.memory.connector import as_connected
from agent.fit.memory.kv_cache import with_every_indexer
from agent.fit.memory.on_cpu import predict_on_cpu
from agent.fit.memory.on_cuda import predict_on_cuda
from agent.fit.memory.on_tpu import predict_on_tpu
from agent.fit.memory.rope_flags import stretched
from agent.fit.memory.splits import check_shape
from agent.fit.memory.support import judge
from agent.fit.memory.v0_engine import served_by
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts
from agent.fit.needs import Needs
from agent.fit.report import FitReport
from agent.fit.version_rules import VersionRules

_WORLDS = {
    AcceleratorKind.CUDA: predict_on_cuda,
    AcceleratorKind.ROCM: predict_on_cuda,
    AcceleratorKind.TPU: predict_on_tpu,
    AcceleratorKind.CPU: predict_on_cpu,
}


def predict(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    count: int,
    flags: Flags,
    rules: VersionRules,
    *,
    draft: ModelFacts | None = None,
    needs: Needs | None = None,
) -> FitReport:
    """Predict what vLLM will print, or which step fails.

    Args:
        model: The checkpoint.
        accelerator: One device.
        count: Devices present, at least tensor x pipeline parallel size.
        flags: The server's flags.
        rules: The vLLM version's rules.
        draft: Facts of the speculative draft model, where one is named and known.
        needs: What the user needs beyond a start; unmet needs are reported as ``one_request``.

    Returns:
        Figures per device with their ranges; never raises for a valid configuration that does not fit.

    Raises:
        InputRejected: If the configuration is impossible whatever the memory: 0 devices, fewer than TP x PP, or a TP
            that does not divide the attention heads.
    """
    check_shape(model, accelerator, count, flags)
    rules = served_by(accelerator, flags, rules)
    if _stores_cache_type(model, accelerator, flags, rules):
        flags = replace(flags, kv_cache_dtype="fp8")
        model = replace(model, assumptions=(*model.assumptions, "the KV cache is fp8, as the checkpoint's config asks"))
    model = with_every_indexer(stretched(model, flags), rules)
    flags = as_connected(flags, rules)
    run: Effective = effective(model, accelerator, flags, rules)
    verdict = judge(model, accelerator, flags, rules, run, count=count, draft=draft, needs=needs or Needs())
    return _WORLDS[accelerator.kind](
        model=model,
        accelerator=accelerator,
        flags=flags,
        rules=rules,
        run=run,
        verdict=verdict,
        draft=draft,
        needs=needs or Needs(),
    )


def _stores_cache_type(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> bool:
    taken = {"modelopt": rules.takes_modelopt_cache, "compressed-tensors": rules.takes_compressed_cache}
    is_asked = flags.kv_cache_dtype not in {None, "auto"}
    return accelerator.is_gpu and not is_asked and taken.get(model.quant.narrows_cache, False)
