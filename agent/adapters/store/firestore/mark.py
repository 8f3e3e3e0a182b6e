"""The mark of the installation in a Firestore database: ``installation/this``, the same in both databases."""

from typing import Final

from agent.adapters.store.firestore.documents import Data, Documents, Write
from agent.adapters.store.firestore.errors import Rival
from agent.core.database_pair import InstallationMark, advanced

PATH: Final = "installation/this"
ATTEMPTS: Final = 8  # of letting it grow; whoever wrote in between let it grow too


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

    def reach(self, number: int) -> None:
        """Let the mark grow; see the port."""
        for _ in range(ATTEMPTS):
            found = self._documents.get(PATH)
            if found is None or _mark(found.data).reached >= number:
                return
            data = _data(advanced(_mark(found.data), number))
            try:
                self._documents.write([Write(path=PATH, data=data, stamp=found.stamp)])
            except Rival:
                continue
            return


def _data(mark: InstallationMark) -> Data:
    return {"id": mark.installation, "paired": mark.paired, "reached": mark.reached}


def _mark(data: Data) -> InstallationMark:
    return InstallationMark(installation=data["id"], paired=data["paired"], reached=data["reached"])
