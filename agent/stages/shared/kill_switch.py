"""The kill switch is read here and nowhere else; it is turned on at once, and off once the record says by whom."""

import time
from contextlib import suppress
from datetime import datetime
from typing import Final

from agent.errors import DependencyFailed, SreError
from agent.ports.control import ControlStore, KillSwitch
from agent.ports.stage_context import StageContext
from agent.ports.store import IncidentStore
from agent.stages.shared.database_pair import note_reached, pairing_fault

ANSWER_S: Final = 1.0  # a switch that takes longer to read may have been turned since
HALTED: Final = "the kill switch is on (KILL_SWITCH in the environment)"


def kill_switch_reason(context: StageContext) -> str:
    """Return why the kill switch lets no change begin, or nothing where it is clearly off.

    Raises:
        DependencyFailed: Nobody knows how it stands: no answer, a late one, or one that means nothing. No effect may
            start, and nothing else follows from it either: the step is tried again.
    """
    if context.halted:
        return HALTED
    began = time.monotonic()
    switch = read_kill_switch(context.control_store())
    if switch.on is True:
        return switch.says
    if time.monotonic() - began > ANSWER_S:
        raise _unread(f"it did not answer within {ANSWER_S:g} s")
    return ""


def read_kill_switch(control: ControlStore) -> KillSwitch:
    """Return how the switch stands, which nothing else reads.

    Raises:
        DependencyFailed: The control database did not say.
    """
    try:
        switch = control.kill_switch()
    except SreError as error:
        raise _unread(error.why) from error
    except Exception as error:  # whatever a store answers but "off" stops us
        raise _unread(type(error).__name__) from error
    if not isinstance(switch, KillSwitch) or switch.on not in (True, False):
        raise _unread("the control database answered something else")
    return switch


def _unread(why: str) -> DependencyFailed:
    return DependencyFailed(
        "the kill switch could not be read", why=why, hint="it is tried again; until then nothing is changed"
    )


def changes_stopped(context: StageContext) -> str:
    """Return why nothing may be changed now, or nothing: databases that do not belong together, or the kill switch.

    Raises:
        DependencyFailed: Nobody knows; no effect may start, and the step is tried again.
    """
    return pairing_fault(context) or kill_switch_reason(context)


def kill_switch_message(context: StageContext) -> str:
    """Return for people why no effect may start, or nothing; a switch that cannot be read says so.

    Without the control database, as in the console of the cloud, the environment alone is known.
    """
    if context.control is None:
        return HALTED if context.halted else ""
    try:
        return changes_stopped(context)
    except DependencyFailed as error:
        return f"{error.what}: {error.why}"


def set_kill_switch(
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
        note_reached(store, control, row)
    return read_kill_switch(control)
