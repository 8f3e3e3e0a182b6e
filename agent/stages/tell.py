"""People see the incident as it is now, in place; telling fails open, and an incident never waits for it."""

import threading
from contextlib import suppress
from typing import Final

from agent.errors import DependencyFailed, SreError
from agent.ports.notifier import RemembersShown
from agent.ports.stage_context import StageContext
from agent.ports.tracing import Kind
from agent.stages.shared.spans import incident_span

TIMES: Final = 3  # an incident that changes while it is shown is shown again
CLAIM_S: Final = 120.0
"""How long a worker alone may show an incident. Slack's turn and answer take 40 s at most, each answer of the store
15 s; who is silent for longer is dead, and people should not wait longer for the next word."""


class NotifyInProgress(DependencyFailed):
    """Another worker shows the incident at this moment; who comes later shows what is new then."""


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
    holder = holder_of(context)
    incident = context.store.load(incident_id)
    notifier = context.notifiers[name]
    for _ in range(TIMES):
        seen = context.cards.card(incident_id, name)
        if seen is not None and isinstance(notifier, RemembersShown) and notifier.shows(incident, reference=seen):
            return
        before = claim(context, incident_id, name, holder, seen)
        try:
            with incident_span(context, "tell", incident, kind=Kind.CLIENT, notifier=name):
                timeline = context.store.timeline(incident_id)
                reference = notifier.tell(incident, timeline, reference=before)
        except SreError:
            give_back(context, incident_id, name, holder)
            raise
        if reference is None or reference == before:
            give_back(context, incident_id, name, holder)
        else:
            context.cards.keep_card(incident_id, name, reference)
        shown, incident = incident.version, context.store.load(incident_id)
        if incident.version == shown:
            return


def holder_of(context: StageContext) -> str:
    """Return who claims: two threads are rivals like two processes."""
    return f"{context.holder}/{threading.get_ident()}"


def give_back(context: StageContext, incident_id: str, name: str, holder: str) -> None:
    """Nothing was sent, so that nobody has to wait until the claim ends by its time."""
    with suppress(SreError):
        context.cards.release_card(incident_id, name, holder)


def claim(context: StageContext, incident_id: str, name: str, holder: str, before: str | None) -> str | None:
    """Take the right to go on from where the message stands, which was just read; return its reference.

    Raises:
        NotifyInProgress: Another worker has that right.
    """
    for _ in range(TIMES):
        now = context.clock.now()
        if context.cards.claim_card(incident_id, name, holder, reference=before, now=now, for_s=CLAIM_S):
            return before
        looked, before = before, context.cards.card(incident_id, name)
        if looked == before:
            break
    raise _in_progress(incident_id)


def _in_progress(incident_id: str) -> NotifyInProgress:
    return NotifyInProgress(
        f"{incident_id!r} was not shown",
        why="another worker is showing it at this moment",
        hint="no action needed: it is tried again, and what is new then is added",
    )
