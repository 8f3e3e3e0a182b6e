"""One worker at a time changes a service, and a worker that slept over its turn makes no effect."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.adapters.store.memory_control import MemoryControlStore
from agent.bootstrap import in_memory
from agent.entrypoints.analysis import SteppedClock
from agent.errors import DependencyFailed, StateConflict
from agent.ports.control import KillSwitch
from agent.ports.world import Owner, World
from agent.settings import read_settings
from agent.stages.turn import at_the_brink, turn

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


@pytest.fixture
def worlds(tmp_path: Path) -> tuple[World, World, SteppedClock]:
    """Two executors over one control store."""
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
    world = in_memory(settings, clock=clock, state=tmp_path).worlds[Owner.DECISION]
    return replace(world, holder="one"), replace(world, holder="two"), clock


def test_while_one_has_the_turn_another_gets_none(worlds) -> None:
    one, two, _ = worlds
    with turn(one, "gemma") as mine:
        assert at_the_brink(one, mine) == ""
        with turn(two, "gemma") as theirs:
            assert theirs is None
        with turn(two, "another") as elsewhere:
            assert elsewhere is not None
    with turn(two, "gemma") as after:
        assert after is not None


def test_a_worker_that_slept_over_its_turn_stops_at_the_brink(worlds) -> None:
    """Whether or not somebody came meanwhile, and though that one is gone again."""
    one, two, clock = worlds
    with turn(one, "gemma") as slept:
        clock.step(one.knowledge.times.lease_s)
        with pytest.raises(StateConflict, match="the lease was over"):
            at_the_brink(one, slept)
        with turn(two, "gemma") as taken:
            assert at_the_brink(two, taken) == ""
            with pytest.raises(StateConflict):
                at_the_brink(one, slept)
        with pytest.raises(StateConflict):
            at_the_brink(one, slept)


def test_the_turn_of_a_dead_worker_ends_by_its_time(worlds) -> None:
    one, two, clock = worlds
    dead = turn(one, "gemma")
    dead.__enter__()
    clock.step(one.knowledge.times.lease_s - 1)
    with turn(two, "gemma") as early:
        assert early is None
    clock.step(1)
    with turn(two, "gemma") as late:
        assert late is not None


def test_the_kill_switch_is_read_at_the_brink(worlds) -> None:
    one, _, _ = worlds
    with turn(one, "gemma") as mine:
        one.control_store().set_kill_switch(KillSwitch(on=True, by="ana", why="enough"))
        assert "ana" in at_the_brink(one, mine)


def test_a_worker_that_slept_between_the_two_questions_asks_again(worlds) -> None:
    """The switch was read, then the worker slept: what it read is no answer any more, though the lease still runs."""
    one, _, clock = worlds

    class Slow(MemoryControlStore):
        def kill_switch(self) -> KillSwitch:
            read = super().kill_switch()
            clock.step(2)
            return read

    with turn(replace(one, control=Slow()), "gemma") as mine:
        assert mine is not None
        with pytest.raises(StateConflict, match="took too long"):
            at_the_brink(replace(one, control=Slow()), mine)


def test_a_turn_that_cannot_be_given_back_ends_by_its_time(worlds) -> None:
    """The effect was made; that the store is away afterwards is no failure of it."""

    class Away(MemoryControlStore):
        def release(self, lease) -> None:
            raise DependencyFailed("x", why="y", mend="z")

    one, two, clock = worlds
    away = Away()
    with turn(replace(one, control=away), "gemma") as mine:
        assert mine is not None
    with turn(replace(two, control=away), "gemma") as theirs:
        assert theirs is None
    clock.step(one.knowledge.times.lease_s)
    with turn(replace(two, control=away), "gemma") as theirs:
        assert theirs is not None
