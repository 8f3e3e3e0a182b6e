"""People see the incident as it is now, in place; telling fails open, and an incident never waits for it."""

from agent.errors import SreError
from agent.ports.world import World

TIMES = 3  # an incident that changes while it is shown is shown again


def tell_people(world: World, incident_id: str) -> dict[str, SreError]:
    """Show the incident through every notifier.

    Returns:
        The notifiers that failed, with what they said; the incident goes on without them.
    """
    failed: dict[str, SreError] = {}
    for name in world.notifiers:
        try:
            _tell(world, incident_id, name)
        except SreError as error:
            failed[name] = error
    return failed


def _tell(world: World, incident_id: str, name: str) -> None:
    """Show it until what is shown is what is stored: two tellings may overtake one another."""
    incident = world.store.load(incident_id)
    for _ in range(TIMES):
        before = world.cards.card(incident_id, name)
        timeline = world.store.timeline(incident_id)
        reference = world.notifiers[name].tell(incident, timeline, reference=before)
        if reference is not None and reference != before:
            world.cards.keep_card(incident_id, name, reference)
        shown, incident = incident.version, world.store.load(incident_id)
        if incident.version == shown:
            return
