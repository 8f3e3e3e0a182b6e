"""A writer of the incident database: incidents led to a phase, one field of them written over, every change watched."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.adapters.bus.worker import Worker
from agent.app.catalogues import read_capacity, read_policy, read_services
from agent.core.change.execution import EffectKind, effect_key, revision_name
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.decision.policy import Mode
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetConcurrency, applied, difference
from agent.core.value import canonical
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import feed, handlers, publish_example
from agent.errors import SreError
from agent.ports.platform import Order
from agent.ports.stage_context import Owner
from agent.ports.store import Change, Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from tests.leases import HELD
from tests.simulation.kills import FITS, Journey

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "gemma4-26b-qat-l4"
ASKED_FOR = (SetConcurrency(concurrency=2),)
EFFECTS = {"apply": EffectKind.APPLY, "restore": EffectKind.ROLL_BACK, "shift": EffectKind.SHIFT}
STEPS = 24
STEP_S = 60.0
BY_HAND = "by-hand"
OUTCOME = """
[[outcome]]
name = "longer"
result = "came_up"
basis = "derived"
after_s = 788
when = { "flag max-model-len" = "= 17408" }
source = "made for the tests: it was never started"
measured = [
  { check = "completion", good = true, says = "answered" },
  { check = "speed", value = 61.67, first_token_s = 0.124, says = "as fast as before" },
]
"""
POLICY = """
[[rules]]
services = ["gemma4-*"]
kinds = ["set_startup_probe", "set_env", "set_flag"]
mode = "automatic"
"""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What happens to an incident before it is written over.

    Attributes:
        example: A folder of ``examples/``.
        phases: Where it is stopped, each in a life of its own.
        answer: What a person says to the first plan: approve, reject, or nothing.
        more: What is added to the example's scenario, and whether an accelerator is to spare.
        automatic: Whether policy decides and no person does.
        by_hand: Whether somebody changes the service right after the approval.
        requested: Whether nothing is broken and a person asks for a change.
    """

    example: str
    phases: tuple[Phase, ...]
    answer: Choice | None = Choice.APPROVE
    more: str | None = None
    automatic: bool = False
    by_hand: bool = False
    requested: bool = False


_P = Phase
RECOVERS, REFUSED_CONTEXT = "gemma4-26b-l4-startup-probe", "gemma4-26b-l4-context-refused"
SETTINGS = {
    "recovers": Setting(
        example=RECOVERS,
        phases=(_P.OPEN, _P.DIAGNOSED, _P.PLANNED, _P.ASKED, _P.APPROVED, _P.APPLYING, _P.VERIFYING, _P.RESOLVED),
    ),
    "undone": Setting(example=REFUSED_CONTEXT, phases=(_P.ROLLING_BACK, _P.ROLLED_BACK)),
    "staged": Setting(
        example=REFUSED_CONTEXT, more=OUTCOME, phases=(_P.APPROVED, _P.APPLYING, _P.VERIFYING, _P.RESOLVED)
    ),
    "staged-undone": Setting(example=REFUSED_CONTEXT, more="", phases=(_P.ROLLING_BACK, _P.ROLLED_BACK)),
    "automatic": Setting(
        example=RECOVERS, automatic=True, phases=(_P.PLANNED, _P.ASKED, _P.APPROVED, _P.APPLYING, _P.RESOLVED)
    ),
    "automatic-undone": Setting(
        example=REFUSED_CONTEXT, automatic=True, phases=(_P.VERIFYING, _P.ROLLING_BACK, _P.ROLLED_BACK)
    ),
    "rejected": Setting(example=RECOVERS, answer=Choice.REJECT, phases=(_P.REJECTED, _P.ESCALATED)),
    "unanswered": Setting(example=RECOVERS, answer=None, phases=(_P.EXPIRED,)),
    "requested": Setting(
        example=REFUSED_CONTEXT, requested=True, phases=(_P.OPEN, _P.ASKED, _P.APPROVED, _P.ROLLING_BACK)
    ),
    "refused": Setting(example=RECOVERS, by_hand=True, phases=(_P.REFUSED,)),
}


class Reached(BaseException):
    """The incident is where it is to be written over; nothing in between may catch this."""


class Remembered:
    """The arithmetic, asked once about each configuration: it is pure, and no part of what is tried here."""

    def __init__(self, fits: Any) -> None:
        self._fits = fits
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = cache(getattr(self._fits, name))
        return self._known[name]


