"""R3: the whole service under one seed, thousands of times; what broke is printed with its seed and replays."""

import os
import random
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.change.verification import Verdict
from agent.core.incident.phase import Phase
from agent.core.plan.action import Action, Lifecycle, LifecycleOperation, SetConcurrency
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.plan.proof import Proof
from agent.core.planning.creation import creation
from agent.core.planning.proving import Proven
from agent.ports.control import KillSwitch
from agent.ports.store import Query
from tests.counts import tries
from tests.leases import HELD
from tests.simulation.simulated import places
from tests.simulation.simulated.chaos import Fault
from tests.simulation.simulated.driver import T0, Course, Simulation, Violation, drawn
from tests.simulation.simulated.platform import Fate

SEEDS = tries(12, ci=3_000, soak=100_000)
REQUEST_SEEDS = tries(4, ci=60, soak=20_000)
REQUEST_SHARDS = 4
LIFE_SEEDS = tries(2, ci=20, soak=2_000)
SHARDS = tries(4, ci=24, soak=400)
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_promise_holds_under_every_seed(shard: int) -> None:
    """Crashes, pauses, lost answers, lying clocks, bad rollouts, people who press twice: nothing is promised in vain."""
    for seed in range(shard, SEEDS, SHARDS):
        try:
            Simulation(seed).run()
        except Violation as violation:
            pytest.fail(f"{violation}\nreplay: make simulate SEED={seed}", pytrace=False)


def asked(course: Course, chance: random.Random, number: int) -> Action:
    """Return what somebody asks for; half of it is about the service as a whole."""
    name = places.opening(course.stories[0])[0]
    possible: list[Action] = [
        Lifecycle(operation=LifecycleOperation.STOP),
        Lifecycle(operation=LifecycleOperation.START),
        Lifecycle(operation=LifecycleOperation.DELETE, confirmed=name),
        creation(places.watched().service(name), places.fits()),
        *[SetConcurrency(concurrency=number)] * 4,
    ]
    return chance.choice(possible)


@pytest.mark.parametrize("shard", range(REQUEST_SHARDS))
def test_requests_and_incidents_mixed_lose_nothing_and_double_nothing(shard: int) -> None:
    """People ask for changes, stops, starts, deletions and creations before, beside and after the troubles of a seed.

    In every second seed two people must approve, and one of them may take an approval back and give it again.
    """
    for seed in range(shard, REQUEST_SEEDS, REQUEST_SHARDS):
        chance = random.Random(f"asks {seed}")
        course = drawn(seed)
        course.voters = 1 + seed // REQUEST_SHARDS % 2
        course.asks = [
            (chance.choice([1.0, 30.0, 400.0, 2000.0, 5000.0]), asked(course, chance, n))
            for n in range(2, 2 + chance.randrange(1, 5))
        ]
        try:
            Simulation(seed, course).run()
        except Violation as violation:
            pytest.fail(f"{violation}\nseed {seed} with asks {course.asks}", pytrace=False)


def whole_life(course: Course) -> list[tuple[float, Action]]:
    """What is asked about the service as a whole, one after the other: it is stopped, started, deleted and made anew."""
    name = places.opening(course.stories[0])[0]
    return [
        (1.0, Lifecycle(operation=LifecycleOperation.STOP)),
        (4000.0, Lifecycle(operation=LifecycleOperation.START)),
        (9000.0, Lifecycle(operation=LifecycleOperation.DELETE, confirmed=name)),
        (14000.0, creation(places.watched().service(name), places.fits())),
    ]


def test_stops_starts_deletions_and_creations_are_carried_out_in_some_seed() -> None:
    """Every promise holds under every seed, and not because each of them was refused."""
    carried_out: set[LifecycleOperation | None] = set()
    for seed in range(LIFE_SEEDS):
        course = drawn(seed)
        course.asks, course.yes = whole_life(course), 1.0
        simulation = Simulation(seed, course)
        try:
            simulation.run()
        except Violation as violation:
            pytest.fail(f"{violation}\nseed {seed} with a whole life", pytrace=False)
        for incident in simulation.store.incidents(Query(limit=1000)):
            if incident.request is not None and incident.phase is Phase.RESOLVED:
                carried_out.add(lifecycle_of(incident.request.actions))
    assert carried_out >= set(LifecycleOperation)


def digest_of(seed: int) -> str:
    simulation = Simulation(seed)
    simulation.run()
    return simulation.digest


