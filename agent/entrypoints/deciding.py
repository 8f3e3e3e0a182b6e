"""Deciding from the command line, through the same stage as every other channel."""

import re
from datetime import UTC, datetime

from agent.core.decision import Answer
from agent.core.safe_text import terminal

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,320}")  # the asker's own address need not be disarmed


def decide(plan: str, answer: Answer, *, by: str | None, why: str = "") -> int:
    """Record a decision and say what follows.

    Args:
        plan: The plan's id.
        answer: Approve or reject.
        by: The name of ``--by``; the operator's own when None. Shown as not verified, and refused in the cloud.
        why: The reason, for a rejection.

    Raises:
        SreError: See :class:`agent.entrypoints.office.Office`.
    """
    from agent.entrypoints.office import open_office

    heard = open_office().decide(plan, answer, by=by, why=why)
    what = "approved" if heard.answer is Answer.APPROVE else "rejected"
    after = "the running service goes on with it" if heard.answer is Answer.APPROVE else "the next plan comes"
    name = heard.who if _PLAIN_NAME.fullmatch(heard.who) else terminal(heard.who, lines=False)
    who = name + ("" if heard.verified else " (not verified)")
    print(f"plan {heard.plan} {what} by {who}; {after}: sre-agent incidents show {heard.incident}")
    return 0


def now() -> datetime:
    """Return the time of this command, UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the command line is where it comes from