class Story(Journey):
    """A journey that stops at a phase, and whose platform is watched.

    Args:
        folder: Of the state.
        case: As for a journey, and ``setting``.
        known: What happened before: ``plan`` and ``template`` that were approved, ``changes`` that were made.
    """

    def __init__(self, folder: Path, case: dict[str, Any], known: dict[str, Any]) -> None:
        self.setting: Setting = SETTINGS[case["setting"]]
        self.stop_at: Phase | None = None
        self.violations: list[str] = []
        super().__init__(folder, case, kill_at=None, before=False)
        self.known = {"changes": [], "touched": 0, **known}
        self.policy = read_policy(self.settings)
        for owner, world in list(self.installation.contexts.items()):
            self.installation.contexts[owner] = replace(world, platform_of=lambda _: self)
        told: Any = handlers(self.installation)  # of the watched worlds
        bus = self.installation.bus
        self.work = Worker(bus, told, quarantine=self.installation.quarantine, threads=1).run_due

    @property
    def real(self) -> Any:
        return self.installation.environment.rehearsal

    def __getattr__(self, name: str) -> Any:
        """Every other question to the platform goes through."""
        return getattr(self.real, name)

    def apply(self, order: Order) -> Any:
        return self._watched("apply", order.effect_key, lambda: self.real.apply(order), order)

    def restore(self, order: Any) -> Any:
        return self._watched("restore", order.effect_key, lambda: self.real.restore(order), order)

    def shift(self, service: str, **more: Any) -> Any:
        return self._watched("shift", more["effect_key"], lambda: self.real.shift(service, **more), None)

    def _watched(self, kind: str, key: str, call: Any, order: Any) -> Any:
        before = self.real.describe(SERVICE)
        answer = call()
        if self.real.describe(SERVICE).generation != before.generation:  # else it was found, not made
            try:
                self.violations += [f"{kind} {why}" for why in self._held_against(kind, key, order, before)]
            except Exception as error:  # noqa: BLE001 - else the service takes it for an answer that was lost
                self.violations.append(f"{kind} could not be looked at: {error!r}")
        return answer

    def _held_against(self, kind: str, key: str, order: Any, before: Any) -> Iterator[str]:
        yield from (self._wrong_by_policy if self.setting.automatic else self._wrong)(kind, key, order)
        if kind == "apply":
            plan = self.installation.store.load(order.incident).plan
            if self.setting.requested and order.actions != ASKED_FOR:
                yield "of what nobody asked for"
            if plan is None or plan.difference != difference(before.config, applied(before.config, order.actions)):
                yield "of what was not shown"
            if self.setting.automatic:
                self.known["applied_at"] = [*self.known.get("applied_at", ()), self.clock.now()]
                self.known["template"] = before.template
        self.known["changes"] = [*self.known["changes"], kind]

    def _wrong(self, kind: str, key: str, order: Any) -> Iterator[str]:
        """Say what nobody approved; the service's own handling would swallow what is raised here."""
        plan = self.known.get("plan")
        if plan is None:
            yield "and nobody approved anything"
            return
        if plan.target.generation < self.known["touched"]:
            yield "over a person's work"
        if key != effect_key(plan.incident, plan.digest, EFFECTS[kind]):
            yield "of something else"
        if kind in self.known["changes"]:
            yield "twice"
        if kind == "apply" and order.actions != plan.actions:
            yield "of other actions"
        if kind == "restore" and order.template != self.known["template"]:
            yield "of something that did not stand before"
        if kind == "shift" and plan.rollout != "staged":
            yield "of a change in place"

    def _wrong_by_policy(self, kind: str, key: str, order: Any) -> Iterator[str]:
        """Say what policy does not mark automatic: a writer may have that applied, inside its lists and limits."""
        intent = self.installation.control.intent(key)
        if intent is None or intent.closed or intent.target is None:
            yield "without an open intent"
            return
        if intent.target.generation < self.known["touched"]:
            yield "over a person's work"
        if kind == "shift" and not intent.staged:
            yield "of a change in place"
        if kind == "restore":
            if order.template != self.known.get("template"):
                yield "of something that did not stand before"
            if self.known["changes"][-1:] not in (["apply"], ["shift"]):
                yield "twice"
        if kind == "apply":
            yield from self._applied_wrongly(order)

    def _applied_wrongly(self, order: Any) -> Iterator[str]:
        if self.policy.mode(SERVICE, order.actions) is not Mode.AUTOMATIC:
            yield "of what is not automatic"
        try:
            self.policy.check(order.actions)
        except SreError:
            yield "of what policy forbids"
        now, before = self.clock.now(), self.known.get("applied_at", [])
        if any((now - at).total_seconds() < self.policy.change_window_s for at in before):
            yield "too soon"
        if sum((now - at) < timedelta(hours=1) for at in before) >= self.policy.changes_per_hour:
            yield "too often"

    def around(self, label: str, call: Any) -> Any:
        answer = super().around(label, call)
        if label == "store.commit" and self.stop_at is not None and answer.phase is self.stop_at:
            raise Reached
        return answer

    def incident(self) -> Incident:
        return min(self.installation.store.incidents(Query()), key=lambda i: i.opened_at)

    def go(self, steps: int) -> None:
        rested = 0
        for _ in range(steps):
            self.since = feed(self.installation, self.since)
            self.work()
            try:
                on_tick(self.installation.contexts[Owner.TICK])
            except SreError:
                pass  # a row that cannot be gone on with; the others went on
            except AssertionError:
                pass  # a row that no code of ours could have written
            self.look()
            self.work()
            self.clock.step(STEP_S)
            self.time.write_text(self.clock.now().isoformat())
            ended = all(i.ended for i in self.installation.store.incidents(Query()))
            rested = rested + 1 if ended and self._rests() else 0
            if rested > 1:
                break

    def look(self) -> None:
        """The person answers the first plan as it was made, and nothing that was written over."""
        for incident in self.installation.store.incidents(Query()):
            plan = incident.plan
            if incident.phase is not Phase.ASKED or plan is None or plan.ordinal != 1:
                continue
            honest = self.known.setdefault("seen", plan)
            if self.setting.answer is None or self.setting.automatic:
                continue
            word = DecisionRequest(plan=honest.id, answer=self.setting.answer, by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False), plan_digest=honest.digest)  # fmt: skip
            template = self.real.describe(SERVICE).template
            try:
                plan_to_decision(self.installation.contexts[Owner.DECIDE], word)
            except SreError:
                continue
            if self.setting.answer is Choice.APPROVE:
                self.known.update(plan=honest, template=template)
            if self.setting.by_hand:
                self.by_hand()

    def ask(self) -> None:
        """A person asks for a change of a service that serves."""
        asked = ChangeAsked(
            service=SERVICE,
            actions=ASKED_FOR,
            why="asked",
            by=Person(who="grace", channel=Channel.COMMAND_LINE, verified=False),
        )
        request_change(self.installation.contexts[Owner.DECIDE], asked)

    def by_hand(self) -> None:
        live = self.real.describe(SERVICE)
        order = Order(
            service=SERVICE, incident=BY_HAND, effect_key=BY_HAND, revision="by-hand-00099", etag=live.etag,
            actions=(SetConcurrency(concurrency=7),), lease_end=HELD,
        )  # fmt: skip
        self.real.apply(order)
        # a plan that is made later is made for what stands then
        self.known["touched"] = self.real.describe(SERVICE).generation

    def close(self) -> None:
        for database in self.databases:
            database.close()
        for documents in self.documents:
            documents.close()


