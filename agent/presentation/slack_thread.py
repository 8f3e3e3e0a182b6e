"""What is said in the thread below an incident's Slack message: one line for each step that people wait for."""

from collections.abc import Callable
from typing import Final

from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import ENDS, EventKind, Phase
from agent.core.incident.renotify import is_unattended
from agent.core.text.safe_text import slack_mrkdwn
from agent.presentation.event_text import steps
from agent.presentation.event_types import type_of
from agent.presentation.impact_text import span

LINES: Final = 10  # in one reply; who was away that long reads the rest on the message
_LINE_CHARS: Final = 600
_SENT: Final = frozenset(
    {
        "plan.vote_given",
        "plan.decided",
        "plan.applied",
        "plan.rolled_back",
        "plan.refused",
        "incident.acknowledged",
        "incident.unacknowledged",
        "incident.resolved",
        "incident.escalated",
        "incident.closed",
        "request.resolved",
        "request.escalated",
        "request.closed",
    }
)


def thread_lines(
    incident: Incident, timeline: tuple[Event, ...], sent: int, *, redact: Callable[[str], str]
) -> list[str]:
    """Return what is new for the thread: who decided, that the change began, is ready, is kept or was put back.

    Args:
        incident: Its present state; all text in it is untrusted.
        timeline: The whole timeline.
        sent: How many of its lines were there when the thread was written to last.
        redact: Takes secrets out of a text.
    """
    found = []
    for number, (event, step) in enumerate(zip(timeline, steps(timeline, incident), strict=True)):
        before = timeline[number - 1] if number else None
        if number < sent or not _is_sent(incident, event, before):
            continue
        took = span((event.at - incident.opened_at).total_seconds())
        ended = f" It took {took}." if event.phase in ENDS and event.kind is None else ""
        found.append(f"{event.at:%H:%M:%S} UTC {slack_mrkdwn(redact(step.says), limit=_LINE_CHARS)}{ended}")
    return found[-LINES:]


def calls_again(incident: Incident, timeline: tuple[Event, ...], sent: int) -> bool:
    """Whether something new of the thread tells again of what still waits for somebody to take note of it."""
    again = any(event.kind is EventKind.UNACKNOWLEDGED for event in timeline[sent:])
    return again and is_unattended(incident)


def _is_sent(incident: Incident, event: Event, before: Event | None) -> bool:
    entered = event.kind is None and (before is None or before.phase is not event.phase)
    return (entered and event.phase is Phase.VERIFYING) or type_of(incident, event, before) in _SENT
