"""The composition root: reads the data once, chooses the adapters, and hands each function its world."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.catalogue.load_failures import load_failures
from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.catalogue.load_secrets import load_secrets
from agent.catalogue.service_fits import ServiceFits
from agent.core.incident import Times
from agent.core.intake.origin import Reading, everything
from agent.core.intake.watching import watching
from agent.core.policy import Policy, parse_policy
from agent.core.redaction.redactor import Redactor
from agent.core.services import Services, parse_services
from agent.core.signal import LIVE
from agent.errors import InputRejected, SettingsRejected
from agent.failures.match import Matcher, compile_catalogue
from agent.ports.bus import Delivery, Outcome, Quarantine
from agent.ports.clock import Clock
from agent.ports.control import ControlStore
from agent.ports.logs import Logs
from agent.ports.notifier import Notifier
from agent.ports.platform import Platform
from agent.ports.store import IncidentStore
from agent.ports.world import Cards, Knowledge, Owner, World
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.bus.pulling import PullBus
    from agent.adapters.bus.worker import Worker
    from agent.adapters.logs.kept import KeptLogs
    from agent.adapters.platform.rehearsal import RehearsalPlatform
    from agent.adapters.platform.rehearsal_fate import Compute

DECIDERS = frozenset({Owner.DECIDE, Owner.DECISION})


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Everything one process needs, with one world for each function.

    Attributes:
        rehearsal: The stand-in platform, where this is a rehearsal.
        kept: Where plain logs of a replay are kept, where nothing else has them.
        wait_factor: What waits are divided by; screens say so when it is above 1.
    """

    settings: Settings
    services: Services
    knowledge: Knowledge
    store: IncidentStore
    control: ControlStore
    bus: "PullBus"
    quarantine: Quarantine
    clock: Clock
    worlds: Mapping[Owner, World]
    rehearsal: "RehearsalPlatform | None" = None
    kept: "KeptLogs | None" = None
    wait_factor: float = 1.0

    def reading(self, run: str = LIVE) -> Reading:
        """Return what intake must know: which services are watched, and which are our own."""
        return Reading(
            run=run,
            watched=watching(self.services) if self.services.services else everything,
            own_services=frozenset(self.services.own),
            received_at=self.clock.now(),
            service=self.services.services[0].name if len(self.services.services) == 1 else None,
        )


@cache
def matcher() -> Matcher:
    """Return the compiled failure catalogue; built once per process."""
    return compile_catalogue(load_failures().signatures)


@cache
def titles() -> dict[str, str]:
    """Return a line for people by signature."""
    return {s.id: s.title for s in load_failures().signatures}


@cache
def redactor() -> Redactor:
    """Return the compiled redactor; built once per process."""
    return Redactor(load_secrets())


def redact(text: str) -> str:
    """Take the secrets out of a text."""
    return redactor().redact(text).text


def service_fits(services: Services) -> ServiceFits:
    """Return the arithmetic, bound to the watched services."""
    return ServiceFits(services, load_fit_catalogue(), load_platform_catalogue())


def knowledge(services: Services, policy: Policy, times: Times) -> Knowledge:
    """Return what was read once: catalogues, rules, policy, times."""
    return Knowledge(
        matcher=matcher(),
        titles=titles(),
        redact=redact,
        policy=policy,
        fits=service_fits(services),
        times=times,
    )


def read_policy(settings: Settings) -> Policy:
    """Return the policy file's policy, or the default, in which nothing is automatic."""
    return parse_policy(settings.policy.read_text()) if settings.policy is not None else Policy()


def read_services(settings: Settings) -> Services:
    """Return the watched services: of the settings, or of the rehearsal's own file."""
    path = settings.services
    if path is None and settings.platform.startswith("rehearsal:"):
        path = Path(settings.platform.removeprefix("rehearsal:")) / "services.toml"
    if path is None:
        return Services(services=())
    try:
        text = path.read_text()
    except OSError as error:
        raise SettingsRejected(
            f"services file {str(path)!r} was not read", why=str(error), mend="name another with SERVICES"
        ) from error
    return parse_services(text)


