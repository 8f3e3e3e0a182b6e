"""The mark of the installation in a Firestore database: ``installation/this``, the same in both databases."""

from collections.abc import Callable
from typing import Final

from agent.adapters.store.firestore.documents import Data, Documents, Write, until_alone
from agent.core.database_pair import InstallationMark, advanced
from agent.core.decision.audit import AuditRow

PATH: Final = "installation/this"


class FirestoreMark:
    """Keeps the promises of :class:`agent.ports.store.MarkStore`.

    Args:
        documents: The incident or the control database.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def mark(self) -> InstallationMark | None:
        """Return the mark; see the port."""
        found = self._documents.get(PATH)
        return None if found is None else _mark(found.data)

    def first_mark(self, mark: InstallationMark) -> InstallationMark:
        """Set the mark where there is none; see the port."""
        return _mark(self._documents.first(PATH, _data(mark)))

    def set_mark(self, mark: InstallationMark) -> None:
        """Set the mark; see the port."""
        self._documents.put(PATH, _data(mark))

    def pair(self) -> None:
        """Note that the other one carries it too; see the port."""
        self._change(lambda mark: mark.with_(paired=True))

    def reach(self, row: AuditRow, *, of: str) -> None:
        """Let the mark grow; see the port."""
        self._change(lambda mark: advanced(mark, row) if mark.installation == of else mark)

    def _change(self, changed: Callable[[InstallationMark], InstallationMark]) -> None:
        def attempt() -> None:
            found = self._documents.get(PATH)
            if found is None:
                return
            before = _mark(found.data)
            after = changed(before)
            if after != before:
                self._documents.write([Write(path=PATH, data=_data(after), stamp=found.stamp)])

        until_alone(attempt, self._documents.name)


def _data(mark: InstallationMark) -> Data:
    row = {"number": mark.reached, "chain": mark.chain}
    return {"id": mark.installation, "paired": mark.paired, "reached": mark.reached, "row": row}


def _mark(data: Data) -> InstallationMark:
    """Read a mark; an older revision that runs beside this one moves ``reached`` and leaves ``row`` as it was."""
    row = data.get("row", {})
    chain = row.get("chain", "") if row.get("number") == data["reached"] else ""
    return InstallationMark(installation=data["id"], paired=data["paired"], reached=data["reached"], chain=chain)
