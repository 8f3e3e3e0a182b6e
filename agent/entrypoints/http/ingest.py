"""Senders that post and cannot publish: their secret is checked, their body is understood, then it is a message."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import MethodNotAllowed

from agent.app import App
from agent.core.intake.cloudevents import data_of
from agent.core.intake.json_fields import shown
from agent.core.intake.origin import Ignored, IgnoredBecause, Reading
from agent.core.intake.read import BODY_LIMIT, shape_of, signals_of
from agent.core.intake.signal import LIVE
from agent.core.value import short_id
from agent.entrypoints.http.application import Door, Wsgi, make_http_app
from agent.errors import DependencyFailed, InputRejected, SettingsRejected, SreError
from agent.ports.bus import Message, Topic
from agent.strict_json import read_object
from agent.structured_log import structlog

SECRET_BYTES = 16  # the least length of a secret
PROOF_HEADER = "x-sre-secret"
INGEST_PATH = "/ingest/"
SENT_LIMIT = BODY_LIMIT  # bytes of one post: several alerts in one body
SHOWN = 5  # names in an answer
CLOUDEVENTS = "cloudevents"  # the sender whose bodies are envelopes
MOST_PER_MIN = 600  # posts that one sender is granted
_ORIGIN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?")
_RATE = re.compile(r"[1-9][0-9]{0,8}")
SHAPES_OF: dict[str, frozenset[str]] = {
    "alertmanager": frozenset({"alertmanager"}),
    "grafana": frozenset({"grafana"}),
    "datadog": frozenset({"datadog"}),
    "cloudevents": frozenset(
        {"alertmanager", "grafana", "datadog", "azure_alert", "container_apps", "kubernetes_event", "pod"}
    ),
    "azure": frozenset({"azure_alert", "container_apps"}),
    "eventbridge": frozenset({"eventbridge"}),
    "kubernetes": frozenset({"kubernetes_event", "pod"}),
    "tpu": frozenset({"tpu"}),
}
"""The senders by kind; none of them may speak as Cloud Logging or Cloud Monitoring, which publish themselves."""


log = structlog.get_logger(__name__)


class NotAuthenticated(InputRejected):
    """The sender did not prove who it is; the answer never says which part was wrong."""


class TooLarge(InputRejected):
    """The body is longer than any alert."""


@dataclass(frozen=True, kw_only=True)
class Sender:
    """A sender that we know by its secret.

    A secret comes as ``Authorization: Bearer SECRET``, as basic authentication with the sender's name as user, or in
    the header ``X-Sre-Secret``: Alertmanager can send each of them, EventBridge the last two.

    Attributes:
        name: What stands in the path and in the message's attributes.
        shapes: The shapes it may send, names of :data:`agent.core.intake.read.SHAPES`.
        secret: Known to both sides; at least ``SECRET_BYTES`` bytes, not shown.
    """

    name: str
    shapes: frozenset[str]
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a sender whose check could be passed with nothing."""
        if len(self.secret) < SECRET_BYTES:
            raise InputRejected(
                f"the sender {self.name!r} cannot be checked",
                why=f"it needs a secret of at least {SECRET_BYTES} bytes",
                hint="set a longer one",
            )


def senders_of(secrets: Mapping[str, bytes]) -> dict[str, Sender]:
    """Return the senders by name, each with the shapes that its kind sends.

    Args:
        secrets: Secret by name; a name is one of ``SHAPES_OF``.

    Raises:
        SettingsRejected: With every unknown name and every short secret.
    """
    made: dict[str, Sender] = {}
    mistakes: list[str] = []
    for name, secret in secrets.items():
        if name not in SHAPES_OF:
            mistakes.append(f"{name!r} is no sender, want one of {', '.join(SHAPES_OF)}")
            continue
        try:
            made[name] = Sender(name=name, shapes=SHAPES_OF[name], secret=secret)
        except InputRejected as error:
            mistakes.append(f"{name!r}: {error.why}")
    if mistakes:
        raise SettingsRejected(
            f"{len(mistakes)} of the senders cannot be used", why="; ".join(mistakes), hint="correct INGEST_SECRETS"
        )
    return made


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A body that was understood.

    Attributes:
        message: To publish, and to be confirmed before the sender is answered; None where all of it is ignored.
        says: The answer's body.
    """

    message: Message | None
    says: str


def alerts(app: App) -> Door:
    """Return the door of senders that cannot publish; 200 only when the bus has confirmed their alert.

    Raises:
        SettingsRejected: A sender of the settings cannot be checked.
    """
    secrets = app.settings.ingest_secrets
    senders = senders_of({name: secret.get_secret_value().encode() for name, secret in secrets.items()})

    def add(web: Flask) -> None:
        @web.post("/")
        @web.post("/<path:path>")
        def alert(path: str = "") -> Response:
            """Take an alert or an event of a sender that is known by its secret."""
            name = path.rpartition("/")[2]
            try:
                accepted = ingest(
                    name, dict(request.headers), request.get_data(), senders=senders, reading=app.reading()
                )
                if accepted.message is not None:
                    app.bus.publish(accepted.message)
                else:
                    log.info("alert.ignored", sender=name, says=accepted.says)
            except SreError as error:
                status, says = answer_to(error)
                log.warning("alert.refused", status=status, error=str(error))
                return Response(f"{says}\n", status=status, mimetype="text/plain")
            return Response(f"{accepted.says}\n", mimetype="text/plain")

        @web.route("/<path:path>", methods=["OPTIONS"])
        def handshake(path: str) -> Response:
            """Grant a sender of CloudEvents the right to post here."""
            if path.rpartition("/")[2] != CLOUDEVENTS or CLOUDEVENTS not in senders:
                raise MethodNotAllowed(valid_methods=["POST"])
            try:
                return Response(status=200, headers=granted(dict(request.headers)))
            except InputRejected as error:
                return Response(f"{error}\n", status=400, mimetype="text/plain")

    return add


def granted(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that answer a sender of CloudEvents who asks whether it may post here.

    Whoever asks may: a post counts only with the sender's secret. ``WebHook-Request-Callback`` is not followed, because
    it would have us call an address that anybody names.
    https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md (2026-11-23)

    Raises:
        InputRejected: It does not say who asks, or asks for a rate that is none.
    """
    asked = {name.lower(): value for name, value in headers.items()}
    origin, rate = asked.get("webhook-request-origin", ""), asked.get("webhook-request-rate")
    if not _ORIGIN.fullmatch(origin):
        raise _no_handshake("WebHook-Request-Origin", origin, "the name of your host")
    allowed = {"Allow": "POST", "WebHook-Allowed-Origin": origin}
    if rate is None:
        return allowed
    if not _RATE.fullmatch(rate):
        raise _no_handshake("WebHook-Request-Rate", rate, "requests per minute, such as 120")
    return allowed | {"WebHook-Allowed-Rate": str(min(int(rate), MOST_PER_MIN))}


