"""A change request: signed whole, the same by its key while it is open, and never a task for a person."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from agent.core.change.request import ChangeRequest, check_request, request_id, request_key, sign_request
from agent.core.decision.decision import Channel, HmacReceiptSigner
from agent.core.plan.action import ForPerson, Restart, SetFlag
from agent.core.service.serving import Target
from agent.errors import PolicyRefused

KEY = HmacReceiptSigner(b"k" * 32)
ACTIONS = (SetFlag(name="max-model-len", value="32768"),)
TARGET = Target(service="svc", uid="u", generation=3, digest="d")


def a_request(**changes):
    fields = {
        "id": request_id(request_key("ada", "svc", ACTIONS, None), 1), "service": "svc", "actions": ACTIONS,
        "why": "longer documents", "asker": "ada", "channel": Channel.COMMAND_LINE, "verified": False,
        "made_at": datetime(2026, 11, 22, 9, 0, tzinfo=UTC),
    }  # fmt: skip
    return ChangeRequest(**(fields | changes))


OTHER = {
    "id": "rq-000000000000",
    "service": "other",
    "actions": (Restart(),),
    "why": "because",
    "asker": "eve",
    "channel": Channel.MCP,
    "verified": True,
    "made_at": datetime(2026, 11, 22, 9, 1, tzinfo=UTC),
    "target": TARGET,
    "superseded": ("inc-a",),
    "waits_for": "inc-b",
}


@pytest.mark.parametrize("field", OTHER)
def test_the_receipt_covers_every_field(field):
    signed = sign_request(a_request(), KEY)
    check_request(signed, KEY)
    with pytest.raises(PolicyRefused, match="not signed by the deciding function"):
        check_request(signed.with_(**{field: OTHER[field]}), KEY)


def test_every_field_is_tried_above():
    assert set(OTHER) == set(ChangeRequest.model_fields) - {"receipt"}


def test_without_a_receipt_or_with_another_key_it_is_refused():
    for forged in (a_request(), sign_request(a_request(), HmacReceiptSigner(b"x" * 32))):
        with pytest.raises(PolicyRefused):
            check_request(forged, KEY)


def test_the_key_is_of_asker_service_actions_and_target_alone():
    """A reason said in other words is the same request; another person, value or state is another one."""
    same = a_request(why="other words", channel=Channel.CONSOLE, asker="ADA")
    assert same.key == a_request().key
    others = [a_request(**{field: OTHER[field]}) for field in ("asker", "service", "actions", "target")]
    assert len({request.key for request in (a_request(), *others)}) == 5


def test_the_next_of_a_key_has_another_id():
    key = a_request().key
    assert request_id(key, 1) != request_id(key, 2)
    assert request_id(key, 1) == request_id(key, 1)


def test_a_task_for_a_person_cannot_be_asked_for():
    with pytest.raises(ValidationError, match="no change that can be asked for"):
        a_request(actions=(ForPerson(action="fix_quota", instruction="ask for more"),))
