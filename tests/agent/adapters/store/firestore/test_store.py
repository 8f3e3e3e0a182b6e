"""What is Firestore's own: what a storm costs, names of any kind, and what is kept when answers are lost."""

import pytest

from agent.adapters.store.firestore.control import FirestoreControlStore
from agent.adapters.store.firestore.documents import Documents, Write, document_path
from agent.adapters.store.firestore.store import COUNTED_FROM_BITS, FirestoreStore, _zero_bits
from agent.core.value import digest
from agent.errors import StateConflict

pytestmark = [pytest.mark.emulator, pytest.mark.journey, pytest.mark.xdist_group("firestore")]


@pytest.fixture
def documents(firestore_emulator, firestore_project):
    opened = Documents(firestore_project, client=firestore_emulator.client(firestore_project))
    yield opened
    opened.close()


@pytest.fixture
def clock(make):
    return make.FakeClock()


@pytest.fixture
def store(documents, clock):
    return FirestoreStore(documents, clock)


def test_an_entry_of_a_storm_is_one_created_document(store, documents, make):
    """And a count now and then; the incident is not touched."""
    keys = [digest(n) for n in range(200)]
    counted = sum(_zero_bits(key) >= COUNTED_FROM_BITS for key in keys)
    for key in keys:
        store.accept(make.signal(key), "inc-a")
    assert documents.operations.writes == 200
    assert documents.operations.calls == {"create": 200, "count": counted}
    assert documents.operations.reads <= 0.25 * 200


def test_a_duplicate_costs_no_write(store, documents, make):
    store.accept(make.signal("k"), "inc-a")
    before = documents.operations.writes
    assert not store.accept(make.signal("k"), "inc-a").new
    assert documents.operations.writes == before


def test_a_commit_after_a_load_reads_nothing_more(store, documents, make):
    store.commit(make.change())
    loaded = store.load("inc-a")
    before = documents.operations.reads
    store.commit(make.change(loaded, events=(make.event("x"),)))
    assert documents.operations.reads == before


def test_of_a_timeline_only_what_is_new_is_read_again(documents, clock, make):
    """Also what another process wrote; and where the database was put back to an earlier state, all of it."""
    one, other = FirestoreStore(documents, clock), FirestoreStore(documents, clock)
    kept = one.commit(make.change(events=(make.event("0"),)))
    for n in range(1, 5):
        kept = one.commit(make.change(kept, events=(make.event(str(n)),)))
    assert [e.what for e in one.timeline("inc-a")] == ["0", "1", "2", "3", "4"]
    kept = other.commit(make.change(other.load("inc-a"), events=(make.event("5"), make.event("6"))))
    before = documents.operations.reads
    assert [e.what for e in one.timeline("inc-a")] == ["0", "1", "2", "3", "4", "5", "6"]
    assert documents.operations.reads == before + 2
    last = f"{document_path('incidents', 'inc-a')}/timeline/{kept.version:010d}"
    documents.write([Write(path=last, data=None)])
    assert [e.what for e in one.timeline("inc-a")] == ["0", "1", "2", "3", "4"]


def test_a_stamp_that_was_kept_too_long_is_noticed(documents, clock, make):
    """Another process wrote in between; what this one remembers is no excuse."""
    one, other = FirestoreStore(documents, clock), FirestoreStore(documents, clock)
    one.commit(make.change())
    mine = one.load("inc-a")
    other.commit(make.change(other.load("inc-a")))
    with pytest.raises(StateConflict, match="version 2 stands"):
        one.commit(make.change(mine))


@pytest.mark.parametrize("name", [".", "..", "__id__", "a/b/c", "%2F", "x" * 1500, "\u202e \x00", "a b"], ids=repr)
def test_any_name_is_a_document(store, make, name):
    assert document_path("heads", name) != document_path("heads", f"{name} ")
    store.commit(make.change(heads=(name,)))
    store.accept(make.signal(name), "inc-a")
    assert store.head(name) == "inc-a"
    assert store.knows(name) == "inc-a"


def test_the_control_database_is_another_one(firestore_emulator, firestore_project, make):
    """What is written there cannot be seen from the incidents' database."""
    control = Documents(
        firestore_project, "sre-control", client=firestore_emulator.client(firestore_project, "sre-control")
    )
    incidents = Documents(firestore_project, client=firestore_emulator.client(firestore_project))
    FirestoreControlStore(control).claim("inc-a", "p-1", "yes")
    assert FirestoreControlStore(incidents).claim("inc-a", "p-1", "no") == "no"
    control.close()
    incidents.close()
