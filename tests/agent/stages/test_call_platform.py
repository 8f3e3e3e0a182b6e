"""The platform is called at most once for a stored intent."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.incident.phase import Phase
from agent.errors import DependencyFailed
from agent.ports.control import KillSwitch
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.outcome import StageOutcome


@pytest.fixture
def begun(bench):
    bench.approved()
    bench.run(begin_execution)
    return bench


def test_a_call_is_made_once_and_found_afterwards(begun):
    before = begun.now()
    assert begun.run(call_platform) is StageOutcome.NOTED
    assert begun.now().effect(EffectKind.APPLY).state is EffectState.STARTED
    call_platform(begun.executor, begun.now().with_(execution=before.execution))
    assert begun.platform.calls == ["apply"]


def test_an_answer_that_was_lost_is_no_second_call(begun):
    """The platform made the change and its answer did not come."""
    key = begun.now().effect(EffectKind.APPLY).key
    made = begun.platform.apply

    def lost(order):
        made(order)
        raise DependencyFailed("no answer", why="cut", mend="again")

    begun.platform.apply = lost
    assert begun.run(call_platform) is StageOutcome.NOTED
    assert (begun.platform.calls, key in begun.platform.made) == (["apply"], True)


def test_whoever_changed_the_service_meanwhile_ends_it(begun):
    begun.platform.somebody_else()
    assert begun.run(call_platform) is StageOutcome.MOVED
    effect = begun.now().effect(EffectKind.APPLY)
    assert (begun.now().phase, effect.state, begun.platform.calls) == (Phase.VERIFYING, EffectState.FAILED, [])
    assert begun.control.intent(effect.key).closed


def test_a_switch_that_is_turned_at_the_last_moment_stops_it(begun):
    begun.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    begun.run(call_platform)
    assert begun.platform.calls == []
    assert "kill switch is on" in begun.now().effect(EffectKind.APPLY).message


def test_while_another_worker_holds_the_lease_nothing_happens(begun):
    now = begun.clock.now()
    begun.control.acquire("service/svc", "another", for_s=60, now=now)
    assert begun.run(call_platform) is StageOutcome.WAITING
    assert (begun.platform.calls, begun.now().phase) == ([], Phase.APPLYING)
