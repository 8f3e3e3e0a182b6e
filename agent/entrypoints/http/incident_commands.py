"""What people with a token do about an incident: acknowledge, assign, comment, close, finish a task, roll back."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agent.core.decision.decision import Person
from agent.core.incident.command import OF_A_PLAN, TEXT_CHARS, Command
from agent.core.incident.incident import Incident
from agent.core.plan.plan import DIGEST_GIVEN
from agent.core.value import Value, digest
from agent.entrypoints.http.application import RawResponse, json_response
from agent.entrypoints.http.authenticator import Authenticator
from agent.entrypoints.http.decide_service import DecideService, until
from agent.entrypoints.http.operator_request import read_body, use_token_once
from agent.errors import InputRejected
from agent.stages.incident_command import CommandRequest, carry_out


class CommandBody(Value):
    """A command of a person.

    Attributes:
        text: The comment, the reason, or to whom it is assigned.
        plan_digest: Of the plan whose task is done or whose change is rolled back (which needs it), as it was shown.
        assertion: What Identity-Aware Proxy signed for the person, where the console hands their word on.
    """

    incident: str = Field(pattern=r"^(inc|rq)-[A-Za-z0-9-]{1,80}$")
    command: Command
    text: str = Field(default="", max_length=TEXT_CHARS)
    plan_digest: str | None = Field(default=None, pattern=DIGEST_GIVEN)
    assertion: str | None = Field(default=None, max_length=8192)


class IncidentShown(Value):
    """The incident after a command."""

    incident: Incident


def command(
    headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator
) -> RawResponse:
    """Carry a command out; the same again changes nothing more.

    Raises:
        InputRejected: It rolls back and does not say which plan was shown.
        SreError: See :func:`agent.stages.incident_command.carry_out`.
    """
    sent = read_body(CommandBody, headers, body)
    if sent.command is Command.ROLL_BACK and sent.plan_digest is None:
        raise InputRejected(
            f"incident {sent.incident!r} was not rolled back",
            why="it does not say which plan was shown",
            hint="send its plan_digest, or use the command line: sre-agent incidents roll-back ID --why TEXT",
        )
    principal = authenticator.principal(headers, sent.assertion)
    asked = CommandRequest(
        incident=sent.incident,
        command=sent.command,
        by=Person(who=principal.who, channel=principal.channel, verified=True),
        text=sent.text,
        plan_digest=sent.plan_digest,
        is_awaited=until(service.answer_s),
    )

    def do() -> Incident:
        return carry_out(service.context, asked)

    def work() -> Incident:
        # a decision uses its token up, and so does whatever came with a token that others may have; the rest repeats
        if not principal.shared and sent.command not in OF_A_PLAN:
            return do()
        act = digest([sent.incident, sent.command, sent.plan_digest])[:16]
        return use_token_once(service, principal, f"command-{act}", do)

    return json_response(shown(service.workers.within(service.answer_s, work)))


def shown(incident: Incident) -> dict[str, Any]:
    """Return what who said it is told."""
    return IncidentShown(incident=incident).model_dump(mode="json")
