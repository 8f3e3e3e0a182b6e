"""The sentence about memory: its figures add up, and nothing is called short by nothing."""

import re

import pytest

from agent.fit.bounds import GIB, Bounds
from agent.fit.report import FitReason, FitReport
from agent.presentation.fit_text import fit_sentence, text_report

EXACT = Bounds.exactly


def report(**changes):
    known = {
        "fits": True, "reason": FitReason.FITS, "weights_bytes": EXACT(int(15.73 * GIB)),
        "kv_cache_bytes": EXACT(int(2.98 * GIB)), "budget_bytes": EXACT(int(19.83 * GIB)),
        "total_bytes": EXACT(int(22.03 * GIB)), "required_bytes": EXACT(int(20.24 * GIB)),
        "shortfall_bytes": EXACT(0), "max_concurrency": (3.5, 4.6, 5.2), "max_model_len": 16384,
    }  # fmt: skip
    return FitReport(**(known | changes))


def test_a_peak_above_the_budget_says_what_it_is_made_of():
    """20.24 needed beside 19.83 allowed, and "fits": what lies between is named, and the figures add up."""
    said = fit_sentence(report())
    assert said.startswith("Fits: peak 20.24 of 22.03 GiB (0.41 above vLLM's budget of 19.83")
    found = re.search(r"peak ([\d.]+) of .*?\(([\d.]+) above vLLM's budget of ([\d.]+),", said)
    peak, above, budget = (float(figure) for figure in found.groups())
    assert round(above + budget, 2) == peak
    assert "4.6 requests of 16,384 tokens at once" in said


@pytest.mark.parametrize("short", [0, 1, 2**20, 10 * 2**20])
@pytest.mark.parametrize("reason", [FitReason.LOAD_PEAK, FitReason.NO_KV, FitReason.UNSUPPORTED])
def test_nothing_is_short_by_nothing(short, reason):
    refused = ("an fp8 KV cache for Gemma 4 (Triton) needs compute capability 8.9",)
    said = fit_sentence(report(fits=False, reason=reason, shortfall_bytes=EXACT(short), assumptions=refused))
    assert "0.00 GiB short" not in said
    assert ("short" in said) == (short > 0 and reason is not FitReason.UNSUPPORTED)


def test_what_vllm_refuses_is_told_by_its_reason_and_not_by_memory():
    refused = ("an fp8 KV cache for Gemma 4 (Triton) needs compute capability 8.9",)
    said = fit_sentence(report(fits=False, reason=FitReason.UNSUPPORTED, assumptions=refused))
    assert said == f"Does not start: {refused[0]}"


def test_doubt_is_never_called_a_fit():
    assert fit_sentence(report(fits=None, reason=FitReason.UNKNOWN)).startswith("May or may not fit")


def test_people_read_verdict_tokens_and_assumptions(ask):
    told = text_report(
        ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192"), model="Qwen/Qwen3-8B", accelerator="nvidia-l4"
    )
    assert told.startswith("Qwen/Qwen3-8B on nvidia-l4: Fits: peak ")
    assert "requests of 8,192 tokens" in told
    assert "assumed: nothing else uses the device" in told


@pytest.mark.parametrize("accelerator", ["nvidia-gb10", "nvidia-thor", "nvidia-orin-64gb"])
def test_whose_memory_must_be_free_is_said_where_the_host_shares_it(ask, accelerator):
    told = text_report(ask("Qwen/Qwen3-8B", accelerator, "--max-model-len 8192"), model="m", accelerator="a")
    assert f"assumed: no other program uses the memory of {accelerator}, which is the host's too" in told
    assert "nothing else uses the device" not in told


def test_what_vllm_refuses_is_said_once(ask):
    """A release that does not know the architecture: the refusal is the verdict and no assumption."""
    told = text_report(ask("google/gemma-4-31B-it", "nvidia-h100-80gb", vllm="0.9.0"), model="m", accelerator="a")
    assert told.startswith("m on a: Does not start: ")
    refusal = told.splitlines()[0].removeprefix("m on a: Does not start: ")
    assert told.count(refusal) == 1


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("google/gemma-4-31B-it-qat-w4a16-ct", "--max-model-len 8192"),
        ("google/gemma-4-31B-it", ""),
        ("Qwen/Qwen3-14B", "--max-model-len 4096"),
    ],
)
def test_what_is_short_is_what_the_failing_step_needs_beyond_the_device(ask, model, flags):
    """The highest need of all steps stood beside what the first failing step misses: 24.60 of 22.03, 0.73 short."""
    report = ask(model, "nvidia-l4", flags)
    assert report.fits is False
    need, total, short = re.search(
        r"needs ([\d.]+) of ([\d.]+) GiB.*; ([\d.]+) GiB short$", fit_sentence(report)
    ).groups()
    assert round(float(total) + float(short), 2) == float(need)


def test_a_request_that_is_too_long_is_told_by_the_cache_and_not_by_the_device(ask):
    said = fit_sentence(ask("Qwen/Qwen3-8B", "nvidia-l4"))
    assert said.startswith("Does not fit (one request of full length does not fit in the KV cache); weights ")
    assert " of 22.03 GiB" not in said


def test_a_verdict_that_holds_under_one_version_alone_says_so_below_it():
    said = text_report(report(differs_under=("0.19.0",)), model="m", accelerator="a").splitlines()
    assert said[1] == "but the verdict differs under vLLM 0.19.0: give the version that runs, --vllm X"
