"""Where the command line looks and decides: the files of this machine, or `decide` in the cloud."""

import getpass
from typing import Protocol

from agent.app import App, build_app
from agent.app.channels import operator_token
from agent.core.audit import AuditRow
from agent.core.decision import Answer, Channel
from agent.core.incident import Event, Incident
from agent.core.value import Value
from agent.entrypoints.deciding import now
from agent.entrypoints.telemetry import configure_log
from agent.errors import InputRejected, SettingsRejected
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import Settings, read_settings
from agent.stages.plan_to_decision import Word, plan_to_decision
from agent.stages.shared.database_pair import databases_apart
from agent.stages.shared.kill_switch import turn_kill_switch


class Heard(Value):
    """A decision that was recorded."""

    plan: str
    answer: Answer
    who: str
    verified: bool
    incident: str


class Office(Protocol):
    """What the command line may ask for."""

    def decide(self, plan: str, answer: Answer, *, by: str | None, why: str) -> Heard:
        """Record an answer to a plan.

        Raises:
            InputRejected: There is no such plan, or ``by`` is no way to say who one is here.
            PolicyRefused: It cannot be decided now; the message says what to do.
            StateConflict: Somebody was faster.
            DependencyFailed: It is not recorded, or nobody knows; the message says which.
        """
        ...

    def turn(self, *, on: bool, by: str | None, why: str) -> KillSwitch:
        """Turn the kill switch; return how it stands then."""
        ...

    def kill_switch(self) -> KillSwitch:
        """Return how the kill switch stands."""
        ...

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """List incidents, newest first."""
        ...

    def incident(self, incident_id: str) -> Incident:
        """Return one incident.

        Raises:
            InputRejected: There is none with that id.
        """
        ...

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Return its timeline."""
        ...

    def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """Return the newest rows of the record, oldest first."""
        ...

    def databases_apart(self) -> str:
        """Return why incident and control database do not belong together, or nothing."""
        ...


class LocalOffice:
    """The embedded installation; who sits here is taken on trust and shown as not verified."""

    def __init__(self, app: App) -> None:
        self._here = app

    def decide(self, plan: str, answer: Answer, *, by: str | None, why: str) -> Heard:
        """Run the stage here; see the protocol."""
        who = by or getpass.getuser()
        word = Word(plan=plan, answer=answer, who=who, channel=Channel.COMMAND_LINE, verified=False, why=why)
        made = plan_to_decision(self._here.contexts[Owner.DECIDE], word)
        return Heard(plan=made.plan, answer=made.answer, who=made.who, verified=made.verified, incident=made.incident)

    def turn(self, *, on: bool, by: str | None, why: str) -> KillSwitch:
        """Write the control store of this machine."""
        here = self._here
        return turn_kill_switch(here.store, here.control, on=on, by=by or getpass.getuser(), why=why, at=now())

    def kill_switch(self) -> KillSwitch:
        """Read the control store."""
        return self._here.control.kill_switch()

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """Read the store."""
        return self._here.store.incidents(query)

    def incident(self, incident_id: str) -> Incident:
        """Read the store."""
        return self._here.store.load(incident_id)

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Read the store."""
        return self._here.store.timeline(self._here.store.load(incident_id).id)

    def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """Read the control store."""
        return self._here.control.audit(limit)

    def databases_apart(self) -> str:
        """Compare the databases of this machine."""
        return databases_apart(self._here.contexts[Owner.DECIDE])


def open_office() -> Office:
    """Return the office of the settings: `decide` where ``DECIDE_URL`` or a cloud store is set, else this machine.

    Raises:
        SettingsRejected: The settings do not make one.
        DependencyFailed: A file of the state cannot be opened.
    """
    configure_log(as_json=False, quiet=True)
    settings = read_settings()
    if settings.decide_url is None and settings.embedded:
        return LocalOffice(build_app(settings))
    return _cloud(settings)


def _cloud(settings: Settings) -> Office:
    from agent.entrypoints.cloud_office import CloudOffice
    from agent.entrypoints.decide_client import DecideClient

    if settings.decide_url is None:
        raise SettingsRejected(
            "1 setting",
            why="DECIDE_URL is unset, and in the cloud the command line speaks to `decide` alone",
            mend="set it to the output decide_url of infra/, or run: sre-agent doctor",
        )
    return CloudOffice(DecideClient(settings.decide_url), token=lambda: operator_token(settings))


def no_name_by_hand(by: str | None) -> None:
    """Refuse a name in the cloud.

    Raises:
        InputRejected: One was given.
    """
    if by is not None:
        raise InputRejected(
            "nothing was sent",
            why="--by works in local mode only; in the cloud your ID token says who you are",
            mend="leave --by out",
        )
