"""S15: whoever writes any field of an incident, at any phase, causes one undo of our own change at most, and no more.

An incident is led to a phase and stopped there. Then one field of it is written over, mostly together with a phase and an
effect that would make the executor act, and everything goes on. Every change of the platform is held against what a
person approved.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kills import FITS, Journey, folder_for_a_while
from pydantic import ValidationError

from agent.adapters.bus.worker import Worker
from agent.app.catalogues import read_capacity, read_services
from agent.core.action import SetConcurrency
from agent.core.decision import Answer, Channel
from agent.core.execution import EffectKind, effect_key, revision_name
from agent.core.incident import Incident
from agent.core.phase import Phase
from agent.core.value import canonical
from agent.entrypoints.handlers import on_tick
from agent.entrypoints.service import feed, handlers, publish_example
from agent.errors import SreError
from agent.ports.platform import Order
from agent.ports.stage_context import Owner
from agent.ports.store import Change, Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import Word, plan_to_decision

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "gemma4-26b-qat-l4"
RECOVERS, STAGED = "gemma4-26b-l4-startup-probe", "staged"
EFFECTS = {"apply": EffectKind.APPLY, "restore": EffectKind.ROLL_BACK, "shift": EffectKind.SHIFT}
STEPS = 24
STEP_S = 60.0
STRIDE = 1 if os.environ.get("SOAK") else 19
BY_HAND = "by-hand"
PHASES = {
    RECOVERS: (Phase.DIAGNOSED, Phase.ASKED, Phase.APPROVED, Phase.APPLYING, Phase.VERIFYING, Phase.RESOLVED),
    STAGED: (Phase.APPROVED, Phase.APPLYING, Phase.VERIFYING, Phase.RESOLVED),
}
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


@pytest.fixture
def here() -> Iterator[Path]:
    """A folder in memory: nothing here is about the disk."""
    with folder_for_a_while() as name:
        yield Path(name)


class Reached(BaseException):
    """The incident is where it is to be written over; nothing in between may catch this."""


class Story(Journey):
    """A journey that stops at a phase, and whose platform is watched."""

    def __init__(self, folder: Path, case: dict[str, Any], approved: dict[str, Any]) -> None:
        self.stop_at: Phase | None = None
        self.violations: list[str] = []
        super().__init__(folder, case, kill_at=None, before=False)
        self.approved = approved
        self.touched = 0
        self.changes: list[str] = []
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
            self.violations += [f"{kind} {why}" for why in self._wrong(kind, key, order)]
            self.changes.append(kind)
        return answer

    def _wrong(self, kind: str, key: str, order: Any) -> Iterator[str]:
        """Say what nobody approved; the service's own handling would swallow what is raised here."""
        plan = self.approved.get("plan")
        if plan is None:
            yield "and nobody approved anything"
            return
        if plan.target.generation < self.touched:
            yield "over a person's work"
        if key != effect_key(plan.incident, plan.digest, EFFECTS[kind]):
            yield "of something else"
        if kind in self.changes:
            yield "twice"
        if kind == "apply" and order.actions != plan.actions:
            yield "of other actions"
        if kind == "restore" and order.template != self.approved["template"]:
            yield "of something that did not stand before"
        if kind == "shift" and plan.rollout != "staged":
            yield "of a change in place"

    def around(self, label: str, call: Any) -> Any:
        answer = super().around(label, call)
        if label == "store.commit" and self.stop_at is not None and answer.phase is self.stop_at:
            raise Reached
        return answer

    def incident(self) -> Incident:
        return min(self.installation.store.incidents(Query()), key=lambda i: i.opened_at)

    def go(self, steps: int) -> None:
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

    def look(self) -> None:
        """The person approves the first plan as it was made, and nothing that was written over."""
        for incident in self.installation.store.incidents(Query()):
            plan = incident.plan
            if incident.phase is not Phase.ASKED or plan is None or plan.ordinal != 1:
                continue
            honest = self.approved.setdefault("seen", plan)
            word = Word(
                plan=honest.id, answer=Answer.APPROVE, who="ada", channel=Channel.COMMAND_LINE, verified=False,
                plan_digest=honest.digest,
            )  # fmt: skip
            template = self.real.describe(SERVICE).template
            try:
                plan_to_decision(self.installation.contexts[Owner.DECIDE], word)
            except SreError:
                continue
            self.approved.update(plan=honest, template=template)

    def by_hand(self) -> None:
        live = self.real.describe(SERVICE)
        order = Order(
            service=SERVICE, incident=BY_HAND, effect_key=BY_HAND, revision="by-hand-00099", etag=live.etag,
            actions=(SetConcurrency(concurrency=7),),
        )  # fmt: skip
        self.real.apply(order)
        self.touched = self.real.describe(SERVICE).generation  # a plan that is made later is made for what stands then

    def close(self) -> None:
        for database in self.databases:
            database.close()
        for documents in self.documents:
            documents.close()


