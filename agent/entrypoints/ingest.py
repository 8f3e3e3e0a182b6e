"""Senders that post and cannot publish: their secret is checked, their body is understood, then it is a message."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.core.intake.origin import Reading
from agent.core.intake.read import BODY_LIMIT, shape_of, signals_of
from agent.core.intake.wire import shown
from agent.core.signal import LIVE
from agent.core.value import short_id
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.ports.bus import Message, Topic
from agent.strict_json import read_object

SECRET_BYTES = 16  # the least length of a secret

Oidc = Callable[[str], bool]
"""Whether a bearer token is one of the sender's; raises DependencyFailed where that cannot be found out."""


class NotAuthenticated(InputRejected):
    """The sender did not prove who it is; the answer never says which part was wrong."""


class TooLarge(InputRejected):
    """The body is longer than any alert."""


@dataclass(frozen=True, kw_only=True)
class Sender:
    """A sender that we know.

    Attributes:
        name: What stands in the path and in the message's attributes.
        shapes: The shapes it may send, names of :data:`agent.core.intake.read.SHAPES`.
        header: The header that carries ``secret``, for senders that can set one.
        user: The user of basic authentication with ``secret``; needs no ``header``.
        secret: Known to both sides; at least ``SECRET_BYTES`` bytes, not shown.
        oidc: Checks a bearer token instead of a secret.
    """

    name: str
    shapes: frozenset[str]
    header: str | None = None
    user: str | None = None
    secret: bytes | None = None
    oidc: Oidc | None = None

    def __post_init__(self) -> None:
        """Refuse a sender whose check could be passed with nothing."""
        by_secret = self.header is not None or self.user is not None
        if by_secret == (self.oidc is not None) or (by_secret and len(self.secret or b"") < SECRET_BYTES):
            raise InputRejected(
                f"the sender {self.name!r} cannot be checked",
                why=f"it needs a secret of {SECRET_BYTES} bytes with a header or a user, or a token check",
                mend="set its secret, and one of header, user and token check",
            )

    def __repr__(self) -> str:
        return f"Sender({self.name!r})"


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A body that was understood.

    Attributes:
        message: To publish, and to be confirmed before the sender is answered; None where all of it is ignored.
        says: The answer's body.
    """

    message: Message | None
    says: str


def ingest(
    name: str, headers: Mapping[str, str], body: bytes, *, senders: Mapping[str, Sender], reading: Reading
) -> Accepted:
    """Check the sender, understand the body, and return the message to publish.

    Args:
        name: The sender as the path names it.
        headers: Of the request, in any case.
        body: Of the request, as it came.
        senders: Those we know, by name.
        reading: What the bodies are read with; a message is made only where something is watched.

    Raises:
        NotAuthenticated: Unknown sender, or a wrong or missing proof.
        TooLarge: More than ``BODY_LIMIT`` bytes.
        InputRejected: Not JSON, or not a shape that this sender may send.
        DependencyFailed: The token could not be checked.
    """
    if len(body) > BODY_LIMIT:
        raise TooLarge(
            "the body was not taken",
            why=f"it has {len(body)} bytes, at most {BODY_LIMIT} are taken",
            mend="send fewer alerts at once",
        )
    sender = senders.get(name)
    if not _proved(sender, {key.lower(): value for key, value in headers.items()}) or sender is None:
        raise NotAuthenticated(
            "the request was not taken",
            why="it does not prove that it comes from a sender we know",
            mend="send the credential that was set for this sender",
        )
    taken = signals_of(_permitted(sender, read_object(body, what="body", limit=BODY_LIMIT)), reading)
    if not taken.signals:
        return Accepted(message=None, says="ignored: " + ", ".join(sorted({item.because for item in taken.ignored})))
    text = body.decode()
    message = Message(
        id=short_id("alert", {"sender": sender.name, "body": text}),
        topic=Topic.ALERTS,
        data=text,
        attributes={"run": LIVE, "kind": taken.shape, "sender": sender.name},
    )
    return Accepted(message=message, says=f"accepted {len(taken.signals)}")


def answer_to(error: SreError) -> tuple[int, str]:
    """Return HTTP status and body for a sender: 4xx where trying again is no use, 503 where it is."""
    if isinstance(error, DependencyFailed) or error.redeliver:
        return 503, "not taken, try again"
    if isinstance(error, NotAuthenticated):
        return 401, error.what
    return (413 if isinstance(error, TooLarge) else 400), str(error)


def _permitted(sender: Sender, body: dict[str, object]) -> dict[str, object]:
    shape, _ = shape_of(body)
    if shape not in sender.shapes:
        raise InputRejected(
            "the body was not taken",
            why=f"it is {shown(shape)}, this sender may send {', '.join(sorted(sender.shapes))}",
            mend="post it under the sender that is set for it",
        )
    return body


def _proved(sender: Sender | None, headers: Mapping[str, str]) -> bool:
    """Compare in constant time, and against something where the sender is unknown."""
    if sender is None:
        _equal(headers.get("authorization", "").encode("utf-8", "replace"), b"\0" * SECRET_BYTES)
        return False
    if sender.oidc is not None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and bool(token) and _token_holds(sender.oidc, token.strip())
    secret = sender.secret or b""
    if sender.header is not None:
        shown_secret = headers.get(sender.header.lower(), "")
        return _equal(shown_secret.encode("utf-8", "replace"), secret)
    return _equal(_basic(headers.get("authorization", "")), f"{sender.user}:".encode() + secret)


def _token_holds(check: Oidc, token: str) -> bool:
    try:
        return check(token) is True
    except SreError:
        raise
    except Exception as error:
        raise DependencyFailed(
            "the sender's token was not checked", why=f"the check failed: {type(error).__name__}", mend="send it again"
        ) from error


def _basic(header: str) -> bytes:
    scheme, _, packed = header.partition(" ")
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(packed.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _equal(one: bytes, other: bytes) -> bool:
    """Compare digests, so that not even the length can be measured."""
    return hmac.compare_digest(hashlib.sha256(one).digest(), hashlib.sha256(other).digest())