def test_the_same_seed_is_the_same_run_in_another_process() -> None:
    """Call by call, whatever the order of sets and dicts is there."""
    said = {
        subprocess.run(
            [sys.executable, "-m", "tests.simulation.replay_seed", "17", "--quiet"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert len(said) == 1
    assert digest_of(17) in said.pop()


def test_another_seed_is_another_run() -> None:
    assert digest_of(17) != digest_of(18)


def stood_still_in_the_call(seed: int) -> str:
    """Return what was broken in a run whose first change is held up in the call, while the kill switch is on."""
    course = Course(stories=("oom",))
    smooth = Simulation(seed, course)
    smooth.run()
    call = smooth.labels.index("platform.apply")
    called_s = next((at - T0).total_seconds() for at, _, *what in smooth.story if what[0] == call)
    run = Simulation(seed, replace(course, at_call={call: Fault.PAUSES}))
    for after_s, on in ((called_s + 0.1, True), (called_s + 660, False)):
        run.plan(after_s, lambda on=on: run.control.set_kill_switch(KillSwitch(on=on, by="ana", at=run.true)))
    try:
        run.run()
    except Violation as violation:
        return str(violation)
    return ""


class TestTheSimulationCanFail:
    """Each promise is watched: a service that breaks it on purpose is caught within a few seeds."""

    def broken(self, course: Course, seeds: int = 5) -> str:
        for seed in range(seeds):
            try:
                Simulation(seed, Course(**vars(course))).run()
            except Violation as violation:
                return str(violation)
        return ""

    def test_who_does_not_read_the_switch_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for place in ("shared.kill_switch", "plan_to_decision"):
            monkeypatch.setattr(f"agent.stages.{place}.kill_switch_reason", lambda _: "")
        run = Simulation(1, Course())
        run.control.set_kill_switch(KillSwitch(on=True, by="ana", at=run.true))
        with pytest.raises(Violation, match="under the kill switch"):
            run.run()

    def test_who_does_not_wait_for_its_turn_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agent.stages.shared.effects.service_lease", lambda *_: nullcontext(HELD.lease))
        monkeypatch.setattr("agent.stages.shared.effects.final_preflight", lambda *_: "")
        with pytest.raises(Violation, match="nobody had the turn"):
            Simulation(1, Course()).run()

    def test_who_calls_after_its_lease_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It stands still inside the call while another, under the kill switch, refuses the change and plans anew."""
        monkeypatch.setattr("tests.simulation.simulated.platform.seconds_to_send", lambda *_: 1.0)
        said = [stood_still_in_the_call(seed) for seed in range(8)]
        assert any("belongs to no plan that stands" in violation for violation in said), said

    def test_who_calls_before_its_lease_ends_breaks_nothing(self) -> None:
        """The same runs, and the call asks how much of its lease is left."""
        assert [stood_still_in_the_call(seed) for seed in range(8)] == [""] * 8

    def test_who_calls_anything_recovered_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agent.stages.execution_to_verification.judge", lambda *_, **__: (Verdict.RECOVERED, "ok"))
        assert "resolved, but" in self.broken(Course(fates={"apply": [Fate.WRONG] * 4}), seeds=1)

    def test_who_forgets_what_failed_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agent.core.planning.planning.NEVER_AGAIN", frozenset())
        said = self.broken(Course(stories=("oom",), fates={"apply": [Fate.WRONG] * 4}))
        assert "tried again" in said, said

    def test_who_offers_what_nothing_proves_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agent.core.planning.planning.prove", lambda *_, **__: Proven(proof=Proof.NOT_NEEDED))
        said = self.broken(Course(stories=("oom",)), seeds=1)
        assert "is offered with the proof not_needed" in said, said

    def test_who_undoes_what_a_person_did_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """While a rollout hangs, somebody edits the service, pins its traffic or makes it anew."""
        monkeypatch.setattr("agent.stages.undo.drift_since", lambda *_, **__: "")
        said = self.broken(Course(stories=("context",), by_hand=True, fates={"apply": [Fate.NEVER] * 6}), seeds=10)
        assert "restore after somebody else changed" in said, said

    def test_who_loses_a_message_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A stage that commits nothing of what wakes the next one leaves an incident that never ends."""
        monkeypatch.setattr("agent.stages.shared.commit._messages", lambda *_, **__: ())
        monkeypatch.setattr("agent.entrypoints.pubsub.handlers.nudge", lambda *_: None)
        assert "not at an end" in self.broken(Course(), seeds=1)