def faster(times: Times, factor: float) -> Times:
    """Return the times of a rehearsal: every wait but the approval divided by the factor."""
    if factor == 1:
        return times
    return times.with_(
        quiet_s=times.quiet_s / factor,
        settle_s=times.settle_s / factor,
        verify_s=times.verify_s / factor,
        poll_s=max(times.poll_s / factor, 0.2),
    )


def embedded(settings: Settings) -> Installation:
    """Put the embedded service together: SQLite files, the durable queue, and the chosen platform.

    Raises:
        SettingsRejected: The settings, services or policy do not make a service.
        DependencyFailed: A file of the state cannot be opened.
    """
    from agent.adapters.bus.embedded import EmbeddedBus
    from agent.adapters.bus.pulling import default_subscriptions
    from agent.adapters.bus.quarantine_sqlite import SqliteQuarantine
    from agent.adapters.clock import StoredClock, SystemClock
    from agent.adapters.store.sqlite import SqliteStore
    from agent.adapters.store.sqlite_cards import SqliteCards
    from agent.adapters.store.sqlite_control import SqliteControlStore
    from agent.adapters.store.sqlite_database import SqliteDatabase
    from agent.adapters.store.sqlite_schema import Kind

    state = settings.state
    database = SqliteDatabase(state / "sre.sqlite", Kind.STATE)
    control = SqliteControlStore(SqliteDatabase(state / "control.sqlite", Kind.CONTROL))
    store = SqliteStore(database)
    clock = StoredClock(SystemClock(), store.latest_time)
    services = read_services(settings)
    stage = _stage(settings, services, clock)
    parts = _Parts(
        settings=settings,
        services=services,
        store=store,
        control=control,
        cards=SqliteCards(database),
        bus=EmbeddedBus(database, clock, default_subscriptions(compression=stage.factor)),
        quarantine=SqliteQuarantine(database, clock, redact=redact),
        clock=clock,
        stage=stage,
        receipt_key=receipt_key(settings),
        notifiers={},
    )
    return _install(parts)


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
    stage = _stage(placed, watched, clock)
    parts = _Parts(
        settings=placed,
        services=watched,
        store=MemoryStore(),
        control=MemoryControlStore(),
        cards=MemoryCards(),
        bus=MemoryBus(clock, default_subscriptions(compression=stage.factor)),
        quarantine=MemoryQuarantine(clock, redact=redact),
        clock=clock,
        stage=stage,
        receipt_key=secrets.token_bytes(32),
        notifiers={},
    )
    return _install(parts)


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


