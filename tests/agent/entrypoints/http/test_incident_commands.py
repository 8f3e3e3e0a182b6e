"""What people with a token do about an incident: of a proved person, once where it is a decision, or refused in words."""

import pytest

from agent.core.incident.phase import Phase
from agent.core.plan.action import ForPerson
from agent.core.plan.plan import Rollout


def say(desk, command, text="", jti="1", **more):
    body = {"incident": desk.incident.id, "command": command, "text": text} | more
    return desk.ask("POST", "/commands", body, jti=jti)


def test_a_proved_person_is_named_as_the_policy_names_them(desk):
    status, answer = say(desk, "acknowledge")
    assert status == 200
    act = answer["incident"]["acknowledged"]
    assert (act["who"], act["verified"], act["channel"]) == ("ada@example.com", True, "command_line")
    for text in ("first", "second"):  # one token speaks more than once
        assert say(desk, "comment", text)[0] == 200
    assert desk.stage.world.store.load(desk.incident.id).comments == 2


@pytest.mark.parametrize(
    ("body", "claims", "status", "says"),
    [
        ({"command": "explode"}, {}, 400, "command"),
        ({"incident": "../etc"}, {}, 400, "incident"),
        ({"incident": "inc-none"}, {}, 404, "inc-none"),
        ({"who": "ben"}, {}, 400, "who"),
        ({"text": "x" * 1001}, {}, 400, "text"),
        ({"command": "close", "text": ""}, {}, 400, "it needs a reason"),
        ({"command": "close", "text": "over"}, {}, 403, "it is ASKED"),
        ({"command": "roll_back", "text": "bad", "plan_digest": "0" * 16}, {}, 403, "it is ASKED"),
        ({"command": "roll_back", "text": "bad"}, {}, 400, "it does not say which plan was shown"),
        ({}, {"email": "eve@example.com"}, 403, "names no approver"),
    ],
    ids=["command", "path", "unknown", "who", "long", "no reason", "phase", "nothing applied", "not seen", "stranger"],
)
def test_what_is_refused_is_said_and_nothing_is_recorded(desk, body, claims, status, says):
    sent = {"incident": desk.incident.id, "command": "comment", "text": "hello"} | body
    got, said = desk.ask("POST", "/commands", sent, token=desk.token(**claims))
    assert (got, says in said["error"]) == (status, True), said
    assert [row for row in desk.stage.world.control.audit() if row.kind.startswith("incident.")] == []
    assert desk.phase() is Phase.ASKED


def test_without_a_token_nobody_says_anything(desk):
    sent = {"incident": desk.incident.id, "command": "acknowledge"}
    assert desk.ask("POST", "/commands", sent, token="")[0] == 401


def test_a_task_is_marked_as_done_by_a_token_once_and_for_the_plan_that_was_shown(desks, theatre, tokens):
    """The word approves the task's plan, so it is a decision."""
    task = (ForPerson(action="fix_mount_permissions", instruction="Give it access."),)
    desk = desks.Desk(theatre, tokens, actions=task, difference=(), rollout=Rollout.BY_PERSON)
    status, said = say(desk, "done", plan_digest="0" * 16)
    assert (status, "what was shown had digest" in said["error"], desk.decisions()) == (403, True, [])
    assert say(desk, "done", plan_digest=desk.plan.digest)[0] == 200
    assert say(desk, "done", plan_digest=desk.plan.digest)[0] == 409
    assert [row.who for row in desk.decisions()] == ["ada@example.com"]
