"""What `sre-agent up` prints on a terminal: one sentence for each move of an incident, and whatever went wrong."""

import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.output import for_people
from agent.ports.clock import Clock
from agent.presentation.incident_title import incident_title
from agent.structured_log import structlog

_MOVES: Final = frozenset({"incident.moved", "request.moved"})
_QUIET: Final = frozenset({"debug", "info"})


class Story:
    """A step of the log that tells moves as headlines and leaves out the rest of what goes as it should."""

    def __init__(self, load: Callable[[str], Incident], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._said: dict[str, str] = {}

    def __call__(self, _: Any, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Pass a warning on; print a move's headline; drop everything else.

        Raises:
            structlog.DropEvent: Nothing more is to be printed.
        """
        if level not in _QUIET:
            return event
        if event["event"] in _MOVES:
            now = self._clock.now()
            incident = self._load(str(event["incident"]))
            title = incident_title(incident, now)
            lines = [f"{now:%H:%M:%S}  {title}"] if self._said.get(incident.id) != title else []
            self._said[incident.id] = title
            if incident.phase is Phase.ASKED and incident.plan is not None:
                lines.append(f"          sre-agent approve {incident.plan.id}   or in the console")
            for line in lines:
                print(for_people(line), file=sys.stderr)
        raise structlog.DropEvent
