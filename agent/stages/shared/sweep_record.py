"""The rows of the record that are about sweeps: asked for, approved by one of several, granted, rejected."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from agent.core.decision.audit import AuditRow
from agent.core.sweep.grant import VALID
from agent.ports.stage_context import StageContext

ASKED: Final = "sweep.asked"
APPROVED: Final = "sweep.approved"  # by one of several people who must; signed like a grant, and none by itself
GRANTED: Final = "sweep.granted"
REJECTED: Final = "sweep.rejected"
PAGE_ROWS: Final = 500
MOST_PAGES: Final = 40


def sweep_rows(context: StageContext) -> Iterator[AuditRow]:
    """Yield them, the newest first, back to where no answer counts any more.

    Raises:
        DependencyFailed: The record cannot be read.
    """
    control, before = context.control_store(), None
    since = context.clock.now() - VALID - timedelta(hours=1)
    for _ in range(MOST_PAGES):
        piece = control.audit(PAGE_ROWS, before=before)
        for row in reversed(piece):
            if row.at < since:
                return
            if row.kind in {ASKED, APPROVED, GRANTED, REJECTED}:
                yield row
        if len(piece) < PAGE_ROWS:
            return
        before = piece[0].number
