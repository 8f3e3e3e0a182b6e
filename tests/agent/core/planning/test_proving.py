"""What proves a plan, and what does not."""

import pytest

from agent.core.plan.action import Action, Restart, SetFlag, SetResources
from agent.core.plan.capacity import ContainerFit
from agent.core.plan.plan import FitSummary
from agent.core.plan.printed_memory import Printed
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.planning.proving import Proven, prove

GIB = 2**30
FITS = FitSummary(
    fits=True, sentence="fits", report={"required_bytes": 21 * GIB, "total_bytes": 22 * GIB, "sources": ["x"]}
)
NOT = FitSummary(fits=False, sentence="does not fit")
UNSURE = FitSummary(sentence="fit: not computed")
ROOM = ContainerFit(fits=True, sentence="enough", figures=(ProofFigure(name="Container memory", value="24 GiB"),))
NO_ROOM = ContainerFit(sentence="container memory: not computed")
LENGTH = Printed(
    flag="max-model-len", asked=131072, most=32640, need="4.0 GiB", pool="1.0 GiB", line="the line", place="log:9"
)
SEQUENCES = LENGTH.with_(flag="max-num-seqs", asked=256, most=100, need="256", pool="100")


def proven(
    *actions: Action, fit: FitSummary = UNSURE, room: ContainerFit = NO_ROOM, said: Printed | None = None
) -> Proven:
    return prove(actions, fit=fit, container=room, printed=said)


def test_what_takes_no_memory_needs_no_proof() -> None:
    """Whatever the arithmetic says."""
    assert proven(Restart(), fit=NOT) == Proven(proof=Proof.NOT_NEEDED)


def test_the_arithmetic_proves_with_its_figures() -> None:
    """Peak and size, each with what it rests on."""
    found = proven(SetFlag(name="max-num-seqs", value="2"), fit=FITS)
    assert found.proof is Proof.COMPUTED
    assert [(f.name, f.value) for f in found.figures] == [
        ("Peak memory of one device", "21.00 GiB"),
        ("Memory of one device", "22.00 GiB"),
    ]
    assert all(f.source for f in found.figures)


@pytest.mark.parametrize("fit", [NOT, UNSURE])
def test_what_is_not_computed_to_fit_is_not_proved(fit: FitSummary) -> None:
    """And what would have to be known is said."""
    found = proven(SetFlag(name="max-num-seqs", value="2"), fit=fit, room=ROOM)
    assert found.proof is Proof.NONE
    assert found.missing == (fit.sentence,)


def test_a_change_of_both_memories_needs_both() -> None:
    """Offload frees the device and pins the host."""
    offload = SetFlag(name="cpu-offload-gb", value="8")
    assert proven(offload, fit=FITS).missing == (NO_ROOM.sentence,)
    assert proven(offload, fit=UNSURE, room=ROOM).missing == (UNSURE.sentence,)
    both = proven(offload, fit=FITS, room=ROOM)
    assert both.proof is Proof.COMPUTED
    assert both.figures[-1].name == "Container memory"


def test_container_memory_alone_does_not_ask_about_the_device() -> None:
    """The device is not touched."""
    assert proven(SetResources(cpu=4, memory_mib=1), room=ROOM).proof is Proof.COMPUTED
    assert proven(SetResources(cpu=4, memory_mib=1)).proof is Proof.NONE


@pytest.mark.parametrize(
    ("action", "said", "proof"),
    [
        (SetFlag(name="max-model-len", value="32640"), LENGTH, Proof.MEASURED),
        (SetFlag(name="max_model_len", value="16384"), LENGTH, Proof.MEASURED),
        (SetFlag(name="max-model-len", value="32641"), LENGTH, Proof.NONE),
        (SetFlag(name="max-model-len", value="0"), LENGTH, Proof.NONE),
        (SetFlag(name="max-model-len", value=None), LENGTH, Proof.NONE),
        (SetFlag(name="max-model-len", value="auto"), LENGTH, Proof.NONE),
        (SetFlag(name="kv-cache-dtype", value="fp8"), LENGTH, Proof.NONE),
        (SetFlag(name="gpu-memory-utilization", value="0.95"), LENGTH, Proof.NONE),
        (SetFlag(name="max-num-seqs", value="4"), LENGTH, Proof.NONE),
        (SetFlag(name="max-num-seqs", value="100"), SEQUENCES, Proof.MEASURED),
        (SetFlag(name="max-num-seqs", value="101"), SEQUENCES, Proof.NONE),
        (SetFlag(name="max-model-len", value="64"), SEQUENCES, Proof.NONE),
    ],
)
def test_the_engine_proves_a_lower_value_of_its_flag_and_nothing_else(
    action: SetFlag, said: Printed, proof: Proof
) -> None:
    """It is never scaled: half the bytes of a cache are not half of the need."""
    found = proven(action, said=said)
    assert found.proof is proof
    assert all(f.line == "the line" and f.place == "log:9" for f in found.figures)


def test_the_engine_proves_one_change_not_two() -> None:
    """A second flag beside it may take what the first one freed."""
    lower, more = SetFlag(name="max-model-len", value="1024"), SetFlag(name="max-num-seqs", value="512")
    assert proven(lower, more, said=LENGTH).proof is Proof.NONE


def test_the_engine_never_overrides_a_computed_false() -> None:
    """Log text can be forged; the arithmetic cannot."""
    assert proven(SetFlag(name="max-model-len", value="1024"), fit=NOT, said=LENGTH).proof is Proof.NONE