def _no_handshake(header: str, value: str, want: str) -> InputRejected:
    return InputRejected("the right to post was not granted", why=f"{header} is {value[:80]!r}", hint=f"send {want}")


def beside_console(console: Wsgi, app: App) -> Wsgi:
    """Return a web application that lets senders in under ``POST /ingest/NAME``, and everybody else to the console.

    Raises:
        SettingsRejected: A sender of the settings cannot be checked.
    """
    door = make_http_app(alerts(app))

    def both(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        sends = str(environ.get("PATH_INFO", "")).startswith(INGEST_PATH)
        return (door if sends else console)(environ, start)

    return both


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
        InputRejected: Not JSON, no CloudEvent where one is wanted, or not a shape that this sender may send.
        DependencyFailed: The token could not be checked.
    """
    if len(body) > BODY_LIMIT:
        raise TooLarge(
            "the body was not taken",
            why=f"it has {len(body)} bytes, at most {BODY_LIMIT} are taken",
            hint="send fewer alerts at once",
        )
    sender = senders.get(name)
    if not _proved(sender, {key.lower(): value for key, value in headers.items()}) or sender is None:
        raise NotAuthenticated(
            "the request was not taken",
            why="it does not prove that it comes from a sender we know",
            hint="send the credential that was set for this sender",
        )
    if sender.name == CLOUDEVENTS:
        body = data_of({key.lower(): value for key, value in headers.items()}, body, limit=BODY_LIMIT)
    taken = signals_of(_permitted(sender, read_object(body, what="body", limit=BODY_LIMIT)), reading)
    if not taken.signals:
        return Accepted(message=None, says=_ignored(taken.ignored))
    text = body.decode()
    message = Message(
        id=short_id("alert", {"sender": sender.name, "body": text}),
        topic=Topic.ALERTS,
        data=text,
        attributes={"run": LIVE, "kind": taken.shape, "sender": sender.name},
    )
    also = f"; {_ignored(taken.ignored)}" if taken.ignored else ""
    return Accepted(message=message, says=f"accepted {len(taken.signals)}{also}")


def _ignored(items: tuple[Ignored, ...]) -> str:
    """Say what became no signal and why, each name once; who sent it can mend it where it should have been one."""
    said = list(dict.fromkeys(f"{item.because} {shown(item.what)}" if item.what else item.because for item in items))
    more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    unknown = any(item.because is IgnoredBecause.NOT_WATCHED for item in items)
    hint = ". Hint: name its service, workload and namespace in services.toml" if unknown else ""
    return f"ignored: {', '.join(said[:SHOWN])}{more}{hint}"


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
            hint="post it under the sender that is set for it",
        )
    return body


def _proved(sender: Sender | None, headers: Mapping[str, str]) -> bool:
    """Compare in constant time and every way at once, and against something where the sender is unknown."""
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    bearer = credential.strip() if scheme.lower() == "bearer" else ""
    secret = sender.secret if sender is not None else None
    expected = secret or b"\0" * SECRET_BYTES
    user = f"{sender.name if sender is not None else ''}:".encode()
    basic = _basic(credential) if scheme.lower() == "basic" else b""
    ways = (
        _equal(bearer.encode("utf-8", "replace"), expected),
        _equal(headers.get(PROOF_HEADER, "").encode("utf-8", "replace"), expected),
        _equal(basic, user + expected),
    )
    return any(ways) and secret is not None


def _basic(packed: str) -> bytes:
    try:
        return base64.b64decode(packed.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _equal(one: bytes, other: bytes) -> bool:
    """Compare digests, so that not even the length can be measured."""
    return hmac.compare_digest(hashlib.sha256(one).digest(), hashlib.sha256(other).digest())
