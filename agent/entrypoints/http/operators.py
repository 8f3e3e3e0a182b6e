"""The places of the deciding function for people with a token: decide, turn the kill switch, and look."""

import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import structlog
from flask import Flask, Response, request
from pydantic import Field, ValidationError

from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Channel, Decision
from agent.core.decision.decision import Choice as YesNo
from agent.core.incident.incident import Incident
from agent.core.plan.plan import DIGEST_GIVEN
from agent.core.value import Value
from agent.entrypoints.http.application import Door, RawResponse, refusal, response
from agent.entrypoints.http.authenticator import Authenticator, Principal, Unauthenticated
from agent.entrypoints.http.decide_service import NOT_RECORDED, DecideService, Replayed, until
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.control import KillSwitch
from agent.ports.store import Query
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.shared.database_pair import pairing_fault
from agent.stages.shared.kill_switch import read_kill_switch, set_kill_switch
from agent.strict_json import read_object

BODY_LIMIT: Final = 20_480
ROWS: Final = 5000  # of the record in one answer; Cloud Run sends at most 32 MiB at once. More are asked for piecewise
SHOWN: Final = 200

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_HINT = "send the body that docs/security.md shows, or use the command line"

T = TypeVar("T")
F = TypeVar("F", bound=Value)

log = structlog.get_logger(__name__)


class NotFound(InputRejected):
    """The path names no incident of ours."""


class Body(Value):
    """An answer to a plan.

    Attributes:
        assertion: What Identity-Aware Proxy signed for the person, where the console hands their answer on; the
            person's own ID token stands in a header.
    """

    plan: str = Field(pattern=r"^p-[A-Za-z0-9-]{1,80}$")
    answer: YesNo
    why: str = Field(default="", max_length=1000)
    plan_digest: str | None = Field(default=None, pattern=DIGEST_GIVEN)
    assertion: str | None = Field(default=None, max_length=8192)


class Turn(Value):
    """How the kill switch is to stand."""

    on: bool = Field(strict=True)
    why: str = Field(default="", max_length=1000)


class _Asked(Value):
    """What a list may be asked for."""

    run: str | None = Field(default=None, max_length=200)
    service: str | None = Field(default=None, max_length=253)
    open_only: bool = Field(default=False, alias="open")
    limit: int = Field(default=50, ge=1, le=ROWS)


class _Piece(Value):
    """What of the record is asked for: the newest rows, or the newest before one."""

    limit: int = Field(default=50, ge=1, le=ROWS)
    before: int | None = Field(default=None, ge=1, le=2**62)


def operators(service: DecideService) -> Door:
    """Return the door of people who prove who they are by a token: decide, turn the kill switch, and look.

    200 done, 400 not understood, 401 not authenticated, 403 refused, 404 nothing there, 409 replayed or too late,
    503 not recorded. Refusals say ``what``, ``why`` and ``hint``. Whoever looks must be an approver.
    """
    authenticator = service.authenticator

    def add(web: Flask) -> None:
        if authenticator is None:
            return

        def look(read: Callable[[], Any]) -> Response:
            def work() -> RawResponse:
                _approver(service, authenticator.operator(dict(request.headers)))
                return _json(service.readers.within(service.read_s, read, what="nothing was read"))

            return _answered(work)

        _add_decisions(web, service, authenticator)
        _add_lists(web, service, look)

    return add


def _add_decisions(web: Flask, service: DecideService, authenticator: Authenticator) -> None:
    @web.post("/decisions")
    def decide() -> Response:
        return _answered(lambda: _decide(dict(request.headers), request.get_data(), service, authenticator))

    @web.post("/kill-switch")
    def turn() -> Response:
        return _answered(lambda: _turn(dict(request.headers), request.get_data(), service, authenticator))


def _add_lists(web: Flask, service: DecideService, look: Callable[[Callable[[], Any]], Response]) -> None:
    context = service.world

    @web.get("/kill-switch")
    def kill_switch() -> Response:
        return look(lambda: read_kill_switch(context.control_store()).model_dump(mode="json"))

    @web.get("/databases")
    def databases() -> Response:
        return look(lambda: {"apart": pairing_fault(context)})

    @web.get("/audit")
    def audit() -> Response:
        query = request.query_string
        return look(lambda: [row.model_dump(mode="json") for row in _record(service, _asked(_Piece, query))])

    @web.get("/incidents")
    def incidents() -> Response:
        query = request.query_string
        return look(lambda: [i.model_dump(mode="json") for i in _incidents(service, _asked(_Asked, query))])

    @web.get("/services/<name>")
    def seen(name: str) -> Response:
        return look(lambda: _seen(service, name))

    @web.get("/incidents/<incident_id>")
    def incident(incident_id: str) -> Response:
        return look(lambda: context.store.load(_id(incident_id)).model_dump(mode="json"))

    @web.get("/incidents/<incident_id>/timeline")
    def timeline(incident_id: str) -> Response:
        def read() -> list[dict[str, Any]]:
            found = context.store.load(_id(incident_id))
            return [event.model_dump(mode="json") for event in context.store.timeline(found.id)]

        return look(read)


def _seen(service: DecideService, name: str) -> dict[str, Any] | None:
    """Return what was seen of a service; nothing where it was never seen."""
    if _ID.fullmatch(name) is None:
        raise NotFound("nothing was found", why=f"there is no service {name[:80]!r}", hint="see services.toml")
    records = service.world.service_records
    found = records.service_record(name) if records is not None else None
    return found.model_dump(mode="json") if found is not None else None


