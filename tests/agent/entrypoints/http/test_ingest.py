"""Senders that post: their proof, their size, their shape, and only then a message."""

import base64
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from agent.core.intake.origin import Reading
from agent.core.intake.read import BODY_LIMIT, SHAPES, signals_from
from agent.entrypoints.http.application import make_http_app
from agent.entrypoints.http.ingest import (
    SHAPES_OF,
    NotAuthenticated,
    Sender,
    TooLarge,
    alerts,
    answer_to,
    ingest,
    senders_of,
)
from agent.errors import InputRejected, SettingsRejected
from agent.ports.bus import Topic
from tests.published_http import require_published

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "samples"
BODY = (SAMPLES / "alertmanager_webhook_v4.json").read_bytes()
SECRET = b"0123456789abcdef-s3cret"


SENDERS = senders_of({"alertmanager": SECRET})


def send(name, headers, body=BODY, **reading):
    return ingest(name, headers, body, senders=SENDERS, reading=Reading(**reading))


def basic(user, secret):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode() + secret).decode()}


PROOFS = {
    "header": {"X-Sre-Secret": SECRET.decode()},
    "bearer": {"authorization": "bearer " + SECRET.decode()},
    "basic": basic("alertmanager", SECRET),
}


@pytest.mark.parametrize("headers", PROOFS.values(), ids=PROOFS.keys())
def test_a_proved_and_understood_body_becomes_one_message(headers):
    """The body goes on as it came, so that the next function reads what the sender wrote."""
    accepted = send("alertmanager", headers)
    assert accepted.says == "accepted 1"
    assert accepted.message.topic is Topic.ALERTS
    assert accepted.message.data.encode() == BODY
    assert accepted.message.attributes == {"run": "live", "kind": "alertmanager", "sender": "alertmanager"}
    assert signals_from(accepted.message.data.encode(), Reading()).signals
    assert send("alertmanager", headers).message.id == accepted.message.id


WRONG = {
    "unknown sender": ("nobody", PROOFS["header"]),
    "unknown sender, empty secret": ("nobody", {"x-sre-secret": "\0" * 16}),
    "nothing": ("alertmanager", {}),
    "empty secret": ("alertmanager", {"x-sre-secret": "", "authorization": "Bearer "}),
    "wrong secret": ("alertmanager", {"x-sre-secret": "0123456789abcdef-s3creT"}),
    "longer secret": ("alertmanager", {"x-sre-secret": SECRET.decode() + "x"}),
    "shorter secret": ("alertmanager", {"x-sre-secret": SECRET.decode()[:-1]}),
    "secret in another header": ("alertmanager", {"x-secret": SECRET.decode(), "authorization": SECRET.decode()}),
    "not ASCII": ("alertmanager", {"x-sre-secret": "ÿ\udcff"}),
    "other user": ("alertmanager", basic("root", SECRET)),
    "other password": ("alertmanager", basic("alertmanager", b"x" * 20)),
    "broken base64": ("alertmanager", {"authorization": "Basic ä"}),
    "another scheme": ("alertmanager", {"authorization": "Digest " + SECRET.decode()}),
}


@pytest.mark.parametrize(("name", "headers"), WRONG.values(), ids=WRONG.keys())
def test_without_the_senders_proof_nothing_is_read(name, headers):
    """One answer for every mistake, whatever the body is; 401."""
    with pytest.raises(NotAuthenticated) as refused:
        send(name, headers, body=b"not even json")
    assert answer_to(refused.value) == (401, "the request was not taken")
    assert "secret" not in str(refused.value).replace("credential", "")


def test_a_body_too_large_is_refused_before_anything_else():
    """413, read or not, proved or not."""
    with pytest.raises(TooLarge) as refused:
        send("nobody", {}, body=b"x" * (BODY_LIMIT + 1))
    assert answer_to(refused.value)[0] == 413


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"version":"4","alerts":[],"receiver":"x"}', (SAMPLES / "log_vllm_ready.json").read_bytes()],
    ids=["nothing", "array", "no shape", "no alerts", "another shape"],
)
def test_a_body_that_this_sender_may_not_send_is_refused(body):
    """400: the sender shall not try again. A sender of alerts cannot speak as a server's log."""
    with pytest.raises(InputRejected) as refused:
        send("alertmanager", PROOFS["header"], body=body)
    assert answer_to(refused.value)[0] == 400


def test_what_nobody_watches_is_answered_and_not_published():
    """The sender did nothing wrong; the answer names what it sent and where that would be listed."""
    accepted = send("alertmanager", PROOFS["header"], watched=lambda place: None)
    assert accepted.message is None
    assert re.fullmatch(
        r"ignored: not_watched '\S+'. Hint: name its service, workload and namespace in services.toml", accepted.says
    )


def test_what_is_watched_among_others_is_accepted_and_the_others_are_named():
    alerts = json.loads(BODY)["alerts"] * 8
    for number, alert in enumerate(alerts[1:]):
        alerts[number + 1] = alert | {"labels": {"service": f"other{number}"}, "fingerprint": str(number)}
    body = json.dumps(json.loads(BODY) | {"alerts": alerts}).encode()
    first = alerts[0]["labels"]
    accepted = send("alertmanager", PROOFS["header"], body, watched=lambda p: "x" if p.labels == first else None)
    assert accepted.says.startswith("accepted 1; ignored: not_watched 'other0', ")
    assert "and 2 more" in accepted.says


@pytest.mark.parametrize(
    "proof",
    [{"secret": b""}, {"secret": b"short"}],
    ids=["empty", "short"],
)
def test_a_sender_without_a_real_check_cannot_be_made(proof):
    """An empty secret would let everybody in."""
    with pytest.raises(InputRejected, match="cannot be checked"):
        Sender(name="x", shapes=frozenset(), **proof)


