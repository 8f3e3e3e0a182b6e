"""Follows an incident on the terminal: one line for each step, until it ends or needs a person."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.output import for_people, for_programs
from agent.presentation.event_text import steps

if TYPE_CHECKING:
    from agent.entrypoints.operator_client.protocol import OperatorClient

LOOK_S = 1.0
OVER = frozenset({Phase.RESOLVED, Phase.SELF_RECOVERED})


def follow(
    client: "OperatorClient",
    incident_id: str,
    *,
    decided: str | None = None,
    as_json: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Print each step of an incident as it comes.

    Args:
        client: Where it is read; every look reads the incident and its timeline once.
        incident_id: Which one.
        decided: The plan that was just decided about; the steps before are left out, and it is waited for even while it
            needs another person's approval. None stops at every plan that needs approval.
        as_json: Print the events themselves, one JSON object per line.
        pause: Waits for so many seconds.

    Returns:
        0: it ended well; 1: it ended otherwise, or another plan needs a person.

    Raises:
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    printed = len(client.timeline(incident_id)) if decided is not None else 0

    def show(incident: Incident) -> None:
        nonlocal printed
        timeline = client.timeline(incident_id)
        _print(timeline, printed, incident, as_json=as_json)
        printed = max(printed, len(timeline))

    def rests(incident: Incident) -> bool:
        plan = incident.plan.id if incident.plan is not None else None
        return incident.ended or (incident.phase is Phase.ASKED and plan != decided)

    return 0 if look_until(client, incident_id, rests, each=show, pause=pause).phase in OVER else 1


def look_until(
    client: "OperatorClient",
    incident_id: str,
    reached: Callable[[Incident], bool],
    *,
    each: Callable[[Incident], None] = lambda _: None,
    limit_s: float = math.inf,
    pause: Callable[[float], None] = time.sleep,
) -> Incident:
    """Look at an incident again and again until it is as wanted, and return it.

    Args:
        client: Where it is read.
        incident_id: Which one.
        reached: Whether it is as wanted.
        each: Is given what every look found.
        limit_s: How long at most; what was found last is returned then.
        pause: Waits for so many seconds.

    Raises:
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    waited_s = 0.0
    while True:
        incident = client.incident(incident_id)
        each(incident)
        if reached(incident) or waited_s >= limit_s:
            return incident
        pause(LOOK_S)
        waited_s += LOOK_S


def _print(timeline: tuple[Event, ...], printed: int, incident: Incident, *, as_json: bool) -> None:
    if as_json:
        for event in timeline[printed:]:
            print(for_programs(event.model_dump(mode="json")), flush=True)
        return
    for line in step_lines(timeline, incident)[printed:]:
        print(line, flush=True)


def step_lines(timeline: tuple[Event, ...], incident: Incident) -> list[str]:
    """Return the timeline as lines for a terminal."""
    found = []
    for step in steps(timeline, incident):
        by = "" if step.by == "agent" or step.by in step.says else f" ({for_people(step.by, lines=False)})"
        found.append(f"{step.at:%Y-%m-%d %H:%M:%S}  {step.phase:<14} {for_people(step.says, lines=False)}{by}")
    return found
