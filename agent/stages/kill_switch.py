"""The kill switch is turned on at once, and off only once the record says by whom."""

from datetime import datetime

from agent.ports.control import ControlStore, KillSwitch


def turn_kill_switch(control: ControlStore, *, on: bool, by: str, why: str, at: datetime) -> KillSwitch:
    """Turn the switch, and record it.

    Args:
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
    control.append(at=at, kind=f"kill_switch.{'on' if on else 'off'}", incident="", who=by, body=why)
    if not on:
        control.set_kill_switch(switch)
    return control.kill_switch()
