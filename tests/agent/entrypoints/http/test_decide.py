"""Slack's buttons beside yes and no: taking a vote or a request back, and breaking the glass; each audited, once."""

import hashlib
import hmac
import json
from urllib.parse import quote_plus

import pytest

from agent.core.decision.decision import Channel
from agent.core.decision.freeze import Freeze
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.phase import Phase
from agent.entrypoints.http.decide_service import DecideService
from agent.presentation.slack_card import (
    APPROVE,
    BREAK_GLASS,
    REASON,
    REJECT,
    WITHDRAW,
    WITHDRAW_REQUEST,
    card,
    reason_block,
)
from agent.stages.advance import advance
from agent.stages.ask import approvals_for
from tests.agent.stages.conftest import Bench
from tests.agent.stages.requests import Asking
from tests.http_door import asked

SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
URL = "https://hooks.slack.com/actions/T0/1/abc"
PEOPLE = tuple(
    Approver(name=name, slack=f"U0{name.upper()}", email=f"{name.lower()}@example.com", services=("svc",))
    for name in ("Ada", "Ben", "Cyd")
)
RULE = Rule(services=("svc",), kinds=("set_concurrency",), mode=Mode.PERSON, approvals=2)
TWO = Policy(rules=(RULE,), approvers=PEOPLE)
YEAR = Freeze(
    name="year", weekly=("Mon 00:00 - Thu 12:00", "Thu 12:00 - Mon 00:00"), zone="UTC", stops="approvals",
    reason="audit", owner="Cyd", break_glass="leads",
)  # fmt: skip
FROZEN = Policy(approvers=PEOPLE, freezes=(YEAR,), groups={"leads": ("Ada",)})


