"""The error for a writer that came second, with the same message from every store."""

from agent.errors import NotFound, StateConflict, StoredOtherwise


def stale(incident_id: str, *, read: int, stored: int | None) -> StateConflict:
    """Another version of the incident stands than the one that was read."""
    why = "there is none" if stored is None else f"version {stored} stands"
    return StateConflict(
        f"incident {incident_id!r} was not written",
        why=f"version {read} was read and {why}",
        hint="reload it and decide again",
    )


def signal_stored(key: str, incident_id: str) -> StateConflict:
    """A signal of the change came in by another way meanwhile."""
    return StateConflict(
        f"incident {incident_id!r} was not written",
        why=f"its signal {key[:12]!r} is stored already",
        hint="look where the signal is before it is placed again",
    )


def plan_stored(plan_id: str, incident_id: str) -> StoredOtherwise:
    """Another plan has this id, though the incident's row counts fewer plans: no rival of ours leaves it so."""
    return StoredOtherwise(
        f"incident {incident_id!r} was not written",
        why=f"plan {plan_id!r} exists and says something else",
        hint="check who writes to the incident database",
    )


def missing(incident_id: str) -> NotFound:
    """There is no such incident."""
    return NotFound(
        f"incident {incident_id!r} was not found",
        why="the store has none with that id",
        hint="list them: sre-agent incidents",
    )


def head_moved(key: str, incident_id: str) -> StateConflict:
    """Say that a head key points elsewhere than it did when the writer decided."""
    return StateConflict(
        f"incident {incident_id!r} was not written",
        why=f"another incident of {key!r} was opened meanwhile",
        hint="look again; the signal may belong to that one",
    )