@dataclass(frozen=True, kw_only=True)
class Led:
    """An incident that stands at a phase.

    Attributes:
        folder: Its state.
        known: What happened on the way, for the story that goes on.
        paths: Every field of it as it is stored.
    """

    folder: Path
    case: dict[str, Any]
    known: dict[str, Any]
    paths: tuple[tuple[Any, ...], ...]

    def story(self, folder: Path) -> Story:
        """Go on in a copy."""
        shutil.copytree(self.folder, folder)
        return Story(folder, self.case, dict(self.known))


def case_of(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """Return a journey's case for one of ``SETTINGS``."""
    setting = SETTINGS[name]
    case: dict[str, Any] = {"setting": name, "example": setting.example, **more}
    if setting.more is not None:  # with an accelerator to spare the change is staged
        copy = folder / f"example-{name}"
        if not copy.exists():
            shutil.copytree(ROOT / "examples" / setting.example, copy)
            scenario = copy / "scenario.toml"
            text = scenario.read_text().replace("spare_accelerator = false", "spare_accelerator = true")
            scenario.write_text(text + setting.more)
        case["example"] = str(copy)
    if setting.automatic:
        policy = folder / "policy.toml"
        policy.write_text(POLICY)
        case["settings"] = {"policy": policy}
    return case


def led_to(folder: Path, case: dict[str, Any], phase: Phase) -> Led:
    """Lead a new incident to a phase and stop right after its commit."""
    name = Path(case["example"]).name
    if name not in FITS:
        settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / case['example']}")
        FITS[name] = Remembered(read_capacity(read_services(settings)))
    folder.mkdir(parents=True)
    story = Story(folder, case, {})
    story.stop_at = phase
    try:
        if story.setting.requested:
            story.ask()
        else:
            publish_example(story.installation, story.example)
        story.go(4 * STEPS)
        raise AssertionError(f"{phase} was not reached: {story.incident().phase}")
    except Reached:
        story.time.write_text(story.clock.now().isoformat())
        incident = story.incident()
        if phase is Phase.APPROVED and not story.setting.automatic:  # it stopped inside the person's own call
            story.known.update(plan=incident.plan, template=story.real.describe(SERVICE).template)
        assert story.violations == []
    finally:
        story.close()
    return Led(folder=folder, case=case, known=story.known, paths=tuple(paths(incident.model_dump(mode="json"))))


