"""One process put together: `build_app` chooses every part of it by the settings, and a caller replaces any of them."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agent.app.catalogues import (
    faster,
    read_capacity,
    read_policy,
    read_receipt_key,
    read_rules,
    read_services,
    reading_of,
)
from agent.app.channels import open_notifiers, open_receipt_signer
from agent.app.models import model_of, model_use
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.app.stores import Stores, machine_clock, memory_stores, open_bus, open_stores
from agent.app.tracing import traced_model, tracer_of
from agent.core.decision.decision import ReceiptSigner
from agent.core.intake.origin import Reading
from agent.core.intake.signal import LIVE
from agent.core.plan.capacity import Capacity
from agent.core.service.services import Services
from agent.ports.bus import Bus, DeadLetters, Delivery, Outcome, Quarantine
from agent.ports.clock import Clock
from agent.ports.control import ControlStore
from agent.ports.model import Model
from agent.ports.notifier import Notifier
from agent.ports.request_counts import RequestCountStore
from agent.ports.service_records import ServiceRecords
from agent.ports.stage_context import Cards, Owner, Rules, StageContext
from agent.ports.store import IncidentStore
from agent.ports.tracing import NoTracer, Tracer
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.bus.pulling import PullBus
    from agent.adapters.bus.worker import Worker


class Role(StrEnum):
    """What a process is: one deployed function, or the whole service."""

    INTAKE = Owner.INTAKE
    INCIDENT = Owner.INCIDENT
    DECIDE = Owner.DECIDE
    DECISION = Owner.DECISION
    TICK = Owner.TICK
    INGEST = "ingest"
    CONSOLE = "console"
    SERVICE = "up"


DECIDERS = frozenset({Owner.DECIDE, Owner.DECISION})
"""They open the control database and hold what signs receipts."""

CALCULATORS = frozenset({Owner.INCIDENT, Owner.DECISION})
"""One proves that a plan fits, the other proves it again before it acts."""

OBSERVERS = frozenset({Owner.INCIDENT, Owner.DECISION, Owner.TICK})
"""They describe services and read logs."""


class Unavailable:
    """Takes the place of a part that a role does not have; touching it is a bug of ours.

    Args:
        what: What is not there, for the assertion.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{self._what} is not here; {name!r} was asked of it")


@dataclass(frozen=True, kw_only=True)
class App:
    """One process.

    Attributes:
        owners: Whose stages run here.
        rules: Catalogues, policy and times, read once.
        control: `Unavailable` where no owner may open it, as is everything else that a role does not have.
        environment: Where services run and their logs are read.
        receipt_key: Signs receipts; None where another service does, or no owner decides or executes.
        receipt_signer: Signs them in place of the key.
        holder: Names this process among all that may hold a lease.
        service_records: What was seen of each service.
        request_counts: Requests that were counted; None where nobody keeps them.
        dead_letters: Messages that the queue beside the stores gave up; None where it stands elsewhere.
        tracer: Where spans go.
    """

    settings: Settings
    role: Role
    owners: frozenset[Owner]
    services: Services
    rules: Rules
    store: IncidentStore
    control: ControlStore
    cards: Cards
    quarantine: Quarantine
    clock: Clock
    bus: Bus
    environment: RuntimeEnvironment
    notifiers: Mapping[str, Notifier]
    model: Model | None
    receipt_key: bytes | None
    receipt_signer: ReceiptSigner | None
    holder: str
    service_records: ServiceRecords | None = None
    request_counts: RequestCountStore | None = None
    dead_letters: DeadLetters | None = None
    tracer: Tracer = NoTracer()  # noqa: RUF009 - it has no state

    @cached_property
    def contexts(self) -> Mapping[Owner, StageContext]:
        """What the stages of each owner may use."""
        return {owner: self._context(owner) for owner in self.owners}

    @property
    def queue(self) -> "PullBus":
        """The bus of a process that also pulls from it: the whole service."""
        return cast("PullBus", self.bus)

    def reading(self, run: str = LIVE) -> Reading:
        """Return what intake must know: which services are watched, and which are our own."""
        return reading_of(self.services, run=run, clock=self.clock.now)

    def worker(self, handlers: Mapping[str, Callable[[Delivery], Outcome]], *, threads: int) -> "Worker":
        """Return what drives the queue; not started.

        Args:
            handlers: Who handles a subscription's deliveries.
            threads: How many deliveries are worked on at once.
        """
        from agent.adapters.bus.worker import Worker

        return Worker(self.queue, handlers, quarantine=self.quarantine, threads=threads)

    def _context(self, owner: Owner) -> StageContext:
        decides = owner in DECIDERS
        return StageContext(
            owner=owner,
            store=self.store,
            control=self.control if decides else None,
            cards=self.cards,
            bus=self.bus,
            platform_of=self.environment.platform_of,
            logs=self.environment.logs,
            notifiers=self.notifiers,
            model=self.model if owner is Owner.INCIDENT else None,
            clock=self.clock,
            rules=self.rules,
            receipt_key=self.receipt_key if decides else None,
            signer=self.receipt_signer if decides else None,
            local=self.settings.trusts_this_machine,
            halted=self.settings.kill_switch,
            holder=self.holder,
            service_records=self.service_records,
            request_counts=self.request_counts,
            audit_log=self.environment.audit_log if owner is Owner.INCIDENT else None,
            tracer=self.tracer,
        )


