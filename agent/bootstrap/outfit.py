"""Everything one process needs, put together from parts that were chosen before."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent.bootstrap.known import faster, knowledge, read_policy, reading_of, service_fits
from agent.bootstrap.models import model_of, model_use
from agent.bootstrap.place import Place
from agent.core.decision import Seal
from agent.core.fitting import Fits
from agent.core.intake.origin import Reading
from agent.core.services import Services
from agent.core.signal import LIVE
from agent.ports.bus import Bus, Quarantine
from agent.ports.clock import Clock
from agent.ports.control import ControlStore
from agent.ports.notifier import Notifier
from agent.ports.stage_context import Cards, Owner, Rules, StageContext
from agent.ports.store import IncidentStore
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.bus.pulling import PullBus
    from agent.adapters.logs.kept import KeptLogs
    from agent.adapters.platform.rehearsal import RehearsalPlatform

DECIDERS = frozenset({Owner.DECIDE, Owner.DECISION})


@dataclass(frozen=True, kw_only=True)
class Outfit:
    """Everything one process needs, with one world for each function that it is.

    Attributes:
        rehearsal: The stand-in platform, where this is a rehearsal.
        kept: Where plain logs of a replay are kept, where nothing else has them.
        wait_factor: What waits are divided by; screens say so when it is above 1.
    """

    settings: Settings
    services: Services
    rules: Rules
    store: IncidentStore
    control: ControlStore
    bus: Bus
    quarantine: Quarantine
    clock: Clock
    worlds: Mapping[Owner, StageContext]
    rehearsal: "RehearsalPlatform | None" = None
    kept: "KeptLogs | None" = None
    wait_factor: float = 1.0

    def reading(self, run: str = LIVE) -> Reading:
        """Return what intake must know: which services are watched, and which are our own."""
        return reading_of(self.services, run=run, clock=self.clock.now)


@dataclass(frozen=True, kw_only=True)
class Installation(Outfit):
    """The whole service in one process: every world, over a queue that is pulled from."""

    bus: "PullBus"


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What was chosen for an outfit.

    Attributes:
        owners: The functions that this process is.
        fits: The arithmetic; loaded for the watched services when None.
        receipt_key: None where no owner decides or executes.
    """

    settings: Settings
    services: Services
    store: IncidentStore
    control: ControlStore
    cards: Cards
    quarantine: Quarantine
    clock: Clock
    place: Place
    receipt_key: bytes | None
    owners: frozenset[Owner] = frozenset(Owner)
    fits: Fits | None = None
    notifiers: Mapping[str, Notifier] = field(default_factory=dict)
    seal: Seal | None = None


def fitted_out(parts: Parts, bus: Bus) -> Outfit:
    """Return the outfit of these parts, on a bus that only publishes."""
    known, worlds = _worlds(parts, bus)
    return Outfit(
        settings=parts.settings,
        services=parts.services,
        rules=known,
        store=parts.store,
        control=parts.control,
        bus=bus,
        quarantine=parts.quarantine,
        clock=parts.clock,
        worlds=worlds,
        rehearsal=parts.place.rehearsal,
        kept=parts.place.kept,
        wait_factor=parts.place.factor,
    )


def installed(parts: Parts, bus: "PullBus") -> Installation:
    """Return the whole service of these parts, on a queue."""
    known, worlds = _worlds(parts, bus)
    return Installation(
        settings=parts.settings,
        services=parts.services,
        rules=known,
        store=parts.store,
        control=parts.control,
        bus=bus,
        quarantine=parts.quarantine,
        clock=parts.clock,
        worlds=worlds,
        rehearsal=parts.place.rehearsal,
        kept=parts.place.kept,
        wait_factor=parts.place.factor,
    )


def _worlds(parts: Parts, bus: Bus) -> tuple[Rules, dict[Owner, StageContext]]:
    policy = read_policy(parts.settings)
    policy = policy.with_(change_window_s=policy.change_window_s / parts.place.factor)  # a wait like the others
    times = faster(parts.settings.times, parts.place.factor)
    known = knowledge(parts.services, policy, times, fits=parts.fits or service_fits(parts.services, parts.settings))
    model = model_of(parts.settings) if Owner.INCIDENT in parts.owners else None
    known = replace(known, model_use=model_use(parts.settings)) if model is not None else known
    holder = secrets.token_hex(8)  # not the process id: in containers every process is the first one
    return known, {
        owner: StageContext(
            owner=owner,
            store=parts.store,
            control=parts.control if owner in DECIDERS else None,
            cards=parts.cards,
            bus=bus,
            platform_of=parts.place.platform_of,
            logs=parts.place.logs,
            notifiers=parts.notifiers,
            model=model if owner is Owner.INCIDENT else None,
            clock=parts.clock,
            rules=known,
            receipt_key=parts.receipt_key if owner in DECIDERS else None,
            seal=parts.seal if owner in DECIDERS else None,
            local=parts.settings.embedded,
            halted=parts.settings.kill_switch,
            holder=holder,
        )
        for owner in parts.owners
    }
