"""What the public deciding function answers: a press, a signed webhook or a proven person's word is one decision."""

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog

from agent.core.decision.decision import Channel, Decision
from agent.core.decision.signed_request import Signed, Unsigned
from agent.core.text.safe_text import slack_mrkdwn
from agent.entrypoints.decide_gate import Answer, Gate, Replayed, until
from agent.entrypoints.slack_request import BODY_LIMIT, Press, press_of
from agent.entrypoints.webhook_request import Said, said_by
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.stages.plan_to_decision import Unrecorded, Word, plan_to_decision

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

SLACK_PATH = "/slack/actions"
WEBHOOK_PATH = "/webhooks/"
OPEN_PATHS = ("/decisions", "/kill-switch", "/incidents", "/audit", "/databases")
NOT_RECORDED = "not recorded, press again"

log = structlog.get_logger(__name__)


def decide_request(
    method: str, path: str, headers: Mapping[str, str], body: bytes, *, gate: Gate, query: str = ""
) -> Answer:
    """Answer one request; never raises.

    Args:
        method: ``POST``, or it is refused.
        path: ``/slack/actions``, or ``/webhooks/NAME``; a prefix before it does not matter. Or one of the places of
            :mod:`agent.entrypoints.operators`, for whom a token proves.
        headers: Of the request, in any case. No header says who somebody is; a signed token in one proves it.
        body: As it came.
        gate: What it is answered with.
        query: What stands behind the question mark.

    Returns:
        Status, headers, body: 200 heard, 400 not understood, 401 not signed, 403 refused, 404 no such place,
        405 no POST, 409 replayed or somebody was faster, 503 not recorded. Slack gets 200 for whatever it signed and
        the store could say; the person reads a refusal in Slack.
    """
    slack = path.rstrip("/").endswith(SLACK_PATH)
    sender = path.rpartition(WEBHOOK_PATH)[2] if WEBHOOK_PATH in path else ""
    known = gate.proofs is not None and path.startswith(OPEN_PATHS)
    if not slack and not sender and not known:
        return _said(HTTPStatus.NOT_FOUND, "there is nothing here")
    if method != "POST" and not known:
        return HTTPStatus.METHOD_NOT_ALLOWED.value, {"allow": "POST"}, b""
    try:
        if not slack and not sender:
            from agent.entrypoints.operators import operator_request

            return operator_request(method, path, headers, body, gate=gate, query=query)
        return _slack(headers, body, gate) if slack else _webhook(sender, headers, body, gate)
    except SreError as error:
        return _refused(error)
    except Exception:
        log.exception("decision.broke")
        return _said(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED)


def _slack(headers: Mapping[str, str], body: bytes, gate: Gate) -> Answer:
    if gate.slack_secret is None:
        raise Unsigned("the press was not taken", why="no Slack app is set up", mend="see docs/slack.md")
    press = press_of(headers, body, secret=gate.slack_secret, now=gate.clock.now())
    if press.answer is None:
        return 200, {}, b""
    word = _word_of(press, gate.answer_s)
    try:
        gate.workers.within(gate.answer_s, lambda: _record(gate, press.signed, word))
    except SreError as error:
        log.info("press.refused", plan=press.plan, error=type(error).__name__, says=str(error))
        lost = isinstance(error, DependencyFailed | Unrecorded)
        if press.reply_to is not None:
            gate.reply(press.reply_to, NOT_RECORDED if lost else slack_mrkdwn(str(error), limit=1500))
        return _said(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED) if lost else (200, {}, b"")
    return 200, {}, b""


def _webhook(sender: str, headers: Mapping[str, str], body: bytes, gate: Gate) -> Answer:
    heard = said_by(sender, headers, body, secrets=gate.webhook_secrets, now=gate.clock.now())
    word = _word_said(heard, gate.answer_s)
    decision = gate.workers.within(gate.answer_s, lambda: _record(gate, heard.signed, word))
    shown = {"plan": decision.plan, "answer": decision.answer, "who": decision.shown, "at": decision.at.isoformat()}
    return 200, {"content-type": "application/json"}, json.dumps(shown).encode()


def _word_of(press: Press, answer_s: float) -> Word:
    assert press.answer is not None
    return Word(
        plan=press.plan,
        answer=press.answer,
        who=press.user,
        channel=Channel.SLACK,
        verified=True,
        why=press.why,
        plan_digest=press.plan_digest,
        wanted=until(answer_s),
    )


def _word_said(heard: Said, answer_s: float) -> Word:
    return Word(
        plan=heard.data.plan,
        answer=heard.data.answer,
        who=heard.sender,
        channel=Channel.WEBHOOK,
        verified=True,
        why=heard.data.why,
        plan_digest=heard.data.plan_digest,
        wanted=until(answer_s),
    )


def _record(gate: Gate, signed: Signed, word: Word) -> Decision:
    """Use the request up, then decide; where the stores fail in between, the request may be sent again."""
    control = gate.world.control_store()
    if not control.use_once(signed.once, at=gate.clock.now(), until=signed.until):
        raise Replayed("the request was not taken", why="it was used before", mend="send a new one, with a new id")
    try:
        return plan_to_decision(gate.world, word)
    except (DependencyFailed, Unrecorded):
        control.give_back(signed.once)
        raise


def _refused(error: SreError) -> Answer:
    if isinstance(error, Unsigned):
        return _said(HTTPStatus.UNAUTHORIZED, error.what)
    if isinstance(error, Replayed | StateConflict) and not isinstance(error, Unrecorded):
        return _said(HTTPStatus.CONFLICT, str(error))
    if isinstance(error, PolicyRefused):
        return _said(HTTPStatus.FORBIDDEN, str(error))
    if isinstance(error, InputRejected):
        return _said(HTTPStatus.BAD_REQUEST, str(error))
    return _said(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED)


def _said(status: HTTPStatus, text: str) -> Answer:
    return status.value, {"content-type": "application/json"}, json.dumps({"error": text}).encode()


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