def build_app(
    settings: Settings,
    role: Role = Role.SERVICE,
    *,
    services: Services | None = None,
    stores: Stores | None = None,
    clock: Clock | None = None,
    environment: RuntimeEnvironment | None = None,
    bus: Bus | None = None,
    capacity: Capacity | None = None,
    rules: Rules | None = None,
    model: Model | None = None,
    notifiers: Mapping[str, Notifier] | None = None,
    receipt_key: bytes | None = None,
    holder: str = "",
    trace: Callable[[], str] = str,
    tracer: Tracer | None = None,
) -> App:
    """Put one process together; whatever is None is what the settings name, as far as the role needs it.

    Args:
        settings: Which store, bus and platform; each is chosen on its own.
        role: What the process is.
        services: The watched services.
        stores: Where state is kept.
        clock: The time; that of the stores when None.
        environment: Where services run and their logs are read.
        bus: Carries messages between our functions.
        capacity: The arithmetic.
        rules: Everything that is read once; then neither policy nor capacity are read.
        model: Whom to ask for a diagnosis.
        notifiers: Who tells people, by name.
        receipt_key: Signs receipts.
        holder: Names this process; another name for each start when empty.
        trace: The trace of the request at hand, for the messages that it sends.
        tracer: Where spans go.

    Raises:
        SettingsRejected: The settings do not make a service, or name what is not available here.
        DependencyFailed: The state cannot be opened.
    """
    owners = _owners(settings, role)
    absent: Any = Unavailable(f"for {role}, this part")
    services = read_services(settings) if services is None else services
    stores = stores or _stores(settings, owners)
    clock = clock or stores.clock
    if environment is None:
        unseen = RuntimeEnvironment(platform_of=absent, logs=absent, wait_factor=settings.compression)
        environment = open_environment(settings, services, clock) if owners & OBSERVERS else unseen
    model = model or (model_of(settings) if Owner.INCIDENT in owners else None)
    tracer = tracer or tracer_of(settings, role)
    if rules is None:
        capacity = capacity or (read_capacity(services, settings) if owners & CALCULATORS else absent)
        rules = _rules(settings, services, environment, capacity, model) if owners else absent
    if notifiers is None:
        notifiers = open_notifiers(settings, clock, stores.store.plan, services) if Owner.INCIDENT in owners else {}
    decides = bool(owners & DECIDERS)
    signer = open_receipt_signer(settings) if decides and receipt_key is None else None
    return App(
        settings=settings,
        role=role,
        owners=owners,
        services=services,
        rules=rules,
        store=stores.store if owners else absent,
        control=stores.control or absent,
        cards=stores.cards,
        quarantine=stores.quarantine,
        clock=clock,
        bus=bus or open_bus(settings, stores, wait_factor=environment.wait_factor, trace=trace),
        environment=environment,
        notifiers=notifiers,
        model=traced_model(model, tracer, settings) if model is not None else None,
        receipt_key=receipt_key or (read_receipt_key(settings) if decides and signer is None else None),
        receipt_signer=signer,
        service_records=stores.service_records,
        request_counts=stores.request_counts,
        dead_letters=stores.dead_letters,
        tracer=tracer,
        holder=holder or secrets.token_hex(8),  # not the process id: in containers every process is the first one
    )


def build_app_in_memory(settings: Settings, *, clock: Clock, state: Path, **overrides: Any) -> App:
    """Put the whole service together so that it forgets everything: for replays that only analyse, and for tests.

    Args:
        settings: As for any other; the store is ignored.
        clock: The time of the replay.
        state: A folder for what the rehearsal platform writes.
        overrides: As for `build_app`.
    """
    parts: dict[str, Any] = {
        "stores": memory_stores(clock),
        "notifiers": {},
        "receipt_key": secrets.token_bytes(32),
    }
    return build_app(settings.with_(store=f"sqlite:{state}"), **(parts | overrides))


def _owners(settings: Settings, role: Role) -> frozenset[Owner]:
    """In the cloud the console reads, and holds no key to sign with; on one machine it decides."""
    if role is Role.SERVICE:
        return frozenset(Owner)
    if role is Role.CONSOLE:
        return frozenset({Owner.DECIDE if settings.embedded else Owner.INTAKE})
    return frozenset() if role is Role.INGEST else frozenset({Owner(role)})


def _stores(settings: Settings, owners: frozenset[Owner]) -> Stores:
    """Who owns no stage opens no store, unless the queue stands in it."""
    if owners or settings.bus == "embedded":
        return open_stores(settings, with_control=bool(owners & DECIDERS))
    absent: Any = Unavailable("a store")
    return Stores(store=absent, control=None, cards=absent, quarantine=absent, clock=machine_clock())


def _rules(
    settings: Settings, services: Services, environment: RuntimeEnvironment, capacity: Capacity, model: Model | None
) -> Rules:
    policy = read_policy(settings)
    policy = policy.with_(change_window_s=policy.change_window_s / environment.wait_factor)  # a wait like the others
    times = faster(settings.times, environment.wait_factor)
    rules = read_rules(services, policy, times, capacity=capacity)
    return replace(rules, model_use=model_use(settings)) if model is not None else rules
