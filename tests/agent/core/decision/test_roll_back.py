"""A decision to roll back covers one effect of one plan, and only as it was signed."""

from datetime import UTC, datetime

import pytest

from agent.core.decision.decision import Channel, HmacReceiptSigner, PersonAct
from agent.core.decision.roll_back import RollBackDecision

KEY = HmacReceiptSigner(b"k" * 32)
COVERED = {"incident": "inc-a", "plan_digest": "d1", "effect": "e1"}
BY = PersonAct(who="ana", verified=True, channel=Channel.CONSOLE, at=datetime(2026, 11, 21, 3, tzinfo=UTC), why="bad")
SIGNED = RollBackDecision(**COVERED, plan="p-1", by=BY).signed(KEY)


def test_what_was_signed_covers_its_effect_and_no_other():
    assert SIGNED.refusal(KEY, **COVERED) == ""
    for name in COVERED:
        assert "about another change" in SIGNED.refusal(KEY, **(COVERED | {name: "x"}))


FIELDS = {"incident": "x", "plan": "x", "plan_digest": "x", "effect": "x", "by": BY.with_(who="eve"), "receipt": "0"}


@pytest.mark.parametrize("name", FIELDS)
def test_any_field_that_was_changed_afterwards_voids_it(name):
    forged = SIGNED.with_(**{name: FIELDS[name]})
    covered = {key: getattr(forged, key) for key in COVERED}
    assert "not signed" in forged.refusal(KEY, **covered)
    assert set(FIELDS) == set(RollBackDecision.model_fields)


def test_another_key_or_none_is_no_signature():
    assert "not signed" in SIGNED.refusal(HmacReceiptSigner(b"x" * 32), **COVERED)
    assert "not signed" in SIGNED.with_(receipt="").refusal(KEY, **COVERED)
