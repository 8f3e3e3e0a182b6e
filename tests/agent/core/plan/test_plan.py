"""A stored plan keeps its digest, whatever a later version adds to plans."""

import pytest
from pydantic import ValidationError

from agent.core.plan.plan import DIGESTED, Plan
from agent.core.value import digest
from tests.contracts.values import plan


def test_the_newest_rules_cover_every_field():
    """A field that an approval does not cover could be exchanged behind it."""
    newest = plan("p-a-1").rules
    assert sorted(DIGESTED[newest]) == sorted(Plan.model_fields)
    assert list(DIGESTED)[-1] == newest


def test_the_digest_changes_with_every_field():
    """Each field exchanged alone gives another digest."""
    made = plan("p-a-1")
    data = made.model_dump(mode="json")
    for name in DIGESTED[made.rules]:
        other = data | {name: "exchanged"}
        assert digest({field: other[field] for field in DIGESTED[made.rules]}) != made.digest, name


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
