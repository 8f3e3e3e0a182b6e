"""What the console knows of the control database: read where it stands here, else asked of `decide`."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Protocol

from flask import request
from pydantic import TypeAdapter, ValidationError

from agent.app.http_clients import decide_client
from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Person
from agent.entrypoints.console.identity import ASSERTION
from agent.entrypoints.http.authenticator import ASSERTION_HEADER
from agent.errors import DependencyFailed, PolicyRefused, SreError
from agent.ports.control import KillSwitch
from agent.ports.decide import Decide
from agent.ports.stage_context import StageContext
from agent.settings import Settings
from agent.stages.shared.database_pair import pairing_fault
from agent.stages.shared.kill_switch import HALTED, kill_switch_message, read_kill_switch, set_kill_switch

READ_S: Final = 4.0  # a page waits for `decide` no longer than this to say how the switch stands
TURN_S: Final = 15.0  # the person waits before the page for what they pressed
KNOWN_S: Final = 10.0  # how long an answer of `decide` about the switch is shown without asking again
UNKNOWN_S: Final = 30.0  # and how long the lack of one

_ROWS: Final = TypeAdapter(tuple[AuditRow, ...])


class ControlAccess(Protocol):
    """The kill switch and the record, wherever they stand."""

    def kill_switch(self) -> KillSwitch:
        """Return how the switch stands.

        Raises:
            SreError: Nobody says.
        """
        ...

    def forget(self) -> None:
        """Have the next question asked anew: somebody acts on it, and an earlier answer is too old."""
        ...

    def message(self) -> str:
        """Return for people why no change may begin, or that nobody knows; nothing where changes may begin."""
        ...

    def turn(self, person: Person, *, on: bool, why: str, at: datetime) -> object:
        """Turn the switch in a person's name, and record it.

        Raises:
            SreError: It was not turned, or nobody knows.
        """
        ...

    def audit(self, limit: int, before: int | None) -> tuple[AuditRow, ...]:
        """Return the newest rows of the record before one, oldest first.

        Raises:
            SreError: It was not read.
        """
        ...

    def databases_apart(self) -> str:
        """Return why the two databases do not belong together, or nothing.

        Raises:
            SreError: Nobody says.
        """
        ...


class ControlHere:
    """The control database of this very process."""

    def __init__(self, context: StageContext) -> None:
        self._context = context

    def kill_switch(self) -> KillSwitch:
        """Read the switch; see the protocol."""
        return read_kill_switch(self._context.control_store())

    def forget(self) -> None:
        """Keep nothing, so there is nothing to forget; see the protocol."""

    def message(self) -> str:
        """Say why no change may begin; see the protocol."""
        return kill_switch_message(self._context)

    def turn(self, person: Person, *, on: bool, why: str, at: datetime) -> KillSwitch:
        """Write the switch and the record; see the protocol."""
        context = self._context
        said = context.rules.redact(why)
        return set_kill_switch(context.store, context.control_store(), on=on, by=person.who, why=said, at=at)

    def audit(self, limit: int, before: int | None) -> tuple[AuditRow, ...]:
        """Read the record; see the protocol."""
        return self._context.control_store().audit(limit, before=before)

    def databases_apart(self) -> str:
        """Compare the marks; see the protocol."""
        return pairing_fault(self._context)


class ControlThroughDecide:
    """What `decide` says and does for the person of the request at hand, whose own assertion goes with every question.

    Args:
        settings: ``DECIDE_URL`` and ``KILL_SWITCH``.
        client_of: Makes what asks, by its time-out in seconds.
    """

    def __init__(self, settings: Settings, client_of: Callable[[str, float], Decide] | None = None) -> None:
        self._url, self._halted = settings.decide_url, settings.kill_switch
        self._client_of = client_of or (lambda url, timeout_s: decide_client(url, timeout_s=timeout_s))
        self._known: tuple[float, KillSwitch | SreError] | None = None

    def kill_switch(self) -> KillSwitch:
        """Ask, or say what was said recently; see the protocol."""
        known = self._known
        if known is None or time.monotonic() > known[0]:
            self._known = known = self._asked()
        found = known[1]
        if isinstance(found, SreError):
            raise found
        return found

    def forget(self) -> None:
        """Forget what was said recently; see the protocol."""
        self._known = None

    def message(self) -> str:
        """Say why no change may begin; see the protocol."""
        if self._halted:
            return HALTED
        try:
            return self.kill_switch().says
        except SreError as error:
            return f"whether the kill switch is on is not known here: {error.why}"

    def turn(self, person: Person, *, on: bool, why: str, at: datetime) -> object:  # noqa: ARG002 - who and when, `decide` itself says
        """Hand it on with the person's assertion; see the protocol."""
        self.forget()
        said = {"on": on, "why": why, "assertion": request.headers.get(ASSERTION, "")}
        return self._client(TURN_S).post("/kill-switch", said)

    def audit(self, limit: int, before: int | None) -> tuple[AuditRow, ...]:
        """Ask for a piece of the record; see the protocol."""
        query = {"limit": str(limit)} | ({"before": str(before)} if before is not None else {})
        try:
            return _ROWS.validate_python(self._get("/audit", query), strict=False)
        except ValidationError as error:
            raise _strange() from error

    def databases_apart(self) -> str:
        """Ask whether the databases belong together; see the protocol."""
        answer = self._get("/databases")
        apart = answer.get("apart") if isinstance(answer, dict) else None
        if not isinstance(apart, str):
            raise _strange()
        return apart

    def _asked(self) -> tuple[float, KillSwitch | SreError]:
        """Ask; return until when the answer is good.

        Raises:
            PolicyRefused: `decide` does not tell this visitor, which says nothing to the next one.
        """
        try:
            switch = KillSwitch.model_validate(self._get("/kill-switch", timeout_s=READ_S), strict=False)
        except PolicyRefused:
            raise
        except SreError as error:
            return time.monotonic() + UNKNOWN_S, error
        except ValidationError:
            return time.monotonic() + UNKNOWN_S, _strange()
        return time.monotonic() + KNOWN_S, switch

    def _get(self, path: str, query: dict[str, str] | None = None, *, timeout_s: float = TURN_S) -> Any:
        sent = {ASSERTION_HEADER: request.headers.get(ASSERTION, "")}
        return self._client(timeout_s).get(path, headers=sent, query=query)

    def _client(self, timeout_s: float) -> Decide:
        if self._url is None:
            raise PolicyRefused(
                "`decide` was not asked",
                why="DECIDE_URL is unset, and the control database is read by `decide` alone",
                hint="set it to the output decide_url of infra/, or use the command line",
            )
        return self._client_of(self._url, timeout_s)


def _strange() -> DependencyFailed:
    return DependencyFailed(
        "the answer of `decide` was not understood",
        why="it is not of this version's form",
        hint="deploy the console and `decide` together: ./deploy.sh apply",
    )
