"""Slack and signed webhooks: a press of a button or a signed message is one recorded decision."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from flask import Flask, Response, request

from agent.core.decision.decision import Channel, Choice, Decision, Person, Vote
from agent.core.decision.signed_request import Signed, Unsigned
from agent.core.text.safe_text import slack_mrkdwn
from agent.entrypoints.http.application import (
    Door,
    RawResponse,
    Wsgi,
    json_response,
    make_http_app,
    refusal,
)
from agent.entrypoints.http.decide_service import NOT_RECORDED, DecideService, Replayed, answered, until
from agent.entrypoints.http.pagerduty_request import acknowledgement, read_pagerduty_event
from agent.entrypoints.http.slack_request import Press, press_of
from agent.entrypoints.http.webhook_request import WebhookDecision, WebhookRecorded, read_webhook_decision
from agent.errors import DependencyFailed, InputRejected, NotFound, PolicyRefused, SreError, StateConflict
from agent.presentation.sweep.slack_message import sweep_message
from agent.stages.decide_sweep import AskedSweep, SweepAnswer, answer_sweep, asked_sweep
from agent.stages.incident_command import carry_out
from agent.stages.plan_to_decision import DecisionRequest, NotRecorded, plan_to_decision
from agent.stages.request_change import withdraw_request
from agent.stages.tell_sweep import answer_text
from agent.structured_log import structlog

SLACK_PATH = "/slack/actions"
WEBHOOK_PATH = "/webhooks/"
PAGERDUTY_PATH = "/pagerduty/events"

T = TypeVar("T")

log = structlog.get_logger(__name__)


def decisions(service: DecideService) -> Door:
    """Return the door of Slack and of signed webhooks.

    ``POST /slack/actions`` and ``POST /webhooks/NAME``; a prefix before them does not matter. No header says who
    somebody is; a signature proves it. 200 received, 400 not understood, 401 not signed, 403 refused, 404 no such plan,
    409 replayed or somebody was faster, 503 not recorded. Slack gets 200 for whatever it signed and the store could
    say; the person reads a refusal in Slack.
    """

    def add(web: Flask) -> None:
        @web.post(SLACK_PATH)
        @web.post(f"/<path:_>{SLACK_PATH}")
        def press(_: str = "") -> Response:
            """Take a press of a button in Slack."""
            return answered(lambda: _slack(dict(request.headers), request.get_data(), service), _refused)

        @web.post(PAGERDUTY_PATH)
        @web.post(f"/<path:_>{PAGERDUTY_PATH}")
        def pagerduty(_: str = "") -> Response:
            """Take an event of PagerDuty; an acknowledgement there is one here."""
            return answered(lambda: _pagerduty(dict(request.headers), request.get_data(), service), _refused)

        @web.post(f"{WEBHOOK_PATH}<path:sender>")
        @web.post(f"/<path:_>{WEBHOOK_PATH}<path:sender>")
        def webhook(sender: str, _: str = "") -> Response:
            """Take an answer to a plan, signed as Standard Webhooks has it."""
            return answered(lambda: _webhook(sender, dict(request.headers), request.get_data(), service), _refused)

    return add


def _slack(headers: Mapping[str, str], body: bytes, service: DecideService) -> RawResponse:
    if service.slack_secret is None:
        raise Unsigned("the press was not taken", why="no Slack app is set up", hint="see docs/slack.md")
    press = press_of(headers, body, secret=service.slack_secret, now=service.clock.now())
    if press.answer is None and not press.request:
        return 200, {}, b""
    try:
        service.workers.within(service.answer_s, _work_of(press, service))
    except SreError as error:
        log.info(
            "press.refused",
            about=press.plan or press.request or press.sweep,
            error=type(error).__name__,
            says=str(error),
        )
        lost = isinstance(error, DependencyFailed | NotRecorded)
        if press.reply_to is not None:
            service.reply(press.reply_to, NOT_RECORDED if lost else slack_mrkdwn(str(error), limit=1500))
        return refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED) if lost else (200, {}, b"")
    return 200, {}, b""


def _webhook(sender: str, headers: Mapping[str, str], body: bytes, service: DecideService) -> RawResponse:
    received = read_webhook_decision(sender, headers, body, secrets=service.webhook_secrets, now=service.clock.now())
    decision_request = _decision_request(received, service.answer_s)
    decision = service.workers.within(service.answer_s, lambda: _record(service, received.signed, decision_request))
    said = WebhookRecorded(
        plan=decision.plan,
        answer=decision.answer,
        who=decision.shown,
        at=decision.at,
        decided=isinstance(decision, Decision),
    )
    return json_response(said.model_dump(mode="json"))


def _pagerduty(headers: Mapping[str, str], body: bytes, service: DecideService) -> RawResponse:
    """Take an acknowledgement; what is signed and changes nothing is received too, or PagerDuty would stop sending."""
    event = read_pagerduty_event(headers, body, secrets=service.pagerduty_secrets, now=service.clock.now())
    asked = acknowledgement(event, until(service.answer_s))
    if asked is None:
        return _received(f"{event.kind} changes nothing here")
    try:
        service.workers.within(
            service.answer_s, lambda: _once(service, event.signed, lambda: carry_out(service.context, asked))
        )
    except NotRecorded:
        raise
    except (PolicyRefused, InputRejected) as error:
        log.info("pagerduty.refused", incident=asked.incident, error=type(error).__name__, says=str(error))
        return _received(str(error))
    return _received("")


def _received(ignored: str) -> RawResponse:
    return json_response({"ignored": ignored} if ignored else {})


def _work_of(press: Press, service: DecideService) -> Callable[[], object]:
    """Return what records a press: an answer to a plan or a load measurement, or the end of a request."""
    awaited, answer = until(service.answer_s), press.answer
    if answer is None or press.request:
        return lambda: _once(service, press.signed, partial(_take_back, service, press, awaited))
    if press.sweep:
        return lambda: _once(service, press.signed, partial(_answer_sweep, service, press, answer, awaited))
    decision_request = _request_of_press(press, answer, awaited)
    return lambda: _record(service, press.signed, decision_request)


def _take_back(service: DecideService, press: Press, is_awaited: Callable[[], bool]) -> object:
    if not is_awaited():
        raise NotRecorded(
            f"request {press.request!r} was not taken back", why="it took longer than Slack waits", hint="press again"
        )
    context, person = service.context, Person(who=press.user, channel=Channel.SLACK, verified=True)
    return withdraw_request(context, press.request, person, why="")


def _answer_sweep(service: DecideService, press: Press, answer: Choice, is_awaited: Callable[[], bool]) -> object:
    asked = asked_sweep(service.context, press.sweep)
    if not asked.waits:
        _collapse(service, press, asked)  # answered elsewhere meanwhile; the refusal says by whom
    word = SweepAnswer(
        sweep=press.sweep, answer=answer, by=Person(who=press.user, channel=Channel.SLACK, verified=True)
    )
    done = answer_sweep(service.context, word, is_awaited=is_awaited)
    if not done.waits:
        _collapse(service, press, done)
    if press.reply_to is not None:
        said = "approved; it starts when its command runs" if done.grant is not None else "rejected"
        if done.waits:
            said = f"approved by {len(done.given)} of {done.needed} people; another person must approve it too"
        service.reply(press.reply_to, f"The load measurement {press.sweep} is {said}.")
    return done


def _collapse(service: DecideService, press: Press, done: AskedSweep) -> None:
    """Take the buttons off the message of a load measurement that was answered, for everybody."""
    if press.reply_to is None:
        return
    said = answer_text(service.context, done)
    message = sweep_message(done.sweep, redact=service.context.rules.redact, console_url="", answered=said)
    service.replace(press.reply_to, message)


def _request_of_press(press: Press, answer: Choice, is_awaited: Callable[[], bool]) -> DecisionRequest:
    return DecisionRequest(
        plan=press.plan,
        answer=answer,
        by=Person(who=press.user, channel=Channel.SLACK, verified=True),
        why=press.why,
        plan_digest=press.plan_digest,
        break_glass=press.break_glass,
        withdraw=press.withdraw,
        is_awaited=is_awaited,
    )


def _decision_request(received: WebhookDecision, answer_s: float) -> DecisionRequest:
    return DecisionRequest(
        plan=received.data.plan,
        answer=received.data.answer,
        by=Person(who=received.sender, channel=Channel.WEBHOOK, verified=True),
        why=received.data.why,
        plan_digest=received.data.plan_digest,
        is_awaited=until(answer_s),
    )


def _record(service: DecideService, signed: Signed, decision_request: DecisionRequest) -> Decision | Vote:
    """Use the request up, then decide."""
    return _once(service, signed, lambda: plan_to_decision(service.context, decision_request))


def _once(service: DecideService, signed: Signed, work: Callable[[], T]) -> T:
    """Use the request up, then do it; where the stores fail in between, the request may be sent again."""
    control = service.context.control_store()
    if not control.use_once(signed.once, at=service.clock.now(), until=signed.until):
        raise Replayed("the request was not taken", why="it was used before", hint="send a new one, with a new id")
    try:
        return work()
    except (DependencyFailed, NotRecorded):
        control.give_back(signed.once)
        raise


def _refused(error: SreError) -> RawResponse:
    if isinstance(error, Unsigned):
        return refusal(HTTPStatus.UNAUTHORIZED, error.what)
    if isinstance(error, Replayed | StateConflict) and not isinstance(error, NotRecorded):
        return refusal(HTTPStatus.CONFLICT, str(error))
    if isinstance(error, PolicyRefused):
        return refusal(HTTPStatus.FORBIDDEN, str(error))
    if isinstance(error, NotFound):
        return refusal(HTTPStatus.NOT_FOUND, str(error))
    if isinstance(error, InputRejected):
        return refusal(HTTPStatus.BAD_REQUEST, str(error))
    return refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED)


def beside(app: Wsgi, service: DecideService, *others: Door, by_header: str | None = None) -> Wsgi:
    """Return a web application that lets Slack and webhooks in by their own paths, and everybody else to ``app``.

    Args:
        app: The console.
        service: What Slack and webhooks are answered with.
        others: Further doors, for requests that carry ``by_header``.
        by_header: The header that tells a program with a token from a browser.
    """
    door = make_http_app(decisions(service), *others)
    marked = f"HTTP_{by_header.upper().replace('-', '_')}" if by_header else None

    def both(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", ""))
        machine = (
            path in {SLACK_PATH, PAGERDUTY_PATH}
            or path.startswith(WEBHOOK_PATH)
            or (marked is not None and marked in environ)
        )
        return (door if machine else app)(environ, start)

    return both
