"""Who runs the contracts: every adapter of a port, opened twice over the same data where it can be.

A new adapter joins by one more entry in its table: a function that takes a fresh folder and the test's clock and
returns a function that opens one more handle to the same data.
"""

import importlib.util
from pathlib import Path

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.memory import MemoryBus
from agent.adapters.bus.quarantine_memory import MemoryQuarantine
from agent.adapters.bus.quarantine_sqlite import SqliteQuarantine
from agent.adapters.store.memory import MemoryCards, MemoryStore
from agent.adapters.store.memory_control import MemoryControlStore
from agent.adapters.store.sqlite import SqliteStore
from agent.adapters.store.sqlite_cards import SqliteCards
from agent.adapters.store.sqlite_control import SqliteControlStore
from agent.adapters.store.sqlite_database import SqliteDatabase
from agent.adapters.store.sqlite_schema import Kind


def _values():
    spec = importlib.util.spec_from_file_location("contract_values", Path(__file__).with_name("values.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VALUES = _values()


class Files:
    """Databases of one test, closed at its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[SqliteDatabase] = []

    def open(self, kind: Kind) -> SqliteDatabase:
        database = SqliteDatabase(self.folder / f"{kind.prefix}.db", kind)
        self.opened.append(database)
        return database

    def close(self) -> None:
        for database in self.opened:
            database.close()


def always(thing):
    return lambda: thing


def redacted(text: str) -> str:
    return text.replace("hunter2", "[secret]")


STORES = {
    "memory": lambda files, clock: always(MemoryStore()),
    "sqlite": lambda files, clock: lambda: SqliteStore(files.open(Kind.STATE)),
}
CARDS = {
    "memory": lambda files, clock: always(MemoryCards()),
    "sqlite": lambda files, clock: lambda: SqliteCards(files.open(Kind.STATE)),
}
CONTROLS = {
    "memory": lambda files, clock: always(MemoryControlStore()),
    "sqlite": lambda files, clock: lambda: SqliteControlStore(files.open(Kind.CONTROL)),
}
BUSES = {
    "memory": lambda files, clock, subscriptions: always(MemoryBus(clock, subscriptions)),
    "sqlite": lambda files, clock, subscriptions: lambda: EmbeddedBus(files.open(Kind.STATE), clock, subscriptions),
}
QUARANTINES = {
    "memory": lambda files, clock: always(MemoryQuarantine(clock, redact=redacted)),
    "sqlite": lambda files, clock: lambda: SqliteQuarantine(files.open(Kind.STATE), clock, redact=redacted),
}


@pytest.fixture(scope="session")
def make():
    """Values to store and send."""
    return VALUES


@pytest.fixture
def clock():
    """A clock that stands until it is set."""
    return VALUES.FakeClock()


@pytest.fixture
def files(tmp_path):
    held = Files(tmp_path)
    yield held
    held.close()


@pytest.fixture(params=STORES.values(), ids=STORES)
def open_store(request, files, clock):
    return request.param(files, clock)


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture(params=CARDS.values(), ids=CARDS)
def open_cards(request, files, clock):
    return request.param(files, clock)


@pytest.fixture(params=CONTROLS.values(), ids=CONTROLS)
def open_control(request, files, clock):
    return request.param(files, clock)


@pytest.fixture
def control(open_control):
    return open_control()


@pytest.fixture(params=BUSES.values(), ids=BUSES)
def open_bus(request, files, clock):
    """Opens a bus with the given subscriptions."""
    opened = {}

    def open_(subscriptions):
        if "bus" not in opened:
            opened["bus"] = request.param(files, clock, subscriptions)
        return opened["bus"]()

    return open_


@pytest.fixture(params=QUARANTINES.values(), ids=QUARANTINES)
def open_quarantine(request, files, clock):
    return request.param(files, clock)
