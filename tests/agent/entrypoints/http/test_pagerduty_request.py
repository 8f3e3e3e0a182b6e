"""PagerDuty's signed webhook: what it signed and is fresh is read once; every doubt refuses."""

import hashlib
import hmac
import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from agent.core.decision.signed_request import Unsigned
from agent.core.incident.command import Command
from agent.entrypoints.http.pagerduty_request import FRESH, acknowledgement, read_pagerduty_event
from agent.errors import InputRejected

SECRET, OLD = b"pd-signing-secret-0123456789", b"pd-signing-secret-of-before"
NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)


def event(kind="incident.acknowledged", key="inc-0123456789ab", at=NOW, **changes):
    agent = {"id": "PLH1HKV", "summary": "Tenex Engineer", "type": "user_reference"}
    data = {"id": "PGR0VU2", "type": "incident", "status": "acknowledged", "incident_key": key}
    inner = {"id": "5ac64822-4adc-4fda-ade0-410becf0de4f", "event_type": kind, "resource_type": "incident"}
    inner |= {"occurred_at": at.isoformat().replace("+00:00", "Z"), "agent": agent, "client": None, "data": data}
    return {"event": inner | changes}


def signature(body, *secrets):
    return ",".join(f"v1={hmac.new(secret, body, hashlib.sha256).hexdigest()}" for secret in secrets)


def read(body, header=None, secrets=(SECRET,), now=NOW):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"X-PagerDuty-Signature": signature(raw, SECRET) if header is None else header}
    return read_pagerduty_event(headers, raw, secrets=secrets, now=now)


def test_an_acknowledgement_there_is_one_here_by_the_identity_of_pagerduty():
    asked = acknowledgement(read(event()), lambda: True)
    assert (asked.incident, asked.command, asked.by.who) == ("inc-0123456789ab", Command.ACKNOWLEDGE, "pagerduty")
    assert asked.text == "acknowledged there by Tenex Engineer"


@pytest.mark.parametrize(
    "other",
    [event("incident.resolved"), event("incident.triggered"), event("service.updated"), event(key="d3640fbd4109"),
     event(key=""), event(data=None), event(data={"incident_key": 7})],
)  # fmt: skip
def test_every_other_event_asks_for_nothing(other):
    assert acknowledgement(read(other), lambda: True) is None


def test_while_a_secret_is_rotated_either_is_enough():
    body = json.dumps(event()).encode()
    assert read(body, signature(body, OLD, SECRET)).kind
    assert read(body, signature(body, OLD), secrets=(OLD, SECRET)).kind


@pytest.mark.parametrize("header", ["", "v1=", "v1=" + "0" * 64, "v0=" + "0" * 64, "v1=\xff", "v1=" + "0" * 63 + "G"])
def test_a_wrong_signature_is_refused(header):
    with pytest.raises(Unsigned):
        read(event(), header)


def test_without_a_secret_everything_is_refused():
    with pytest.raises(Unsigned):
        read(event(), secrets=())


def test_no_changed_body_is_taken():
    """200 mutants of a signed body, one byte each."""
    chance, body = random.Random(1), json.dumps(event()).encode()
    header = signature(body, SECRET)
    for _ in range(200):
        place = chance.randrange(len(body))
        changed = body[:place] + bytes([body[place] ^ (1 << chance.randrange(8))]) + body[place + 1 :]
        with pytest.raises(Unsigned):
            read(changed, header)


@pytest.mark.parametrize("at", [NOW - FRESH - timedelta(seconds=1), NOW + timedelta(minutes=6)])
def test_an_event_that_is_not_fresh_is_refused(at):
    with pytest.raises(Unsigned):
        read(event(at=at))


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"event": 7}', json.dumps(event(id="")).encode(),
                                  json.dumps(event(occurred_at="soon")).encode()])  # fmt: skip
def test_what_is_signed_and_no_event_is_refused_as_input(body):
    with pytest.raises(InputRejected):
        read(body)
