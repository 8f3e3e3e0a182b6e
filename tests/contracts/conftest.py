"""Who runs the contracts: every adapter of a port, opened twice over the same data where a test opens it twice.

A new adapter joins by one more entry in its table: a function that takes a fresh folder and the test's clock and
returns a function that opens one more handle to the same data.
"""

from pathlib import Path

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.quarantine.firestore import FirestoreQuarantine
from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.store.firestore.cards import FirestoreCards
from agent.adapters.store.firestore.control import FirestoreControlStore
from agent.adapters.store.firestore.documents import Documents
from agent.adapters.store.firestore.service_records import FirestoreServiceRecords
from agent.adapters.store.firestore.store import FirestoreStore
from agent.adapters.store.sqlite.cards import SqliteCards
from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.service_records import SqliteServiceRecords
from agent.adapters.store.sqlite.store import SqliteStore
from tests.contracts import values


class Files:
    """Databases of one test, closed at its end."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self.folder = folder
        self.opened: list[SqliteDatabase | Documents] = []
        self._request = request

    def open(self, kind: Kind) -> SqliteDatabase:
        database = SqliteDatabase(self.folder / f"{kind.prefix}.db", kind)
        self.opened.append(database)
        return database

    def documents(self, database: str = "(default)") -> Documents:
        """A Firestore database that no other test sees."""
        project = self._request.getfixturevalue("firestore_project")
        client = self._request.getfixturevalue("firestore_emulator").client(project, database)
        documents = Documents(project, database, client=client)
        self.opened.append(documents)
        return documents

    def close(self) -> None:
        for database in self.opened:
            database.close()


def always(thing):
    return lambda: thing


def redacted(text: str) -> str:
    return text.replace("hunter2", "[secret]")


STORES = {
    "memory": lambda files, clock: always(SqliteStore(InMemoryDatabase(Kind.STATE))),
    "sqlite": lambda files, clock: lambda: SqliteStore(files.open(Kind.STATE)),
    "firestore": lambda files, clock: lambda: FirestoreStore(files.documents(), clock),
}
CARDS = {
    "memory": lambda files, clock: always(SqliteCards(InMemoryDatabase(Kind.STATE))),
    "sqlite": lambda files, clock: lambda: SqliteCards(files.open(Kind.STATE)),
    "firestore": lambda files, clock: lambda: FirestoreCards(files.documents()),
}
SERVICE_RECORDS = {
    "memory": lambda files, clock: always(SqliteServiceRecords(InMemoryDatabase(Kind.STATE))),
    "sqlite": lambda files, clock: lambda: SqliteServiceRecords(files.open(Kind.STATE)),
    "firestore": lambda files, clock: lambda: FirestoreServiceRecords(files.documents()),
}
CONTROLS = {
    "memory": lambda files, clock: always(SqliteControlStore(InMemoryDatabase(Kind.CONTROL))),
    "sqlite": lambda files, clock: lambda: SqliteControlStore(files.open(Kind.CONTROL)),
    "firestore": lambda files, clock: lambda: FirestoreControlStore(files.documents("control")),
}
BUSES = {
    "memory": lambda files, clock, subscriptions: always(
        EmbeddedBus(InMemoryDatabase(Kind.STATE), clock, subscriptions)
    ),
    "sqlite": lambda files, clock, subscriptions: lambda: EmbeddedBus(files.open(Kind.STATE), clock, subscriptions),
}
QUARANTINES = {
    "memory": lambda files, clock: always(SqliteQuarantine(InMemoryDatabase(Kind.STATE), clock, redact=redacted)),
    "sqlite": lambda files, clock: lambda: SqliteQuarantine(files.open(Kind.STATE), clock, redact=redacted),
    "firestore": lambda files, clock: lambda: FirestoreQuarantine(files.documents(), clock, redact=redacted),
}


EMULATED = (pytest.mark.emulator, pytest.mark.xdist_group("firestore"))


def cases(table, *, without=""):
    """The adapters of a table; those that need an emulator run in one process, so that it is started once."""
    return [
        pytest.param(one, id=name, marks=EMULATED if name == "firestore" else ())
        for name, one in table.items()
        if name != without
    ]


@pytest.fixture(scope="session")
def make():
    """Values to store and send."""
    return values


@pytest.fixture
def clock():
    """A clock that stands until it is set."""
    return values.FakeClock()


@pytest.fixture
def files(tmp_path, request):
    held = Files(tmp_path, request)
    yield held
    held.close()


@pytest.fixture(params=cases(STORES))
def open_store(request, files, clock):
    return request.param(files, clock)


@pytest.fixture(params=cases(STORES, without="sqlite"))
def store(request, files, clock):
    """A store that one test opens once; in a file SQLite runs the same statements."""
    return request.param(files, clock)()


@pytest.fixture(params=cases(CARDS))
def open_cards(request, files, clock):
    return request.param(files, clock)


@pytest.fixture(params=cases(SERVICE_RECORDS))
def open_service_records(request, files, clock):
    return request.param(files, clock)


@pytest.fixture(params=cases(CONTROLS))
def open_control(request, files, clock):
    return request.param(files, clock)


@pytest.fixture(params=cases(CONTROLS, without="sqlite"))
def control(request, files, clock):
    """The same of decisions and effects."""
    return request.param(files, clock)()


@pytest.fixture(params=BUSES.values(), ids=BUSES)
def open_bus(request, files, clock):
    """Opens a bus with the given subscriptions."""
    opened = {}

    def open_(subscriptions):
        if "bus" not in opened:
            opened["bus"] = request.param(files, clock, subscriptions)
        return opened["bus"]()

    return open_


@pytest.fixture(params=cases(QUARANTINES))
def open_quarantine(request, files, clock):
    return request.param(files, clock)
