"""People see the incident as it is now, in place; telling fails open, and an incident never waits for it."""

from agent.errors import SreError
from agent.ports.world import World


def tell_people(world: World, incident_id: str) -> tuple[str, ...]:
    """Show the incident through every notifier.

    Returns:
        The notifiers that failed, with their reasons; the incident goes on without them.
    """
    incident = world.store.load(incident_id)
    timeline = world.store.timeline(incident_id)
    failed = []
    for name, notifier in world.notifiers.items():
        try:
            before = world.cards.card(incident_id, name)
            reference = notifier.tell(incident, timeline, reference=before)
            if reference is not None and reference != before:
                world.cards.keep_card(incident_id, name, reference)
        except SreError as error:
            failed.append(f"{name}: {error}")
    return tuple(failed)
