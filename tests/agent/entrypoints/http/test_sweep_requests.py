"""Load measurements answered by people with a token, and by a button in Slack: proved, once, by the gate of changes."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel, Choice
from agent.core.decision.policy import Approver, Policy
from agent.core.decision.rule import Mode, Rule
from agent.presentation.sweep.slack_message import APPROVE_SWEEP, REJECT_SWEEP
from agent.stages.decide_sweep import ask_sweep, asked_sweep
from tests.agent.entrypoints.http.test_decide import Desk
from tests.agent.stages.conftest import SERVICE, T0, Bench
from tests.agent.stages.test_decide_sweep import a_sweep

PEOPLE = tuple(
    Approver(name=name, slack=f"U0{name.upper()}", email=f"{name.lower()}@example.com", services=(SERVICE,))
    for name in ("Ada", "Ben")
)


class TestByToken:
    @pytest.fixture
    def door(self, desk):
        world = desk.stage.world
        desk.stage.world = replace(world, local=False, rules=replace(world.rules, policy=Policy(approvers=PEOPLE)))
        self.sweep = a_sweep(asker="ben@example.com", made_at=world.clock.now())
        ask_sweep(desk.stage.world, self.sweep)
        return desk

    def test_it_is_listed_and_approved(self, door):
        (listed,) = door.ask("GET", "/sweeps")[1]
        assert (listed["sweep"], listed["approved_by"], listed["rejected_by"]) == (self.sweep.request.id, None, None)
        assert "at most 2 cells, 20 minutes and 1 USD of load" in " ".join(listed["plan"])
        body = {"sweep": self.sweep.request.id, "answer": "approve"}
        status, said = door.ask("POST", "/sweeps/decisions", body, jti="2")
        assert (status, said["approved_by"]) == (200, "ada@example.com")
        found = asked_sweep(door.stage.world, self.sweep.request.id).grant
        assert (found.channel, found.verified) == (Channel.COMMAND_LINE, True)

    @pytest.mark.parametrize(
        ("changes", "claims", "status", "says"),
        [
            ({}, {"email": "ben@example.com"}, 403, "who asks does not approve"),
            ({}, {"email": "eve@example.com"}, 403, "names no approver|does not name"),
            ({"sweep": "sweep-000000000000"}, {}, 404, "in the last 24 hours"),
            ({"sweep": "../x"}, {}, 400, "sweep"),
            ({"answer": "maybe"}, {}, 400, "answer"),
            ({"who": "eve"}, {}, 400, "who"),
        ],
        ids=["asker", "stranger", "unknown", "no id", "no answer", "more"],
    )
    def test_what_is_refused_is_said(self, door, changes, claims, status, says):
        body = {"sweep": self.sweep.request.id, "answer": "approve"} | changes
        got, said = door.ask("POST", "/sweeps/decisions", body, token=door.token(**claims))
        assert got == status, said
        assert any(part in said["error"] for part in says.split("|")), said
        assert asked_sweep(door.stage.world, self.sweep.request.id).waits

    def test_without_a_token_nobody_answers(self, door):
        body = {"sweep": self.sweep.request.id, "answer": "approve"}
        assert door.ask("POST", "/sweeps/decisions", body, token="")[0] == 401
        assert door.ask("GET", "/sweeps", token="")[0] == 401


class TestInSlack:
    @pytest.fixture
    def slack(self):
        bench = Bench()
        rules = replace(bench.executor.rules, policy=Policy(approvers=PEOPLE))
        self.context = replace(bench.executor, local=False, rules=rules)
        self.sweep = a_sweep(asker="U0BEN", channel=Channel.SLACK, made_at=T0)
        ask_sweep(self.context, self.sweep)
        bench.put(bench.asked())
        return Desk(self.context, bench.clock, bench.control, bench.now)

    def press(self, slack, name, user):
        return slack.press(name, user=user, value=f'{{"sweep": "{self.sweep.request.id}"}}')

    def test_a_press_is_one_answer(self, slack):
        assert "who asks does not approve" in self.press(slack, APPROVE_SWEEP, "U0BEN")
        assert "names no approver" in self.press(slack, APPROVE_SWEEP, "U0EVE")
        assert f"{self.sweep.request.id} is approved" in self.press(slack, APPROVE_SWEEP, "U0ADA")
        found = asked_sweep(self.context, self.sweep.request.id).grant
        assert (found.approver, found.channel, found.verified) == ("U0ADA", Channel.SLACK, True)
        assert "'U0ADA' approved it" in self.press(slack, REJECT_SWEEP, "U0ADA")

    def test_one_press_of_two_leaves_the_buttons_for_the_other_person(self, slack):
        fay = Approver(name="Fay", slack="U0FAY", services=(SERVICE,))
        rule = Rule(services=(SERVICE,), kinds=("sweep",), mode=Mode.PERSON, approvals=2)
        policy = self.context.rules.policy.with_(rules=(rule,), approvers=(*PEOPLE, fay))
        self.context, replaced = replace(self.context, rules=replace(self.context.rules, policy=policy)), []
        slack.gate = replace(slack.gate, context=self.context, replace=lambda _url, message: replaced.append(message))
        assert "approved by 1 of 2 people; another person must" in self.press(slack, APPROVE_SWEEP, "U0ADA")
        assert replaced == []
        assert f"{self.sweep.request.id} is approved; it starts" in self.press(slack, APPROVE_SWEEP, "U0FAY")
        assert len(replaced) == 1

    def test_a_replayed_press_and_a_forged_button_answer_nothing(self, slack):
        request = slack.request(REJECT_SWEEP, user="U0ADA", value='{"sweep": "sweep-000000000000"}')
        assert "in the last 24 hours" in slack.send(request)
        headers, body = slack.request(REJECT_SWEEP, user="U0ADA", value='{"plan": "p-1"}')
        assert slack.gate.workers is not None
        from tests.http_door import asked

        assert asked("POST", "/slack/actions", headers, body, gate=slack.gate)[0] == 400
        assert asked_sweep(self.context, self.sweep.request.id).waits

    def test_a_no_is_taken(self, slack):
        assert "is rejected" in self.press(slack, REJECT_SWEEP, "U0ADA")
        assert asked_sweep(self.context, self.sweep.request.id).rejected_by == "U0ADA"
        assert Choice.REJECT == "reject"