def test_all_mistakes_of_the_senders_are_told_at_once():
    """Unknown names and short secrets together."""
    with pytest.raises(SettingsRejected) as refused:
        senders_of({"nagios": SECRET, "azure": b"short"})
    assert "'nagios' is no sender" in refused.value.why
    assert "'azure': it needs a secret" in refused.value.why


def test_every_kind_of_sender_sends_shapes_that_exist():
    """A renamed shape would lock its sender out."""
    assert frozenset().union(*SHAPES_OF.values()) <= {name for name, _, _ in SHAPES}


def test_a_sender_does_not_show_its_secret():
    """Neither in a log nor in a traceback."""
    assert "s3cret" not in repr(SENDERS)


def test_a_cloudevent_becomes_the_message_of_what_it_carries():
    """The envelope ends here; whoever reads the message sees Alertmanager's body."""
    senders = senders_of({"cloudevents": SECRET})
    event = {"specversion": "1.0", "id": "1", "source": "x", "type": "y", "data": json.loads(BODY)}
    structured = PROOFS["header"] | {"content-type": "application/cloudevents+json"}
    binary = PROOFS["header"] | {"content-type": "application/json"}
    binary |= {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "x", "ce-type": "y"}
    for headers, body in ((structured, json.dumps(event).encode()), (binary, BODY)):
        accepted = ingest("cloudevents", headers, body, senders=senders, reading=Reading())
        assert json.loads(accepted.message.data) == json.loads(BODY)
        assert accepted.message.attributes["kind"] == "alertmanager"


def test_a_cloudevent_may_not_carry_a_servers_log():
    """It would speak as Cloud Logging, which publishes itself."""
    event = {"specversion": "1.0", "id": "1", "source": "x", "type": "y"}
    event["data"] = json.loads((SAMPLES / "log_vllm_ready.json").read_bytes())
    headers = PROOFS["header"] | {"content-type": "application/cloudevents+json"}
    with pytest.raises(InputRejected, match="this sender may send"):
        ingest("cloudevents", headers, json.dumps(event).encode(), senders=senders_of({"cloudevents": SECRET}),
               reading=Reading())  # fmt: skip


ASKS = {"WebHook-Request-Origin": "eventemitter.example.com"}


@pytest.fixture
def door():
    """The web application with one sender of CloudEvents and one of alerts."""
    secrets = {name: SecretStr(SECRET.decode()) for name in ("cloudevents", "alertmanager")}
    bus = SimpleNamespace(publish=lambda message: None)
    app = SimpleNamespace(settings=SimpleNamespace(ingest_secrets=secrets), bus=bus, reading=Reading)
    return make_http_app(alerts(app)).test_client()


def answered(door, method, path, headers, body=b""):
    """One request, its answer held to the published document."""
    got = door.open(path, method=method, headers=headers, data=body)
    kind, place = got.headers.get("content-type", ""), "/ingest/" + path.rpartition("/")[2]
    require_published(method, place, got.status_code, kind, got.data, sent=body)
    return got


@pytest.mark.parametrize("path", ["/cloudevents", "/ingest/cloudevents"])
def test_a_sender_of_cloudevents_is_granted_the_right_to_post(door, path):
    """The names of the headers as the specification has them; where no rate is asked for, none is answered."""
    got = answered(door, "OPTIONS", path, ASKS)
    assert (got.status_code, got.data) == (200, b"")
    assert got.headers["WebHook-Allowed-Origin"] == "eventemitter.example.com"
    assert got.headers["Allow"] == "POST"
    assert "WebHook-Allowed-Rate" not in got.headers


@pytest.mark.parametrize(("asked", "allowed"), [("120", "120"), ("600", "600"), ("100000", "600")])
def test_a_rate_is_granted_up_to_ours(door, asked, allowed):
    got = answered(door, "OPTIONS", "/cloudevents", ASKS | {"WebHook-Request-Rate": asked})
    assert got.headers["WebHook-Allowed-Rate"] == allowed


@pytest.mark.parametrize("headers", [
    {}, {"WebHook-Request-Origin": ""}, {"WebHook-Request-Origin": "*"}, {"WebHook-Request-Origin": "a b"},
    {"WebHook-Request-Origin": "x" * 300}, ASKS | {"WebHook-Request-Rate": "0"}, ASKS | {"WebHook-Request-Rate": "-1"},
    ASKS | {"WebHook-Request-Rate": "fast"},
])  # fmt: skip
def test_a_handshake_that_says_nothing_is_refused(door, headers):
    got = answered(door, "OPTIONS", "/cloudevents", headers)
    assert got.status_code == 400
    assert b"Hint: send" in got.data
    assert "WebHook-Allowed-Origin" not in got.headers


def test_a_handshake_opens_nothing_and_only_cloudevents_has_one(door):
    """Whoever was granted the right still needs the secret; nobody is called back; other senders have no handshake."""
    assert (
        answered(door, "OPTIONS", "/cloudevents", ASKS | {"WebHook-Request-Callback": "https://x"}).status_code == 200
    )
    assert answered(door, "POST", "/cloudevents", ASKS, b"{}").status_code == 401
    for path in ("/alertmanager", "/nobody", "/"):
        got = answered(door, "OPTIONS", path, ASKS)
        assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert answered(door, "POST", "/alertmanager", PROOFS["bearer"], BODY).status_code == 200
    assert answered(door, "POST", "/alertmanager", PROOFS["bearer"], b"{").status_code == 400


def test_without_a_sender_of_cloudevents_there_is_no_handshake():
    app = SimpleNamespace(settings=SimpleNamespace(ingest_secrets={}), bus=None, reading=Reading)
    assert make_http_app(alerts(app)).test_client().options("/cloudevents", headers=ASKS).status_code == 405
