"""What the arithmetic found, in one sentence whose figures add up: the need, the parts of it, and what is missing."""

from agent.fit.bounds import GIB, Bounds
from agent.fit.report import FitReason, FitReport
from agent.presentation.memory_bar import text_bar

_STEPS = {
    FitReason.LOAD_PEAK: "while the weights are loaded",
    FitReason.FREE_MEMORY: "when vLLM asks for its budget",
    FitReason.PROFILE: "in the profiling run",
    FitReason.NO_KV: "no memory is left for the KV cache",
    FitReason.ONE_REQUEST: "one request of full length does not fit in the KV cache",
    FitReason.GRAPH_CAPTURE: "while CUDA graphs are captured",
}


_NEEDS_TOTAL = frozenset({FitReason.LOAD_PEAK, FitReason.PROFILE})
"""Steps that need memory of the whole device, so that what is missing is missing of its total."""


def fit_sentence(report: FitReport) -> str:
    """Return such as ``Fits: peak 21.34 of 22.03 GiB (...); weights 17.52 GiB, ...``; sizes in GiB per device.

    Of what does not fit the figures are those of the step that fails first.
    """
    if report.fits is False and report.reason is FitReason.UNSUPPORTED:
        return f"Does not start: {_refusal(report)}"
    said = [f"{_verdict(report)}{_need(report) if report.fits is False else _peak(report)}"]
    parts = []
    if report.weights_bytes is not None:
        parts.append(f"weights {_gib(report.weights_bytes)} GiB")
    if report.kv_cache_bytes is not None and (report.fits is not False or report.reason is FitReason.ONE_REQUEST):
        parts.append(f"KV cache {_gib(report.kv_cache_bytes)} GiB")
    if report.fits and report.max_concurrency is not None and report.max_model_len is not None:
        parts.append(f"{report.max_concurrency[1]:.1f} requests of {report.max_model_len:,} tokens at once")
    if parts:
        said.append(", ".join(parts))
    if report.fits is False and report.shortfall_bytes is not None and report.shortfall_bytes.best > 0:
        said.append(_missing(report.shortfall_bytes))
    return "; ".join(said)


def _verdict(report: FitReport) -> str:
    if report.fits:
        return "Fits"
    if report.fits is None:
        return "May or may not fit"
    where = _STEPS.get(report.reason, "")
    return f"Does not fit ({where})" if where else "Does not fit"


def _need(report: FitReport) -> str:
    """What the step that fails needs of the device: its total and what is missing, as they are shown."""
    total, short = report.total_bytes, report.shortfall_bytes
    if report.reason not in _NEEDS_TOTAL or total is None or short is None or short.best <= 0:
        return ""
    return f": needs {round(total.best / GIB, 2) + round(short.best / GIB, 2):.2f} of {_gib(total)} GiB"


def _peak(report: FitReport) -> str:
    """The peak, and how it comes to be more than vLLM's own budget: what stands outside the budget is no part of it."""
    need, total, budget = report.required_bytes, report.total_bytes, report.budget_bytes
    if need is None or total is None:
        return ""
    said = f": peak {_gib(need)} of {_gib(total)} GiB"
    if budget is None or need.best <= budget.best:
        return said
    outside = round(need.best / GIB, 2) - round(budget.best / GIB, 2)
    left_out = "which leaves out the runtime's context and graph capture"
    return f"{said} ({outside:.2f} above vLLM's budget of {_gib(budget)}, {left_out})"


def _refusal(report: FitReport) -> str:
    return report.assumptions[0] if report.assumptions else "vLLM does not support this configuration"


def _missing(short: Bounds) -> str:
    """What is missing; less than the last digit that is shown is not called 0.00."""
    if short.best < 0.01 * GIB:
        return f"{short.best / 2**20:,.1f} MiB short"
    return f"{_gib(short)} GiB short"


def _gib(size: Bounds) -> str:
    return f"{size.best / GIB:.2f}"


def text_report(report: FitReport, *, model: str, accelerator: str, colour: bool = False) -> str:
    """What a person reads: the verdict in one sentence, the bar, the printed figures and what had to be assumed."""
    lines = [f"{model} on {accelerator}: {fit_sentence(report)}"]
    if report.version_doubt:
        lines.append(f"but {report.version_doubt}: give the version that runs, --vllm X")
    lines.append(text_bar(report, colour=colour))
    if report.kv_tokens is not None and report.max_concurrency is not None:
        lines.append(
            f"KV cache size {report.kv_tokens.best:,} tokens, {report.max_concurrency[1]:.2f} requests of "
            f"{report.max_model_len:,} tokens; {report.num_gpu_blocks.best if report.num_gpu_blocks else 0:,} blocks"
        )
    if report.fits is not True and report.estimated_max_model_len:
        lines.append(f"one request could have {report.estimated_max_model_len:,} tokens")
    said = 1 if report.reason is FitReason.UNSUPPORTED else 0  # the sentence above has the refusal
    lines += [f"assumed: {assumption}" for assumption in report.assumptions[said:]]
    return "\n".join(lines)
