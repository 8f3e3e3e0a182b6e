"""A simulated platform: rollouts that come up, hang, crash, lie or answer wrongly, with Cloud Run's rules."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from agent.adapters.platform.rehearsal.template import bare, stamped, template_of
from agent.adapters.platform.traffic import parsed_traffic
from agent.core.change.verification import Check, Measurement
from agent.core.plan.action import NO_SERVICE, LifecycleOperation
from agent.core.plan.lifecycle import NOT_THERE, lifecycle_of
from agent.core.service.serving import Live, ServingConfig, Traffic
from agent.core.value import canonical, digest
from agent.errors import PolicyRefused, StateConflict
from agent.ports.control import LeaseEnd
from agent.ports.platform import NotDeployed, Operation, Order, Restore, seconds_to_send


class Fate(StrEnum):
    """What becomes of a revision."""

    GOOD = "good"
    FAILS = "fails"  # the operation ends badly
    NEVER = "never"  # the operation never ends
    CRASHES = "crashes"  # comes up, then is gone, and says so in its log
    SLOW = "slow"
    OOM = "oom"  # answers, until load comes; then the log says so
    WRONG = "wrong"  # ready, but its completions are no good
    BLIND = "blind"  # nothing can be measured
    LIES = "lies"  # the operation ended well, the revision is not ready


BAD = tuple(f for f in Fate if f is not Fate.GOOD)
SPEAKS = frozenset({Fate.FAILS, Fate.CRASHES, Fate.OOM})  # its failure can be read in its own log


@dataclass(frozen=True)
class Mutation:
    """One change that really happened."""

    at: datetime
    kind: str
    service: str
    key: str
    incident: str


@dataclass
class Work:
    """An operation under way."""

    name: str
    service: str
    key: str
    ends_at: datetime | None
    ok: bool
    says: str
    deletes: bool = False


@dataclass
class Service:
    """One service as it really is."""

    name: str
    template: str
    latest: str
    ready: bool | None
    serving: str | None
    traffic: tuple[Traffic, ...] = (Traffic(percent=100),)
    generation: int = 7
    uid: str = "uid"
    spare: bool = False
    deleted: bool = False
    resumes: tuple[int, int] | None = None
    denied: bool = False
    stamps: dict[str, str] = field(default_factory=dict)
    came_up: dict[str, datetime] = field(default_factory=dict)
    fates: dict[str, Fate] = field(default_factory=dict)


class SimulatedPlatform:
    """Keeps the promises of :class:`agent.ports.platform.Platform` as Cloud Run would.

    Args:
        now: The true time.
        fate: Tells what becomes of a change, by kind (apply, restore, shift).
        rollout_s: Tells how long a rollout takes.
        changed: Told of every change that really happens, before it does.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        fate: Callable[[str], Fate],
        rollout_s: Callable[[], float],
        changed: Callable[[Mutation], None],
    ) -> None:
        self._now = now
        self._fate = fate
        self._rollout_s = rollout_s
        self._changed = changed
        self.services: dict[str, Service] = {}
        self.works: dict[str, Work] = {}
        self.mutations: list[Mutation] = []

    def add(self, name: str, config: ServingConfig, revision: str, *, ready: bool, spare: bool) -> None:
        before = f"{name}-00001-old"
        self.services[name] = Service(
            name=name,
            template=stamped(config, "", None, None),
            latest=revision,
            ready=ready,
            serving=revision if ready else before,
            spare=spare,
        )

    def by_hand(self, name: str, how: str = "edits") -> bool:
        """Somebody else edits the service, pins its traffic to what serves, or makes it anew; whether that changed it."""
        service = self.services[name]
        service.generation += 1
        if how == "pins":
            before, service.traffic = (
                service.traffic,
                (Traffic(revision=service.serving or service.latest, percent=100),),
            )
            return service.traffic != before
        if how == "remakes":
            service.uid, service.generation, service.stamps = service.uid + "-again", 1, {}
        config = template_of(service.template).config
        revision = f"{name}-hand-{service.generation}"
        service.template = stamped(config.with_(concurrency=(config.concurrency or 10) + 1), "", None, None)
        service.latest = revision
        service.fates[revision] = Fate.GOOD
        return True

    def describe(self, name: str) -> Live:
        service = self._of(name)
        running = self._running(name)
        return Live(
            service=name,
            platform="cloud_run",
            config=template_of(service.template).config,
            uid=service.uid,
            generation=service.generation,
            etag=self._etag(service),
            template=service.template,
            traffic=service.traffic,
            latest_ready_revision=service.serving,
            latest_created_revision=service.latest,
            stamps=dict(service.stamps),
            ready=None if running else service.ready,
            reconciling=running,
            spare_accelerator=service.spare,
            resumes_with=service.resumes if template_of(service.template).config.max_instances == 0 else None,
        )

    def validate(self, order: Order) -> None:
        if lifecycle_of(order.actions) is not LifecycleOperation.CREATE:
            self._of(order.service)

    def apply(self, order: Order) -> Operation:
        return self._begin(order, "apply", lambda s: self._applied(s, order))

    def restore(self, order: Restore) -> Operation:
        return self._begin(order, "restore", lambda s: self._restored(s, order))

    def shift(self, name: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:
        order = Restore(
            service=name,
            incident="",
            effect_key=effect_key,
            revision=revision,
            etag=etag,
            template="",
            traffic="",
            lease_end=lease_end,
        )
        return self._begin(order, "shift", lambda s: self._shifted(s, revision))

    def find(self, name: str, effect_key: str) -> Operation | None:
        self._of(name)
        work = next((w for w in self.works.values() if (w.service, w.key) == (name, effect_key)), None)
        return None if work is None else self.operation(work.name)

    def operation(self, name: str) -> Operation:
        work = self.works[name]
        if work.deletes and self.services[work.service].deleted:
            return Operation(name=name, done=True, ok=True, says="it is deleted")
        self._of(work.service)
        done = work.ends_at is not None and self._now() >= work.ends_at
        if done:
            self._end(work)
        return Operation(
            name=name, done=done, ok=work.ok if done else None, says=work.says if done else "it is under way"
        )

    def restored(self, name: str, *, template: str, traffic: str) -> bool:
        service = self.services[name]
        if service.deleted or not template:
            return service.deleted and not template
        return bare(service.template) == bare(template) and service.traffic == parsed_traffic(traffic)

    def measure(self, name: str, revision: str) -> tuple[Measurement, ...]:
        service = self._of(name)
        fate = service.fates.get(revision, Fate.GOOD)
        up = service.came_up.get(revision)
        for_s = (self._now() - up).total_seconds() if up is not None else -1.0
        return tuple(
            Measurement(check=check, good=good, says=f"{check} of {fate}", at=self._now())
            for check, good in _measured(fate, for_s).items()
        )

    def went_wrong(self, revision: str) -> bool:
        """Whether a revision would say a failure in its log by now."""
        service = next((s for s in self.services.values() if revision in s.fates), None)
        if service is None or service.fates[revision] not in SPEAKS:
            return False
        up = service.came_up.get(revision)
        if service.fates[revision] is Fate.FAILS:
            return service.latest == revision and service.ready is False
        return up is not None and (self._now() - up).total_seconds() > 90

    def _begin(self, order: Any, kind: str, change: Callable[[Service], Fate]) -> Operation:
        creates = isinstance(order, Order) and lifecycle_of(order.actions) is LifecycleOperation.CREATE
        service = self.services[order.service] if creates else self._of(order.service)
        if service.denied:
            raise PolicyRefused("the change was denied", why="permission run.services.update", hint="grant it")
        before = next((w for w in self.works.values() if (w.service, w.key) == (order.service, order.effect_key)), None)
        if before is not None and not service.deleted:
            return self.operation(before.name)
        for work in tuple(self.works.values()):  # what ended meanwhile has ended, asked or not
            self.operation(work.name) if not self.services[work.service].deleted else None
        if order.etag != (NOT_THERE if service.deleted else self._etag(service)):
            raise StateConflict("the service was not changed", why="its etag is another by now", hint="look again")
        seconds_to_send(order.lease_end, order.service)
        mutation = Mutation(self._now(), kind, order.service, order.effect_key, order.incident)
        self._changed(mutation)
        self.mutations.append(mutation)
        service.generation += 1
        fate = change(service)
        takes = timedelta(seconds=self._rollout_s())
        never = fate is Fate.NEVER
        work = Work(
            name=f"op-{len(self.works) + 1}",
            service=order.service,
            key=order.effect_key,
            ends_at=None if never else self._now() + takes,
            ok=fate is not Fate.FAILS,
            says="" if fate is not Fate.FAILS else "the container failed to start and listen on its port",
            deletes=service.deleted,
        )
        self.works[work.name] = work
        return self.operation(work.name)

    def _applied(self, service: Service, order: Order) -> Fate:
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.DELETE:
            service.deleted = True
            return Fate.GOOD
        if operation is LifecycleOperation.CREATE:
            service.deleted, service.uid, service.generation = False, service.uid + "-made", 1
            service.template, service.traffic = stamped(NO_SERVICE, "", None, None), (Traffic(percent=100),)
            service.stamps, service.serving = {}, None
        if operation is LifecycleOperation.STOP:
            config = template_of(service.template).config
            service.resumes = (config.min_instances, config.max_instances or 1)
            return self._stopped(service, service.template, order, order.actions)
        if order.staged:
            service.traffic = (Traffic(revision=service.serving, percent=100),)
        service.template = stamped(
            service.template, order.revision, order.effect_key, order.incident, actions=order.actions
        )
        return self._made(service, order.revision, order.effect_key, self._fate("apply"))

    def _stopped(self, service: Service, template: str, order: Order | Restore, actions: tuple = ()) -> Fate:
        service.template = stamped(template, order.revision, order.effect_key, order.incident, actions=actions)
        service.ready = False
        return Fate.GOOD

    def _restored(self, service: Service, order: Restore) -> Fate:
        if not order.template:
            service.deleted = True
            return Fate.GOOD
        if template_of(order.template).config.max_instances == 0:
            service.traffic = parsed_traffic(order.traffic)
            return self._stopped(service, order.template, order)
        service.template = stamped(order.template, order.revision, order.effect_key, order.incident)
        service.traffic = parsed_traffic(order.traffic)
        return self._made(service, order.revision, order.effect_key, self._fate("restore"))

    def _shifted(self, service: Service, revision: str) -> Fate:
        service.traffic = (Traffic(revision=revision, percent=100),)
        return self._fate("shift")

    def _made(self, service: Service, revision: str, key: str, fate: Fate) -> Fate:
        service.latest, service.ready = revision, None
        service.stamps[revision] = key
        service.fates[revision] = fate
        return fate

    def _end(self, work: Work) -> None:
        service = self.services[work.service]
        revision = next((r for r, key in service.stamps.items() if key == work.key), None)
        if revision is None or revision != service.latest or service.ready is not None:
            return
        service.ready = work.ok and service.fates[revision] is not Fate.LIES
        if work.ok:
            service.serving = revision
            service.came_up.setdefault(revision, work.ends_at or self._now())

    def _running(self, name: str) -> bool:
        works = [w for w in self.works.values() if w.service == name]
        return any(not self.operation(w.name).done for w in works)

    def _etag(self, service: Service) -> str:
        traffic = canonical([t.model_dump(mode="json") for t in service.traffic]).decode()
        return digest([service.generation, service.template, traffic])[:12]

    def _of(self, name: str) -> Service:
        service = self.services.get(name)
        if service is None or service.deleted:
            raise NotDeployed(f"service {name!r} was not found", why="there is none", hint="look at its name")
        return service


def _measured(fate: Fate, for_s: float) -> dict[Check, bool | None]:
    if for_s < 0:
        return {Check.READY: None}
    late = for_s > 90
    return {
        Check.READY: None if fate is Fate.BLIND else not (fate is Fate.LIES or (fate is Fate.CRASHES and late)),
        Check.COMPLETION: None
        if fate is Fate.BLIND
        else not (fate is Fate.WRONG or (fate is Fate.OOM and late) or (fate is Fate.CRASHES and late)),
        Check.SPEED: fate is not Fate.SLOW,
    }
