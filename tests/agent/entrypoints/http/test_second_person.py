"""The second approval of two, through every door: what must not count is refused with a reason, and leaves no vote."""

import hashlib
import hmac
import json
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote_plus

import pytest

from agent.core.decision.decision import Channel, Person, Vote
from agent.core.decision.freeze import Freeze
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.decision.signed_request import standard_headers, webhook_secret
from agent.core.incident.phase import Phase
from agent.entrypoints.console.app import make_app
from agent.presentation.slack_card import APPROVE
from tests.agent.entrypoints.console.conftest import SETTINGS, Browser
from tests.http_door import asked

SLACK = b"8f742231b10e8888abcd99yyyzzz85a5"
HOOK = webhook_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
PEOPLE = tuple(
    Approver(
        name=name, slack=f"U0{name.upper()}", email=f"{name.lower()}@example.com", webhook=name.lower(),
        services=("gemma4-*",),
    )
    for name in ("Ada", "Ben")
)  # fmt: skip
RULE = Rule(services=("gemma4-*",), kinds=("*e*",), mode=Mode.PERSON, approvals=2)
TWO = Policy(approvers=PEOPLE, rules=(RULE,))


class Known:
    """An identity that is proven, as behind Identity-Aware Proxy."""

    local = True

    def __init__(self, name):
        self.name = name

    def person(self, _headers):
        return Person(who=self.name, channel=Channel.CONSOLE, verified=True)


class Doors:
    """One plan that two people must approve, and every way in which one may."""

    def __init__(self, desk):
        self.desk, self.used, self.form = desk, 0, {}

    def under(self, policy):
        world = self.desk.stage.world
        self.desk.stage.world = replace(world, rules=replace(world.rules, policy=policy))

    def say(self, door, name, *, digest=None):
        """Approve; return what is said to who is refused, or nothing."""
        self.used += 1
        return getattr(self, door)(name.lower(), digest or self.desk.plan.digest)

    def slack(self, name, digest):
        said = []
        value = json.dumps({"plan": self.desk.plan.id, "digest": digest})
        button = {"action_id": APPROVE, "type": "button", "value": value, "action_ts": str(self.used)}
        reply_to = "https://hooks.slack.com/actions/T0/1/abc"
        user = {"id": f"U0{name.upper()}"}
        payload = {"type": "block_actions", "user": user, "actions": [button], "response_url": reply_to}
        body = f"payload={quote_plus(json.dumps(payload))}".encode()
        stamp = str(int(self.desk.now().timestamp()))
        mac = hmac.new(SLACK, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        signed = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}
        gate = self.desk.gate(slack_secret=SLACK, reply=lambda _url, text: said.append(text))
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert asked("POST", "/slack/actions", form | signed, body, gate=gate)[0] == 200
        return "".join(said)

    def webhook(self, name, digest):
        named = {"plan": self.desk.plan.id, "plan_digest": digest, "answer": "approve"}
        body = json.dumps({"type": "plan.answered", "timestamp": "2026-11-21T03:00:00Z", "data": named}).encode()
        headers = standard_headers(f"msg_{self.used}", body, secrets=(HOOK,), at=self.desk.now())
        gate = self.desk.gate(webhook_secrets={name: (HOOK,)})
        status, _, said = asked("POST", f"/webhooks/{name}", headers, body, gate=gate)
        return "" if status == 200 else json.loads(said)["error"]

    def command_line(self, name, digest):
        token = self.desk.token(email=f"{name}@example.com", jti=str(self.used))
        status, said = self.desk.say(body={"plan_digest": digest}, token=token)
        return "" if status == 200 else said["why"]

    def console(self, name, digest):
        browser = self.open(name)
        answered = browser.post(f"/plans/{self.desk.plan.id}/decision", self.form | {"digest": digest})
        self.form = {}
        return "" if answered.status_code == 303 else answered.get_data(as_text=True)

    def open(self, name):
        """Look at the plan's page; the form of a page that was opened earlier is kept, as in a browser's tab."""
        app = make_app(
            self.desk.stage.world, settings=SETTINGS, form_key=b"k" * 32, identity=Known(f"{name}@example.com")
        )
        browser = Browser(app)
        browser.client.set_cookie("sre-console", "c" * 24, domain="127.0.0.1")
        fields = next(iter(browser.fields(f"/plans/{self.desk.plan.id}").values()), {})
        self.form = self.form or fields | {"answer": "approve"}
        return browser

    def standing(self):
        ballot = self.desk.stage.world.control.ballot(self.desk.plan.digest)
        return [vote.person for vote in ballot.standing] if ballot is not None else []