def example(folder: Path, name: str) -> str:
    """Return an example's folder; the staged one is made from a record, with an accelerator to spare."""
    if name != STAGED:
        return str(ROOT / "examples" / name)
    copy = folder / STAGED
    if not copy.exists():
        shutil.copytree(ROOT / "examples" / "gemma4-26b-l4-context-refused", copy)
        scenario = copy / "scenario.toml"
        text = scenario.read_text().replace("spare_accelerator = false", "spare_accelerator = true")
        scenario.write_text(text + OUTCOME)
    return str(copy)


def led_to(folder: Path, case: dict[str, Any], phase: Phase) -> dict[str, Any]:
    """Lead a new incident to a phase and stop right after its commit; return what was approved on the way."""
    name = Path(case["example"]).name
    if name not in FITS:
        FITS[name] = read_capacity(read_services(read_settings({}, platform=f"rehearsal:{case['example']}")))
    folder.mkdir(parents=True)
    approved: dict[str, Any] = {}
    story = Story(folder, case, approved)
    story.stop_at = phase
    publish_example(story.installation, story.example)
    try:
        story.go(STEPS)
        raise AssertionError(f"{phase} was not reached")
    except Reached:
        story.time.write_text(story.clock.now().isoformat())
        if phase is Phase.APPROVED:  # it stopped inside the person's own call
            incident = story.incident()
            approved.update(plan=incident.plan, template=story.real.describe(SERVICE).template)
    finally:
        approved["changes"] = list(story.changes)
        story.close()
    return approved


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
    from datetime import datetime

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


def forced(story: Story, incident: Incident, how: str) -> Incident:
    """Say with fresh etags that something is due; what cannot be said of this incident is left as it is."""
    plan, live, now = incident.plan, story.real.describe(SERVICE), story.clock.now()
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
            story.installation.store.commit(Change(incident=attacked.with_(version=again.version)))
        story.go(STEPS // 3)
    except SreError:
        return True  # a row that nobody can go on with; nothing was made of it
    return True


@pytest.mark.parametrize(
    ("name", "phase"), [(n, p) for n, phases in PHASES.items() for p in phases], ids=lambda v: str(v).lower()
)
def test_no_field_at_no_phase_makes_another_effect(name: str, phase: Phase, here: Path) -> None:
    """On SQLite: each field by turns, with each way to make the executor act."""
    case = {"example": example(here, name)}
    approved = led_to(here / "led", case, phase)
    story = Story(here / "led", case, dict(approved))
    fields = list(paths(story.incident().model_dump(mode="json")))
    story.close()
    cases = [(path, FORCED[n % len(FORCED)]) for n, path in enumerate(fields)]
    cases = cases[::STRIDE] + [((), how) for how in FORCED for _ in "ab"]
    tried = 0
    for number, (path, how) in enumerate(cases):
        folder = here / f"case-{number}"
        shutil.copytree(here / "led", folder)
        story = Story(folder, case, dict(approved))
        story.changes = list(approved["changes"])
        try:
            tried += attack(story, number, path, how)
            assert story.violations == [], f"{name} at {phase}, {path} {how!r}"
        finally:
            story.close()
            shutil.rmtree(folder)
    assert tried >= len(cases) // 2


@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_no_field_makes_another_effect_on_firestore(tmp_path: Path, firestore_emulator, firestore_project) -> None:
    """The incident database and the control database in Google's emulator."""
    number = 0
    for phase in (Phase.ASKED, Phase.APPROVED, Phase.APPLYING, Phase.RESOLVED):
        for path, how in ((("plan", "actions"), "applying"), (("verification",), "rolling back"), ((), "rolling back")):
            number += 1
            folder = tmp_path / str(number)
            case = {
                "example": example(tmp_path, RECOVERS),
                "firestore": [firestore_emulator.host, f"{firestore_project}-w{number}"],
            }
            approved = led_to(folder, case, phase)
            story = Story(folder, case, approved)
            story.changes = list(approved["changes"])
            try:
                attack(story, number, path, how)
                assert story.violations == [], f"{phase}, {path} {how!r}"
            finally:
                story.close()
