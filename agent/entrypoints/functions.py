"""What the deployed functions call: a request becomes a delivery, a tick, an alert or a page, and its outcome a status.

Who may call is settled before we are asked: every function but `ingest`, `decide` and `console` is private, and Cloud
Run's own IAM check has verified the pusher's or scheduler's OIDC token (signature, issuer, audience, account). A second
check here would need the same keys and prove the same thing. `ingest` checks each sender's secret or token itself,
`console` the IAP assertion, `decide` signatures.
"""

from __future__ import annotations

import io
import os
import threading
from functools import cache
from typing import TYPE_CHECKING

import structlog

from agent.app import App, Role, build_app
from agent.app.catalogues import matcher, redactor
from agent.core.intake.read import BODY_LIMIT
from agent.entrypoints.cli.loading import loading
from agent.entrypoints.outcome import Handle
from agent.entrypoints.pubsub import PUSH_LIMIT, answer, receive_push
from agent.entrypoints.request_body import BodyReader, BodyRefused
from agent.entrypoints.service import handler, report
from agent.entrypoints.telemetry import configure_log, current_trace, follow, traced
from agent.errors import SreError
from agent.ports.bus import Delivery, Topic
from agent.ports.stage_context import Owner
from agent.settings import Settings, read_settings

if TYPE_CHECKING:
    from flask import Flask, Request
    from werkzeug.wrappers import Response

    from agent.entrypoints.decide_gate import Gate
    from agent.entrypoints.ingest import Sender

Answer = tuple[str, int]

NEVER_STORED = {"cache-control": "no-store"}

log = structlog.get_logger(__name__)

_opening = threading.Lock()


def push(request: Request, owner: Owner, topic: Topic) -> Answer:
    """Handle one pushed message.

    Args:
        request: In any form that Pub/Sub or Eventarc sends.
        owner: Which function we are.
        topic: The topic that the function is bound to.

    Returns:
        200 once its work is committed and its messages are sent, or when it can never succeed and is kept aside;
        503 where another delivery can help.
    """
    if request.method != "POST":
        return "POST a Pub/Sub message\n", 405
    headers = dict(request.headers)
    with traced(headers, project=project()):
        try:
            app = app_of(Role(owner))
        except SreError as error:
            return unopened(error)
        body = request.stream.read(PUSH_LIMIT + 1)
        handle = following(handler(app, topic))
        outcome = receive_push(headers, body, handle, app.quarantine, topic=topic, report=report)
    status, said = answer(outcome)
    return said, status


def following(handle: Handle) -> Handle:
    """Let the log and the messages of a delivery name the trace in which its story began."""

    def followed(delivery: Delivery) -> None:
        follow(delivery.attributes.get("trace", ""))
        handle(delivery)

    return followed


def tick(request: Request) -> Answer:
    """Run what time has made due; 503 where an incident failed, the others went on."""
    if request.method != "POST":
        return "POST a tick\n", 405
    from agent.entrypoints.handlers import on_tick

    with traced(dict(request.headers), project=project()):
        try:
            on_tick(app_of(Role.TICK).contexts[Owner.TICK])
        except SreError as error:
            log.warning("tick.failed", error=str(error))
            return "failed, the next tick goes on\n", 503
    return "ticked\n", 200


def post(request: Request) -> Answer:
    """Take an alert of a sender that cannot publish; 200 only when the bus has confirmed it."""
    from agent.entrypoints.ingest import answer_to

    if request.method != "POST":
        return "POST an alert\n", 405
    with traced(dict(request.headers), project=project()):
        try:
            return f"{_published(request)}\n", 200
        except BodyRefused as error:
            log.warning("alert.refused", status=error.status, error=str(error))
            return f"{error}\n", error.status
        except SreError as error:
            status, says = answer_to(error)
            log.warning("alert.refused", status=status, error=str(error))
            return f"{says}\n", status


