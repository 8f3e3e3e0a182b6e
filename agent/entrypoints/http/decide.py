"""Slack and signed webhooks: a press of a button or a signed message is one recorded decision."""

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from flask import Flask, Response, request

from agent.core.decision.decision import Channel, Decision
from agent.core.decision.signed_request import Signed, Unsigned
from agent.core.text.safe_text import slack_mrkdwn
from agent.entrypoints.http.application import Answer, Door, Wsgi, make_http_app, refusal, response
from agent.entrypoints.http.gate import NOT_RECORDED, Gate, Replayed, until
from agent.entrypoints.http.slack_request import Press, press_of
from agent.entrypoints.http.webhook_request import Said, said_by
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.stages.plan_to_decision import DecisionRequest, NotRecorded, plan_to_decision

SLACK_PATH = "/slack/actions"
WEBHOOK_PATH = "/webhooks/"

log = structlog.get_logger(__name__)


def decisions(gate: Gate) -> Door:
    """Return the door of Slack and of signed webhooks.

    ``POST /slack/actions`` and ``POST /webhooks/NAME``; a prefix before them does not matter. No header says who
    somebody is; a signature proves it. 200 heard, 400 not understood, 401 not signed, 403 refused, 409 replayed or
    somebody was faster, 503 not recorded. Slack gets 200 for whatever it signed and the store could say; the person
    reads a refusal in Slack.
    """

    def add(web: Flask) -> None:
        @web.post(SLACK_PATH)
        @web.post(f"/<path:_>{SLACK_PATH}")
        def press(_: str = "") -> Response:
            return _answered(lambda: _slack(dict(request.headers), request.get_data(), gate))

        @web.post(f"{WEBHOOK_PATH}<path:sender>")
        @web.post(f"/<path:_>{WEBHOOK_PATH}<path:sender>")
        def webhook(sender: str, _: str = "") -> Response:
            return _answered(lambda: _webhook(sender, dict(request.headers), request.get_data(), gate))

    return add


def _answered(work: Callable[[], Answer]) -> Response:
    try:
        return response(work())
    except SreError as error:
        return response(_refused(error))
    except Exception:
        log.exception("decision.failed")
        return response(refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED))


def _slack(headers: Mapping[str, str], body: bytes, gate: Gate) -> Answer:
    if gate.slack_secret is None:
        raise Unsigned("the press was not taken", why="no Slack app is set up", hint="see docs/slack.md")
    press = press_of(headers, body, secret=gate.slack_secret, now=gate.clock.now())
    if press.answer is None:
        return 200, {}, b""
    word = _word_of(press, gate.answer_s)
    try:
        gate.workers.within(gate.answer_s, lambda: _record(gate, press.signed, word))
    except SreError as error:
        log.info("press.refused", plan=press.plan, error=type(error).__name__, says=str(error))
        lost = isinstance(error, DependencyFailed | NotRecorded)
        if press.reply_to is not None:
            gate.reply(press.reply_to, NOT_RECORDED if lost else slack_mrkdwn(str(error), limit=1500))
        return refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED) if lost else (200, {}, b"")
    return 200, {}, b""


def _webhook(sender: str, headers: Mapping[str, str], body: bytes, gate: Gate) -> Answer:
    heard = said_by(sender, headers, body, secrets=gate.webhook_secrets, now=gate.clock.now())
    word = _word_said(heard, gate.answer_s)
    decision = gate.workers.within(gate.answer_s, lambda: _record(gate, heard.signed, word))
    shown = {"plan": decision.plan, "answer": decision.answer, "who": decision.shown, "at": decision.at.isoformat()}
    return 200, {"content-type": "application/json"}, json.dumps(shown).encode()


def _word_of(press: Press, answer_s: float) -> DecisionRequest:
    assert press.answer is not None
    return DecisionRequest(
        plan=press.plan,
        answer=press.answer,
        who=press.user,
        channel=Channel.SLACK,
        verified=True,
        why=press.why,
        plan_digest=press.plan_digest,
        is_awaited=until(answer_s),
    )


def _word_said(heard: Said, answer_s: float) -> DecisionRequest:
    return DecisionRequest(
        plan=heard.data.plan,
        answer=heard.data.answer,
        who=heard.sender,
        channel=Channel.WEBHOOK,
        verified=True,
        why=heard.data.why,
        plan_digest=heard.data.plan_digest,
        is_awaited=until(answer_s),
    )


def _record(gate: Gate, signed: Signed, word: DecisionRequest) -> Decision:
    """Use the request up, then decide; where the stores fail in between, the request may be sent again."""
    control = gate.world.control_store()
    if not control.use_once(signed.once, at=gate.clock.now(), until=signed.until):
        raise Replayed("the request was not taken", why="it was used before", hint="send a new one, with a new id")
    try:
        return plan_to_decision(gate.world, word)
    except (DependencyFailed, NotRecorded):
        control.give_back(signed.once)
        raise


def _refused(error: SreError) -> Answer:
    if isinstance(error, Unsigned):
        return refusal(HTTPStatus.UNAUTHORIZED, error.what)
    if isinstance(error, Replayed | StateConflict) and not isinstance(error, NotRecorded):
        return refusal(HTTPStatus.CONFLICT, str(error))
    if isinstance(error, PolicyRefused):
        return refusal(HTTPStatus.FORBIDDEN, str(error))
    if isinstance(error, InputRejected):
        return refusal(HTTPStatus.BAD_REQUEST, str(error))
    return refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED)


def beside(app: Wsgi, gate: Gate) -> Wsgi:
    """Return a web application that lets Slack and webhooks in by their own paths, and everybody else to ``app``."""
    door = make_http_app(decisions(gate))

    def both(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        return (door if path == SLACK_PATH or path.startswith(WEBHOOK_PATH) else app)(environ, start)

    return both
