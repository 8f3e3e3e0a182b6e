"""The gate of the settings, and its place behind a web server: as a function, or beside the console."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agent.app.channels import decider_secrets, slack_reply, slack_secret
from agent.app.stores import machine_clock
from agent.entrypoints.decide import SLACK_PATH, WEBHOOK_PATH, Gate, decide_request
from agent.entrypoints.key_set import GOOGLE_KEYS, IAP_KEYS, KeySet
from agent.entrypoints.proofs import Proofs
from agent.entrypoints.slack_request import BODY_LIMIT
from agent.ports.stage_context import StageContext
from agent.settings import Settings

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def gate_of(settings: Settings, world: StageContext) -> Gate:
    """Return the gate of an installation; without secrets in the settings it refuses everything."""
    return Gate(
        world=world,
        clock=machine_clock(),
        slack_secret=slack_secret(settings),
        webhook_secrets=decider_secrets(settings),
        reply=slack_reply(),
        proofs=proofs_of(settings),
    )


def proofs_of(settings: Settings) -> Proofs:
    """Return what people of the command line and the console are known by; nothing is fetched before it is needed."""
    clock = machine_clock()
    return Proofs(
        clock=clock,
        google=KeySet(clock, url=GOOGLE_KEYS, holder="Google's accounts"),
        iap=KeySet(clock, url=IAP_KEYS, holder="Identity-Aware Proxy"),
        audiences=settings.id_token_audiences,
        own=settings.decide_url,
        iap_audience=settings.iap_audience,
    )


def respond(request: "Request", gate: Gate) -> "Response":
    """Answer one request of a web server; reads no more of the body than an answer may have."""
    from werkzeug.wrappers import Response

    body = request.stream.read(BODY_LIMIT + 1)
    query = request.query_string.decode("latin-1")
    status, headers, said = decide_request(
        request.method, request.path, dict(request.headers), body, gate=gate, query=query
    )
    return Response(said, status=status, headers={"cache-control": "no-store"} | headers)


def beside(app: Wsgi, gate: Gate) -> Wsgi:
    """Return a web application that lets Slack and webhooks in by their own paths, and everybody else to ``app``."""
    from werkzeug.wrappers import Request

    def both(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        if path == SLACK_PATH or path.startswith(WEBHOOK_PATH):
            return respond(Request(environ), gate)(environ, start)
        return app(environ, start)

    return both
