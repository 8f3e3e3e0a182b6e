"""The web application of what comes in beside the console; whoever serves it has read the body, within its limit."""

import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from agent.core.intake.read import BODY_LIMIT
from agent.core.value import Value
from agent.structured_log import structlog

RawResponse = tuple[int, dict[str, str], bytes]
Door = Callable[[Flask], None]
"""Adds the routes of one part."""

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

log = structlog.get_logger(__name__)


def make_http_app(*doors: Door) -> Flask:
    """Return the web application with the routes of its doors; it never raises, and nothing it says is stored."""
    web = Flask("agent.entrypoints.http", static_folder=None, template_folder=None)
    web.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    web.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    web.url_map.strict_slashes = False
    web.url_map.merge_slashes = False
    web.register_error_handler(HTTPException, _no_such_request)
    web.register_error_handler(Exception, _failed)
    web.before_request(_refuse_head)
    web.after_request(_with_headers)
    for door in doors:
        door(web)
    return web


def response(answer: RawResponse) -> Response:
    """Return an answer as Flask sends it."""
    status, headers, body = answer
    return Response(body, status=status, headers=headers)


def json_response(value: Any) -> RawResponse:
    """Return what was asked for."""
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()


class Refusal(Value):
    """Why a request was not done.

    Attributes:
        error: In one sentence.
        what: What failed, where it is known apart.
        why: Why.
        hint: What to do.
    """

    error: str
    what: str = ""
    why: str = ""
    hint: str = ""


def refusal(status: HTTPStatus, text: str, **apart: str) -> RawResponse:
    """Return a refusal in one sentence; ``apart`` has its parts, where they are known."""
    said = Refusal(error=text, **apart).model_dump(exclude_unset=True)
    return status.value, {"content-type": "application/json"}, json.dumps(said).encode()


def _refuse_head() -> None:
    """Flask would answer it as a GET; nobody has a use for it here."""
    if request.method == "HEAD":
        raise MethodNotAllowed(valid_methods=["GET"])


def _no_such_request(error: HTTPException) -> Response:
    if error.code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = sorted(set(getattr(error, "valid_methods", None) or ()) - {"HEAD"})
        return response((HTTPStatus.METHOD_NOT_ALLOWED.value, {"allow": ", ".join(allowed)}, b""))
    if error.code == HTTPStatus.NOT_FOUND:
        return response(refusal(HTTPStatus.NOT_FOUND, "there is nothing here"))
    return response(refusal(HTTPStatus(error.code or 400), error.name))


def _failed(error: Exception) -> Response:
    log.error("request.failed", exc_info=error)
    return response(refusal(HTTPStatus.SERVICE_UNAVAILABLE, "failed, send it again"))


def _with_headers(answered: Response) -> Response:
    for name, value in HEADERS.items():
        answered.headers.setdefault(name, value)
    return answered
