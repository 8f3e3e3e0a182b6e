"""A rollout is watched until it ends or its time is over."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.incident.phase import Phase
from agent.ports.store import head_key
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.outcome import StageOutcome
from agent.stages.watch_operation import watch_operation
from tests.agent.stages.conftest import SERVICE


@pytest.fixture
def started(bench):
    bench.approved()
    bench.run(begin_execution)
    bench.run(call_platform)
    return bench


@pytest.mark.parametrize(("ok", "state"), [(True, EffectState.DONE), (False, EffectState.FAILED)])
def test_its_end_begins_the_measuring(started, ok, state):
    assert started.run(watch_operation, as_tick=True) is StageOutcome.WAITING
    started.platform.ends("apply", ok=ok)
    assert started.run(watch_operation, as_tick=True) is StageOutcome.MOVED
    assert (started.now().phase, started.now().effect(EffectKind.APPLY).state) == (Phase.VERIFYING, state)


def test_while_it_runs_nothing_is_written(started):
    before = started.now()
    for _ in range(3):
        started.clock.step(60)
        assert started.run(watch_operation, as_tick=True) is StageOutcome.WAITING
    assert started.now() == before


def test_one_that_never_ends_is_measured_after_its_limit(started):
    started.clock.step(3600)
    started.run(watch_operation, as_tick=True)
    verification = started.now().verification
    assert (verification.ready_at, verification.until) == (None, started.clock.now())


def test_its_time_begins_when_the_platform_has_it(bench):
    """Whoever may change services was away between the intent and the call; the change has all its time before it."""
    bench.approved()
    bench.run(begin_execution)
    bench.clock.step(1000)
    bench.run(call_platform)
    bench.clock.step(bench.executor.rules.times.rollout_limit_s - 500)
    assert bench.run(watch_operation, as_tick=True) is StageOutcome.WAITING
    bench.clock.step(500)
    assert bench.run(watch_operation, as_tick=True) is StageOutcome.MOVED


def test_a_call_that_took_long_takes_nothing_off_its_time(bench, monkeypatch):
    """The worker may stand still between its last check and the call."""
    bench.approved()
    bench.run(begin_execution)
    apply = bench.platform.apply

    def slow(order):
        bench.clock.step(50)
        return apply(order)

    monkeypatch.setattr(bench.platform, "apply", slow)
    bench.run(call_platform)
    assert bench.now().effect(EffectKind.APPLY).started_at == bench.clock.now()


def test_another_call_of_it_gives_it_no_more_time(started):
    """What the platform has, it has had since the first call."""
    begun = started.clock.now()
    started.platform.remains("apply", "the app is to be started")
    started.run(watch_operation, as_tick=True)
    started.clock.step(1000)
    started.run(call_platform)
    assert started.now().effect(EffectKind.APPLY).started_at == begun


def test_what_remains_of_it_is_called_again(started):
    """A platform that needs a second call says so: whoever may change services makes it, until the time is over."""
    started.platform.remains("apply", "the app is to be started")
    assert started.run(watch_operation, as_tick=True) is StageOutcome.NOTED
    assert (started.now().phase, started.now().effect(EffectKind.APPLY).state) == (Phase.APPLYING, EffectState.INTENDED)
    assert started.now().due_at == started.clock.now()


def test_what_is_to_be_called_again_is_found_by_the_name_of_its_revision(started):
    """The name comes with the same answer that asks for another call; at the next look it is nothing new."""
    started.platform.remains("apply", "the app is to be started")
    key = started.now().effect(EffectKind.APPLY).key
    started.platform.made[key] = started.platform.made[key].with_(revision="svc--native")
    started.run(watch_operation, as_tick=True)
    assert started.now().execution.revision_native == "svc--native"
    assert started.executor.store.head(head_key("live", SERVICE, "svc--native")) == "inc-a"


def test_what_remains_when_its_time_is_over_is_not_called(started):
    """Then it is measured as it is, and undone."""
    started.platform.remains("apply", "the app is to be started")
    started.clock.step(3600)
    assert started.run(watch_operation, as_tick=True) is StageOutcome.MOVED
    assert "the app is to be started" in started.now().effect(EffectKind.APPLY).message
