"""The deciding function: one decision for one good request, a typed refusal for everything else."""

import hashlib
import hmac
import json
import random
import threading
import time
from datetime import timedelta
from urllib.parse import quote_plus

import pytest

from agent.core.decision.policy import Approver
from agent.core.decision.signed_request import standard_headers, webhook_secret
from agent.core.incident.phase import Phase
from agent.entrypoints.http.decide_service import NOT_RECORDED, DecideService, Workers
from agent.entrypoints.service import handlers
from agent.errors import DependencyFailed, StateConflict
from agent.ports.stage_context import Owner
from agent.presentation.slack_card import APPROVE, DETAILS, REASON, REASON_CHARS, REJECT, card, reason_block
from tests.counts import tries
from tests.http_door import asked

PROBE = "gemma4-26b-l4-startup-probe"
SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
HOOK = webhook_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
ADA = Approver(name="Ada", slack="U0ADA", webhook="pager", services=("gemma4-*",))
URL = "https://hooks.slack.com/actions/T0/1/abc"
TIMES = tries(200, ci=1000, soak=1000)  # that a bad request, or one that was used, is sent


class Desk:
    """A service whose plan is asked about, its gate, and what was replied to whom."""

    def __init__(self, told):
        self.told, self.replies = told, []
        for owner, world in list(told.installation.contexts.items()):
            known = world.rules
            policy = known.policy.with_(approvers=(ADA,))
            known = type(known)(**(vars(known) | {"policy": policy}))
            told.installation.contexts[owner] = type(world)(**(vars(world) | {"rules": known}))
        told.work = told.installation.worker(handlers(told.installation), threads=1).run_due
        self.plan = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
        self.world = told.installation.contexts[Owner.DECIDE]

    def gate(self, **changes):
        world = type(self.world)(**(vars(self.world) | changes.pop("context", {})))
        whole = {
            "context": world,
            "clock": self.told.clock,
            "slack_secret": SECRET,
            "webhook_secrets": {"pager": (HOOK,)},
            "reply": lambda url, text: self.replies.append((url, text)),
        }
        return DecideService(**(whole | changes))

    def press(self, *, user="U0ADA", action=APPROVE, value=None, secret=SECRET, at=None, **more):
        """Headers and body of a press as Slack sends it."""
        named = {"plan": self.plan.id, "digest": self.plan.digest} if value is None else value
        button = {"action_id": action, "type": "button", "value": json.dumps(named), "block_id": "b", "action_ts": "1"}
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": "ada", "team_id": "T0"},
            "container": {"message_ts": "1.2", "channel_id": "C0"},
            "response_url": URL,
            "actions": [button],
        } | more
        body = f"payload={quote_plus(json.dumps(payload))}".encode()
        return slack_headers(body, at or self.told.clock.now(), secret), body

    def hook(self, *, id_="msg_1", answer="approve", secret=HOOK, at=None, **data):
        named = {"plan": self.plan.id, "plan_digest": self.plan.digest, "answer": answer} | data
        body = json.dumps({"type": "plan.answered", "timestamp": "2026-11-21T03:00:00Z", "data": named}).encode()
        return standard_headers(id_, body, secrets=(secret,), at=at or self.told.clock.now()), body

    def incident(self):
        return self.told.installation.store.load(self.plan.incident)


def slack_headers(body, at, secret=SECRET):
    stamp = str(int(at.timestamp()))
    mac = hmac.new(secret, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={mac}",
    }


def typed(desk, block=None, **entry):
    """The ``state`` of a press on the message of a plan."""
    whole = {REASON: {"type": "plain_text_input"} | entry} if block is None else block
    return {"values": {reason_block(desk.plan.id): whole}}


def slack(gate, request, path="/slack/actions"):
    return asked("POST", path, *request, gate=gate)


def pager(gate, request, path="/webhooks/pager"):
    return asked("POST", path, *request, gate=gate)


@pytest.fixture
def desk(journey):
    return Desk(journey(PROBE))