def decide(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Answer a press in Slack, a signed webhook, or a person's token; the answer comes from rules that never raise."""
    from agent.entrypoints.decide import decide_request
    from agent.entrypoints.slack_request import BODY_LIMIT as DECIDE_LIMIT

    with traced(dict(request.headers), project=project()):
        try:
            gate = _gate()
        except SreError as error:
            said, status = unopened(error)
            return said.encode(), status, NEVER_STORED
        try:
            body = _bodies().read(request, DECIDE_LIMIT)
        except BodyRefused as error:
            return f"{error}\n".encode(), error.status, NEVER_STORED
        query = request.query_string.decode("latin-1")
        status, headers, answered = decide_request(
            request.method, request.path, dict(request.headers), body, gate=gate, query=query
        )
        return answered, status, NEVER_STORED | headers


def page(request: Request) -> Response:
    """Show the console."""
    from werkzeug.wrappers import Response

    from agent.entrypoints.slack_request import BODY_LIMIT as DECIDE_LIMIT

    with traced(dict(request.headers), project=project()):
        try:
            body = _bodies().read(request, DECIDE_LIMIT)
            environ = request.environ | {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
            return Response.from_app(_console(), environ)
        except BodyRefused as error:
            return Response(f"{error}\n", status=error.status, headers=NEVER_STORED)
        except SreError as error:
            said, status = unopened(error)
            return Response(said, status=status)


def unopened(error: SreError) -> Answer:
    """Answer while store or settings cannot be used: nothing was done, and everything may be sent again."""
    log.error("function.not_opened", error=str(error))
    return "not available, try again\n", 503


@cache
def settings() -> Settings:
    """Return the settings of this process; reading them also chooses how its log is written."""
    found = read_settings()
    configure_log(as_json=True)
    return found


def app_of(role: Role) -> App:
    """Return what this function is made of; opened once, at its first request.

    Not before: the web server forks after it has loaded the function, and neither a database nor a channel may
    cross a fork.
    """
    with _opening:
        return _app(role)


def project() -> str | None:
    """Return the project of this process's traces, where the settings name one."""
    words = (word.partition(":") for word in (settings().bus, settings().store))
    return next((name for kind, _, name in words if kind in {"pubsub", "firestore"}), None)


def warm() -> None:
    """Do what needs neither network nor files of state, so that it is done before the fork."""
    settings()
    matcher()
    redactor()


@cache
def _app(role: Role) -> App:
    with loading():
        return build_app(settings(), role, trace=current_trace)


def _published(request: Request) -> str:
    from agent.entrypoints.ingest import ingest

    app = app_of(Role.INGEST)
    body = _bodies().read(request, BODY_LIMIT)
    name = request.path.rpartition("/")[2]
    accepted = ingest(name, dict(request.headers), body, senders=_senders(), reading=app.reading())
    if accepted.message is not None:
        app.bus.publish(accepted.message)
    return accepted.says


@cache
def _bodies() -> BodyReader:
    """Return what reads the bodies of this process; its threads are counted as functions-framework counts them."""
    threads = os.environ.get("THREADS", "")  # noqa: TID251 - the web server's setting, not one of ours
    return BodyReader(int(threads) if threads.isdigit() else (os.cpu_count() or 1) * 4)


@cache
def _gate() -> Gate:
    from agent.entrypoints.decide_gate import gate_of

    return gate_of(settings(), app_of(Role.DECIDE).contexts[Owner.DECIDE])


@cache
def _console() -> Flask:
    from agent.entrypoints.console.app import make_app
    from agent.entrypoints.console.forwarding import forward_of

    decide = None if settings().embedded else forward_of(settings())  # in the cloud `decide` alone can sign
    (world,) = app_of(Role.CONSOLE).contexts.values()
    return make_app(world, settings=settings(), decide=decide)


@cache
def _senders() -> dict[str, Sender]:
    from agent.entrypoints.ingest import senders_of

    secrets = settings().ingest_secrets
    return senders_of({name: secret.get_secret_value().encode() for name, secret in secrets.items()})
