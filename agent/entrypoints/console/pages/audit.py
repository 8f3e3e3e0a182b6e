"""The page of the record: rows that only grow, looked through by filters, and checked for whether they were changed."""

import time
from typing import Any, Final

from flask import Flask, Response, request
from pydantic import Field, ValidationError

from agent.core.decision.audit import AuditRow, Soundness, Verified, verify
from agent.core.value import Value, mistakes_of
from agent.entrypoints.console.control_access import ControlAccess
from agent.entrypoints.console.page_context import PageContext, page, who_asks
from agent.errors import InputRejected
from agent.presentation.audit_text import row_text, soundness_text

SHOWN: Final = 100
LOOKED_THROUGH: Final = 1000
CHECKED: Final = 20_000
"""Rows that a page checks at most; the command line checks a longer record whole."""
PIECE: Final = 5000
KEPT_S: Final = 60.0  # how long a verdict is shown without checking again


class _Asked(Value):
    """What of the record is asked for; empty asks for nothing."""

    kind: str = Field(default="", max_length=100)
    who: str = Field(default="", max_length=320)
    text: str = Field(default="", max_length=200)
    before: int | None = Field(default=None, ge=1, le=2**62)
    chain: str = Field(default="", max_length=64, pattern=r"^[0-9a-f]*$")

    @property
    def filtered(self) -> bool:
        return bool(self.kind or self.who or self.text)

    def matches(self, row: AuditRow) -> bool:
        said = f"{row.incident} {row_text(row)} {row.kind}".casefold()
        who = self.who.casefold() in row.who.casefold()
        return row.kind.startswith(self.kind) and who and all(word in said for word in self.text.casefold().split())


def add_audit(app: Flask, console: PageContext) -> None:
    """Add the page."""
    kept = _KeptVerdict()

    @app.get("/audit")
    def audit() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        asked, named = _asked(), bool(person.who)
        wanted = named and request.args.get("verify") == "1"
        verdict = kept.of(console.control, asked.chain) if wanted else None
        context = _context(console.control, asked) | {"verdict": verdict, "may_verify": named}
        return page(console, "audit.html", person, now, **context)


class _KeptVerdict:
    """The last verdict, for a minute: thousands of rows are read and hashed for one."""

    def __init__(self) -> None:
        self._kept: tuple[float, str, dict[str, Any]] | None = None

    def of(self, control: ControlAccess, noted: str) -> dict[str, Any]:
        """Return it, or check anew.

        Raises:
            SreError: The record was not read.
        """
        kept = self._kept
        if kept is None or kept[1] != noted or time.monotonic() > kept[0]:
            verdict = _verdict(control, noted)
            self._kept = kept = (time.monotonic() + KEPT_S, noted, verdict)
        return kept[2]


def _context(control: ControlAccess, asked: _Asked) -> dict[str, Any]:
    looked = control.audit(LOOKED_THROUGH, asked.before)
    found = [row for row in reversed(looked) if asked.matches(row)]
    shown = found[:SHOWN]
    last = shown[-1] if len(found) > SHOWN else looked[0] if looked else None
    kept = (("kind", asked.kind), ("who", asked.who), ("q", asked.text))
    before = last.number if last is not None and last.number > 1 else None
    return {
        "asked": asked,
        "rows": [(row, row_text(row)) for row in shown],
        "kinds": sorted({row.kind for row in looked}),
        "looked": len(looked),
        "older": (("before", str(before)), *((n, v) for n, v in kept if v)) if before is not None else (),
    }


def _verdict(control: ControlAccess, noted: str) -> dict[str, Any]:
    """Check the newest rows of the record, the whole of it where it is not longer than a page may read."""
    rows: tuple[AuditRow, ...] = ()
    while len(rows) < CHECKED and (not rows or rows[0].number > 1):
        piece = control.audit(min(PIECE, CHECKED - len(rows)), rows[0].number if rows else None)
        if not piece:
            break
        rows = (*piece, *rows)
    found = verify(rows, last_chain=noted or None)
    partial = found.soundness is Soundness.BEGINNING_MISSING and len(rows) >= CHECKED
    apart = control.databases_apart()
    return {
        "sound": not apart and (found.soundness is Soundness.SOUND or partial),
        "says": f"not sound: {apart}" if apart else _says(found, rows, partial=partial),
        "last": rows[-1].chain if rows else "",
    }


def _says(found: Verified, rows: tuple[AuditRow, ...], *, partial: bool) -> str:
    if partial:
        whole = "for all of them, in a terminal: sre-agent audit verify"
        return f"sound as far as was looked: the newest {len(rows)} rows, each chained to the one before it; {whole}"
    return soundness_text(found.soundness, found.number)


def _asked() -> _Asked:
    given = {name: request.args.get(key, "").strip() for name, key in _NAMES.items()}
    try:
        return _Asked.model_validate({name: value for name, value in given.items() if value})
    except ValidationError as error:
        wrong = "; ".join(mistakes_of(error))[:300]
        raise InputRejected("the record was not read", why=wrong, hint="go back to the first page") from error


_NAMES: Final = {"kind": "kind", "who": "who", "text": "q", "before": "before", "chain": "chain"}
