"""Where state is kept: incidents, what only deciders may write, cards, and what can never succeed."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.bootstrap.known import redact
from agent.ports.bus import Quarantine
from agent.ports.clock import Clock
from agent.ports.control import ControlStore
from agent.ports.stage_context import Cards
from agent.ports.store import IncidentStore
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.store.sqlite_database import SqliteDatabase


@dataclass(frozen=True, kw_only=True)
class Shelves:
    """The stores of one installation.

    Attributes:
        control: None where it was not asked for: most functions may not even open it.
        clock: Never earlier than the highest time that was stored. Over files the machine's, which goes on where that
            was set back; over Firestore the server's.
        database: The SQLite file, which the embedded queue shares; None in the cloud.
    """

    store: IncidentStore
    control: ControlStore | None
    cards: Cards
    quarantine: Quarantine
    clock: Clock
    database: "SqliteDatabase | None" = None


def shelves(settings: Settings, *, with_control: bool) -> Shelves:
    """Open what the settings name.

    Raises:
        DependencyFailed: It cannot be opened.
    """
    if settings.embedded:
        return sqlite_shelves(settings, with_control=with_control)
    return firestore_shelves(settings.store.removeprefix("firestore:"), with_control=with_control)


STATE_DATABASE: Final = "sre-state"
CONTROL_DATABASE: Final = "sre-control"  # a database of its own, so that who writes it is a matter of IAM
TIME_READ_EVERY_S: Final = 5.0  # of the server; counted on in between


def firestore_shelves(project: str, *, with_control: bool) -> Shelves:
    """Name the databases of a project; they are connected to at their first use."""
    from agent.adapters.bus.quarantine_firestore import FirestoreQuarantine
    from agent.adapters.clock import ServerClock, SystemClock
    from agent.adapters.store.firestore import FirestoreStore
    from agent.adapters.store.firestore_cards import FirestoreCards
    from agent.adapters.store.firestore_control import FirestoreControlStore
    from agent.adapters.store.firestore_documents import Documents

    documents = Documents(project, STATE_DATABASE)
    store = FirestoreStore(documents, SystemClock())
    clock = ServerClock(store.server_time, SystemClock(), every_s=TIME_READ_EVERY_S)
    return Shelves(
        store=store,
        control=FirestoreControlStore(Documents(project, CONTROL_DATABASE)) if with_control else None,
        cards=FirestoreCards(documents),
        quarantine=FirestoreQuarantine(documents, clock, redact=redact),
        clock=clock,
    )


def sqlite_shelves(settings: Settings, *, with_control: bool) -> Shelves:
    """Open the files of the embedded state."""
    from agent.adapters.bus.quarantine_sqlite import SqliteQuarantine
    from agent.adapters.clock import StoredClock, SystemClock
    from agent.adapters.store.sqlite import SqliteStore
    from agent.adapters.store.sqlite_cards import SqliteCards
    from agent.adapters.store.sqlite_control import SqliteControlStore
    from agent.adapters.store.sqlite_database import SqliteDatabase
    from agent.adapters.store.sqlite_schema import Kind

    database = SqliteDatabase(settings.state / "sre.sqlite", Kind.STATE)
    store = SqliteStore(database)
    clock = StoredClock(SystemClock(), store.latest_time, monotonic=time.monotonic)
    control = SqliteDatabase(settings.state / "control.sqlite", Kind.CONTROL) if with_control else None
    return Shelves(
        store=store,
        control=SqliteControlStore(control) if control is not None else None,
        cards=SqliteCards(database),
        quarantine=SqliteQuarantine(database, clock, redact=redact),
        clock=clock,
        database=database,
    )
