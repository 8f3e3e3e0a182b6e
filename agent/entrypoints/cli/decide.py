"""Deciding from the command line, through the same stage as every other channel."""

import re
from typing import TYPE_CHECKING

from agent.core.change.request import REQUEST_PREFIX
from agent.core.decision.decision import Choice, shown_name
from agent.core.plan.plan import DIGEST_SHOWN
from agent.core.text.safe_text import terminal
from agent.entrypoints.cli.follow import follow
from agent.entrypoints.cli.output import for_people
from agent.entrypoints.operator_client.protocol import now
from agent.errors import InputRejected, SreError
from agent.presentation.plan_title import plan_title
from agent.presentation.standing import next_step

if TYPE_CHECKING:
    from agent.entrypoints.operator_client.protocol import OperatorClient, RecordedDecision

INCIDENT_PREFIX = "inc-"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,320}")  # the asker's own address need not be disarmed


def decide(
    plan: str,
    answer: Choice,
    *,
    by: str | None,
    why: str = "",
    plan_digest: str | None = None,
    break_glass: bool = False,
    wait: bool = False,
) -> int:
    """Record a decision and say what follows.

    Args:
        plan: The plan's id.
        answer: Approve or reject.
        by: The name of ``--by``; the operator's own when None. Shown as not verified, and refused in the cloud.
        why: The reason, for a rejection.
        plan_digest: The digest that was shown with the plan, or its beginning; another plan of that name is refused.
        break_glass: Whether it is approved in spite of a freeze window.
        wait: Whether to print what follows until the incident ends.

    Returns:
        0; with ``wait`` 1 where the incident did not end well.

    Raises:
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.entrypoints.operator_client.local import open_operator_client

    client = open_operator_client()
    _refuse_incident(client, plan, answer)
    recorded = client.decide(plan, answer, by=by, why=why, plan_digest=plan_digest, break_glass=break_glass)
    approved = "approved" if recorded.decided else "approved in part"
    _print_outcome(client, recorded, approved if recorded.answer is Choice.APPROVE else "rejected")
    return follow(client, recorded.incident, decided=recorded.plan) if wait else 0


def withdraw(plan: str, *, by: str | None, why: str = "") -> int:
    """Take an approval back and say how the plan stands.

    Raises:
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.entrypoints.operator_client.local import open_operator_client

    client = open_operator_client()
    _refuse_incident(client, plan, Choice.APPROVE)
    _print_outcome(client, client.withdraw_approval(plan, by=by, why=why), "is not approved any more")
    return 0


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