def test_a_press_is_one_decision_and_the_change_is_made(desk):
    assert slack(desk.gate(), desk.press()) == (200, {}, b"")
    incident = desk.incident()
    assert incident.phase is Phase.APPROVED
    assert (incident.decision.who, incident.decision.name, incident.decision.verified) == ("U0ADA", "Ada", True)
    assert desk.told.until(lambda i: i.ended, limit_s=900).phase is Phase.RESOLVED
    assert desk.replies == []


def test_a_reject_is_a_decision_too(desk):
    assert slack(desk.gate(), desk.press(action=REJECT))[0] == 200
    assert desk.incident().phase is Phase.REJECTED


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (lambda d: typed(d, value="not now"), "not now"),
        (lambda d: typed(d, value="x" * REASON_CHARS), "x" * REASON_CHARS),
        (lambda d: typed(d, value=" \n "), ""),
        (lambda d: typed(d, value=None), ""),
        (typed, ""),
        (lambda _: {"values": {}}, ""),
        (lambda _: {"values": {"sre_why_p-another-1": {REASON: {"type": "plain_text_input", "value": "no"}}}}, ""),
        (lambda _: None, ""),
    ],
    ids=["typed", "long", "spaces", "deleted", "untouched", "none typed", "of another plan", "an old message"],
)
def test_a_reject_carries_what_was_typed_for_this_plan(desk, state, why):
    assert slack(desk.gate(), desk.press(action=REJECT, state=state(desk)))[0] == 200
    assert desk.incident().decision.why == why
    said = desk.told.installation.store.timeline(desk.plan.incident)[-1].what
    assert said.endswith(f"through slack: {why or 'no reason given'}")


def test_what_was_typed_before_an_approval_is_not_read(desk):
    assert slack(desk.gate(), desk.press(state=typed(desk, value="x" * 9999)))[0] == 200
    assert desk.incident().decision.why == ""


def test_the_button_of_the_message_is_the_press_that_is_taken(desk):
    """What the card offers is what the deciding function reads."""
    shown = card(desk.incident(), (), redact=str, console_url="https://console.example.com")
    buttons = {e["action_id"]: e for b in shown.blocks if b["type"] == "actions" for e in b["elements"]}
    assert set(buttons) == {APPROVE, REJECT, DETAILS}
    assert buttons[DETAILS]["url"] == f"https://console.example.com/plans/{desk.plan.id}"
    assert slack(desk.gate(), desk.press(value=json.loads(buttons[APPROVE]["value"])))[0] == 200
    assert desk.incident().phase is Phase.APPROVED


def test_details_decides_nothing(desk):
    assert slack(desk.gate(), desk.press(action=DETAILS)) == (200, {}, b"")
    assert desk.incident().phase is Phase.ASKED


def test_a_double_click_is_one_decision_and_no_complaint(desk):
    gate = desk.gate()
    for n in range(3):
        assert slack(gate, desk.press(action_n=n)) == (200, {}, b"")
    assert desk.replies == []
    assert len([r for r in desk.told.installation.control.audit() if r.kind.startswith("decision")]) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"user": "U0EVE"}, "names no approver"),
        ({"value": {"plan": "p-none-1", "digest": "0" * 64}}, "there is none with that id"),
    ],
)
def test_a_refusal_is_said_to_the_one_who_pressed(desk, changes, says):
    assert slack(desk.gate(), desk.press(**changes)) == (200, {}, b"")
    [(url, text)] = desk.replies
    assert url == URL
    assert says in text
    assert desk.incident().phase is Phase.ASKED


def test_another_digest_is_refused_and_says_what_to_do(desk):
    slack(desk.gate(), desk.press(value={"plan": desk.plan.id, "digest": "0" * 64}))
    assert "what was shown had digest" in desk.replies[0][1]
    assert "look at the plan again" in desk.replies[0][1]