class Desk:
    """The door of Slack over the ports in memory, and what was replied to whoever pressed."""

    def __init__(self, context, clock, control, load):
        self.clock, self.control, self.load, self.replies = clock, control, load, []
        self.gate = DecideService(
            context=context, clock=clock, slack_secret=SECRET, reply=lambda _url, text: self.replies.append(text)
        )

    def request(self, action, *, user, value=None, typed=None, name=None):
        """Headers and body of a press of the button that stands on the message now, as Slack sends it."""
        incident = self.load()
        value = value or self.buttons(incident)[action]["value"]
        button = {"action_id": name or action, "type": "button", "value": value, "block_id": "b", "action_ts": "1"}
        place = reason_block(incident.plan.id) if incident.plan is not None else "b"
        values = {place: {REASON: {"type": "plain_text_input", "value": typed}}}
        payload = {
            "type": "block_actions",
            "user": {"id": user},
            "response_url": URL,
            "state": {"values": values},
            "actions": [button],
        }
        body = f"payload={quote_plus(json.dumps(payload))}".encode()
        self.clock.step(1)
        stamp = str(int(self.clock.now().timestamp()))
        mac = hmac.new(SECRET, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return form | {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}, body

    def buttons(self, incident=None):
        shown = card(incident or self.load(), (), redact=str, console_url="")
        return {e["action_id"]: e for b in shown.blocks if b["type"] == "actions" for e in b["elements"]}

    def press(self, action, **who):
        """Press it; return what the person is told, which is nothing where it was recorded."""
        return self.send(self.request(action, **who))

    def send(self, request):
        before = len(self.replies)
        assert asked("POST", "/slack/actions", *request, gate=self.gate)[0] == 200
        return "".join(self.replies[before:])

    def kinds(self):
        return [row.kind for row in self.control.audit()]


@pytest.fixture
def desk():
    """A plan that is asked about under a policy."""

    def under(policy):
        bench = Bench()
        bench.under(policy)
        incident = bench.asked()
        bench.put(incident.with_(approvals=approvals_for(bench.executor, incident.plan, bench.clock.now())))
        return Desk(bench.executor, bench.clock, bench.control, bench.now)

    return under


class TestWithdrawingAVote:
    def test_it_is_offered_once_somebody_approved_and_taken_from_them_alone(self, desk):
        two = desk(TWO)
        assert WITHDRAW not in two.buttons()
        assert two.press(APPROVE, user="U0ADA") == ""
        assert "'U0BEN' has given none that stands" in two.press(WITHDRAW, user="U0BEN")
        assert "names no approver with the Slack user id 'U0EVE'" in two.press(WITHDRAW, user="U0EVE")
        assert [v.name for v in two.load().approvals.given] == ["Ada"]
        assert two.press(WITHDRAW, user="U0ADA") == ""
        assert two.load().approvals.given == ()
        assert WITHDRAW not in two.buttons()
        assert two.kinds() == ["vote.approve", "vote.withdraw"]

    def test_a_replayed_press_takes_nothing_back(self, desk):
        two = desk(TWO)
        two.press(APPROVE, user="U0ADA")
        request = two.request(WITHDRAW, user="U0ADA")
        assert two.send(request) == ""
        two.press(APPROVE, user="U0ADA")
        assert "it was used before" in two.send(request)
        assert [v.name for v in two.load().approvals.given] == ["Ada"]

    def test_after_the_decision_it_is_too_late(self, desk):
        two = desk(TWO)
        two.press(APPROVE, user="U0ADA")
        late = two.request(WITHDRAW, user="U0ADA")
        two.press(APPROVE, user="U0BEN")
        assert "the plan is decided: approve" in two.send(late)
        assert two.load().phase is Phase.APPROVED

    def test_after_the_plan_expired_there_is_nothing_to_take_back(self, desk):
        two = desk(TWO)
        two.press(APPROVE, user="U0ADA")
        two.clock.step(1800)
        assert "it expired at" in two.press(WITHDRAW, user="U0ADA")
        assert two.kinds() == ["vote.approve"]

    def test_a_button_of_another_plan_takes_nothing_back(self, desk):
        two = desk(TWO)
        two.press(APPROVE, user="U0ADA")
        other = json.dumps({"plan": two.load().plan.id, "digest": "0" * 64})
        assert "what was shown had digest '00000000'" in two.press(WITHDRAW, user="U0ADA", value=other)
        assert two.kinds() == ["vote.approve"]


class TestBreakingTheGlass:
    def test_only_its_group_breaks_it_and_only_with_a_reason(self, desk):
        frozen = desk(FROZEN)
        assert "the freeze window year" in frozen.press(APPROVE, user="U0ADA", typed="users wait")
        assert "for a reason only" in frozen.press(BREAK_GLASS, user="U0ADA", typed=" ")
        assert "'Ben' may not break its glass, only leads may" in frozen.press(BREAK_GLASS, user="U0BEN", typed="now")
        assert "names no approver" in frozen.press(BREAK_GLASS, user="U0EVE", typed="now")
        assert (frozen.load().phase, frozen.kinds()) == (Phase.ASKED, [])
        assert frozen.press(BREAK_GLASS, user="U0ADA", typed="users wait") == ""
        assert (frozen.load().phase, frozen.load().decision.breaks) == (Phase.APPROVED, ("year",))
        rows = [(row.kind, row.who, row.body) for row in frozen.control.audit()]
        assert rows[0] == ("freeze.break_glass", "U0ADA", "year: users wait")

    def test_the_button_asks_once_more_and_stands_only_where_a_window_can_be_broken(self, desk):
        assert desk(FROZEN).buttons()[BREAK_GLASS]["confirm"]["title"]["text"] == "Approve in the freeze window?"
        for policy in (
            FROZEN.with_(freezes=(YEAR.with_(break_glass=""),)),
            FROZEN.with_(freezes=(YEAR.with_(stops="automatic"),)),
            TWO,
        ):
            assert BREAK_GLASS not in desk(policy).buttons()

    def test_a_late_press_is_refused(self, desk):
        frozen = desk(FROZEN)
        frozen.press(REJECT, user="U0BEN")
        late = json.dumps({"plan": "p-a-1", "digest": frozen.load().plan.digest})
        assert "Ben said reject" in frozen.press(BREAK_GLASS, user="U0ADA", typed="now", value=late)
        assert frozen.load().phase is Phase.REJECTED


class TestWithdrawingARequest:
    POLICY = Policy(approvers=PEOPLE, max_concurrency=64)

    @pytest.fixture
    def requested(self):
        """A request of Ada on the command line of the cloud, whose plan is asked about."""
        asking = Asking(local=False, policy=self.POLICY)
        life = asking.ask(who="ada@example.com", verified=True)
        desk = Desk(asking.decide, asking.clock, asking.decide.control, lambda: asking.load(life))
        desk.plan = lambda: advance(asking.planner, life.id)
        return desk

    @pytest.mark.parametrize("planned", [False, True], ids=["before its plan", "asked about"])
    def test_who_asked_is_known_in_slack_and_nobody_else_takes_it_back(self, requested, planned):
        if planned:
            requested.plan()
        assert "asked for it, not 'U0BEN'" in requested.press(WITHDRAW_REQUEST, user="U0BEN")
        request = requested.request(WITHDRAW_REQUEST, user="U0ADA")
        assert requested.send(request) == ""
        assert requested.load().phase is Phase.WITHDRAWN
        assert WITHDRAW_REQUEST not in requested.buttons()
        assert "it was used before" in requested.send(request)
        assert requested.kinds() == ["request.made", "request.withdraw", "request.withdrawn"]

    def test_once_it_is_approved_it_is_not_taken_back(self, requested):
        requested.plan()
        late = requested.request(WITHDRAW_REQUEST, user="U0ADA")
        assert requested.press(APPROVE, user="U0BEN") == ""
        assert "it is APPROVED" in requested.send(late)
        assert requested.kinds() == ["request.made", "decision.approve"]

    @pytest.mark.parametrize("value", ['{"request": "inc-a"}', '{"plan": "p-a-1"}', "[]", "{"])
    def test_a_button_that_is_not_ours_is_bad_input(self, requested, value):
        headers, body = requested.request(WITHDRAW_REQUEST, user="U0ADA", value=value)
        assert asked("POST", "/slack/actions", headers, body, gate=requested.gate)[0] == 400
        assert requested.load().phase is Phase.OPEN

    def test_a_name_that_nothing_proves_is_nobody_in_slack(self):
        """On one machine: the operator's name is no proof that a member of the channel is the operator."""
        asking = Asking(policy=self.POLICY)
        life = asking.ask(who="Ada")
        desk = Desk(asking.decide, asking.clock, asking.decide.control, lambda: asking.load(life))
        assert "'Ada' asked for it, not 'U0ADA'" in desk.press(WITHDRAW_REQUEST, user="U0ADA")
        assert life.request.channel is Channel.COMMAND_LINE
