"""The platform is called at most once for a stored intent."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.incident.phase import Phase
from agent.errors import DependencyFailed
from agent.ports.control import KillSwitch
from agent.ports.platform import LeaseOver
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.outcome import StageOutcome
from agent.stages.watch_operation import watch_operation


@pytest.fixture
def start_request(bench):
    bench.approved()
    bench.run(begin_execution)
    return bench


def test_a_call_is_made_once_and_found_afterwards(start_request):
    before = start_request.now()
    assert start_request.run(call_platform) is StageOutcome.NOTED
    assert start_request.now().effect(EffectKind.APPLY).state is EffectState.STARTED
    call_platform(start_request.executor, start_request.now().with_(execution=before.execution))
    assert start_request.platform.calls == ["apply"]


def test_an_answer_that_was_lost_is_no_second_call(start_request):
    """The platform made the change and its answer did not come."""
    key = start_request.now().effect(EffectKind.APPLY).key
    made = start_request.platform.apply

    def lost(order):
        made(order)
        raise DependencyFailed("no answer", why="cut", hint="again")

    start_request.platform.apply = lost
    assert start_request.run(call_platform) is StageOutcome.NOTED
    assert (start_request.platform.calls, key in start_request.platform.made) == (["apply"], True)


def test_whoever_changed_the_service_meanwhile_ends_it(start_request):
    start_request.platform.somebody_else()
    assert start_request.run(call_platform) is StageOutcome.MOVED
    effect = start_request.now().effect(EffectKind.APPLY)
    assert (start_request.now().phase, effect.state, start_request.platform.calls) == (
        Phase.VERIFYING,
        EffectState.FAILED,
        [],
    )
    assert start_request.control.intent(effect.key).closed


def test_a_switch_that_is_turned_at_the_last_moment_stops_it(start_request):
    start_request.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    start_request.run(call_platform)
    assert start_request.platform.calls == []
    assert "kill switch is on" in start_request.now().effect(EffectKind.APPLY).message


def test_while_another_worker_holds_the_lease_nothing_happens(start_request):
    now = start_request.clock.now()
    start_request.control.acquire("service/svc", "another", for_s=60, now=now)
    assert start_request.run(call_platform) is StageOutcome.WAITING
    assert (start_request.platform.calls, start_request.now().phase) == ([], Phase.APPLYING)


def test_who_stood_still_past_the_lease_calls_nothing_and_closes_nothing(start_request):
    """It slept inside the call; whoever has the lease then makes the change, or refuses it."""
    bench = start_request
    bench.platform.before_call = lambda: bench.clock.step(bench.executor.rules.times.lease_s)
    with pytest.raises(LeaseOver, match="the lease 'service/svc' was over before the call"):
        bench.run(call_platform)
    effect = bench.now().effect(EffectKind.APPLY)
    assert (bench.platform.calls, effect.state) == ([], EffectState.INTENDED)
    assert bench.control.intent(effect.key).closed == ""
    bench.platform.before_call = lambda: None
    assert bench.run(call_platform) is StageOutcome.NOTED
    assert bench.platform.calls == ["apply"]


def test_a_call_that_landed_before_it_was_refused_is_found(start_request):
    """The first of two calls of one effect was sent, and the lease ended before the second."""
    made = start_request.platform.apply

    def stopped_half_way(order):
        made(order)
        raise LeaseOver("nothing more was done", why="the lease was over", hint="look")

    start_request.platform.apply = stopped_half_way
    assert start_request.run(call_platform) is StageOutcome.NOTED
    assert start_request.now().effect(EffectKind.APPLY).state is EffectState.STARTED


def half_made(bench):
    """The first of two calls is made, and the second is asked for."""
    bench.run(call_platform)
    bench.platform.remains("apply", "the app is to be started")
    bench.run(watch_operation, as_tick=True)
    ordered = []
    bench.platform.apply = lambda order: (
        ordered.append(order) or bench.platform.made[order.effect_key].with_(remains="")
    )
    return ordered


def approval_over(bench):
    bench.clock.step(1801)


def other_policy(bench):
    policy = bench.executor.rules.policy
    bench.under(policy.with_(rules=(policy.rules[0].with_(mode="never"),)))


@pytest.mark.parametrize("meanwhile", [approval_over, other_policy])
def test_what_is_half_made_is_finished_though_it_could_not_begin_now(start_request, meanwhile):
    """The approval ran out, or the policy was saved anew: a service that is left half changed helps nobody."""
    ordered = half_made(start_request)
    meanwhile(start_request)
    assert start_request.run(call_platform) is StageOutcome.NOTED
    effect = start_request.now().effect(EffectKind.APPLY)
    assert ([o.effect_key for o in ordered], effect.state) == ([effect.key], EffectState.STARTED)
    assert start_request.control.intent(effect.key).closed == ""


def test_what_is_half_made_needs_the_signed_approval_all_the_same(start_request):
    ordered = half_made(start_request)
    now = start_request.now()
    start_request.put(now.with_(decision=now.decision.with_(receipt="0" * 64)))
    start_request.run(call_platform)
    assert ordered == []


def test_the_kill_switch_stops_what_is_half_made(start_request):
    ordered = half_made(start_request)
    start_request.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    start_request.run(call_platform)
    assert ordered == []
    assert "kill switch is on" in start_request.now().effect(EffectKind.APPLY).message
