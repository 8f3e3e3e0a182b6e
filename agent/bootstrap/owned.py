"""What one deployed function has: store and bus by settings, each on its own, and nothing it has no use for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.bootstrap.known import hide, read_services, reading_of, receipt_key
from agent.bootstrap.outfit import DECIDERS, Outfit, Parts, fitted_out
from agent.bootstrap.people import notifiers, seal_of
from agent.bootstrap.place import Place, place_of
from agent.bootstrap.shelves import Shelves, shelves
from agent.core.intake.origin import Reading
from agent.core.services import Services
from agent.core.signal import LIVE
from agent.errors import SettingsRejected
from agent.ports.bus import Bus
from agent.ports.clock import Clock
from agent.ports.stage_context import Owner
from agent.settings import Settings

NOWHERE = frozenset({Owner.INTAKE, Owner.DECIDE})  # they look at no service and read no log
PROVE = frozenset({Owner.INCIDENT, Owner.DECISION})  # one proves a plan, the other proves it anew before it acts

Trace = Callable[[], str]


class Absent:
    """Stands where an owner has nothing; touching it is a bug of ours.

    Args:
        what: What is not there, for the assertion.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{self._what} is not here; {name!r} was asked of it")


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a function has that only publishes: no store, so that it cannot write one."""

    bus: Bus
    services: Services
    clock: Clock

    def reading(self, run: str = LIVE) -> Reading:
        """Return what intake must know: which services are watched, and which are our own."""
        return reading_of(self.services, run=run, clock=self.clock.now)


def installation(settings: Settings, owner: Owner, *, trace: Trace = str) -> Outfit:
    """Put together what one function has.

    Args:
        settings: Which store, bus and platform; each is chosen on its own.
        owner: Which function this process is.
        trace: The trace of the request that is being handled, for the messages that it sends.

    Raises:
        SettingsRejected: The settings do not make a service, or name what is not available here.
        DependencyFailed: The store cannot be opened.
    """
    kept = shelves(settings, with_control=owner in DECIDERS)
    services = read_services(settings)
    absent: Any = Absent(f"for {owner}, this port")
    place = (
        Place(platform_of=absent, logs=absent, factor=settings.compression)
        if owner in NOWHERE
        else place_of(settings, services, kept.clock)
    )
    parts = Parts(
        settings=settings,
        services=services,
        store=kept.store,
        control=kept.control if kept.control is not None else absent,
        cards=kept.cards,
        quarantine=kept.quarantine,
        clock=kept.clock,
        place=place,
        receipt_key=receipt_key(settings) if owner in DECIDERS and settings.receipt_kms is None else None,
        seal=seal_of(settings) if owner in DECIDERS else None,
        notifiers=notifiers(settings, kept.clock, kept.store.plan) if owner is Owner.INCIDENT else {},
        owners=frozenset({owner}),
        fits=None if owner in PROVE else absent,
    )
    return fitted_out(parts, _bus(settings, kept, place, trace))


def desk(settings: Settings, *, trace: Trace = str) -> Desk:
    """Put together what a function has that only publishes.

    Raises:
        SettingsRejected: The settings do not make a service.
        DependencyFailed: The embedded queue cannot be opened.
    """
    kept = shelves(settings, with_control=False) if settings.bus == "embedded" else None
    bus = _pubsub(settings, trace) if kept is None else _queue(kept, settings.compression)
    return Desk(bus=bus, services=read_services(settings), clock=machine_clock())


def publisher(settings: Settings) -> Bus:
    """Return the cloud's bus alone, for whoever only sends and needs no services, store or clock."""
    return _pubsub(settings, str)


def machine_clock() -> Clock:
    """Return the machine's own clock, for what must be checked without asking the store for the time."""
    from agent.adapters.clock import SystemClock

    return SystemClock()


def _bus(settings: Settings, kept: Shelves, place: Place, trace: Trace) -> Bus:
    return _queue(kept, place.factor) if settings.bus == "embedded" else _pubsub(settings, trace)


def _queue(kept: Shelves, factor: float) -> Bus:
    from agent.adapters.bus.embedded import EmbeddedBus
    from agent.adapters.bus.pulling import default_subscriptions

    if kept.database is None:
        raise SettingsRejected(
            "BUS 'embedded' is not available here",
            why="the store is no file of this machine",
            mend="set BUS=pubsub:<project>",
        )
    return EmbeddedBus(kept.database, kept.clock, default_subscriptions(compression=factor), hide=hide)


def _pubsub(settings: Settings, trace: Trace) -> Bus:
    from agent.adapters.bus.pubsub import PubSubBus

    project = settings.bus.removeprefix("pubsub:")
    return PubSubBus(project, emulator=settings.pubsub_emulator, trace=trace)
