"""The bus on Google Pub/Sub: one confirmed call for each message, inside a deadline."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from agent.adapters.bus.pulling import checked
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.ports.bus import Message

DEADLINE_S: Final = 20.0  # of one publishing with its repetitions; a function has minutes, its sender has seconds
ATTEMPT_S: Final = 5.0  # of one call within the deadline
FIRST_WAIT_S: Final = 0.1
KEY_BYTES: Final = 256  # Pub/Sub's limits of attributes, cloud.google.com/pubsub/quotas, read 2026-11-21
VALUE_BYTES: Final = 1024
ATTRIBUTES: Final = 100


class PubSubBus:
    """Publishes to the topics of a project; a message is accepted when Pub/Sub has confirmed it.

    Publishing the same message twice sends it twice: Pub/Sub keeps no record of our ids. Every stage
    can bear that; the attribute ``id`` lets a log show it. Nothing relies on order, so no ordering keys are set.

    Args:
        project: Where the topics are.
        emulator: ``HOST:PORT`` of Google's emulator; None is the real service.
        trace: Returns the trace that this message belongs to, or an empty text.
        deadline_s: How long one publishing may take, repetitions included.
        client: A :class:`agent.adapters.bus.pubsub_wire.Publisher`; made at the first publishing when None, because a
            channel does not survive the fork of a web server.
    """

    def __init__(
        self,
        project: str,
        *,
        emulator: str | None = None,
        trace: Callable[[], str] = str,
        deadline_s: float = DEADLINE_S,
        client: Any = None,
    ) -> None:
        self._project = project
        self._emulator = emulator
        self._trace = trace
        self._deadline_s = deadline_s
        self._client = client
        self._lock = threading.Lock()

    def publish(self, message: Message) -> str:
        """Send a message and wait for the confirmation; see the port.

        Raises:
            InputRejected: No bus can carry it: over 1 MB, or an attribute over Pub/Sub's limits.
            DependencyFailed: It was not confirmed in time.
        """
        checked(message)
        attributes = _checked_attributes(message, self._attributes(message))
        topic = f"projects/{self._project}/topics/{message.topic}"
        body = message.data.encode()
        ends = time.monotonic() + self._deadline_s

        def send() -> str:
            return str(self._connected().publish(topic=topic, data=body, attributes=attributes, timeout=ATTEMPT_S))

        try:
            return send()
        except Exception as error:
            left_s = ends - time.monotonic()
            if left_s <= 0 or not may_help(error):
                raise translated(error, message) from error
        try:
            return str(_again(left_s)(send)())
        except Exception as error:
            raise translated(error, message) from error

    def _attributes(self, message: Message) -> dict[str, str]:
        trace = message.attributes.get("trace") or self._trace()
        return message.attributes | {"id": message.id} | ({"trace": trace} if trace else {})

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _client(self._emulator)
            return self._client


def translated(error: Exception, message: Message) -> SreError:
    """Return our word for an error of the client library; whatever it is, the message may or may not have arrived.

    A missing topic or permission is no fault of the message: it is sent again until a person has fixed it.
    """
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    if isinstance(error, SreError):
        return error
    what = f"message {message.id!r} was not confirmed by {message.topic!r}"
    why = (str(error).split("\n", 1)[0] or type(error).__name__)[:500]
    if isinstance(error, api.InvalidArgument):
        return InputRejected(f"message {message.id!r} was not published", why=why, hint="send less in one message")
    hint = "no action needed: it is sent again"
    if isinstance(error, api.NotFound):
        hint = "create the topics: ./deploy.sh apply"
    elif isinstance(error, api.Forbidden | api.Unauthorized | auth.GoogleAuthError):
        hint = "give this identity roles/pubsub.publisher on the topic: ./deploy.sh apply"
    return DependencyFailed(what, why=why, hint=hint)


def may_help(error: BaseException) -> bool:
    """Whether the same call may succeed a moment later."""
    from google.api_core import exceptions as api

    again = (api.Aborted, api.ServiceUnavailable, api.InternalServerError, api.DeadlineExceeded, api.Unknown)
    return isinstance(error, (*again, api.ResourceExhausted, api.Cancelled))


def _again(left_s: float) -> Any:
    from google.api_core.retry import Retry

    return Retry(predicate=may_help, initial=FIRST_WAIT_S, maximum=2.0, timeout=left_s)


def _client(emulator: str | None) -> Any:
    from agent.adapters.bus.pubsub_wire import Publisher

    return Publisher(emulator)


def _checked_attributes(message: Message, attributes: dict[str, str]) -> dict[str, str]:
    long = [k for k, v in attributes.items() if len(k.encode()) > KEY_BYTES or len(v.encode()) > VALUE_BYTES]
    if long or len(attributes) > ATTRIBUTES:
        raise InputRejected(
            f"message {message.id!r} was not published",
            why=f"attribute {long[0][:80]!r} is too long" if long else f"it has more than {ATTRIBUTES} attributes",
            hint="put long text into the body",
        )
    return attributes