def test_who_comes_second_is_told_who_was_first(desk):
    gate = desk.gate()
    slack(gate, desk.press())
    slack(gate, desk.press(action=REJECT))
    assert "Ada said approve through slack" in desk.replies[0][1]


def test_a_webhook_decides_once(desk):
    gate = desk.gate()
    status, _, body = pager(gate, desk.hook())
    assert status == 200
    assert json.loads(body)["who"] == "Ada"
    assert desk.incident().phase is Phase.APPROVED
    assert pager(gate, desk.hook())[0] == 409


UNSIGNED = {
    "another secret": lambda d: d.press(secret=b"x" * 32),
    "no headers": lambda d: ({}, d.press()[1]),
    "six minutes old": lambda d: d.press(at=d.told.clock.now() - timedelta(minutes=6)),
    "six minutes ahead": lambda d: d.press(at=d.told.clock.now() + timedelta(minutes=6)),
    "another body": lambda d: (d.press()[0], d.press(user="U0EVE")[1]),
    "a header identity": lambda d: ({"X-Goog-Authenticated-User-Email": "a", "X-Slack-User": "U0ADA"}, d.press()[1]),
}


@pytest.mark.parametrize("request_of", UNSIGNED.values(), ids=UNSIGNED)
def test_what_is_not_signed_by_slack_is_401(desk, request_of):
    assert slack(desk.gate(), request_of(desk))[0] == 401
    assert desk.incident().phase is Phase.ASKED


def signed(desk, body, **headers):
    return slack_headers(body, desk.told.clock.now()) | headers, body


ODD = {
    "empty": lambda d: signed(d, b""),
    "no form": lambda d: signed(d, b"{}"),
    "another type": lambda d: signed(d, d.press()[1], **{"Content-Type": "application/json"}),
    "two payloads": lambda d: signed(d, d.press()[1] + b"&payload={}"),
    "another field": lambda d: signed(d, d.press()[1] + b"&x=1"),
    "no JSON": lambda d: signed(d, b"payload=%7B"),
    "a list": lambda d: signed(d, b"payload=[]"),
    "bytes": lambda d: signed(d, b"payload=%ff%fe"),
    "raw bytes": lambda d: signed(d, b"payload=\xff"),
    "NaN": lambda d: signed(d, b"payload={%22a%22:NaN}"),
    "a key twice": lambda d: signed(d, b'payload={"type":"block_actions","type":"x"}'),
    "deep": lambda d: signed(d, b"payload=" + b"[" * 70 + b"]" * 70),
    "huge": lambda d: signed(d, b"payload=" + b"x" * 300_000),
    "a view": lambda d: d.press(type="view_submission"),
    "no user": lambda d: d.press(user=""),
    "a user that is a list": lambda d: d.press(user=["U0ADA"]),
    "no actions": lambda d: d.press(actions=[]),
    "two actions": lambda d: d.press(actions=[{}, {}]),
    "another button": lambda d: d.press(action="evil"),
    "a value more": lambda d: d.press(value={"plan": d.plan.id, "digest": d.plan.digest, "by": "x"}),
    "a plan that is a number": lambda d: d.press(value={"plan": 1, "digest": d.plan.digest}),
    "a plan with a path": lambda d: d.press(value={"plan": "p-../x", "digest": d.plan.digest}),
    "half a digest": lambda d: d.press(value={"plan": d.plan.id, "digest": d.plan.digest[:32]}),
    "no value": lambda d: d.press(actions=[{"action_id": APPROVE, "type": "button"}]),
    "a state that is a list": lambda d: d.press(action=REJECT, state=[]),
    "a state without values": lambda d: d.press(action=REJECT, state={}),
    "a reason without its action": lambda d: d.press(action=REJECT, state=typed(d, {})),
    "a reason that is a list": lambda d: d.press(action=REJECT, state=typed(d, value=["a"])),
    "a reason of a menu": lambda d: d.press(action=REJECT, state=typed(d, type="static_select", value="a")),
    "a reason without end": lambda d: d.press(action=REJECT, state=typed(d, value="a" * (REASON_CHARS + 1))),
    "half a letter as a reason": lambda d: signed(
        d, d.press(action=REJECT, state=typed(d, value="@@"))[1].replace(b"%40%40", b"%5Cud800")
    ),
    "surrogates": lambda d: signed(d, b'payload={"type":"\\ud800"}'),
}


