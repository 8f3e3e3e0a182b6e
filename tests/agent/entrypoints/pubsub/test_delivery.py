"""Pub/Sub's push requests, in every form that reaches a function."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.entrypoints.pubsub.delivery import DATA_LIMIT, PUSH_LIMIT, delivery_from
from agent.entrypoints.pubsub.push import answer
from agent.errors import InputRejected
from agent.ports.bus import Outcome, Topic
from tests.counts import tries

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "samples"
PUBLISHED = datetime(2026, 11, 20, 10, 15, 43, 412000, UTC)
TYPE = "google.cloud.pubsub.topic.v1.messagePublished"


def sample(name):
    return json.loads((SAMPLES / f"{name}.json").read_text())


def envelope(**message):
    return json.dumps({"message": message, "subscription": "projects/p/subscriptions/s"}).encode()


def test_a_binary_cloud_event_keeps_topic_and_subscription():
    """What Eventarc and functions deliver, with both spellings of the id."""
    request = sample("cloudevent_pubsub_binary_http")
    found = delivery_from(request["headers"], json.dumps(request["body"]).encode())
    assert found.topic is Topic.LOG_EVENTS
    assert (found.message_id, found.published_at) == ("15474464854558691", PUBLISHED)
    assert found.subscription.endswith("eventarc-us-central1-sre-ingest-885833-sub-349")
    assert json.loads(found.data)["textPayload"].startswith("STARTUP HTTP probe failed 40 times")


@pytest.mark.parametrize("headers", [{"Content-Type": "application/cloudevents+json"}, {}], ids=["typed", "untyped"])
def test_a_structured_cloud_event_is_known_by_its_content(headers):
    """The content type is not needed."""
    found = delivery_from(headers, (SAMPLES / "cloudevent_pubsub_structured.json").read_bytes())
    assert (found.topic, found.message_id, found.published_at) == (Topic.LOG_EVENTS, "15474464854558691", PUBLISHED)


def test_a_structured_event_may_carry_its_data_as_base64():
    """The CloudEvents form for bytes."""
    body = sample("cloudevent_pubsub_structured")
    body["data_base64"] = base64.b64encode(json.dumps(body.pop("data")).encode()).decode()
    assert b"STARTUP HTTP" in delivery_from({}, json.dumps(body).encode()).data


def test_a_wrapped_push_keeps_what_a_decorator_would_drop():
    """Subscription, ordering key and delivery attempt; the function's own topic is given."""
    found = delivery_from({}, (SAMPLES / "pubsub_push_wrapped.json").read_bytes(), topic=Topic.ALERTS)
    assert found.topic is Topic.ALERTS
    assert found.subscription == "projects/example-project/subscriptions/sre-ingest-push"
    assert found.ordering_key == "example-project/us-central1/gemma4-vllm"
    assert found.attempt == 1
    assert found.attributes == {"logging.googleapis.com/timestamp": "2026-11-20T10:15:42.980564Z"}


def test_a_dead_letter_keeps_the_attributes_of_its_way():
    """The source subscription and count stand in the attributes."""
    found = delivery_from({}, (SAMPLES / "pubsub_deadletter_push.json").read_bytes())
    assert found.attributes["CloudPubSubDeadLetterSourceDeliveryCount"] == "5"
    assert found.attempt == 0


def test_an_unwrapped_push_reads_its_headers_in_any_case():
    """The body is the message; our attributes are headers among others."""
    found = delivery_from(
        {
            "X-Goog-Pubsub-Subscription-Name": "projects/p/subscriptions/s",
            "X-Goog-Pubsub-Message-Id": "7",
            "X-Goog-Pubsub-Publish-Time": "2026-11-20T10:15:43.412Z",
            "X-Goog-Pubsub-Ordering-Key": "k",
            "Run": "replay-1",
            "User-Agent": "APIs-Google",
        },
        b'{"hello":1}',
    )
    assert (found.message_id, found.data, found.ordering_key) == ("7", b'{"hello":1}', "k")
    assert found.attributes == {"run": "replay-1"}
    assert found.published_at == PUBLISHED


@pytest.mark.parametrize("data", [{}, {"data": ""}, {"data": None}], ids=["absent", "empty", "null"])
def test_a_message_of_attributes_alone_is_a_message(data):
    """Pub/Sub allows it; refusing it would be redelivered for ever."""
    found = delivery_from({}, envelope(attributes={"kind": "wake"}, messageId="1", **data))
    assert (found.data, found.attributes) == (b"", {"kind": "wake"})
    headers = {"ce-type": TYPE, "ce-id": "9", "ce-source": "//pubsub.googleapis.com/projects/p/topics/sre-tick"}
    assert delivery_from(headers, b"").message_id == "9"
    assert delivery_from(headers, b"").topic is Topic.TICK


