"""The record of decisions and effects for people: what a row says, and whether the record is as it was written."""

import json
from typing import Any, Final

from agent.core.decision.audit import AuditRow, Soundness

_SOUNDNESS: Final = {
    Soundness.SOUND: "sound: {number} rows, each chained to the one before it",
    Soundness.CHANGED: "row {number} says something else than when it was written",
    Soundness.MISSING: "row {number} is missing, or stands twice",
    Soundness.TAIL_MISSING: "the record ends at row {number}, before the row whose chain you named",
    Soundness.BEGINNING_MISSING: "the record begins at row {number}; rows before it are gone",
}


def soundness_text(soundness: Soundness, number: int) -> str:
    """Return what was found of the record: with its number of rows where it is sound, else the row that is not."""
    if soundness is Soundness.SOUND and not number:
        return "sound: it has no rows yet; nothing was decided or changed"
    return _SOUNDNESS[soundness].format(number=number)


def row_text(row: AuditRow) -> str:
    """Return what a row says: of a decision its plan, channel and reason, of a sweep its bounds, else its own words."""
    try:
        body = json.loads(row.body)  # not strict: a row of ours
    except ValueError:
        return row.body
    if isinstance(body, dict) and "request" in body:
        return _sweep_text(body["request"], body.get("channel") or body["request"]["channel"])
    if not isinstance(body, dict) or "plan" not in body:
        return row.body
    by = body.get("by", body)  # of a roll-back who decided it stands apart
    why = f": {by['why']}" if by.get("why") else ""
    return f"{body['plan']} through {by.get('channel')}{why}"


def _sweep_text(asked: dict[str, Any], channel: str) -> str:
    usd = f" and {asked['max_usd']:g} USD" if asked.get("max_usd") else ""
    measured = asked.get("service") or asked["endpoint"]
    return f"load measurement of {measured}, at most {asked['max_minutes']:g} minutes{usd}, through {channel}"