@pytest.mark.parametrize("request_of", ODD.values(), ids=ODD)
def test_what_is_signed_and_makes_no_sense_is_400(desk, request_of):
    assert slack(desk.gate(), request_of(desk))[0] == 400
    assert desk.incident().phase is Phase.ASKED


HOOKS = {
    "unknown sender": (401, "/webhooks/nobody", lambda d: d.hook()),
    "no sender": (404, "/webhooks/", lambda d: d.hook()),
    "a path": (401, "/webhooks/pager/x", lambda d: d.hook()),
    "another secret": (401, "/webhooks/pager", lambda d: d.hook(secret=b"y" * 32)),
    "an empty key": (401, "/webhooks/nobody", lambda d: d.hook(secret=b"\0" * 32)),
    "another answer": (400, "/webhooks/pager", lambda d: d.hook(answer="maybe")),
    "a field more": (400, "/webhooks/pager", lambda d: d.hook(who="ada")),
    "another digest": (403, "/webhooks/pager", lambda d: d.hook(plan_digest="0" * 64)),
    "no such plan": (404, "/webhooks/pager", lambda d: d.hook(plan="p-none-1")),
}


@pytest.mark.parametrize(("status", "path", "request_of"), HOOKS.values(), ids=HOOKS)
def test_a_webhook_in_doubt_is_refused(desk, status, path, request_of):
    assert pager(desk.gate(), request_of(desk), path)[0] == status
    assert desk.incident().phase is Phase.ASKED


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/slack/actions", 405), ("POST", "/", 404), ("POST", "/slack", 404)]
)
def test_other_places_and_methods_decide_nothing(desk, method, path, status):
    """A previewer's GET does nothing."""
    assert asked(method, path, *desk.press(), gate=desk.gate())[0] == status
    assert desk.incident().phase is Phase.ASKED


def test_without_a_slack_app_every_press_is_refused(desk):
    assert slack(desk.gate(slack_secret=None), desk.press())[0] == 401


class Failing:
    def __init__(self, real, **answers):
        self._real, self._answers = real, answers

    def __getattr__(self, name):
        return self._answers.get(name) or getattr(self._real, name)


def down(*args, **kwargs):
    raise DependencyFailed("no answer", why="down", hint="wait")


def test_a_store_that_is_down_refuses_the_press_and_the_same_request_may_come_again(desk):
    request, hook = desk.press(), desk.hook()
    broken = {"store": Failing(desk.world.store, commit=down)}
    status, _, body = slack(desk.gate(context=broken), request)
    assert status == 503
    assert NOT_RECORDED in body.decode()
    assert desk.replies == [(URL, NOT_RECORDED)]
    assert pager(desk.gate(context={"store": Failing(desk.world.store, load=down)}), hook)[0] == 503
    assert slack(desk.gate(), request)[0] == 200
    assert desk.incident().phase is Phase.APPROVED


def test_a_store_that_hangs_refuses_the_press_in_time_and_records_nothing_later(desk):
    release = threading.Event()

    def hang(*args, **kwargs):
        release.wait(10)
        return desk.world.store.plan(*args, **kwargs)

    gate = desk.gate(context={"store": Failing(desk.world.store, plan=hang)}, answer_s=0.2, workers=Workers(1))
    began = time.monotonic()
    assert slack(gate, desk.press())[0] == 503
    assert time.monotonic() - began < 1.5
    release.set()
    gate.workers.within(5, lambda: None)  # the one worker has ended what it was asked before
    assert desk.incident().phase is Phase.ASKED
    assert desk.told.installation.control.audit() == ()


