"""Deciding from the command line, through the same stage as every other channel."""

import re
from typing import TYPE_CHECKING

from agent.core.change.request import REQUEST_PREFIX
from agent.core.decision.decision import Choice, shown_name
from agent.core.plan.plan import DIGEST_SHOWN
from agent.core.text.safe_text import terminal
from agent.entrypoints.cli.follow import follow
from agent.entrypoints.cli.output import for_people
from agent.entrypoints.operator_client.protocol import OperatorDecision, now
from agent.errors import InputRejected, SreError
from agent.presentation.plan_title import plan_title
from agent.presentation.standing import next_step

if TYPE_CHECKING:
    from agent.entrypoints.operator_client.protocol import OperatorClient, RecordedDecision

INCIDENT_PREFIX = "inc-"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,320}")  # the asker's own address need not be disarmed


def decide(asked: OperatorDecision, *, wait: bool = False) -> int:
    """Record a decision, or take an approval back, and say what follows.

    Args:
        asked: The answer; a name in ``by`` is shown as not verified, and refused in the cloud.
        wait: Whether to print what follows until the incident ends.

    Returns:
        0; with ``wait`` 1 where the incident did not end well.

    Raises:
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.entrypoints.operator_client.local import open_operator_client

    client = open_operator_client()
    _refuse_incident(client, asked.plan, Choice.APPROVE if asked.withdraw else asked.answer)
    recorded = client.decide(asked)
    _print_outcome(client, recorded, "is not approved any more" if asked.withdraw else _outcome(recorded))
    return follow(client, recorded.incident, decided=recorded.plan) if wait else 0


def _outcome(recorded: "RecordedDecision") -> str:
    if recorded.answer is not Choice.APPROVE:
        return "rejected"
    return "approved" if recorded.decided else "approved in part"


def _refuse_incident(client: "OperatorClient", plan: str, answer: Choice) -> None:
    """Name the plan where an incident was named: a word covers one plan, which somebody has looked at."""
    if not plan.startswith((INCIDENT_PREFIX, REQUEST_PREFIX)):
        return
    incident = client.incident(plan)
    current = incident.plan
    if current is None:
        raise InputRejected(
            "nothing was recorded",
            why=f"{plan!r} is an incident, and it has no plan yet",
            hint=f"see: sre-agent incidents show {plan} --follow",
        )
    verb = f"approve {current.id} --digest {current.digest[:DIGEST_SHOWN]}"
    raise InputRejected(
        "nothing was recorded",
        why=f"{plan!r} is an incident; its plan is {current.id}: {plan_title(current)}",
        hint="sre-agent " + (verb if answer is Choice.APPROVE else f"reject {current.id} --why TEXT"),
    )


def _print_outcome(client: "OperatorClient", recorded: "RecordedDecision", what: str) -> None:
    name = recorded.who if _PLAIN_NAME.fullmatch(recorded.who) else terminal(recorded.who, lines=False)
    who = shown_name(name, verified=recorded.verified)
    follows = for_people(_follows(client, recorded), lines=False)
    print(f"plan {recorded.plan} {what} by {who}. {follows} See: sre-agent incidents show {recorded.incident}")


def _follows(client: "OperatorClient", recorded: "RecordedDecision") -> str:
    """Say what follows; the answer is recorded, whether or not the incident can be read now."""
    try:
        return next_step(client.incident(recorded.incident), recorded.plan, now())
    except SreError as error:
        return f"The answer is recorded; what follows could not be read ({error.why})."
