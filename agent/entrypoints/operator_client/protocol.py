"""What an operator asks for on the command line, of this machine or of `decide` in the cloud."""

from datetime import UTC, datetime
from typing import Protocol

from agent.core.change.config_drift import ServiceRecord
from agent.core.change.request import DesiredChange
from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Channel, Choice
from agent.core.incident.command import DesiredCommand
from agent.core.incident.incident import Event, Incident
from agent.core.plan.action import Action
from agent.core.value import Value
from agent.ports.control import KillSwitch
from agent.ports.store import Query
from agent.stages.check_change import ChangeCheck


class RecordedDecision(Value):
    """An answer that was recorded.

    Attributes:
        decided: Whether the plan is decided by it; False of an approval that needs more of them.
        withdrawn: Whether it took an approval back.
    """

    plan: str
    answer: Choice
    who: str
    verified: bool
    incident: str
    decided: bool = True
    withdrawn: bool = False


class OperatorDecision(Value):
    """What the operator of this process answers to a plan.

    Attributes:
        by: The name of ``--by``; the operator's own when None.
        why: The reason, for a rejection and for a broken freeze window.
        plan_digest: The digest that was shown with the plan, or its beginning; another plan of that name is refused.
        break_glass: Whether it is approved in spite of a freeze window.
        withdraw: Whether an approval is taken back that needs more of them; the answer does not matter then.
    """

    plan: str
    answer: Choice
    by: str | None = None
    why: str = ""
    plan_digest: str | None = None
    break_glass: bool = False
    withdraw: bool = False


class OperatorChange(DesiredChange):
    """A change that the operator of this process wants.

    Attributes:
        by: The name of ``--by``; the operator's own when None.
        verified: Whether a token that was shown here proved that name; local mode only, `decide` looks for itself.
        channel: By what it was asked for: the command line, or MCP, whose asker may approve nothing of it.
    """

    by: str | None = None
    verified: bool = False
    channel: Channel = Channel.COMMAND_LINE


class OperatorCommand(DesiredCommand):
    """What the operator of this process does about an incident.

    Attributes:
        by: The name of ``--by``; the operator's own when None.
    """

    by: str | None = None


class OperatorClient(Protocol):
    """What the command line may ask for."""

    def decide(self, asked: OperatorDecision) -> RecordedDecision:
        """Record an answer to a plan, or take an approval back.

        Raises:
            InputRejected: There is no such plan, or ``by`` is no way to say who one is here.
            PolicyRefused: It cannot be decided now, or this person gave no approval that stands; with what to do.
            StateConflict: Somebody was faster.
            DependencyFailed: It is not recorded, or nobody knows; the message says which.
        """
        ...

    def ask(self, asked: OperatorChange) -> Incident:
        """Ask for a change; return the life of the request, which may be one that was open already.

        Raises:
            InputRejected: There is no such service, or the words cannot be read.
            PolicyRefused: It can never be, or too much was asked for recently.
            StateConflict: Something else is open on the service.
            DependencyFailed: It is not recorded, or nobody knows; the same may be asked again.
        """
        ...

    def withdraw(self, request: str, *, by: str | None, why: str) -> Incident:
        """Take back a request that one asked for oneself."""
        ...

    def command(self, asked: OperatorCommand) -> Incident:
        """Do something about an incident; return it as it is then.

        Raises:
            InputRejected: There is no such incident, or what must be said is missing.
            PolicyRefused: It does not go with the phase, or this person may not.
            StateConflict: Others kept writing; say it again.
            DependencyFailed: Nobody knows whether it was done; to say the same again is safe.
        """
        ...

    def turn(self, *, on: bool, by: str | None, why: str) -> KillSwitch:
        """Turn the kill switch; return how it stands then."""
        ...

    def kill_switch(self) -> KillSwitch:
        """Return how the kill switch stands."""
        ...

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """List incidents, newest first: as many as are asked for, where there are so many."""
        ...

    def incident(self, incident_id: str) -> Incident:
        """Return one incident.

        Raises:
            NotFound: There is none with that id.
        """
        ...

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Return its timeline."""
        ...

    def service_record(self, service: str) -> ServiceRecord | None:
        """Return what was seen of a service, or None where it was never seen."""
        ...

    def check_change(
        self, service: str, actions: tuple[Action, ...], *, asker: str | None, at: datetime
    ) -> ChangeCheck:
        """Look at what would stop a change beside the policy; see :func:`agent.stages.check_change.check_change`.

        Raises:
            DependencyFailed: It could not be read.
        """
        ...

    def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """Return the newest rows of the record, oldest first."""
        ...

    def databases_apart(self) -> str:
        """Return why incident and control database do not belong together, or nothing."""
        ...


def now() -> datetime:
    """Return the time of this command, UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the command line is where it comes from