def test_a_webhook_that_was_not_recorded_in_time_may_be_sent_again_as_it_is(desk):
    """What was refused with 503 is taken the second time, as docs/webhooks.md says: one id, one decision."""
    release = threading.Event()

    def hang(*args, **kwargs):
        release.wait(10)
        return desk.world.store.plan(*args, **kwargs)

    gate, request = desk.gate(context={"store": Failing(desk.world.store, plan=hang)}, workers=Workers(1)), desk.hook()
    assert pager(desk.gate(context=vars(gate.context), workers=gate.workers, answer_s=0.2), request)[0] == 503
    release.set()
    gate.workers.within(5, lambda: None)  # the one worker has ended what nobody waited for any more
    assert desk.incident().phase is Phase.ASKED
    assert pager(desk.gate(), request)[0] == 200
    assert desk.incident().phase is Phase.APPROVED
    assert pager(desk.gate(), request)[0] == 409


def test_rivals_at_the_incident_are_no_answer_to_a_webhook(desk):
    """Its claim stands already; the same request finishes what it began."""

    def late(*args, **kwargs):
        raise StateConflict("the incident was not saved", why="somebody wrote first", hint="load it again")

    request = desk.hook()
    assert pager(desk.gate(context={"store": Failing(desk.world.store, commit=late)}), request)[0] == 503
    assert pager(desk.gate(), request)[0] == 200


def test_a_bug_is_no_crash_and_no_decision(desk):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    status, _, body = slack(desk.gate(context={"store": Failing(desk.world.store, plan=broken)}), desk.press())
    assert status == 503
    assert NOT_RECORDED in body.decode()


def damaged(request, chance):
    """A good request with one thing in it changed, which is not how a header is spelled."""
    headers, body = dict(request[0]), request[1]
    signed_names = [name for name in headers if name.lower() != "content-type"]
    where = chance.choice([*signed_names, "body", "missing"])
    if where == "missing":
        headers.pop(chance.choice(signed_names))
    elif where == "body":
        at = chance.randrange(len(body))
        body = body[:at] + bytes([body[at] ^ (1 << chance.randrange(8))]) + body[at + chance.randrange(2) :]
    else:
        text = headers[where]
        at = chance.randrange(len(text))
        headers[where] = text[:at] + chance.choice("0z=,. \0é１" + text[:at]) + text[at + chance.randrange(2) :]
    return None if (headers, body) == (dict(request[0]), request[1]) else (headers, body)


@pytest.mark.parametrize("way", ["slack", "webhook"])
def test_of_many_damaged_requests_none_is_taken_and_none_is_our_fault(desk, way):
    """S1 at the door, under CI a thousand times: 401 or 400 for every one, never a 5xx, and nothing is decided or used up."""
    gate, chance = desk.gate(), random.Random(1)
    good = desk.press() if way == "slack" else desk.hook()
    send = slack if way == "slack" else pager
    statuses = [send(gate, bad)[0] for _ in range(TIMES) if (bad := damaged(good, chance)) is not None]
    assert len(statuses) > 0.9 * TIMES
    assert set(statuses) <= {400, 401}
    assert desk.incident().phase is Phase.ASKED
    assert send(gate, good)[0] == 200
    assert desk.incident().phase is Phase.APPROVED


def test_replays_of_a_good_request_are_refused(desk):
    """S2: the second use inside the window, by whichever worker, under CI a thousand times."""
    request, press = desk.hook(), desk.press()
    gates = [desk.gate(), desk.gate()]
    assert pager(gates[0], request)[0] == 200
    assert {pager(gates[n % 2], request)[0] for n in range(TIMES)} == {409}
    slack(gates[0], press)
    desk.replies.clear()
    assert {slack(gates[n % 2], press)[0] for n in range(50)} == {200}
    assert len(desk.replies) == 50
    assert all("it was used before" in text for _, text in desk.replies)
    assert len(desk.told.installation.control.audit()) == 1
