"""The proof of a plan, for people."""

from datetime import UTC, datetime

import pytest

from agent.core.plan.action import SetFlag
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.service.serving import Target
from agent.presentation.proof_text import PROOFS, memory_line, proof_lines, proof_text

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def plan(**changes):
    return Plan(
        id="p-a-1", incident="inc-a", run="live", ordinal=1, cause="c", why="-",
        actions=(SetFlag(name="max-model-len", value="1"),), difference=(),
        target=Target(service="s", uid="u", generation=1, digest="d"), rollout=Rollout.IN_PLACE, risk=Risk.LOW,
        undo="-", if_unanswered="-", made_at=AT, expires_at=AT, **changes,
    )  # fmt: skip


def test_every_proof_has_its_words():
    """A new one must be said."""
    assert PROOFS.keys() == set(Proof)


def test_a_line_stands_once_however_many_figures_it_proves():
    """With its place, and what a terminal must not obey taken out."""
    figures = tuple(ProofFigure(name=n, value="1", line="a \x1b[31mline", place="log:7") for n in ("pool", "need"))
    measured = plan(proof=Proof.MEASURED, proof_figures=figures)
    assert proof_lines(measured) == (("log:7", "a \x1b[31mline"),)
    said = "\n".join(proof_text(measured))
    assert said.count("[log:7]") == 1
    assert "\x1b" not in said


def test_what_is_missing_is_said():
    """Nobody is asked to approve it; they learn what would have to be known."""
    assert "missing  the size" in "\n".join(proof_text(plan(proof=Proof.NONE, proof_missing=("the size",))))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"proof": Proof.NOT_NEEDED}, "Memory: no more than before"),
        ({"proof": Proof.COMPUTED}, "Memory: fits (computed)"),
        ({"proof": Proof.MEASURED}, "Memory: fits (measured)"),
        ({"proof": Proof.NONE}, "Memory: not proved"),
    ],
    ids=["not needed", "computed", "measured", "none"],
)
def test_the_memory_in_one_line(stage, changes, said):
    assert memory_line(stage.waiting().plan.with_(**changes)) == said


def test_the_memory_line_names_peak_and_device_where_they_are_known(stage, scenes):
    plan = stage.waiting(make=scenes.memory_plan).plan
    report = plan.fit_after.report | {"required_bytes": int(20.24 * 2**30), "total_bytes": int(22.03 * 2**30)}
    known = plan.with_(fit_after=plan.fit_after.with_(report=report))
    assert memory_line(known) == "Memory: fits, peak 20.2 of 22.0 GiB (computed)"
    assert memory_line(stage.waiting("s-person", make=scenes.person_plan).plan) == ""
