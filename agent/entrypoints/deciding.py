"""Deciding from the command line: in an embedded installation, through the same stage as every other channel."""

import getpass
import sys
from datetime import UTC, datetime

from agent.bootstrap import Installation, embedded
from agent.core.decision import Answer, Channel, Decision
from agent.entrypoints.telemetry import configure_log
from agent.ports.world import Owner
from agent.settings import read_settings
from agent.stages.plan_to_decision import Word, plan_to_decision


def installed() -> Installation:
    """Open the embedded installation of the settings.

    Raises:
        SettingsRejected: The settings do not make one.
    """
    configure_log(as_json=False, quiet=True)
    return embedded(read_settings())


def decide(plan: str, answer: Answer, *, who: str | None, why: str = "") -> int:
    """Record a decision and say what follows.

    Args:
        plan: The plan's id.
        answer: Approve or reject.
        who: The name of ``--by``; the operator's own when None. Shown as not verified.
        why: The reason, for a rejection.

    Raises:
        InputRejected: There is no such plan.
        PolicyRefused: It cannot be decided now; the message says what to do.
        StateConflict: Somebody was faster.
    """
    installation = installed()
    word = Word(
        plan=plan,
        answer=answer,
        who=who or getpass.getuser(),
        channel=Channel.COMMAND_LINE,
        verified=False,
        why=why,
    )
    decision = plan_to_decision(installation.worlds[Owner.DECIDE], word)
    print(_said(decision))
    return 0


def _said(decision: Decision) -> str:
    what = "approved" if decision.answer is Answer.APPROVE else "rejected"
    after = "the running service applies it" if decision.answer is Answer.APPROVE else "the next plan comes"
    who = f"{decision.who} (not verified)"
    return f"plan {decision.plan} {what} by {who}; {after}: sre-agent incidents show {decision.incident}"


def now() -> datetime:
    """Return the time of this command, UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the command line is where it comes from


def say(text: str, *, as_json: bool) -> None:
    """Print people's words: to stderr where stdout is for machines."""
    print(text, file=sys.stderr if as_json else sys.stdout)
