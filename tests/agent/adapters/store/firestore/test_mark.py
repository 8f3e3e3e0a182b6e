"""What an older revision of the service, which runs beside this one while it is deployed, leaves in the mark."""

from agent.adapters.store.firestore.mark import FirestoreMark
from agent.core.database_pair import InstallationMark


class Documents:
    """A database that holds one document."""

    name = "lamps"

    def __init__(self, data):
        self.data = data

    def put(self, _path, data):
        self.data = self.data | data

    def get(self, _path):
        return self


def test_the_chain_of_another_row_than_the_one_reached_is_not_read_as_its_chain():
    """It moves the number and leaves what it does not know."""
    documents = Documents({})
    mark = InstallationMark(installation="installation-a", paired=True, reached=7, chain="c7")
    store = FirestoreMark(documents)
    store.set_mark(mark)
    assert store.mark() == mark
    documents.put("", {"reached": 8})
    assert store.mark() == mark.with_(reached=8, chain="")


def test_a_mark_from_before_chains_were_kept_has_none():
    store = FirestoreMark(Documents({"id": "installation-a", "paired": True, "reached": 7}))
    assert store.mark() == InstallationMark(installation="installation-a", paired=True, reached=7)
