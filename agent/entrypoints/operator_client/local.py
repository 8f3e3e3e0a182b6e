"""The command line over the files of this machine, and which client the settings name."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.app import App, build_app, build_app_in_memory
from agent.app.channels import operator_token
from agent.app.operating_system import user_name
from agent.app.stores import machine_clock
from agent.core.change.config_drift import ServiceRecord
from agent.core.change.request import DesiredChange
from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Channel, Choice, Decision, Person, Vote
from agent.core.incident.incident import Event, Incident
from agent.core.plan.action import Action
from agent.entrypoints.operator_client.protocol import (
    OperatorChange,
    OperatorClient,
    OperatorCommand,
    OperatorDecision,
    RecordedDecision,
    now,
)
from agent.entrypoints.telemetry import configure_log
from agent.errors import PolicyRefused, SettingsRejected
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import Settings, read_settings
from agent.stages.check_change import ChangeCheck, check_change
from agent.stages.incident_command import CommandRequest, carry_out
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.preview_change import ChangePreview, preview_change
from agent.stages.request_change import ChangeAsked, request_change, withdraw_request
from agent.stages.shared.database_pair import pairing_fault
from agent.stages.shared.kill_switch import read_kill_switch, set_kill_switch


class LocalClient:
    """The embedded installation; who sits here is taken on trust and shown as not verified."""

    def __init__(self, app: App) -> None:
        self._app = app

    def decide(self, asked: OperatorDecision) -> RecordedDecision:
        """Run the stage here; see the protocol."""
        if asked.answer is Choice.APPROVE and asked.plan_digest is None:
            self._refuse_unseen(asked.plan)
        request = DecisionRequest(**(dict(asked) | {"by": _person(asked.by)}))
        return _recorded(plan_to_decision(self._app.contexts[Owner.DECIDE], request))

    def _refuse_unseen(self, plan: str) -> None:
        """Refuse to approve what an AI client asked for without its digest: a person shows with it that they looked."""
        stored = self._app.store.plan(plan)
        request = self._app.store.load(stored.incident).request if stored is not None else None
        if stored is not None and request is not None and request.channel is Channel.MCP:
            raise PolicyRefused(
                f"plan {plan!r} was not approved",
                why=f"{request.asker!r} asked for it, an AI client, and no digest of the plan was given",
                hint=f"look at it: sre-agent incidents show {stored.incident}, for the command with the digest",
            )

    def ask(self, asked: OperatorChange) -> Incident:
        """Run the stage here; see the protocol."""
        return request_change(self._app.contexts[Owner.DECIDE], _as_asked(asked))

    def sees(self, service: str) -> bool:
        """Whether the live service can be described from here."""
        return self._app.environment.platform_of(service) is not None

    def preview(self, asked: OperatorChange) -> ChangePreview:
        """Work out the plan here; nothing is stored.

        Raises:
            SreError: See :func:`agent.stages.preview_change.preview_change`.
        """
        return preview_change(self._app.contexts[Owner.INCIDENT], _as_asked(asked))

    def withdraw(self, request: str, *, by: str | None, why: str) -> Incident:
        """Run the stage here; see the protocol."""
        return withdraw_request(self._app.contexts[Owner.DECIDE], request, _person(by), why=why)

    def command(self, asked: OperatorCommand) -> Incident:
        """Run the stage here; see the protocol."""
        request = CommandRequest(**(dict(asked) | {"by": _person(asked.by)}))
        return carry_out(self._app.contexts[Owner.DECIDE], request)

    def turn(self, *, on: bool, by: str | None, why: str) -> KillSwitch:
        """Write the control store of this machine.

        Raises:
            PolicyRefused: Changes are to go on, and nothing proves whose word that is; to stop them needs no proof.
        """
        app = self._app
        if not on and not app.settings.trusts_this_machine:
            raise PolicyRefused(
                "the kill switch stays on",
                why=f"this service is bound to {app.settings.bind}, where being on its machine proves nothing",
                hint="turn it off with a token: sre-agent stop --off, with DECIDE_URL set to the service's address",
            )
        said = app.rules.redact(why)
        return set_kill_switch(app.store, app.control, on=on, by=by or user_name(), why=said, at=now())

    def kill_switch(self) -> KillSwitch:
        """Read the control store."""
        return read_kill_switch(self._app.control)

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """Read the store."""
        return self._app.store.incidents(query)

    def incident(self, incident_id: str) -> Incident:
        """Read the store."""
        return self._app.store.load(incident_id)

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Read the store."""
        return self._app.store.timeline(self._app.store.load(incident_id).id)

    def service_record(self, service: str) -> ServiceRecord | None:
        """Read the store."""
        records = self._app.service_records
        return records.service_record(service) if records is not None else None

    def check_change(
        self, service: str, actions: tuple[Action, ...], *, asker: str | None, at: datetime
    ) -> ChangeCheck:
        """Look here; see the protocol."""
        return check_change(self._app.contexts[Owner.DECIDE], service, actions, asker=asker, at=at)

    def audit(self, limit: int) -> tuple[AuditRow, ...]:
        """Read the control store."""
        return self._app.control.audit(limit)

    def databases_apart(self) -> str:
        """Compare the databases of this machine."""
        return pairing_fault(self._app.contexts[Owner.DECIDE])


