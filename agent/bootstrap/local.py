"""The whole service in one process: over SQLite files, or in memory for replays and tests."""

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.bootstrap.known import hide, read_services, receipt_key, redact
from agent.bootstrap.outfit import Installation, Parts, installed
from agent.bootstrap.people import notifiers
from agent.bootstrap.place import place_of
from agent.bootstrap.shelves import sqlite_shelves
from agent.core.services import Services
from agent.ports.bus import Delivery, Outcome
from agent.ports.clock import Clock
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.bus.worker import Worker


def embedded(settings: Settings) -> Installation:
    """Put the embedded service together: SQLite files, the durable queue, and the chosen platform.

    Raises:
        SettingsRejected: The settings, services or policy do not make a service.
        DependencyFailed: A file of the state cannot be opened.
    """
    from agent.adapters.bus.embedded import EmbeddedBus
    from agent.adapters.bus.pulling import default_subscriptions

    kept = sqlite_shelves(settings, with_control=True)
    assert kept.control is not None
    assert kept.database is not None
    services = read_services(settings)
    place = place_of(settings, services, kept.clock)
    parts = Parts(
        settings=settings,
        services=services,
        store=kept.store,
        control=kept.control,
        cards=kept.cards,
        quarantine=kept.quarantine,
        clock=kept.clock,
        place=place,
        receipt_key=receipt_key(settings),
        notifiers=notifiers(settings, kept.clock, kept.store.plan),
    )
    subscriptions = default_subscriptions(compression=place.factor)
    return installed(parts, EmbeddedBus(kept.database, kept.clock, subscriptions, hide=hide))


def in_memory(settings: Settings, *, clock: Clock, state: Path, services: Services | None = None) -> Installation:
    """Put a service together that forgets everything: for replays that only analyse, and for tests.

    Args:
        settings: As for the embedded service; the store is ignored.
        clock: The time of the replay.
        state: A folder for what the rehearsal platform writes.
        services: The watched services; read from the settings when None.
    """
    from agent.adapters.bus.memory import MemoryBus
    from agent.adapters.bus.pulling import default_subscriptions
    from agent.adapters.bus.quarantine_memory import MemoryQuarantine
    from agent.adapters.store.memory import MemoryCards, MemoryStore
    from agent.adapters.store.memory_control import MemoryControlStore

    watched = services if services is not None else read_services(settings)
    placed = settings.with_(store=f"sqlite:{state}")
    place = place_of(placed, watched, clock)
    parts = Parts(
        settings=placed,
        services=watched,
        store=MemoryStore(),
        control=MemoryControlStore(),
        cards=MemoryCards(),
        quarantine=MemoryQuarantine(clock, redact=redact),
        clock=clock,
        place=place,
        receipt_key=secrets.token_bytes(32),
    )
    return installed(parts, MemoryBus(clock, default_subscriptions(compression=place.factor)))


def worker(
    installation: Installation, handle: Mapping[str, Callable[[Delivery], Outcome]], *, threads: int
) -> "Worker":
    """Return the worker that drives an installation's queue; not started.

    Args:
        installation: The service.
        handle: Who handles a subscription's deliveries.
        threads: How many deliveries are worked on at once.
    """
    from agent.adapters.bus.worker import Worker

    return Worker(installation.bus, handle, quarantine=installation.quarantine, threads=threads)
