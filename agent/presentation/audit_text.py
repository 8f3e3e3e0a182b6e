"""The record of decisions and effects for people: what a row says, and whether the record is as it was written."""

import json
from typing import Any, Final

from agent.core.decision.audit import AuditRow, Soundness

_SOUNDNESS: Final = {
    Soundness.SOUND: "sound: {number} rows, each chained to the one before it",
    Soundness.CHANGED: "row {number} says something else than when it was written",
    Soundness.MISSING: "row {number} is missing, or stands twice",
    Soundness.TAIL_MISSING: "the record ends at row {number} and does not hold the hash that you gave",
    Soundness.BEGINNING_MISSING: "the record begins at row {number}; rows before it are gone",
}

_SWEEPS: Final = frozenset({"sweep.asked", "sweep.approved", "sweep.granted"})  # a rejection is its reason alone


def soundness_text(soundness: Soundness, number: int) -> str:
    """Return what was found of the record: with its number of rows where it is sound, else the row that is not."""
    if soundness is Soundness.SOUND and not number:
        return "sound: it has no rows yet; nothing was decided or changed"
    return _SOUNDNESS[soundness].format(number=number)


def row_text(row: AuditRow) -> str:
    """Return what a row says: of a decision its plan, channel and reason, of a sweep its bounds, else its own words.

    The kind says how a body is read, for people's reasons are bodies too; one that cannot be read is shown as it is.
    """
    read = _sweep_text if row.kind in _SWEEPS else _decision_text if row.kind.startswith("decision.") else None
    try:
        return read(json.loads(row.body)) if read is not None else row.body  # not strict: a row of ours
    except (ValueError, TypeError, LookupError, AttributeError):
        return row.body


def _decision_text(body: dict[str, Any]) -> str:
    by = body.get("by", body)  # of a roll-back who decided it stands apart
    why = f": {by['why']}" if by.get("why") else ""
    return f"{body['plan']} through {by.get('channel')}{why}"


def _sweep_text(body: dict[str, Any]) -> str:
    asked = body["request"]
    usd = f" and {asked['max_usd']:g} USD" if asked.get("max_usd") else ""
    measured, channel = asked.get("service") or asked["endpoint"], body.get("channel") or asked["channel"]
    return f"load measurement of {measured}, at most {asked['max_minutes']:g} minutes{usd}, through {channel}"
