"""The record of what was decided and done: rows that only grow, each chained to the one before it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime

from agent.core.value import Value, digest

BEGINNING: Final = ""  # the chain before the first row
REPEATS: Final = 16  # rows among which the same words count as the same writing


class AuditRow(Value):
    """One line of the append-only record; ``chain`` is a digest over the row and the chain before it."""

    number: int
    at: AwareDatetime
    kind: str
    incident: str
    who: str
    body: str
    chain: str


class Soundness(StrEnum):
    """What a record turned out to be."""

    SOUND = "sound"
    CHANGED = "changed"  # a row says something else than when it was written
    MISSING = "missing"  # a row is not there, or stands twice
    TAIL_MISSING = "tail_missing"  # the record ends before the row that is known to be its last
    BEGINNING_MISSING = "beginning_missing"  # sound as far as it goes, but rows before it were not looked at


class Verified(Value):
    """The result of checking a record.

    Attributes:
        number: The first row that is not as it should be; for ``SOUND`` and ``TAIL_MISSING`` the last row that was
            looked at, 0 for an empty record; for ``BEGINNING_MISSING`` the first.
    """

    soundness: Soundness
    number: int


def next_row(last: AuditRow | None, *, at: datetime, kind: str, incident: str, who: str, body: str) -> AuditRow:
    """Return the row that follows ``last`` (None for the first), with its chain; the time is kept in UTC."""
    row = AuditRow(
        number=last.number + 1 if last else 1,
        at=at.astimezone(UTC),
        kind=kind,
        incident=incident,
        who=who,
        body=body,
        chain="",
    )
    return row.with_(chain=chain(last.chain if last else BEGINNING, row))


def existing_row(rows: Sequence[AuditRow], *, kind: str, incident: str, who: str, body: str) -> AuditRow | None:
    """Return the row that says exactly this already, None where none of ``rows`` does."""
    words = (kind, incident, who, body)
    return next((row for row in rows if (row.kind, row.incident, row.who, row.body) == words), None)


def chain(before: str, row: AuditRow) -> str:
    """Return the SHA-256, hex, over the chain before a row and the canonical row without its own chain."""
    content = row.model_dump(mode="json", exclude={"chain"}) | {"at": row.at.astimezone(UTC).isoformat()}
    return digest([before, content])


def verify(rows: Sequence[AuditRow], *, last_chain: str | None = None) -> Verified:
    """Check a record.

    Args:
        rows: The record or its end, oldest first.
        last_chain: The chain of the last row as it was noted elsewhere; without it nobody can tell that rows were
            taken from the end.

    Returns:
        Sound, or the first row that is not. A record that was written anew from some row on, chains included, is
        found only by a ``last_chain`` noted before.
    """
    partial = bool(rows) and rows[0].number != 1
    found = _walk(rows[1:], rows[0].number, rows[0].chain) if partial else _walk(rows, 0, BEGINNING)
    if found.soundness is not Soundness.SOUND:
        return found
    if last_chain not in {None, rows[-1].chain if rows else BEGINNING}:
        return Verified(soundness=Soundness.TAIL_MISSING, number=found.number)
    return Verified(soundness=Soundness.BEGINNING_MISSING, number=rows[0].number) if partial else found


def _walk(rows: Sequence[AuditRow], number: int, before: str) -> Verified:
    for row in rows:
        number += 1
        if row.number != number:
            return Verified(soundness=Soundness.MISSING, number=number)
        if row.chain != chain(before, row):
            return Verified(soundness=Soundness.CHANGED, number=number)
        before = row.chain
    return Verified(soundness=Soundness.SOUND, number=number)
