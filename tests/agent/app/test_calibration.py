"""What a verified incident and a sweep's cells tell of speed and memory."""

from datetime import UTC, datetime

import pytest

from agent.app.calibration import GIB, from_cells, from_incident
from agent.app.fit_answers import FitAnswers
from agent.core.change.startup_figures import Figure, Observed
from agent.core.change.verification import Verification
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.sweep.cell import Outcome
from agent.errors import InputRejected
from agent.fit.speed.calibration import Kind
from tests.agent.core.sweep import values

AT = datetime(2026, 11, 22, tzinfo=UTC)
MODEL = "google/gemma-4-26B-A4B-it-qat-w4a16-ct"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORE", f"sqlite:{tmp_path_factory.mktemp('state')}")
        return FitAnswers.open()


def incident(**changes):
    figures = (("decode_tokens_per_s", 61.67), ("peak_activation_gib", 0.5), ("kv_tokens", 100.0))
    seen = {
        "at": AT, "revision": "r-2", "model": MODEL, "accelerator": "nvidia-l4", "vllm": "0.23.0",
        "flags": "serve /mnt/model --max-model-len 8192",
        "figures": tuple(Figure(name=name, predicted=None, observed=seen, off=None) for name, seen in figures),
    }  # fmt: skip
    base = Incident(
        id="inc-1", service="s", platform="cloud_run", phase=Phase.RESOLVED, opened_at=AT, phase_at=AT, quiet_since=AT
    )
    observed = Observed(**{**seen, **changes})
    return base.with_(verification=Verification(since=AT, until=AT, observed=observed))


def test_a_verified_incident_tells_the_share_of_the_bandwidth_and_activations(answers):
    """61.67 tokens/s of 26B QAT on an L4 come to two thirds of 300 GB/s (docs/fit.md)."""
    share, activations = from_incident(incident(), answers)
    assert (share.kind, share.vllm, share.accelerator) == (Kind.BANDWIDTH_SHARE, "0.23", "nvidia-l4")
    assert share.value == pytest.approx(0.665, abs=0.001)
    assert share.source == "incident inc-1, revision r-2"
    assert (activations.kind, activations.value) == (Kind.ACTIVATIONS, 0.5 * GIB)


def test_with_offload_the_pcie_bus_decides_so_no_share_is_told(answers):
    found = list(from_incident(incident(flags="serve x --cpu-offload-gb 5"), answers))
    assert [each.kind for each in found] == [Kind.ACTIVATIONS]


@pytest.mark.parametrize("changes", [{"model": None}, {"accelerator": None}, {"vllm": None}], ids=str)
def test_what_does_not_say_what_ran_is_refused(answers, changes):
    with pytest.raises(InputRejected, match="inc-1"):
        list(from_incident(incident(**changes), answers))


@pytest.mark.parametrize(
    "cell",
    [
        values.cell(4),
        values.cell(1, outcome=Outcome.PARTIAL),
        values.cell(1, context=8192),
        values.cell(1, provenance=values.provenance(vllm="")),
    ],
    ids=["several requests", "cut off", "a long context", "no version"],
)
def test_a_cell_that_says_too_little_tells_nothing(answers, cell):
    assert list(from_cells([cell], answers)) == []
