"""Where an incident's messages stand, in the Firestore database of the incidents."""

from agent.adapters.store.firestore_documents import Documents, place


class FirestoreCards:
    """Keeps one reference for each incident and notifier; the last one kept stands.

    Args:
        documents: The database of the incidents.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def card(self, incident_id: str, notifier: str) -> str | None:
        """Return the reference of the message, or None; see the port."""
        found = self._documents.get(_path(incident_id, notifier))
        return None if found is None else str(found.data["reference"])

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        """Keep the reference; see the port."""
        self._documents.put(_path(incident_id, notifier), {"reference": reference})


def _path(incident_id: str, notifier: str) -> str:
    return place(f"{place('incidents', incident_id)}/cards", notifier)
