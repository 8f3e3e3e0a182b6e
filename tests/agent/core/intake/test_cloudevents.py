"""CloudEvents in both modes, made by the published library, and what is none."""

import base64
import json

import pytest
from cloudevents.conversion import to_binary, to_structured
from cloudevents.http import CloudEvent

from agent.core.intake.cloudevents import data_of
from agent.errors import InputRejected

LIMIT = 1 << 20
DATA = {"version": "4", "alerts": [{"status": "firing"}], "receiver": "ä"}
ATTRIBUTES = {"type": "com.example.alert", "source": "https://example.com/x"}


def read(headers, body):
    return json.loads(data_of({name.lower(): value for name, value in headers.items()}, body, limit=LIMIT))


@pytest.mark.parametrize("write", [to_structured, to_binary], ids=["structured", "binary"])
def test_what_the_published_library_writes_is_read(write):
    headers, body = write(CloudEvent(ATTRIBUTES, DATA))
    assert read(headers, body) == DATA


def test_data_that_is_encoded_is_decoded():
    event = {"specversion": "1.0", "id": "1", **ATTRIBUTES, "datacontenttype": "application/json"}
    event["data_base64"] = base64.b64encode(json.dumps(DATA).encode()).decode()
    assert read({"content-type": "application/cloudevents+json"}, json.dumps(event).encode()) == DATA


GOOD = {"specversion": "1.0", "id": "1", **ATTRIBUTES, "data": DATA}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (GOOD | {"specversion": "0.3"}, "specversion '1.0' is '0.3'"),
        (GOOD | {"id": ""}, "id is ''"),
        ({k: v for k, v in GOOD.items() if k != "source"}, "source is missing"),
        (GOOD | {"type": 7}, "type is 7"),
        (GOOD | {"data": "text"}, "data is 'text'"),
        (GOOD | {"data_base64": "%"}, "data_base64 is '%'"),
        (GOOD | {"datacontenttype": "application/xml"}, "datacontenttype is 'application/xml'"),
    ],
)
def test_what_is_no_cloudevent_that_we_read_is_refused_by_its_field(event, why):
    with pytest.raises(InputRejected) as refused:
        read({"content-type": "application/cloudevents+json; charset=utf-8"}, json.dumps(event).encode())
    assert refused.value.why == why


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/cloudevents-batch+json"},
        {"content-type": "text/plain", "ce-specversion": "1.0", "ce-id": "1", "ce-source": "x", "ce-type": "y"},
        {"content-type": "application/json", "ce-specversion": "1.0", "ce-id": "1", "ce-source": "x"},
        {"content-type": "application/json"},
    ],
    ids=["batch", "text", "without a type", "neither mode"],
)
def test_other_requests_are_refused(headers):
    with pytest.raises(InputRejected):
        read(headers, json.dumps(DATA).encode())


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"specversion":"1.0","specversion":"1.0"}', b"\xff"])
def test_a_body_that_is_no_strict_json_is_refused(body):
    with pytest.raises(InputRejected):
        read({"content-type": "application/cloudevents+json"}, body)