def _person(by: str | None) -> Person:
    """Whoever sits at this machine, by the name that they give."""
    return Person(who=by or user_name(), channel=Channel.COMMAND_LINE, verified=False)


def _recorded(made: Decision | Vote) -> RecordedDecision:
    return RecordedDecision(
        plan=made.plan,
        answer=made.answer,
        who=made.who,
        verified=made.verified,
        incident=made.incident,
        decided=isinstance(made, Decision),
        withdrawn=isinstance(made, Vote) and made.withdrawn_at is not None,
    )


def preview_with_own_credentials(asked: OperatorChange) -> ChangePreview:
    """Work out a change with the credentials of whoever runs this command, and an installation that keeps nothing.

    Raises:
        SreError: The settings name no services or platform, or the change cannot be.
    """
    configure_log(as_json=False, quiet=True)
    settings = read_settings()
    if settings.decide_url is None and settings.embedded:
        return LocalClient(build_app(settings)).preview(asked)
    if settings.platform.startswith("rehearsal:") or settings.platform == "none":
        raise SettingsRejected(
            "1 setting",
            why="PLATFORM names no live services, and a dry run describes them with your own credentials",
            hint="set SERVICES, POLICY and PLATFORM as in the installation, such as PLATFORM=cloud_run:PROJECT; or ask "
            "without --dry-run: the plan is shown before anybody approves it",
        )
    clock = machine_clock()
    with TemporaryDirectory(prefix="sre-change-") as folder:
        app = build_app_in_memory(settings.with_(bus="embedded"), clock=clock, state=Path(folder))
        context = replace(app.contexts[Owner.INCIDENT], local=False)
        return preview_change(context, _as_asked(asked))


def _as_asked(asked: OperatorChange) -> ChangeAsked:
    proved = asked.verified and asked.by is not None
    by = Person(who=asked.by or user_name(), channel=asked.channel, verified=proved)
    wanted = {name: value for name, value in asked if name in DesiredChange.model_fields}
    return ChangeAsked(**wanted, by=by)


def open_operator_client(token: Callable[[], str | None] = lambda: None) -> OperatorClient:
    """Return the client of the settings: `decide` where ``DECIDE_URL`` or a cloud store is set, else this machine.

    Args:
        token: The ID token of whoever asks through this process, where that is not who runs it; None where it is.

    Raises:
        SettingsRejected: The settings do not make one.
        DependencyFailed: A file of the state cannot be opened.
    """
    configure_log(as_json=False, quiet=True)
    settings = read_settings()
    if settings.decide_url is None and settings.embedded:
        return LocalClient(build_app(settings))
    return _cloud(settings, token)


def _cloud(settings: Settings, token: Callable[[], str | None]) -> OperatorClient:
    from agent.app.http_clients import decide_client
    from agent.entrypoints.operator_client.remote import RemoteClient

    if settings.decide_url is None:
        raise SettingsRejected(
            "1 setting",
            why="DECIDE_URL is unset, and in the cloud the command line speaks to `decide` alone",
            hint="set it to the output decide_url of infra/, or run: sre-agent doctor",
        )
    client = decide_client(settings.decide_url, timeout_s=30)
    return RemoteClient(client, token=lambda: token() or operator_token(settings))
