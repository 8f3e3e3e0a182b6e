"""A body that waits on a disk holds no secret, and is the event that it was."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.core.intake.origin import Reading, watch_everything
from agent.core.intake.read import signals_from
from agent.core.redaction.redacted_json import body_without_secrets
from agent.errors import InputRejected

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "data" / "samples").glob("*.json"))
READING = Reading(
    run="live",
    watched=watch_everything,
    own_services=frozenset(),
    received_at=datetime(2026, 11, 21, tzinfo=UTC),
    service="gemma",
)
WITH_SECRETS = {"standard_webhook_http"}
PASSWORD = "Tr0ub4dor-and-3-more"
ENTRY = {
    "logName": "projects/p/logs/run.googleapis.com%2Fstderr",
    "insertId": "65f3c0ab000d1e5b7c9a",
    "timestamp": "2026-11-21T03:00:00.123456789Z",
    "resource": {"type": "cloud_run_revision", "labels": {"service_name": "gemma", "revision_name": "gemma-00001-abc"}},
    "labels": {"instanceId": "00f46b9285" * 10},
}


@pytest.fixture
def hidden(redactor):
    return lambda body: body_without_secrets(
        body if isinstance(body, str) else json.dumps(body), lambda text: redactor.redact(text).text
    )


def heard(body, redactor, *, named=True):
    """The signals of a body as they are kept, or why there are none.

    A status without an id of its own has a key over its whole text: another one, and the same every time.
    """
    try:
        found = signals_from(body.encode(), READING).signals
    except InputRejected as error:
        return str(error)

    def kept(signal):
        fields = {name: redactor.redact(said).text for name, said in signal.fields.items()}
        key = signal.key if named else ""
        return signal.with_(text=redactor.redact(signal.text).text, fields=fields, key=key)

    return tuple(kept(signal) for signal in found)


@pytest.mark.parametrize("path", [p for p in SAMPLES if p.stem not in WITH_SECRETS], ids=lambda p: p.stem)
def test_a_body_without_secrets_is_not_touched(path, hidden):
    text = path.read_text()
    assert hidden(text) is text


def sown(value, secret, name=""):
    """Every text that people or programs write, with a secret at its end; ids and names are left."""
    if isinstance(value, dict):
        return {key: sown(inner, secret, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [sown(inner, secret, name) for inner in value]
    prose = isinstance(value, str) and name in {
        "textPayload",
        "message",
        "description",
        "summary",
        "msg",
        "Log",
        "content",
    }
    return f"{value} {secret}" if prose else value


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_a_body_with_secrets_becomes_the_same_signals(path, hidden, redactor, met):
    """Classification, dedup key and fields rest on what is kept: redaction comes first either way."""
    _, secret = met["huggingface-token"]
    body = json.dumps(sown(json.loads(path.read_text()), secret))
    clean = hidden(body)
    assert secret not in clean
    if secret not in body and path.stem not in WITH_SECRETS:
        assert clean is body
    named = not path.stem.startswith(("k8s_pod", "tpu_queued"))
    assert heard(clean, redactor, named=named) == heard(body, redactor, named=named)
    assert heard(clean, redactor) == heard(hidden(body), redactor)


@pytest.mark.parametrize(
    "said",
    [
        {"textPayload": f"connecting with password={PASSWORD}"},
        {"jsonPayload": {"message": "connecting", "password": PASSWORD}},
        {"jsonPayload": {"message": "connecting", "settings": [{"name": "DB_PASSWORD", "value": PASSWORD}]}},
        {
            "protoPayload": {
                "request": {"env": [{"name": "DB_PASSWORD", "value": PASSWORD}]},
                "status": {"message": "no"},
            }
        },
        {"httpRequest": {"requestUrl": f"https://x.example/?password={PASSWORD}", "status": 500}},
        {"textPayload": f'first\nsecond {{"password": "{PASSWORD}"}} \u00e9 \u2028'},
    ],
    ids=["in a text", "by its key", "by the name beside it", "in a call's body", "in an address", "in a text of JSON"],
)
def test_a_secret_told_by_its_name_alone_is_taken_where_things_are_said(said, hidden, redactor):
    body = json.dumps(ENTRY | said, ensure_ascii=False)
    clean = hidden(body)
    assert PASSWORD in body
    assert PASSWORD not in clean
    assert {k: v for k, v in json.loads(clean).items() if k in ENTRY} == ENTRY
    assert [s.key for s in heard(clean, redactor)] == [s.key for s in heard(body, redactor)]
    assert hidden(clean) == clean


def test_every_kind_of_secret_that_is_met_here_is_taken(hidden, met):
    for kind, (text, secret) in met.items():
        clean = hidden(ENTRY | {"textPayload": text})
        assert json.dumps(secret)[1:-1] not in clean, kind
        assert json.loads(clean)["insertId"] == ENTRY["insertId"]


def test_an_entry_without_an_id_has_one_key_however_often_it_is_published(hidden, redactor):
    body = {k: v for k, v in ENTRY.items() if k != "insertId"} | {"textPayload": f"password={PASSWORD}"}
    first, second = (heard(hidden(json.dumps(body)), redactor) for _ in range(2))
    assert first[0].key == second[0].key


@pytest.mark.parametrize("body", [f"no JSON, password={PASSWORD}", f'{{"a": NaN, "password": "{PASSWORD}"}}', "\ud800"])
def test_what_is_no_json_is_one_text(body, hidden):
    assert PASSWORD not in hidden(body)


def test_a_usual_entry_costs_well_below_a_millisecond(hidden):
    """The queue commits to the disk for each message; this must not be what takes its time."""
    body = json.dumps(ENTRY | {"textPayload": "INFO 11-21 03:00:00 [loader.py:1] Loading weights took 12.5 seconds"})
    hidden(body)
    began = time.process_time()
    for _ in range(200):
        hidden(body)
    assert (time.process_time() - began) / 200 < 0.002
