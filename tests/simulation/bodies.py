"""Bodies for the promise that any is survived: public corpora read in place, our samples, seeded mutations of them."""

import base64
import copy
import json
import random
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
CORPORA = Path(__file__).resolve().parents[3] / "shared" / "data" / "corpora"

OWN = [
    b"", b" ", b"\0", b"null", b"true", b"0", b'""', b"[]", b"{}", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{" * 5000, b"[" * 100_000,
    b'{"a":' * 70 + b"1" + b"}" * 70, b'{"a":1,"a":2}', b'{"textPayload":NaN}', b'{"textPayload":1e999}', b'{"textPayload":"\\ud800"}',
    b'{"textPayload":"' + b"x" * 300_000 + b'"}', b'{"textPayload":' + b"9" * 5000 + b"}", b"<html>502 Bad Gateway</html>", b"payload=%7B%7D",
    b'{"logName":[],"resource":[],"textPayload":{}}', b'{"incident":null}', b'{"alerts":{},"receiver":1}', b'{"detail-type":{}}',
    b'{"containerStatuses":[null,1,{"state":[]}]}', b'{"involvedObject":"x"}', b'{"schemaId":"azureMonitorCommonAlertSchema"}',
    b'{"tpu":1,"queueingPolicy":1}', b'{"ContainerAppName_s":[]}', b'{"specversion":"1.0"}', b'{"message":{}, "subscription":null}',
]  # fmt: skip

ODD = [
    None, True, False, 0, -1, 10**40, 1e308, "", " ", "\0", "\u202e<!channel>", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59",
    "x" * 300, "../../etc/passwd", [], [None], {}, {"": {}}, [[[[[]]]]], "NaN", "sre-x", "2026-11-20T10:15:42Z",
]  # fmt: skip


def suite():
    """Return the documents of JSONTestSuite and the naughty strings, or None where the corpora are not here."""
    if not CORPORA.is_dir():
        return None
    documents = [path.read_bytes() for path in sorted((CORPORA / "JSONTestSuite").glob("*.json"))]
    return documents, json.loads((CORPORA / "blns.json").read_text())


def samples():
    """Return our copies of the published payloads."""
    return [path.read_bytes() for path in sorted((DATA / "samples").glob("*.json")) if path.name != "INDEX.json"]


def carried(text):
    """Return bodies that carry a hostile text where names, words, times and ids stand."""
    entry = json.loads((DATA / "samples" / "log_vllm_ready.json").read_text())
    alert = json.loads((DATA / "samples" / "alertmanager_webhook_v4.json").read_text())
    words, service, label = copy.deepcopy(entry), copy.deepcopy(entry), copy.deepcopy(alert)
    words["textPayload"] = text
    service["resource"]["labels"]["service_name"] = service["insertId"] = service["timestamp"] = text
    label["alerts"][0]["labels"] |= {"service": text, text: text}
    label["alerts"][0] |= {"fingerprint": text, "startsAt": text}
    return [json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass") for body in (words, service, label)]


def mutated(body, seed):
    """Return a body changed at a place and in a way that the seed decides."""
    draw = random.Random(seed)
    if draw.random() < 0.35:
        return _bytes_changed(body, draw)
    parsed = json.loads(body)
    for _ in range(draw.randint(1, 3)):
        _value_changed(parsed, draw)
    return json.dumps(parsed).encode()


def _bytes_changed(body, draw):
    at = draw.randrange(len(body) + 1)
    kind = draw.randrange(5)
    if kind == 0:
        return body[:at]
    if kind == 1:
        return body[:at] + bytes([draw.randrange(256)]) + body[at + 1 :]
    if kind == 2:
        return body[:at] + draw.choice([b"\0", b"\xff", b'"', b"{", b"]", b"\\", b"\\ud800", b"NaN", b",,"]) + body[at:]
    if kind == 3:
        return body + body
    return body[at:] + body[:at]


def _value_changed(parsed, draw):
    here, path = parsed, []
    while isinstance(here, dict | list) and here and (not path or draw.random() < 0.75):
        key = draw.choice(sorted(here)) if isinstance(here, dict) else draw.randrange(len(here))
        path.append((here, key))
        here = here[key]
    if not path:
        return
    parent, key = path[-1]
    kind = draw.randrange(4)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[draw.choice(["", "x", "message", "alerts", "textPayload"])] = parent.pop(key)
    else:
        parent[key] = copy.deepcopy(draw.choice(ODD))


def ways(body):
    """Return the push requests that bring a body: wrapped, as binary event, unwrapped, and as it stands."""
    wrapped = {"message": {"data": base64.b64encode(body).decode(), "messageId": "1"}, "subscription": "s"}
    event = {
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "ce-source": "//pubsub.googleapis.com/projects/p/topics/sre-log-events",
        "ce-id": "2",
    }
    return [
        ({}, json.dumps(wrapped).encode()),
        (event, json.dumps(wrapped).encode()),
        ({"x-goog-pubsub-message-id": "3"}, body),
        ({}, body),
    ]
