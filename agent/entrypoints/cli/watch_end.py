"""How the watching of a server ends: with the server itself, and by stopping it."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime

from agent.core.incident.incident import Incident
from agent.core.incident.phase import UNDER_WAY, Phase
from agent.ports.host import HostServers, Stage, Start

STOP_S = 60.0
DIAGNOSIS_WAIT_S = 5.0  # so long a run with --once waits for a diagnosis, and for a change that needs nobody


def stopped(platform: HostServers, service: str) -> bool:
    """Ask a server to end and wait; whether it has ended in ``STOP_S``."""
    platform.stop(service)
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        newest = platform.settled(service).newest
        if newest is None or newest.stage is Stage.ENDED:
            return True
        time.sleep(0.1)
    return False


def is_over(
    newest: Start, incidents: Iterable[Incident], *, now: datetime, automatic: Callable[[Incident], bool]
) -> bool:
    """Return whether a run with --once ends: its server did and was told of, and nothing of ours changes it.

    Args:
        newest: The start that counts.
        incidents: Those of this run.
        now: The present time.
        automatic: Whether policy is to approve the plan that an incident asks about.
    """
    if newest.stage is not Stage.ENDED:
        return False
    found = tuple(incidents)
    if any(incident.phase in UNDER_WAY for incident in found):
        return False
    if (now - (newest.ended_at or newest.began_at)).total_seconds() >= DIAGNOSIS_WAIT_S:
        return True
    if any(_moves_on(incident, automatic) for incident in found):
        return False
    return newest.on_purpose or any(i.diagnosis is not None and not i.diagnosis.provisional for i in found)


def _moves_on(incident: Incident, automatic: Callable[[Incident], bool]) -> bool:
    """Whether a plan is being made, or approved without a person."""
    if incident.phase in {Phase.OPEN, Phase.DIAGNOSED, Phase.PLANNED}:
        return True
    return incident.phase is Phase.ASKED and automatic(incident)


def shell_code(code: int | None) -> int:
    """Return an exit code as a shell tells it: 128 and the number for a signal, 1 where nobody knows."""
    if code is None:
        return 1
    return code if code >= 0 else 128 - code
