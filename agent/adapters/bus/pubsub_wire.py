"""The one call of Pub/Sub that we make: Publish over gRPC, with the three messages that it needs.

Google's client makes every message and every service of Pub/Sub as it is imported, 0.2 s of processor time in each cold
start of a function that sends one message. These three are held equal to Google's own by a test.
"""

from typing import Any, Final

METHOD: Final = "/google.pubsub.v1.Publisher/Publish"
HOST: Final = "pubsub.googleapis.com"
SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/pubsub")
KEEPALIVE: Final = (("grpc.keepalive_time_ms", 30_000),)

_STRING: Final = 9  # google.protobuf.FieldDescriptorProto.Type
_MESSAGE: Final = 11
_BYTES: Final = 12
_ONE: Final = 1  # ...Label
_MANY: Final = 3

# Message: its fields as (name, number, type, label, type's name). From google/pubsub/v1/pubsub.proto of
# github.com/googleapis/googleapis, read 2026-11-21; what we neither send nor read is left out.
_MESSAGES: Final = {
    "PubsubMessage": (
        ("data", 1, _BYTES, _ONE, ""),
        ("attributes", 2, _MESSAGE, _MANY, ".google.pubsub.v1.PubsubMessage.AttributesEntry"),
    ),
    "PublishRequest": (
        ("topic", 1, _STRING, _ONE, ""),
        ("messages", 2, _MESSAGE, _MANY, ".google.pubsub.v1.PubsubMessage"),
    ),
    "PublishResponse": (("message_ids", 1, _STRING, _MANY, ""),),
}


class Publisher:
    """Publishes over one channel; made after the fork of a web server, which no channel survives.

    Args:
        emulator: ``HOST:PORT`` of Google's emulator; None is the real service with this process's own credentials.
    """

    def __init__(self, emulator: str | None) -> None:
        self._channel = _channel(emulator)
        self._request, answer = _messages()
        self._call = self._channel.unary_unary(
            METHOD, request_serializer=self._request.SerializeToString, response_deserializer=answer.FromString
        )

    def publish(self, *, topic: str, data: bytes, attributes: dict[str, str], timeout: float) -> str:
        """Send one message and return the number that Pub/Sub gave it.

        Args:
            topic: ``projects/PROJECT/topics/TOPIC``.
            data: The body.
            attributes: Sent beside it.
            timeout: Seconds for this one call.

        Raises:
            google.api_core.exceptions.GoogleAPICallError: What the service, or the way to it, says.
        """
        import grpc

        request = self._request(topic=topic, messages=[{"data": data, "attributes": attributes}])
        try:
            answer = self._call(
                request, timeout=timeout, metadata=(("x-goog-request-params", f"topic={_quoted(topic)}"),)
            )
        except grpc.RpcError as error:
            from google.api_core.exceptions import from_grpc_error

            raise from_grpc_error(error) from error  # type: ignore[no-untyped-call]
        return str(answer.message_ids[0])

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


def _quoted(topic: str) -> str:
    """Return the topic as the routing header wants it: google.aip.dev/client-libraries/4222."""
    from urllib.parse import quote

    return quote(topic, safe="")


def _channel(emulator: str | None) -> Any:
    if emulator is not None:
        import grpc

        return grpc.insecure_channel(emulator)
    from google.api_core.grpc_helpers import create_channel

    return create_channel(f"{HOST}:443", default_scopes=SCOPES, default_host=HOST, options=KEEPALIVE)


def _messages() -> tuple[Any, Any]:
    """Return the classes of request and answer; in a pool of their own, beside Google's where those are loaded too."""
    from google.protobuf import descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(name="publish.proto", package="google.pubsub.v1", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, type_name in fields:
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if type_name:
                added.type_name = type_name
    entry = file.message_type[0].nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    for number, field in enumerate(("key", "value"), start=1):
        entry.field.add(name=field, number=number, type=_STRING, label=_ONE)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"google.pubsub.v1.{name}"))
        for name in ("PublishRequest", "PublishResponse")
    ]
    return made[0], made[1]
