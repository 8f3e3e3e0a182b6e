"""A stored plan keeps its digest, whatever a later version adds to plans."""

import pytest
from pydantic import ValidationError

from agent.core.plan.action import Restart
from agent.core.plan.plan import DIGESTED, FitSummary, Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.serving import Target
from tests.contracts.values import at, plan


def another() -> Plan:
    """A plan that has no value in common with the usual one."""
    return plan(
        "p-b-2", incident="inc-b", run="again", ordinal=2, cause="engine_dead", why="a fresh start", actions=(Restart(),),
        difference=(), target=Target(service="qwen", uid="u2", generation=4, digest="e" * 64), prior_template="f" * 64,
        rollout=Rollout.STAGED, fit_before=FitSummary(fits=False), fit_after=FitSummary(fits=None),
        cost_before_usd_per_h=1.0, cost_after_usd_per_h=2.0, decode_tokens_per_s=3.0, risk=Risk.HIGH,
        risk_reasons=("untried",), undo="restart", if_unanswered="it stays down", notes=("a note",), proof=Proof.NOT_NEEDED,
        proof_figures=(), proof_missing=("a figure",), takes_away="images", policy="p" * 64, asked_by="ada",
        made_at=at(1), expires_at=at(2),
    )  # fmt: skip


def test_the_newest_rules_cover_every_field():
    """A field that an approval does not cover could be exchanged behind it."""
    newest = plan("p-a-1").rules
    assert sorted(DIGESTED[newest]) == sorted(Plan.model_fields)
    assert list(DIGESTED)[-1] == newest


def test_the_digest_changes_with_every_field():
    """Each field alone, exchanged for that of a plan that differs in all of them, gives another digest."""
    made, other = plan("p-a-1"), another()
    for name in set(Plan.model_fields) - {"rules"}:
        assert getattr(made, name) != getattr(other, name), name
        assert made.with_(**{name: getattr(other, name)}).digest != made.digest, name


def test_a_field_of_later_rules_leaves_an_earlier_digest_alone():
    """What was approved before an upgrade is what is approved after it."""

    class Later(Plan):
        shown_since: str = "a later version"

    made = plan("p-a-1")
    assert Later(**{name: getattr(made, name) for name in Plan.model_fields}).digest == made.digest


def test_a_plan_of_rules_that_are_not_known_is_refused():
    """A newer version wrote it: what its digest covers cannot be told."""
    data = plan("p-a-1").model_dump(mode="json")
    with pytest.raises(ValidationError, match="rules"):
        Plan.model_validate(data | {"rules": "0.9.0"})


def test_a_plan_without_a_proof_is_no_plan():
    """Doubt is never proof: the field has no default."""
    data = plan("p-a-1").model_dump(mode="json")
    del data["proof"]
    with pytest.raises(ValidationError, match="proof"):
        Plan.model_validate(data)


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_has_its_own_digest(deep: bool):
    """It is taken once for each plan; a copy with other actions does not carry the digest of the first."""
    made = plan("p-a-1")
    assert made.digest == made.model_copy(deep=deep).digest
    other = made.model_copy(update={"actions": (Restart(),)}, deep=deep)
    assert other.digest == made.with_(actions=(Restart(),)).digest != made.digest
