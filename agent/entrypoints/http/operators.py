"""The places of the deciding function for people with a token: decide, ask for a change, stop everything, and look."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from flask import Flask, Response, request
from pydantic import AwareDatetime, Field

from agent.core.database_pair import DatabasePairing
from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Channel, Decision, Person, Vote
from agent.core.decision.decision import Choice as YesNo
from agent.core.decision.limit_use import FARTHEST_BACK
from agent.core.incident.incident import Incident
from agent.core.plan.plan import DIGEST_GIVEN
from agent.core.value import Moment, Value
from agent.entrypoints.http import change_requests, incident_commands, sweep_requests
from agent.entrypoints.http.application import Door, RawResponse, json_response
from agent.entrypoints.http.authenticator import ASSERTION_HEADER, Authenticator
from agent.entrypoints.http.decide_service import DecideService, answered, until
from agent.entrypoints.http.operator_request import (
    HINT,
    mistakes,
    read_body,
    refusal_of,
    require_approver,
    use_token_once,
)
from agent.errors import InputRejected, NotFound
from agent.ports.control import KillSwitch
from agent.ports.decide import LIST_LIMIT
from agent.ports.store import Query
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.shared.database_pair import pairing_fault
from agent.stages.shared.kill_switch import read_kill_switch, set_kill_switch

ROWS: Final = 5000  # of the record in one answer; Cloud Run sends at most 32 MiB at once. More are asked for piecewise

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

T = TypeVar("T")
F = TypeVar("F", bound=Value)


class DecisionBody(Value):
    """An answer to a plan.

    Attributes:
        break_glass: Approve in spite of a freeze window, for the reason in ``why``.
        withdraw: Take back the approval that this person gave; nothing else is said then.
        assertion: What Identity-Aware Proxy signed for the person, where the console hands their answer on; the
            person's own ID token stands in a header.
    """

    plan: str = Field(pattern=r"^p-[A-Za-z0-9-]{1,80}$")
    answer: YesNo
    why: str = Field(default="", max_length=1000)
    plan_digest: str | None = Field(default=None, pattern=DIGEST_GIVEN)
    break_glass: bool = Field(default=False, strict=True)
    withdraw: bool = Field(default=False, strict=True)
    assertion: str | None = Field(default=None, max_length=8192)


class KillSwitchBody(Value):
    """How the kill switch is to stand; ``assertion`` as for an answer."""

    on: bool = Field(strict=True)
    why: str = Field(default="", max_length=1000)
    assertion: str | None = Field(default=None, max_length=8192)


class Recorded(Value):
    """What was recorded.

    Attributes:
        who: As the channel proved it; ``name`` as policy.toml calls them.
        decided: False while other people must approve too, and where an approval was taken back.
        withdrawn: Whether an approval was taken back.
    """

    plan: str
    answer: YesNo
    who: str
    name: str
    verified: bool
    at: Moment
    incident: str
    decided: bool
    withdrawn: bool


class IncidentsQuery(Value):
    """What a list may be asked for.

    Attributes:
        limit: At most so many are sent; whoever asks for more than the maximum is sent the maximum.
        before: Only what opened before this time; with the time of the last row, the next page.
        since: Only what opened then or later.
    """

    run: str | None = Field(default=None, max_length=200)
    service: str | None = Field(default=None, max_length=253)
    open_only: bool = Field(default=False, alias="open")
    # our own clients ask for as much as a store gives at once; what is published is what is sent
    limit: int = Field(default=50, ge=1, le=ROWS, json_schema_extra={"maximum": LIST_LIMIT})
    before: AwareDatetime | None = None
    since: AwareDatetime | None = None


class AuditQuery(Value):
    """What of the record is asked for: the newest rows, or the newest before one."""

    limit: int = Field(default=50, ge=1, le=ROWS)
    before: int | None = Field(default=None, ge=1, le=2**62)


class ChangesQuery(Value):
    """Since when changes are asked for; farther back than ``FARTHEST_BACK`` none count."""

    since: AwareDatetime


def operators(service: DecideService) -> Door:
    """Return the door of people who prove who they are by a token: decide, turn the kill switch, and look.

    200 done, 400 not understood, 401 not authenticated, 403 refused, 404 nothing there, 409 replayed or too late,
    503 not recorded. Refusals say ``what``, ``why`` and ``hint``. Whoever looks must be an approver; how the kill
    switch stands is shown to every visitor of the console, whose assertion stands in ``X-Sre-Assertion``.
    """
    authenticator = service.authenticator

    def add(web: Flask) -> None:
        if authenticator is None:
            return

        def look(read: Callable[[], Any], *, visitors: bool = False) -> Response:
            def work() -> RawResponse:
                assertion = request.headers.get(ASSERTION_HEADER)
                known = authenticator.principal(dict(request.headers), assertion)
                if assertion is None or not visitors:
                    require_approver(service, known)
                return json_response(service.readers.within(service.read_s, read, what="nothing was read"))

            return answered(work, refusal_of)

        _add_decisions(web, service, authenticator)
        _add_standing(web, service, look)
        _add_lists(web, service, look)
        _add_sweeps(web, service, look)

    return add


def _add_decisions(web: Flask, service: DecideService, authenticator: Authenticator) -> None:
    def act(work: Callable[[Mapping[str, str], bytes, DecideService, Authenticator], RawResponse]) -> Response:
        return answered(lambda: work(dict(request.headers), request.get_data(), service, authenticator), refusal_of)

    @web.post("/decisions")
    def decide() -> Response:
        """Answer a plan, or take an approval back."""
        return act(_decide)

    @web.post("/requests")
    def ask() -> Response:
        """Ask for a change of a service; the same again returns the request that is open."""
        return act(change_requests.ask)

    @web.post("/requests/withdraw")
    def withdraw() -> Response:
        """Take a request back."""
        return act(change_requests.withdraw)

    @web.post("/commands")
    def command() -> Response:
        """Acknowledge, assign, comment, close, finish a task, ask for another plan, or roll back."""
        return act(incident_commands.command)

    @web.post("/sweeps/decisions")
    def answer() -> Response:
        """Answer a load measurement that waits."""
        return act(sweep_requests.answer)

    @web.post("/kill-switch")
    def turn() -> Response:
        """Stop every change, or allow changes again."""
        return act(_turn)


def _add_sweeps(web: Flask, service: DecideService, look: Callable[..., Response]) -> None:
    @web.get("/sweeps")
    def sweeps() -> Response:
        """List load measurements that were asked for recently."""
        return look(lambda: sweep_requests.waiting(service))


def _add_standing(web: Flask, service: DecideService, look: Callable[..., Response]) -> None:
    context = service.context

    @web.get("/kill-switch")
    def kill_switch() -> Response:
        """Say how the kill switch stands."""
        return look(lambda: read_kill_switch(context.control_store()).model_dump(mode="json"), visitors=True)

    @web.get("/databases")
    def databases() -> Response:
        """Say whether the two databases belong together."""
        return look(lambda: DatabasePairing(apart=pairing_fault(context)).model_dump())

    @web.get("/audit")
    def audit() -> Response:
        """Read the record of what was decided and done, newest first."""
        query = request.query_string
        return look(lambda: [row.model_dump(mode="json") for row in _record(service, _asked(AuditQuery, query))])


def _add_lists(web: Flask, service: DecideService, look: Callable[..., Response]) -> None:
    context = service.context

    @web.get("/incidents")
    def incidents() -> Response:
        """List incidents and requests, newest first."""
        query = request.query_string
        return look(lambda: [i.model_dump(mode="json") for i in _incidents(service, _asked(IncidentsQuery, query))])

    @web.get("/services/<name>")
    def seen(name: str) -> Response:
        """Say what was seen of a service; null where it was never seen."""
        return look(lambda: _seen(service, name))

    @web.get("/services/<name>/changes")
    def changes(name: str) -> Response:
        """Say when changes began recently, of a service and over all."""
        query = request.query_string
        return look(lambda: _changes(service, name, _asked(ChangesQuery, query)))

    @web.get("/incidents/<incident_id>")
    def incident(incident_id: str) -> Response:
        """Read one incident."""
        return look(lambda: context.store.load(_id(incident_id)).model_dump(mode="json"))

    @web.get("/incidents/<incident_id>/timeline")
    def timeline(incident_id: str) -> Response:
        """Read the timeline of an incident, oldest first."""

        def read() -> list[dict[str, Any]]:
            found = context.store.load(_id(incident_id))
            return [event.model_dump(mode="json") for event in context.store.timeline(found.id)]

        return look(read)


def _changes(service: DecideService, name: str, asked: ChangesQuery) -> dict[str, Any]:
    """Return when changes began recently, of a service and over all."""
    since = max(asked.since, service.clock.now() - FARTHEST_BACK)
    return service.context.control_store().limits(_service_name(name), since).model_dump(mode="json")


def _seen(service: DecideService, name: str) -> dict[str, Any] | None:
    """Return what was seen of a service; nothing where it was never seen."""
    records = service.context.service_records
    found = records.service_record(_service_name(name)) if records is not None else None
    return found.model_dump(mode="json") if found is not None else None


def _service_name(given: str) -> str:
    if _ID.fullmatch(given) is None:
        raise NotFound("nothing was found", why=f"there is no service {given[:80]!r}", hint="see services.toml")
    return given


def _id(given: str) -> str:
    """Refuse what is no id of ours before a store sees it."""
    if _ID.fullmatch(given) is None:
        raise NotFound("nothing was found", why=f"there is no incident {given[:80]!r}", hint="see: sre-agent incidents")
    return given


def _decide(
    headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator
) -> RawResponse:
    sent = read_body(DecisionBody, headers, body)
    principal = authenticator.principal(headers, sent.assertion)
    if principal.channel is Channel.CONSOLE and sent.plan_digest is None:
        raise InputRejected("the answer was not read", why="it does not say which plan was shown", hint=HINT)
    decision_request = DecisionRequest(
        plan=sent.plan,
        answer=sent.answer,
        by=Person(who=principal.who, channel=principal.channel, verified=True),
        why=sent.why,
        plan_digest=sent.plan_digest,
        break_glass=sent.break_glass,
        withdraw=sent.withdraw,
        is_awaited=until(service.answer_s),
    )
    act = f"{decision_request.plan} withdraw" if sent.withdraw else decision_request.plan
    recorded = service.workers.within(
        service.answer_s,
        lambda: use_token_once(service, principal, act, lambda: plan_to_decision(service.context, decision_request)),
    )
    return json_response(_shown(recorded))


def _turn(headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator) -> RawResponse:
    sent = read_body(KillSwitchBody, headers, body)
    principal = authenticator.principal(headers, sent.assertion)
    require_approver(service, principal)
    store, control = service.context.store, service.context.control_store()

    why = service.context.rules.redact(sent.why)

    def turn() -> KillSwitch:
        return set_kill_switch(store, control, on=sent.on, by=principal.who, why=why, at=service.clock.now())

    def work() -> KillSwitch:
        # a shared token or an assertion may be sent on by whoever was given it; to stop is always safe, so that needs
        # no fresh one
        once = (principal.shared or sent.assertion is not None) and not sent.on
        return use_token_once(service, principal, "kill-switch", turn) if once else turn()

    return json_response(service.workers.within(service.answer_s, work).model_dump(mode="json"))


def _incidents(service: DecideService, asked: IncidentsQuery) -> tuple[Incident, ...]:
    query = Query.model_validate(asked.model_dump() | {"limit": min(asked.limit, LIST_LIMIT)})
    return service.context.store.incidents(query)


def _record(service: DecideService, piece: AuditQuery) -> tuple[AuditRow, ...]:
    return service.context.control_store().audit(piece.limit, before=piece.before)


def _asked(form: type[F], query: bytes) -> F:
    try:
        text = query.decode("latin-1")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=8) if text else []
        return form.model_validate(dict(pairs))
    except ValueError as error:  # pydantic's error is one too
        words = ", ".join(field.alias or name for name, field in form.model_fields.items())
        raise InputRejected("the list was not read", why=mistakes(error), hint=f"use some of: {words}") from error


def _shown(decision: Decision | Vote) -> dict[str, Any]:
    recorded = Recorded(
        plan=decision.plan,
        answer=decision.answer,
        who=decision.who,
        name=decision.shown,
        verified=decision.verified,
        at=decision.at,
        incident=decision.incident,
        decided=isinstance(decision, Decision),
        withdrawn=isinstance(decision, Vote) and decision.withdrawn_at is not None,
    )
    return recorded.model_dump(mode="json")
