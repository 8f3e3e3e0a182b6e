"""Where an incident's messages stand, in the Firestore database of the incidents."""

from contextlib import suppress
from datetime import datetime, timedelta

from agent.adapters.store.firestore.documents import Data, Documents, Write, document_path
from agent.adapters.store.firestore.errors import Rival
from agent.adapters.store.row_json import to_us


class FirestoreCards:
    """Keeps the promises of :class:`agent.ports.stage_context.Cards`.

    One document is both: with ``reference`` once a message stands, with ``holder`` and ``until`` (microseconds) while
    somebody shows it.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def card(self, incident_id: str, notifier: str) -> str | None:
        """Return the reference of the message, or None; see the port."""
        found = self._documents.get(_path(incident_id, notifier))
        return None if found is None else _reference(found.data)

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        """Keep the reference; see the port."""
        self._documents.put(_path(incident_id, notifier), {"reference": reference})

    def claim_card(
        self, incident_id: str, notifier: str, holder: str, *, reference: str | None, now: datetime, for_s: float
    ) -> bool:
        """Take the right to show it; see the port."""
        path = _path(incident_id, notifier)
        claim: Data = {"holder": holder, "until": to_us(now + timedelta(seconds=for_s))}
        if reference is None and self._documents.create(path, claim):
            return True
        found = self._documents.get(path)
        if found is None or _reference(found.data) != reference:
            return False
        if found.data.get("holder", holder) != holder and to_us(now) < found.data["until"]:
            return False
        try:
            self._documents.write([Write(path=path, data=found.data | claim, stamp=found.stamp)])
        except Rival:
            return False  # somebody else took it over; or our own answer was lost, and asked again it is ours
        return True

    def release_card(self, incident_id: str, notifier: str, holder: str) -> None:
        """Give the right back; see the port."""
        path = _path(incident_id, notifier)
        found = self._documents.get(path)
        if found is None or found.data.get("holder") != holder:
            return
        with suppress(Rival):  # taken over meanwhile
            self._documents.write([Write(path=path, data=found.data | {"until": 0}, stamp=found.stamp)])


def _reference(data: Data) -> str | None:
    return str(data["reference"]) if "reference" in data else None


def _path(incident_id: str, notifier: str) -> str:
    return document_path(f"{document_path('incidents', incident_id)}/cards", notifier)
