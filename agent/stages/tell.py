"""People see the incident as it is now, in place; telling fails open, and an incident never waits for it."""

import threading
from contextlib import suppress
from typing import Final

from agent.core.incident.incident import Incident
from agent.errors import DependencyFailed, SreError
from agent.ports.stage_context import StageContext
from agent.ports.tracing import Kind
from agent.stages.shared.spans import incident_span

TIMES: Final = 3  # an incident that changes while it is shown is shown again
CLAIM_S: Final = 120.0
"""How long a worker alone may show an incident first. Slack's turn and answer take 40 s at most, each answer of the
store 15 s; who is silent for longer is dead, and people should not wait longer for the first word."""


class NotifyInProgress(DependencyFailed):
    """Another worker sends the first message at this moment; who comes later changes it."""


def tell_people(context: StageContext, incident_id: str) -> dict[str, SreError]:
    """Show the incident through every notifier.

    Returns:
        The notifiers that failed, with what they said; the incident goes on without them.
    """
    failed: dict[str, SreError] = {}
    for name in context.notifiers:
        try:
            _tell(context, incident_id, name)
        except SreError as error:
            failed[name] = error
    return failed


def _tell(context: StageContext, incident_id: str, name: str) -> None:
    """Show it until what is shown is what is stored: two tellings may overtake one another."""
    incident = context.store.load(incident_id)
    for _ in range(TIMES):
        before = context.cards.card(incident_id, name)
        claimed_by = None
        if before is None:
            claimed_by = _claim(context, incident_id, name)
            before = context.cards.card(incident_id, name) if claimed_by is None else None
            if claimed_by is None and before is None:
                raise _being_told(incident_id)
        reference = _show(context, incident, name, before, claimed_by=claimed_by)
        if reference is not None and reference != before:
            context.cards.keep_card(incident_id, name, reference)
        shown, incident = incident.version, context.store.load(incident_id)
        if incident.version == shown:
            return


def _claim(context: StageContext, incident_id: str, name: str) -> str | None:
    """Return in whose name the first message may be sent; None where another worker sends it, or it stands."""
    holder = f"{context.holder}/{threading.get_ident()}"  # two threads are rivals like two processes
    ours = context.cards.claim_card(incident_id, name, holder, now=context.clock.now(), for_s=CLAIM_S)
    return holder if ours else None


def _show(
    context: StageContext, incident: Incident, name: str, before: str | None, *, claimed_by: str | None
) -> str | None:
    """Show it; a claim under which nothing was sent is given back, so that it is told at once when it comes again."""
    reference = None
    try:
        with incident_span(context, "tell", incident, kind=Kind.CLIENT, notifier=name):
            reference = context.notifiers[name].tell(incident, context.store.timeline(incident.id), reference=before)
    except SreError:
        _give_back(context, incident.id, name, claimed_by)
        raise
    if reference is None:
        _give_back(context, incident.id, name, claimed_by)
    return reference


def _give_back(context: StageContext, incident_id: str, name: str, claimed_by: str | None) -> None:
    if claimed_by is not None:
        with suppress(SreError):  # it ends by its time
            context.cards.release_card(incident_id, name, claimed_by)


def _being_told(incident_id: str) -> NotifyInProgress:
    return NotifyInProgress(
        f"{incident_id!r} was not shown",
        why="another worker is posting it for the first time",
        hint="no action needed: it is tried again, and the message is then updated in place",
    )
