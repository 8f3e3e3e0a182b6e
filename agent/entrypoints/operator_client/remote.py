"""The command line over `decide` in the cloud, with the operator's own ID token; never over the database."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from agent.core.change.config_drift import ServiceRecord
from agent.core.database_pair import DatabasePairing
from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Channel
from agent.core.decision.limit_use import FARTHEST_BACK
from agent.core.incident.incident import Event, Incident
from agent.core.plan.action import Action
from agent.core.value import Value
from agent.entrypoints.http.authenticator import TOKEN_HEADER
from agent.entrypoints.operator_client.protocol import (
    OperatorChange,
    OperatorCommand,
    OperatorDecision,
    RecordedDecision,
)
from agent.errors import DependencyFailed, InputRejected, NotFound
from agent.ports.control import KillSwitch, Limits
from agent.ports.decide import LIST_LIMIT, Decide, NoResponse
from agent.ports.store import Query
from agent.stages.check_change import ChangeCheck

PIECE = 1000  # rows of the record in one answer; each holds a whole decision

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

V = TypeVar("V", bound=Value)


class RemoteClient:
    """Speaks to the deciding function.

    Args:
        client: Where it is.
        token: Returns the operator's ID token, a fresh one where that can be had.
    """

    def __init__(self, client: Decide, *, token: Callable[[], str]) -> None:
        self._client, self._token = client, token

    def decide(self, asked: OperatorDecision) -> RecordedDecision:
        """Send the answer once; see the protocol."""
        _refuse_name(asked.by)
        said = asked.model_dump(mode="json", exclude_defaults=True)
        try:
            answer = self._client.post("/decisions", said, headers=self._proof())
        except NoResponse as error:
            raise DependencyFailed(
                f"nobody knows whether plan {asked.plan!r} was decided",
                why=error.why,
                hint="look: sre-agent incidents list; to say the same again is safe, a plan takes one decision only",
            ) from error
        known = RecordedDecision.model_fields
        shown = {name: word for name, word in answer.items() if name in known} if isinstance(answer, dict) else answer
        return _read(RecordedDecision, shown)

    def ask(self, asked: OperatorChange) -> Incident:
        """Send the request once; see the protocol."""
        _refuse_name(asked.by)
        said = asked.body | ({"via": "mcp"} if asked.channel is Channel.MCP else {})
        return self._recorded("/requests", said, "the change was asked for")

    def withdraw(self, request: str, *, by: str | None, why: str) -> Incident:
        """Send it once; see the protocol."""
        _refuse_name(by)
        said = {"request": _named(request), "why": why}
        return self._recorded("/requests/withdraw", said, "the request was taken back")

    def command(self, asked: OperatorCommand) -> Incident:
        """Send it once; see the protocol."""
        _refuse_name(asked.by)
        said = asked.body | {"incident": _named(asked.incident)}
        return self._recorded("/commands", said, "it was done")

    def _recorded(self, path: str, said: dict[str, Any], what: str) -> Incident:
        try:
            answer = self._client.post(path, said, headers=self._proof())
        except NoResponse as error:
            raise DependencyFailed(
                f"nobody knows whether {what}",
                why=error.why,
                hint="look: sre-agent incidents list; to ask the same again is safe, a request that is open is found",
            ) from error
        return _read(Incident, answer.get("incident") if isinstance(answer, dict) else answer)

    def turn(self, *, on: bool, by: str | None, why: str) -> KillSwitch:
        """Turn the switch of the cloud's control database."""
        _refuse_name(by)
        try:
            return _read(KillSwitch, self._client.post("/kill-switch", {"on": on, "why": why}, headers=self._proof()))
        except NoResponse as error:
            raise DependencyFailed(
                "nobody knows how the kill switch stands",
                why=error.why,
                hint="look: sre-agent stop; to turn it the same way again is safe",
            ) from error

    def kill_switch(self) -> KillSwitch:
        """Ask how it stands."""
        return _read(KillSwitch, self._client.get("/kill-switch", headers=self._proof()))

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """Ask for a list, page by page."""
        proof, found, before = self._proof(), dict[str, Incident](), query.before
        while len(found) < query.limit:
            asked = query.with_(limit=min(query.limit, LIST_LIMIT), before=before)
            page = _rows(Incident, self._client.get("/incidents", headers=proof, query=_words(asked)))
            new = {incident.id: incident for incident in page if incident.id not in found}
            found |= new
            if len(page) < asked.limit or not new:
                break
            before = page[-1].opened_at + timedelta(microseconds=1)  # the next page may begin in the same instant
        return tuple(found.values())[: query.limit]

    def incident(self, incident_id: str) -> Incident:
        """Ask for one."""
        return _read(Incident, self._client.get(f"/incidents/{_named(incident_id)}", headers=self._proof()))

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Ask for its timeline."""
        return _rows(Event, self._client.get(f"/incidents/{_named(incident_id)}/timeline", headers=self._proof()))

    def service_record(self, service: str) -> ServiceRecord | None:
        """Ask for what was seen of a service."""
        answer = self._client.get(f"/services/{_named(service, what='a service')}", headers=self._proof())
        return None if answer is None else _read(ServiceRecord, answer)

    def check_change(
        self,
        service: str,
        actions: tuple[Action, ...],  # noqa: ARG002 - `decide` describes no service and has no prices
        *,
        asker: str | None,  # noqa: ARG002 - nor does it compute a proof
        at: datetime,
    ) -> ChangeCheck:
        """Ask what stops changes and which were made recently; `decide` knows no prices, proofs, or file of ours."""
        stopped = self.kill_switch().says
        path = f"/services/{_named(service, what='a service')}/changes"
        since = {"since": (at - FARTHEST_BACK).isoformat()}
        answer = self._client.get(path, headers=self._proof(), query=since)
        return ChangeCheck(stopped=self.databases_apart() or stopped, changes=_read(Limits, answer))

    def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """Ask for the newest rows of the record, piece by piece until its beginning."""
        proof, pieces, left = self._proof(), list[tuple[AuditRow, ...]](), limit
        words: dict[str, str] = {}
        while left > 0:
            words["limit"] = str(min(left, PIECE))
            piece = _rows(AuditRow, self._client.get("/audit", headers=proof, query=words))
            if not piece:
                break
            if "before" in words and not piece[-1].number < int(words["before"]):
                raise _strange("it sends rows of the record again that it sent before")
            pieces.append(piece)
            left -= len(piece)
            words["before"] = str(piece[0].number)
            if piece[0].number <= 1:
                break
        return tuple(row for piece in reversed(pieces) for row in piece)

    def databases_apart(self) -> str:
        """Ask whether the two databases belong together."""
        return _read(DatabasePairing, self._client.get("/databases", headers=self._proof())).apart

    def _proof(self) -> dict[str, str]:
        return {TOKEN_HEADER: self._token()}


def _named(incident_id: str, *, what: str = "an incident ID") -> str:
    """Return an id that can stand in a path.

    Raises:
        NotFound: It is none.
    """
    if _ID.fullmatch(incident_id) is None:
        raise NotFound(
            "nothing was found", why=f"{incident_id[:80]!r} is not {what}", hint="see: sre-agent incidents list"
        )
    return incident_id


def _words(query: Query) -> dict[str, str]:
    """Return a query as `decide` reads it."""
    said = query.model_dump(mode="json", exclude_none=True, exclude={"open_only"})
    return {name: str(word) for name, word in said.items()} | {"open": "1" if query.open_only else "0"}


def _rows(form: type[V], answer: Any) -> tuple[V, ...]:
    if not isinstance(answer, list):
        raise _strange("it is no list")
    return tuple(_read(form, row) for row in answer)


def _read(form: type[V], answer: Any) -> V:
    try:
        return form.model_validate(answer)
    except ValidationError as error:
        raise _strange(f"{form.__name__}: {error.error_count()} fields are not as this version knows them") from error


def _strange(why: str) -> DependencyFailed:
    return DependencyFailed(
        "the answer of `decide` was not understood", why=why, hint="use the version of sre-agent that is deployed"
    )


def _refuse_name(by: str | None) -> None:
    """Refuse a name in the cloud.

    Raises:
        InputRejected: One was given.
    """
    if by is not None:
        raise InputRejected(
            "nothing was sent",
            why="--by works in local mode only; in the cloud your ID token says who you are",
            hint="remove --by",
        )
