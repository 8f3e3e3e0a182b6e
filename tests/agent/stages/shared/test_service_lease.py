"""One worker at a time changes a service, and a worker that slept over its turn makes no effect."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.app import build_app_in_memory
from agent.entrypoints.cli.analysis import SteppedClock
from agent.errors import DependencyFailed, StateConflict
from agent.ports.control import KillSwitch, LeaseEnd
from agent.ports.platform import seconds_to_send
from agent.ports.stage_context import Owner, StageContext
from agent.settings import read_settings
from agent.stages.shared.service_lease import final_preflight, service_lease

ROOT = Path(__file__).resolve().parents[4]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


@pytest.fixture
def worlds(tmp_path: Path) -> tuple[StageContext, StageContext, SteppedClock]:
    """Two executors over one control store."""
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
    context = build_app_in_memory(settings, clock=clock, state=tmp_path).contexts[Owner.DECISION]
    return replace(context, holder="one"), replace(context, holder="two"), clock


def test_while_one_has_the_turn_another_gets_none(worlds) -> None:
    one, two, _ = worlds
    with service_lease(one, "gemma") as mine:
        assert final_preflight(one, mine) == ""
        with service_lease(two, "gemma") as theirs:
            assert theirs is None
        with service_lease(two, "another") as elsewhere:
            assert elsewhere is not None
    with service_lease(two, "gemma") as after:
        assert after is not None


def test_a_worker_that_slept_over_its_turn_stops_at_the_brink(worlds) -> None:
    """Whether or not somebody came meanwhile, and though that one is gone again."""
    one, two, clock = worlds
    with service_lease(one, "gemma") as slept:
        clock.step(one.rules.times.lease_s)
        with pytest.raises(StateConflict, match="the lease was over"):
            final_preflight(one, slept)
        with service_lease(two, "gemma") as taken:
            assert final_preflight(two, taken) == ""
            with pytest.raises(StateConflict):
                final_preflight(one, slept)
        with pytest.raises(StateConflict):
            final_preflight(one, slept)


def test_the_turn_of_a_dead_worker_ends_by_its_time(worlds) -> None:
    one, two, clock = worlds
    dead = service_lease(one, "gemma")
    dead.__enter__()
    clock.step(one.rules.times.lease_s - 1)
    with service_lease(two, "gemma") as early:
        assert early is None
    clock.step(1)
    with service_lease(two, "gemma") as late:
        assert late is not None


def test_the_kill_switch_is_read_at_the_brink(worlds) -> None:
    one, _, _ = worlds
    with service_lease(one, "gemma") as mine:
        one.control_store().set_kill_switch(KillSwitch(on=True, by="ana", why="enough"))
        assert "ana" in final_preflight(one, mine)


def test_a_worker_that_slept_between_the_two_questions_asks_again(worlds) -> None:
    """The switch was read, then the worker slept: what it read is no answer any more, though the lease still runs."""
    one, _, clock = worlds

    class Slow(SqliteControlStore):
        def kill_switch(self) -> KillSwitch:
            read = super().kill_switch()
            clock.step(2)
            return read

    with service_lease(replace(one, control=Slow(InMemoryDatabase(Kind.CONTROL))), "gemma") as mine:
        assert mine is not None
        with pytest.raises(StateConflict, match="took too long"):
            final_preflight(replace(one, control=Slow(InMemoryDatabase(Kind.CONTROL))), mine)


def test_a_turn_that_cannot_be_given_back_ends_by_its_time(worlds) -> None:
    """The effect was made; that the store is away afterwards is no failure of it."""

    class Away(SqliteControlStore):
        def release(self, lease) -> None:
            raise DependencyFailed("x", why="y", hint="z")

    one, two, clock = worlds
    away = Away(InMemoryDatabase(Kind.CONTROL))
    with service_lease(replace(one, control=away), "gemma") as mine:
        assert mine is not None
    with service_lease(replace(two, control=away), "gemma") as theirs:
        assert theirs is None
    clock.step(one.rules.times.lease_s)
    with service_lease(replace(two, control=away), "gemma") as theirs:
        assert theirs is not None


def test_the_end_of_a_lease_is_seen_by_whoever_stood_still(worlds) -> None:
    """By the clock by which it was taken, and what that clock takes to answer counts too."""
    one, _, clock = worlds
    with service_lease(one, "gemma") as mine:
        assert mine is not None
        end = LeaseEnd(mine, clock)
        clock.step(one.rules.times.lease_s - 5)
        assert 4.9 < end.left_s() <= 5
        clock.step(5)
        assert end.left_s() <= 0

        class Slow:
            def now(self) -> datetime:
                told, began = mine.until, time.monotonic()
                while time.monotonic() - began < 0.01:
                    pass
                return told

        assert LeaseEnd(mine, Slow()).left_s() <= -0.01


def test_an_order_without_a_lease_is_never_sent() -> None:
    """It can be checked by the platform; to carry it out is a bug of ours."""
    with pytest.raises(AssertionError, match="can be checked, not carried out"):
        seconds_to_send(None, "gemma")