DOORS = ("slack", "webhook", "command_line", "console")


@pytest.fixture
def doors(desks, theatre, tokens):
    def under(policy):
        made = Doors(desks.Desk(theatre, tokens, policy=policy.digest))
        made.under(policy)
        return made

    return under


@pytest.fixture
def half(doors):
    """Ada approved, through another door than the one that is tried next."""

    def by(door, policy=TWO):
        made = doors(policy)
        assert made.say("webhook" if door == "slack" else "slack", "Ada") == ""
        assert made.standing() == ["Ada"]
        return made

    return by


@pytest.mark.parametrize("door", DOORS)
def test_the_second_person_decides(half, door):
    made = half(door)
    assert made.say(door, "Ben") == ""
    assert made.desk.phase() is Phase.APPROVED


@pytest.mark.parametrize("door", DOORS)
def test_the_same_person_through_another_channel_does_not_count_again(half, door):
    made = half(door)
    assert "is the same person" in made.say(door, "Ada") or door == "console"
    assert (made.standing(), made.desk.phase()) == (["Ada"], Phase.ASKED)


@pytest.mark.parametrize("door", DOORS)
def test_after_expiry_nothing_counts(half, door):
    made = half(door)
    made.open("ben")
    made.desk.stage.clock.at = made.desk.plan.expires_at
    assert "expired" in made.say(door, "Ben")
    assert (made.standing(), made.desk.phase()) == (["Ada"], Phase.ASKED)


@pytest.mark.parametrize("door", DOORS)
def test_an_approval_of_another_plan_than_stands_does_not_count(half, door):
    made = half(door)
    assert made.say(door, "Ben", digest="0" * 64) != ""
    assert (made.standing(), made.desk.phase()) == (["Ada"], Phase.ASKED)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "change",
    [
        {"changes_per_hour": 3},
        {"freezes": (Freeze(name="w", weekly=("Mon 00:00 - Mon 00:01",), zone="UTC", stops="automatic", reason="r", owner="o"),)},
    ],
    ids=["a limit", "a freeze window that does not even hold"],
)  # fmt: skip
def test_a_change_of_the_policy_voids_the_votes(half, door, change):
    made = half(door)
    made.open("ben")
    made.under(TWO.with_(**change))
    assert "its approvals are void" in made.say(door, "Ben")
    assert (made.standing(), made.desk.phase()) == (["Ada"], Phase.ASKED)


@pytest.mark.parametrize("door", DOORS)
def test_a_freeze_window_that_began_meanwhile_stops_the_second(half, door, tokens):
    begins = (tokens.NOW + timedelta(minutes=5)).replace(microsecond=0)
    window = Freeze(
        name="launch", starts=begins.replace(tzinfo=None), ends=(begins + timedelta(hours=1)).replace(tzinfo=None),
        zone="UTC", stops="approvals", reason="press event", owner="Cyd",
    )  # fmt: skip
    made = half(door, TWO.with_(freezes=(window,)))
    made.desk.stage.clock.at = begins
    assert "press event" in made.say(door, "Ben")
    assert (made.standing(), made.desk.phase()) == (["Ada"], Phase.ASKED)


def test_names_that_nothing_proves_are_one_person_on_the_console_too(doors):
    """One machine: its page and its command line know a name and nobody behind it."""
    made = doors(TWO)
    world = replace(made.desk.stage.world, local=True)
    for name, second in (("ana", False), ("bob", True)):
        browser = Browser(make_app(world, settings=SETTINGS, operator=name))
        fields = next(iter(browser.fields(f"/plans/{made.desk.plan.id}").values()))
        answered = browser.post(f"/plans/{made.desk.plan.id}/decision", fields | {"answer": "approve"})
        assert (answered.status_code == 303) is not second
    [vote] = world.control.ballot(made.desk.plan.digest).standing
    assert isinstance(vote, Vote)
    assert (vote.who, made.standing(), made.desk.phase()) == ("ana", ["(not verified)"], Phase.ASKED)
