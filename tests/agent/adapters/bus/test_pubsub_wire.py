"""Our three messages of Pub/Sub are Google's own, on the wire and in their numbers."""

from google.pubsub_v1 import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.types import PublishRequest, PublishResponse
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.adapters.bus import pubsub_wire
from agent.adapters.bus.pubsub_wire import HOST, METHOD, SCOPES, Publisher, _messages
from tests.counts import tries

WORDS = st.text(max_size=20)


@settings(max_examples=tries(20, ci=100, soak=100), deadline=None)
@given(topic=WORDS, data=st.binary(max_size=200), attributes=st.dictionaries(WORDS, WORDS, max_size=5))
def test_a_request_reads_as_google_reads_it(topic, data, attributes):
    request, _ = _messages()
    sent = request(topic=topic, messages=[{"data": data, "attributes": attributes}]).SerializeToString()
    read = PublishRequest.deserialize(sent)
    assert read == PublishRequest(topic=topic, messages=[{"data": data, "attributes": attributes}])
    assert request.FromString(PublishRequest.serialize(read)).SerializeToString(deterministic=True) == (
        request.FromString(sent).SerializeToString(deterministic=True)
    )


def test_an_answer_of_google_reads_as_it_was_meant():
    _, answer = _messages()
    wire = PublishResponse.serialize(PublishResponse(message_ids=["17", "18"]))
    assert list(answer.FromString(wire).message_ids) == ["17", "18"]


def test_names_and_numbers_of_the_fields_are_googles():
    for name, fields in pubsub_wire._MESSAGES.items():
        theirs = {
            "PubsubMessage": PublishRequest.pb().DESCRIPTOR.fields_by_name["messages"].message_type,
            "PublishRequest": PublishRequest.pb().DESCRIPTOR,
            "PublishResponse": PublishResponse.pb().DESCRIPTOR,
        }[name]
        for field, number, kind, label, type_name in fields:
            found = theirs.fields_by_name[field]
            assert (found.number, found.type, found.is_repeated) == (number, kind, label == pubsub_wire._MANY)
            assert type_name == (f".{found.message_type.full_name}" if found.message_type else "")


def test_method_host_and_scopes_are_those_of_googles_client():
    assert PublisherGrpcTransport.DEFAULT_HOST == HOST == PublisherClient.DEFAULT_ENDPOINT
    assert set(SCOPES) == set(PublisherGrpcTransport.AUTH_SCOPES)
    service = PublishRequest.pb().DESCRIPTOR.file.services_by_name
    assert METHOD.startswith(f"/{PublishRequest.pb().DESCRIPTOR.file.package}.Publisher/")
    assert service is not None


def test_the_real_service_is_asked_with_this_process_s_own_credentials(monkeypatch):
    asked = {}

    def create_channel(target, **more):
        asked.update(more, target=target)
        return pubsub_wire._channel("127.0.0.1:9")

    monkeypatch.setattr("google.api_core.grpc_helpers.create_channel", create_channel)
    Publisher(None).close()
    assert asked["target"] == "pubsub.googleapis.com:443"
    assert set(asked["default_scopes"]) == set(SCOPES)