def cloud_log_entries(settings: Settings, log_filter: str, *, after: datetime) -> Iterator[dict[str, Any]]:
    """Yield entries of Cloud Logging for a replay, oldest first.

    Raises:
        InputRejected: The filter cannot be read, or no project is known.
        DependencyFailed: Cloud Logging did not answer.
    """
    from agent.adapters.logs.cloud_logging import CloudLogs

    words = [word.partition(":") for word in (settings.store, settings.bus, settings.platform)]
    projects = [name for kind, _, name in words if kind in {"firestore", "pubsub", "cloud_run"}]
    projects += [s.project for s in read_services(settings).services if s.project] if settings.services else []
    since = after.isoformat().replace("+00:00", "Z")
    logs = CloudLogs(projects[0] if projects else None)
    return logs.entries(f'timestamp>="{since}"\n({log_filter})', limit=100_000)


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Where services run, where their logs are read, and how fast time goes there."""

    platform_of: Callable[[str], Platform | None]
    logs: Logs
    rehearsal: "RehearsalPlatform | None" = None
    kept: "KeptLogs | None" = None
    factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class _Parts:
    settings: Settings
    services: Services
    store: IncidentStore
    control: ControlStore
    cards: Cards
    bus: "PullBus"
    quarantine: Quarantine
    clock: Clock
    stage: _Stage
    receipt_key: bytes
    notifiers: Mapping[str, Notifier] = field(default_factory=dict)


def _install(parts: _Parts) -> Installation:
    policy = read_policy(parts.settings)
    known = knowledge(parts.services, policy, faster(parts.settings.times, parts.stage.factor))
    worlds = {
        owner: World(
            owner=owner,
            store=parts.store,
            control=parts.control if owner in DECIDERS else None,
            cards=parts.cards,
            bus=parts.bus,
            platform_of=parts.stage.platform_of,
            logs=parts.stage.logs,
            notifiers=parts.notifiers,
            model=None,
            clock=parts.clock,
            knowledge=known,
            receipt_key=parts.receipt_key if owner in DECIDERS else None,
        )
        for owner in Owner
    }
    return Installation(
        settings=parts.settings,
        services=parts.services,
        knowledge=known,
        store=parts.store,
        control=parts.control,
        bus=parts.bus,
        quarantine=parts.quarantine,
        clock=parts.clock,
        worlds=worlds,
        rehearsal=parts.stage.rehearsal,
        kept=parts.stage.kept,
        wait_factor=parts.stage.factor,
    )


def _stage(settings: Settings, services: Services, clock: Clock) -> _Stage:
    if settings.platform.startswith("rehearsal:"):
        return _rehearsal(settings, services, clock)
    if settings.platform == "none":
        return _logs_only()
    raise SettingsRejected(
        f"PLATFORM {settings.platform!r} is not available here",
        why="this installation has no adapter for it",
        mend="use rehearsal:<folder>",
    )


def _logs_only() -> _Stage:
    """A replay of logs whose service we do not know: nothing to describe, nothing to change."""
    from agent.adapters.logs.file import FileLogs
    from agent.adapters.logs.kept import KeptLogs

    kept = KeptLogs()
    return _Stage(platform_of=lambda _: None, logs=FileLogs(kept.recordings), kept=kept)


def _rehearsal(settings: Settings, services: Services, clock: Clock) -> _Stage:
    from agent.adapters.logs.file import FileLogs
    from agent.adapters.platform.rehearsal import RehearsalPlatform
    from agent.adapters.platform.rehearsal_scenario import load_scenario

    folder = Path(settings.platform.removeprefix("rehearsal:"))
    scenarios = {s.name: load_scenario(folder / s.scenario) for s in services.services if s.scenario}
    if not scenarios:
        raise InputRejected(
            f"{str(folder)!r} is no rehearsal",
            why="no service of its services.toml names a scenario",
            mend="take a folder of examples/",
        )
    factor = settings.compression if settings.compression > 1 else None
    compute = _by_fit(services, next(iter(scenarios))) if settings.rehearse_by_fit else None
    path = settings.state / "rehearsal.sqlite"
    platform = RehearsalPlatform(path, scenarios, clock, compression=factor, compute=compute)
    own = max(s.compression for s in scenarios.values())
    return _Stage(
        platform_of=lambda name: platform if platform.takes_changes(name) else None,
        logs=FileLogs(platform.recordings),
        rehearsal=platform,
        factor=factor or own,
    )


def _by_fit(services: Services, service: str) -> "Compute":
    from agent.adapters.platform.rehearsal_compute import by_fit

    return by_fit(service, service_fits(services))


def receipt_key(settings: Settings) -> bytes:
    """Return the key that signs decisions: of the settings, or of a file that only its owner can read."""
    if settings.receipt_key is not None:
        return settings.receipt_key.get_secret_value().encode()
    path = settings.state / "receipt.key"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(secrets.token_bytes(32))
    except FileExistsError:
        pass
    key = path.read_bytes()
    if len(key) < 32:
        raise SettingsRejected(
            f"the key file {str(path)!r} was not used",
            why="it is shorter than 32 bytes",
            mend="remove it, or set RECEIPT_KEY",
        )
    return key
