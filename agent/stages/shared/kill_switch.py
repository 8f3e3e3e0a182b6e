"""The kill switch is turned on at once, and off only once the record says by whom."""

from contextlib import suppress
from datetime import datetime

from agent.errors import SreError
from agent.ports.control import ControlStore, KillSwitch
from agent.ports.store import IncidentStore
from agent.stages.shared.database_pair import note_reached


def turn_kill_switch(
    store: IncidentStore, control: ControlStore, *, on: bool, by: str, why: str, at: datetime
) -> KillSwitch:
    """Turn the switch, and record it.

    Args:
        store: The incident database, which is told that the record has grown.
        control: Where it stands.
        on: Whether changes are stopped.
        by: Who turns it.
        why: Their reason.
        at: The time, UTC.

    Returns:
        How it stands now.

    Raises:
        DependencyFailed: The store did not answer. What was to be stopped may be stopped without a row in the record;
            what was to go on does not go on.
    """
    switch = KillSwitch(on=on, by=by, why=why, at=at)
    if on:
        control.set_kill_switch(switch)
    row = control.append(at=at, kind=f"kill_switch.{'on' if on else 'off'}", incident="", who=by, body=why)
    if not on:
        control.set_kill_switch(switch)
    with suppress(SreError):  # the switch is turned; the next decision tells them
        note_reached(store, control, row.number)
    return control.kill_switch()