def _id(given: str) -> str:
    """Refuse what is no id of ours before a store sees it."""
    if _ID.fullmatch(given) is None:
        raise NotFound("nothing was found", why=f"there is no incident {given[:80]!r}", hint="see: sre-agent incidents")
    return given


def _answered(work: Callable[[], RawResponse]) -> Response:
    try:
        return response(work())
    except SreError as error:
        log.info("operator.refused", place=request.path[:60], error=type(error).__name__, says=str(error))
        return response(_refusal(error))
    except Exception:
        log.exception("decision.failed")
        return response(refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED))


def _decide(
    headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator
) -> RawResponse:
    told = _read(Body, headers, body)
    principal = authenticator.operator(headers) if told.assertion is None else authenticator.visitor(told.assertion)
    if principal.channel is Channel.CONSOLE and told.plan_digest is None:
        raise InputRejected("the answer was not read", why="it does not say which plan was shown", hint=_HINT)
    word = DecisionRequest(
        plan=told.plan,
        answer=told.answer,
        who=principal.who,
        channel=principal.channel,
        verified=True,
        why=told.why,
        plan_digest=told.plan_digest,
        is_awaited=until(service.answer_s),
    )
    decision = service.workers.within(
        service.answer_s, lambda: _once(service, principal, word.plan, lambda: plan_to_decision(service.world, word))
    )
    return _json(_shown(decision))


def _turn(headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator) -> RawResponse:
    told = _read(Turn, headers, body)
    principal = authenticator.operator(headers)
    _approver(service, principal)
    store, control = service.world.store, service.world.control_store()

    def turn() -> KillSwitch:
        return set_kill_switch(store, control, on=told.on, by=principal.who, why=told.why, at=service.clock.now())

    def work() -> KillSwitch:
        # who was given a shared token may send it on; to stop is always safe, so that needs no fresh one
        return _once(service, principal, "kill-switch", turn) if principal.shared and not told.on else turn()

    return _json(service.workers.within(service.answer_s, work).model_dump(mode="json"))


def _once(service: DecideService, principal: Principal, act: str, work: Callable[[], T]) -> T:
    """Use the token up for this act, then do it; what came to nothing may be tried again with the same token."""
    use, control = principal.use(act), service.world.control_store()
    if not control.use_once(use.once, at=service.clock.now(), until=use.until):
        raise Replayed(
            "the request was not taken",
            why="this token was used for it before" if not principal.shared else "this token was used before",
            hint="look at what was recorded: sre-agent incidents; a fresh token may ask again",
        )
    try:
        return work()
    except SreError:
        control.give_back(use.once)
        raise


def _incidents(service: DecideService, asked: _Asked) -> tuple[Incident, ...]:
    limit = min(asked.limit, SHOWN)
    query = Query(run=asked.run, service=asked.service, open_only=asked.open_only, limit=limit)
    return service.world.store.incidents(query)


def _record(service: DecideService, piece: _Piece) -> tuple[AuditRow, ...]:
    return service.world.control_store().audit(piece.limit, before=piece.before)


def _asked(form: type[F], query: bytes) -> F:
    try:
        text = query.decode("latin-1")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=8) if text else []
        return form.model_validate(dict(pairs))
    except ValueError as error:  # pydantic's error is one too
        words = ", ".join(field.alias or name for name, field in form.model_fields.items())
        raise InputRejected("the list was not read", why=_rows(error), hint=f"use some of: {words}") from error


def _approver(service: DecideService, principal: Principal) -> None:
    """Refuse whom the policy names for nothing."""
    policy = service.world.rules.policy
    if policy.approver(principal.channel, principal.who) is None:
        raise PolicyRefused(
            "the request was refused",
            why=policy.bars(principal.channel, principal.who, ""),
            hint="ask an approver, or have yourself added to policy.toml; see docs/policy.md",
        )


def _read(form: type[F], headers: Mapping[str, str], body: bytes) -> F:
    kind = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise InputRejected("the request was not read", why="it is not application/json", hint=_HINT)
    try:
        return form.model_validate(read_object(body, what="request", limit=BODY_LIMIT, hint=_HINT))
    except ValidationError as error:
        raise InputRejected("the request was not read", why=_rows(error), hint=_HINT) from error


def _rows(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)[:200]
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())[:500]


def _shown(decision: Decision) -> dict[str, Any]:
    return {
        "plan": decision.plan,
        "answer": decision.answer.value,
        "who": decision.who,
        "name": decision.shown,
        "verified": decision.verified,
        "at": decision.at.isoformat(),
        "incident": decision.incident,
    }


def _refusal(error: SreError) -> RawResponse:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.SERVICE_UNAVAILABLE)
    told = {"error": str(error), "what": error.what, "why": error.why, "hint": error.hint}
    return status.value, {"content-type": "application/json"}, json.dumps(told).encode()


_STATUS: Final = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Replayed, HTTPStatus.CONFLICT),
    (StateConflict, HTTPStatus.CONFLICT),
    (PolicyRefused, HTTPStatus.FORBIDDEN),
    (InputRejected, HTTPStatus.BAD_REQUEST),
    (DependencyFailed, HTTPStatus.SERVICE_UNAVAILABLE),
)


def _json(value: Any) -> RawResponse:
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()
