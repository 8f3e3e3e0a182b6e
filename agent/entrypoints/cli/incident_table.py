"""The list of incidents as a table with headings; the state is coloured where colours are wanted."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from agent.core.incident.incident import Incident
from agent.entrypoints.cli.output import without_secrets
from agent.presentation.phase_words import Tone
from agent.presentation.report.document import Table
from agent.presentation.report.plain_text import text_table
from agent.presentation.standing import standing
from agent.presentation.terminal_text import subject

_COLUMNS: Final = ("INCIDENT", "STATE", "OPENED (UTC)", "SERVICE", "WHAT", "PLAN", "RUN")
_COLOURS: Final = {Tone.WAITING: "33", Tone.MOVING: "36", Tone.GOOD: "32", Tone.BAD: "31", Tone.QUIET: "2"}


def incident_table(incidents: Sequence[Incident], *, now: datetime, colour: bool) -> Iterator[str]:
    """Yield the lines: a heading, then one line for each incident, without secrets and harmless to the terminal.

    Args:
        incidents: In the order they are to stand.
        now: The time, UTC.
        colour: Whether the state is coloured.
    """
    states = [standing(incident, now) for incident in incidents]
    rows = tuple(_row(incident, state.label) for incident, state in zip(incidents, states, strict=True))
    heading, *lines = text_table(Table(columns=_COLUMNS, rows=rows, numbers=len(_COLUMNS)))
    yield heading
    for line, state in zip(lines, states, strict=True):
        shown = without_secrets(line)
        painted = f"\x1b[{_COLOURS[state.tone]}m{state.label}\x1b[0m"
        yield shown.replace(state.label, painted, 1) if colour else shown


def _row(incident: Incident, label: str) -> tuple[str, ...]:
    return (
        incident.id,
        label,
        f"{incident.opened_at:%Y-%m-%d %H:%M}",
        incident.service,
        subject(incident),
        incident.plan.id if incident.plan is not None else "-",
        incident.run,
    )