def paths(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of an incident as it is stored, the nested ones too; a list by its first element."""
    yield before
    if isinstance(data, dict):
        for key, value in data.items():
            yield from paths(value, (*before, key))
    elif isinstance(data, list) and data:
        yield from paths(data[0], (*before, 0))


def written_over(incident: Incident, path: tuple[Any, ...], live: Any) -> Incident | None:
    """Return the incident with another value in one field, None where no other value is valid there."""
    for change in (_later, _more, _other, _none, _empty):
        data = incident.model_dump(mode="json")
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        old = holder[path[-1]]
        new = live.etag if path[-1] == "etag" else change(old)
        if new == old:
            continue
        holder[path[-1]] = new
        try:
            return Incident.model_validate(data)
        except (ValidationError, ValueError):
            continue
    return None


def _later(old: Any) -> Any:
    try:
        return (datetime.fromisoformat(old) + timedelta(days=3)).isoformat() if "T" in old else old
    except (TypeError, ValueError):
        return old


def _more(old: Any) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, list) and old and isinstance(old[0], dict) and "kind" in old[0] and "key" not in old[0]:
        return [*old, {"kind": "set_concurrency", "concurrency": 999}]
    return old + 1 if isinstance(old, int | float) else old


def _other(old: Any) -> Any:
    return f"{old[:-1]}x" if isinstance(old, str) and old else old


def _none(_old: Any) -> None:
    return None


def _empty(old: Any) -> Any:
    return type(old)() if isinstance(old, list | dict | str) else old


FORCED = ("as it is", "applying", "rolling back", "shifting", "approved again")
PHASE_WRITTEN = tuple(f"phase {phase}" for phase in Phase)


def forced(story: Story, incident: Incident, how: str) -> Incident:
    """Say with fresh etags that something is due; what cannot be said of this incident is left as it is."""
    plan, live, now = incident.plan, story.real.describe(SERVICE), story.clock.now()
    if how in PHASE_WRITTEN:
        return incident.with_(due_at=now, phase=Phase(how.removeprefix("phase ")))
    if how == "as it is" or plan is None:
        return incident.with_(due_at=now)
    kind = {"rolling back": EffectKind.ROLL_BACK, "shifting": EffectKind.SHIFT}.get(how, EffectKind.APPLY)
    keys = {k: effect_key(incident.id, plan.digest, k) for k in EffectKind}
    ours = revision_name(SERVICE, keys[EffectKind.APPLY])
    revision = revision_name(SERVICE, keys[kind]) if kind is EffectKind.ROLL_BACK else ours
    effect = {"key": keys[kind], "kind": kind, "etag": live.etag, "revision": revision, "intended_at": now}
    done = {"key": keys[EffectKind.APPLY], "kind": "apply", "state": "done", "etag": "e", "revision": ours}
    before = [done | {"operation": "made-up", "intended_at": now}] if kind is not EffectKind.APPLY else []
    traffic = canonical([t.model_dump(mode="json") for t in live.traffic]).decode()
    execution = {
        "plan": plan.id, "effects": [*before, effect], "revision_before": live.latest_ready_revision,
        "revision_after": ours, "prior_template": live.template, "prior_traffic": traffic, "prior_ready": True,
    }  # fmt: skip
    phase = {"applying": "APPLYING", "rolling back": "ROLLING_BACK", "shifting": "VERIFYING"}.get(how, "APPROVED")
    verdict = "RECOVERED" if how == "shifting" else "NOT_RECOVERED"
    verification = {"since": now, "until": now, "verdict": verdict, "why": "made up"}
    fields = {"phase": phase, "execution": execution, "verification": verification, "due_at": now}
    return Incident.model_validate(incident.model_dump() | fields)


def attack(story: Story, number: int, path: tuple[Any, ...], how: str) -> bool:
    """Write one field over, twice over time; False where nothing could be written there."""
    if number % 2:
        story.by_hand()
    incident = story.incident()
    changed = written_over(incident, path, story.real.describe(SERVICE)) if path else incident
    if changed is None:
        return False
    fields = {"id": incident.id, "version": incident.version, "service": incident.service, "run": incident.run}
    fields = {k: v for k, v in fields.items() if k in {"id", "version"} or (k,) != path}
    try:
        attacked = forced(story, changed, how).with_(**fields)
    except (ValidationError, ValueError, AssertionError):
        return False
    story.installation.store.commit(Change(incident=attacked))
    try:
        story.go(STEPS // 3)
        if path and path[0] in {"plan", "decision"}:  # and once more, after whatever was refused or undone
            again = story.installation.store.load(incident.id)
            numbers = {
                "version": again.version,
                "plans_made": again.plans_made,
            }  # else the next plan finds its id taken
            story.installation.store.commit(Change(incident=attacked.with_(**numbers)))
        story.go(STEPS // 3)
    except SreError:
        return True  # a row that nobody can go on with; nothing was made of it
    return True
