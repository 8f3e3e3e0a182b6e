"""S1: forged requests are refused, every one, typed, never by a crash; the usual libraries agree on the good ones."""

import base64
import random
import string
from datetime import UTC, datetime, timedelta

import pytest
from slack_sdk.signature import SignatureVerifier
from standardwebhooks import Webhook

from agent.core.decision.signed_request import (
    TOLERANCE,
    Unsigned,
    check_slack,
    check_standard,
    standard_headers,
    webhook_secret,
)
from agent.errors import SettingsRejected

SLACK_SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SLACK_HEADERS = {
    "X-Slack-Request-Timestamp": "1531420618",
    "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
}
SLACK_AT = datetime.fromtimestamp(1531420618, UTC)

HOOK_TEXT = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK_SECRET = webhook_secret(HOOK_TEXT)
HOOK_BODY = b'{"test": 2432232314}'
HOOK_HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
HOOK_AT = datetime.fromtimestamp(1614265330, UTC)

NASTY = ["", " ", "\0", "\n", "é", "１", "v0=", "v1,", ",", "=", "-1", "1e9", "nan", "0x10", "9" * 40, "\ud800", "%00"]


def slack(headers=SLACK_HEADERS, body=SLACK_BODY, now=SLACK_AT):
    return check_slack(headers, body, secret=SLACK_SECRET, now=now)


def hook(headers=HOOK_HEADERS, body=HOOK_BODY, now=HOOK_AT, secrets=(HOOK_SECRET,)):
    return check_standard(headers, body, secrets=secrets, sender="pager", now=now)


def mutated(text, chance):
    """One edit of a text: a sign put in, taken away, replaced, doubled or in another case, or nonsense for all of it."""
    signs = string.ascii_letters + string.digits + "=,+/-. \t\n\0é１"
    at = chance.randrange(len(text) or 1)
    edits = [
        lambda: text[:at] + chance.choice(signs) + text[at:],
        lambda: text[:at] + text[at + 1 :],
        lambda: text[:at] + chance.choice(signs) + text[at + 1 :],
        lambda: text[:at] + text[at:].swapcase(),
        lambda: text[:at],
        lambda: text + text,
        lambda: chance.choice(NASTY),
        lambda: text + chance.choice(NASTY),
        lambda: chance.choice(NASTY) + text,
    ]
    return chance.choice(edits)()


def mutants(headers, body, seed, count):
    """Requests that differ from a good one in what is signed or in the signature."""
    chance = random.Random(seed)
    made = 0
    while made < count:
        changed, other = dict(headers), body
        where = chance.choice([*headers, "body", "missing"])
        if where == "body":
            at = chance.randrange(len(body))
            other = chance.choice(
                [
                    body[:at] + bytes([body[at] ^ (1 << chance.randrange(8))]) + body[at + 1 :],
                    body[:at] + body[at + 1 :],
                    body + bytes([chance.randrange(256)]),
                    body[:at] + bytes([chance.randrange(256)]) + body[at:],
                    b"",
                    body + body,
                ]
            )
        elif where == "missing":
            changed.pop(chance.choice([*headers]))
        else:
            changed[where] = mutated(headers[where], chance)
        if (changed, other) != (headers, body):
            made += 1
            yield changed, other


def test_the_published_vectors_are_taken():
    assert slack().until == SLACK_AT + TOLERANCE
    assert hook().once == "webhook:pager:msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert slack({name.lower(): value for name, value in SLACK_HEADERS.items()})


@pytest.mark.parametrize(
    ("check", "headers", "body"),
    [(slack, SLACK_HEADERS, SLACK_BODY), (hook, HOOK_HEADERS, HOOK_BODY)],
    ids=["slack", "standard webhooks"],
)
def test_two_thousand_mutants_each_are_refused_and_none_crashes(check, headers, body):
    refused = 0
    for changed, other in mutants(headers, body, seed=7, count=2000):
        with pytest.raises(Unsigned):
            check(changed, other)
        refused += 1
    assert refused == 2000


@pytest.mark.parametrize("seconds", [-301, 301, 3600, -86400, 10**8])
def test_what_is_too_old_or_of_the_future_is_refused(seconds):
    for check, at in ((slack, SLACK_AT), (hook, HOOK_AT)):
        assert check(now=at + timedelta(seconds=300 if seconds > 0 else -300))
        with pytest.raises(Unsigned):
            check(now=at + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    "stamp", ["1531420618 ", "+1531420618", "01531420618", "1531420618.0", "１５３１４２０６１８", "9" * 11]
)
def test_a_time_in_another_writing_is_refused_even_if_signed(stamp):
    import hashlib
    import hmac

    signed = hmac.new(SLACK_SECRET, b"v0:" + stamp.encode() + b":x", hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={signed}"}
    with pytest.raises(Unsigned):
        slack(headers, b"x")


def test_the_oracles_sign_and_ours_takes_it():
    """slack_sdk and standardwebhooks sign random bodies; ours takes every one, and theirs takes ours."""
    chance = random.Random(11)
    now = datetime.now(UTC).replace(microsecond=0)
    verifier = SignatureVerifier(SLACK_SECRET.decode())
    for n in range(200):
        body = "".join(chance.choices(string.printable + "é漢🚀", k=chance.randrange(400)))
        stamp = str(int(now.timestamp()))
        signature = verifier.generate_signature(timestamp=stamp, body=body)
        headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature}
        assert slack(headers, body.encode(), now).once == f"slack:{signature[3:]}"
        raw = chance.randbytes(chance.randrange(24, 65))
        text = "whsec_" + base64.b64encode(raw).decode()
        given = {
            "webhook-id": f"msg_{n}",
            "webhook-timestamp": stamp,
            "webhook-signature": Webhook(text).sign(f"msg_{n}", now, body),
        }
        assert hook(given, body.encode(), now, (webhook_secret(text),))
        ours = standard_headers(f"msg_{n}", body.encode(), secrets=(webhook_secret(text), HOOK_SECRET), at=now)
        Webhook(text).verify(body, ours, json_parse=False)
        Webhook(HOOK_TEXT).verify(body, ours, json_parse=False)


def test_either_secret_of_a_rotation_is_enough_and_no_third():
    now = HOOK_AT
    old, new, other = (bytes([n]) * 32 for n in (1, 2, 3))
    for key in (old, new):
        assert hook(standard_headers("m", b"x", secrets=(key,), at=now), b"x", now, (old, new))
    with pytest.raises(Unsigned):
        hook(standard_headers("m", b"x", secrets=(other,), at=now), b"x", now, (old, new))
    with pytest.raises(Unsigned):
        hook(standard_headers("m", b"x", secrets=(old,), at=now), b"x", now, ())


def test_an_id_with_a_dot_cannot_shift_what_is_signed():
    """Id ``a.1`` and time ``2`` would sign the same text as id ``a`` and time ``1.2``."""
    with pytest.raises(Unsigned):
        hook(standard_headers("a.1", b"x", secrets=(HOOK_SECRET,), at=HOOK_AT), b"x")


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_!!!", "whsec_" + "A" * 20, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_é"]
)
def test_a_secret_that_is_none_is_not_shown(text):
    with pytest.raises(SettingsRejected) as caught:
        webhook_secret(text)
    assert not text or text == "whsec_" or text not in str(caught.value)
