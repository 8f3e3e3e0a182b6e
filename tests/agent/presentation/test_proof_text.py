"""The proof of a plan, for people."""

from datetime import UTC, datetime

from agent.core.plan.action import SetFlag
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.service.serving import Target
from agent.presentation.proof_text import PROOFS, proof_lines, proof_text

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
