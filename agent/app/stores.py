"""Where state is kept: incidents, what only deciders may write, cards, and what can never succeed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent.app.redaction import hide, redact
from agent.errors import SettingsRejected
from agent.ports.bus import Bus, DeadLetters, Quarantine
from agent.ports.clock import Clock
from agent.ports.control import ControlStore
from agent.ports.request_counts import RequestCountStore
from agent.ports.service_records import ServiceRecords
from agent.ports.stage_context import Cards
from agent.ports.store import IncidentStore
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.bus.pulling import PullBus, Subscription
    from agent.adapters.store.sqlite.database import SqliteDatabase


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The stores of one installation.

    Attributes:
        control: None where it was not asked for: most functions may not even open it.
        clock: Never earlier than the highest time that was stored. Over files the machine's, which goes on where that
            was set back; over Firestore the server's.
        dead_letters: Messages of the queue that were given up; None where it does not stand in these stores.
        request_counts: Requests that were counted; None where nobody counts them.
        open_queue: Opens the queue of these stores, for its subscriptions; None in the cloud.
    """

    store: IncidentStore
    control: ControlStore | None
    cards: Cards
    quarantine: Quarantine
    clock: Clock
    service_records: ServiceRecords | None = None
    request_counts: RequestCountStore | None = None
    dead_letters: DeadLetters | None = None
    open_queue: "Callable[[tuple[Subscription, ...]], PullBus] | None" = None


def open_stores(settings: Settings, *, with_control: bool) -> Stores:
    """Open what the settings name.

    Raises:
        DependencyFailed: It cannot be opened.
    """
    if settings.embedded:
        return sqlite_stores(settings, with_control=with_control)
    return firestore_stores(settings.store.removeprefix("firestore:"), with_control=with_control)


STATE_DATABASE: Final = "sre-state"
CONTROL_DATABASE: Final = "sre-control"  # a database of its own, so that who writes it is a matter of IAM
TIME_READ_EVERY_S: Final = 5.0  # of the server; counted on in between


def firestore_stores(project: str, *, with_control: bool) -> Stores:
    """Name the databases of a project; they are connected to at their first use."""
    from agent.adapters.bus.quarantine.firestore import FirestoreQuarantine
    from agent.adapters.clock import ServerClock, SystemClock
    from agent.adapters.store.firestore.cards import FirestoreCards
    from agent.adapters.store.firestore.control import FirestoreControlStore
    from agent.adapters.store.firestore.documents import Documents
    from agent.adapters.store.firestore.service_records import FirestoreServiceRecords
    from agent.adapters.store.firestore.store import FirestoreStore

    documents = Documents(project, STATE_DATABASE)
    store = FirestoreStore(documents, SystemClock())
    clock = ServerClock(store.server_time, SystemClock(), every_s=TIME_READ_EVERY_S)
    return Stores(
        store=store,
        control=FirestoreControlStore(Documents(project, CONTROL_DATABASE)) if with_control else None,
        cards=FirestoreCards(documents),
        service_records=FirestoreServiceRecords(documents),
        quarantine=FirestoreQuarantine(documents, clock, redact=redact),
        clock=clock,
    )


def sqlite_stores(settings: Settings, *, with_control: bool) -> Stores:
    """Open the files of the embedded state."""
    from agent.adapters.bus.dead_letters import SqliteDeadLetters
    from agent.adapters.clock import StoredClock, SystemClock, boot_time_s
    from agent.adapters.store.sqlite.database import SqliteDatabase
    from agent.adapters.store.sqlite.schema import Kind
    from agent.adapters.store.sqlite.service_records import SqliteRequestCounts
    from agent.adapters.store.sqlite.store import SqliteStore

    state = SqliteDatabase(settings.state / "sre.sqlite", Kind.STATE)
    clock = StoredClock(SystemClock(), SqliteStore(state).latest_time, monotonic=boot_time_s)
    control = SqliteDatabase(settings.state / "control.sqlite", Kind.CONTROL) if with_control else None
    return replace(
        _over(state, control, clock, hide=hide),
        request_counts=SqliteRequestCounts(state),
        dead_letters=SqliteDeadLetters(state, clock),
    )


def memory_stores(clock: Clock) -> Stores:
    """Return stores that forget everything with the process."""
    from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
    from agent.adapters.store.sqlite.schema import Kind

    return _over(InMemoryDatabase(Kind.STATE), InMemoryDatabase(Kind.CONTROL), clock, hide=str)


def _over(
    state: "SqliteDatabase", control: "SqliteDatabase | None", clock: Clock, *, hide: Callable[[str], str]
) -> Stores:
    from agent.adapters.bus.embedded import EmbeddedBus
    from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
    from agent.adapters.store.sqlite.cards import SqliteCards
    from agent.adapters.store.sqlite.control import SqliteControlStore
    from agent.adapters.store.sqlite.service_records import SqliteServiceRecords
    from agent.adapters.store.sqlite.store import SqliteStore

    return Stores(
        store=SqliteStore(state),
        control=SqliteControlStore(control) if control is not None else None,
        cards=SqliteCards(state),
        service_records=SqliteServiceRecords(state),
        quarantine=SqliteQuarantine(state, clock, redact=redact),
        clock=clock,
        open_queue=lambda subscriptions: EmbeddedBus(state, clock, subscriptions, hide=hide),
    )


def open_bus(settings: Settings, stores: Stores, *, wait_factor: float, trace: Callable[[], str] = str) -> Bus:
    """Return the bus of the settings.

    Args:
        settings: ``BUS``.
        stores: The embedded queue stands beside them.
        wait_factor: What the waits of a rehearsal are divided by.
        trace: The trace of the request at hand, for the messages that it sends.

    Raises:
        SettingsRejected: The stores have no queue beside them.
    """
    if settings.bus != "embedded":
        from agent.adapters.bus.pubsub import PubSubBus

        return PubSubBus(settings.bus.removeprefix("pubsub:"), emulator=settings.pubsub_emulator, trace=trace)
    if stores.open_queue is None:
        raise SettingsRejected(
            "BUS 'embedded' is not available here",
            why="the store is not a file on this machine",
            hint="set BUS=pubsub:<project>",
        )
    from agent.adapters.bus.pulling import default_subscriptions

    return stores.open_queue(default_subscriptions(compression=wait_factor))


def machine_clock() -> Clock:
    """Return the machine's own clock, for what must be checked without asking the store for the time."""
    from agent.adapters.clock import SystemClock

    return SystemClock()
