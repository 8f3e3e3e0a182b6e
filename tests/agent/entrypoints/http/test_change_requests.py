"""Change requests through the deciding function: of a proved person, signed and recorded once, or refused in words."""

from dataclasses import replace

import pytest

from agent.core.change.request import check_request
from agent.core.decision.decision import Channel
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetFlag
from agent.core.service.services import parse_services

SERVICE = "gemma-asked"
WATCHED = parse_services(
    {"service": [{"name": SERVICE, "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}]}
)
BODY = {
    "service": SERVICE,
    "actions": [{"kind": "set_flag", "name": "max-model-len", "value": "32768"}],
    "why": "longer documents",
}


@pytest.fixture
def door(desk):
    """A desk that watches a service without any trouble."""
    ada = Approver(name="Ada", email="Ada@Example.com", services=(SERVICE,))
    policy = Policy(approvers=(ada,), flags={"max-model-len": "whole 256..131072"})
    world = desk.stage.world
    desk.stage.world = replace(world, rules=replace(world.rules, services=WATCHED, policy=policy))
    return desk


def test_a_request_of_a_proved_person_is_signed_and_recorded(door, theatre):
    status, said = door.ask("POST", "/requests", BODY)
    assert status == 200
    held = door.stage.world.control.change_request(said["request"])
    check_request(held, door.stage.world.receipts())
    assert (held.asker, held.verified, held.channel) == ("ada@example.com", True, Channel.COMMAND_LINE)
    assert held.actions == (SetFlag(name="max-model-len", value="32768"),)
    assert door.stage.world.store.load(held.id).phase is Phase.OPEN
    assert door.ask("POST", "/requests", BODY, jti="2")[1]["request"] == held.id


def test_an_ai_client_asks_in_a_persons_name_and_it_is_kept(door):
    said = door.ask("POST", "/requests", BODY | {"via": "mcp"})[1]
    assert door.stage.world.control.change_request(said["request"]).channel is Channel.MCP


@pytest.mark.parametrize(
    ("body", "claims", "status", "says"),
    [
        (BODY | {"service": "gemma-aske"}, {}, 400, "did you mean 'gemma-asked'"),
        (BODY | {"actions": []}, {}, 400, "actions"),
        (BODY | {"actions": [{"kind": "for_person", "action": "x", "instruction": "y"}]}, {}, 400, "names nothing"),
        (BODY | {"actions": [{"kind": "set_flag", "name": "api-key", "value": "x"}]}, {}, 403, "allow-list"),
        (BODY | {"actions": [{"kind": "set_flag", "name": "max-model-len", "value": "1"}]}, {}, 403, "is no value"),
        (BODY | {"why": ""}, {}, 400, "why"),
        (BODY | {"asker": "ben@example.com"}, {}, 400, "asker"),
        (BODY | {"supersede": "yes"}, {}, 400, "supersede"),
        (BODY, {"email": "eve@example.com"}, 403, "does not name 'eve@example.com'"),
        (b"{}", {}, 400, "service"),
    ],
    ids=["service", "no actions", "task", "never flag", "value", "no reason", "asker", "type", "stranger", "empty"],
)
def test_what_is_refused_is_said_and_nothing_is_recorded(door, body, claims, status, says):
    got, said = door.ask("POST", "/requests", body, token=door.token(**claims))
    assert (got, says in said["error"]) == (status, True), said
    assert [row for row in door.stage.world.control.audit() if row.kind.startswith("request.")] == []


def test_without_a_token_nobody_asks(door):
    assert door.ask("POST", "/requests", BODY, token="")[0] == 401


def test_it_is_taken_back_by_whoever_asked(door):
    request = door.ask("POST", "/requests", BODY)[1]["request"]
    told = {"request": request, "why": "not needed"}
    assert door.ask("POST", "/requests/withdraw", told, token=door.token(email="ben@example.com"))[0] == 403
    status, said = door.ask("POST", "/requests/withdraw", told)
    assert (status, said["incident"]["phase"]) == (200, "WITHDRAWN")
    assert door.ask("POST", "/requests/withdraw", {"request": "inc-1", "why": "x"})[0] == 400


def test_a_second_request_of_the_service_is_a_conflict(door):
    door.ask("POST", "/requests", BODY)
    other = BODY | {"actions": [{"kind": "set_flag", "name": "max-model-len", "value": "4096"}]}
    status, said = door.ask("POST", "/requests", other, jti="2")
    assert (status, "is open on it" in said["why"]) == (409, True)
    assert door.ask("POST", "/requests", other | {"supersede": True}, jti="3")[0] == 200