def test_camel_case_wins_over_snake_case_and_either_is_enough():
    """Real payloads carry both spellings."""
    both = envelope(messageId="camel", message_id="snake", publish_time="2026-11-20T10:15:43.412Z")
    assert delivery_from({}, both).message_id == "camel"
    assert delivery_from({}, both).published_at == PUBLISHED
    assert delivery_from({}, envelope(message_id="snake")).message_id == "snake"


def test_a_message_without_an_id_is_known_by_its_data():
    """Its failures can be counted all the same."""
    one, again, other = (delivery_from({}, envelope(data=data)) for data in ("YQ==", "YQ==", "Yg=="))
    assert one.message_id == again.message_id != other.message_id


def test_a_subscription_of_another_topic_is_no_topic_of_ours():
    """A foreign topic is not taken for one of the design's."""
    body = sample("cloudevent_pubsub_structured") | {"source": "//pubsub.googleapis.com/projects/p/topics/other"}
    assert delivery_from({}, json.dumps(body).encode()).topic is None


REFUSED = {
    "nothing": ({}, b""),
    "no message": ({}, b'{"subscription":"s"}'),
    "message is text": ({}, b'{"message":"x","subscription":"s"}'),
    "data are a number": ({}, envelope(data=5)),
    "data are not base64": ({}, envelope(data="!!!!")),
    "data are not ASCII": ({}, envelope(data="ä")),
    "an attribute is a number": ({}, envelope(attributes={"run": 5})),
    "attributes are a list": ({}, envelope(attributes=["run"])),
    "another event": ({"ce-type": "google.cloud.storage.object.v1.finalized"}, envelope()),
    "another event, structured": ({}, b'{"specversion":"1.0","type":"x","data":{}}'),
    "structured data are text": ({}, json.dumps({"specversion": "1.0", "type": TYPE, "data": "x"}).encode()),
    "a batch": ({"content-type": "application/cloudevents-batch+json"}, b"[]"),
    "too large a request": ({}, b" " * (PUSH_LIMIT + 1)),
    "too large a message": ({}, envelope(data=base64.b64encode(b"x" * (DATA_LIMIT + 1)).decode())),
    "too large, unwrapped": ({"x-goog-pubsub-message-id": "1"}, b"x" * (DATA_LIMIT + 1)),
}


@pytest.mark.parametrize(("headers", "body"), REFUSED.values(), ids=REFUSED.keys())
def test_what_holds_no_message_is_refused(headers, body):
    """Typed, with the setting to look at."""
    with pytest.raises(InputRejected) as refused:
        delivery_from(headers, body)
    assert refused.value.hint


def test_hostile_numbers_and_headers_are_survived():
    """An endless attempt is none; a header that was decoded badly is replaced."""
    body = json.loads(envelope(messageId="1")) | {"deliveryAttempt": 10**300}
    assert delivery_from({}, json.dumps(body).encode()).attempt == 0
    assert delivery_from({"x-goog-pubsub-message-id": "\udcff" * 9999}, b"").message_id


@settings(max_examples=tries(30, ci=150, soak=150), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["ce-type", "ce-id", "CE-Source", "x-goog-pubsub-message-id", "content-type", "x"]),
        st.sampled_from([TYPE, "1", "application/cloudevents+json"]) | st.text(max_size=20),
        max_size=4,
    ),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8) | st.sampled_from(["YQ==", "1.0", TYPE]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["message", "data", "attributes", "messageId", "specversion", "type", "data_base64", "id"]
                )
                | st.text(max_size=3),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    ),
)
def test_any_request_is_a_delivery_or_a_refusal(headers, body):
    """Whatever stands in headers and body, nothing else is raised."""
    try:
        found = delivery_from(headers, json.dumps(body).encode())
    except InputRejected:
        return
    assert isinstance(found.data, bytes)
    assert found.message_id


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.ACK, 200), (Outcome.QUARANTINED, 200), (Outcome.RETRY, 503)])
def test_only_retry_asks_for_another_delivery(outcome, status):
    """Pub/Sub takes 200 as done and everything from 300 as a reason to send again."""
    assert answer(outcome) == (outcome.value, status)
