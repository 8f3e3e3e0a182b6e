"""The platform is called at most once for a stored intent."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.incident.phase import Phase
from agent.errors import CredentialsRefused, DependencyFailed, PolicyRefused
from agent.ports.control import KillSwitch
from agent.ports.platform import LeaseOver, NotDeployed
from agent.presentation.changes import changed_so_far
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.execution_to_verification import execution_to_verification
from agent.stages.shared.outcome import StageOutcome
from agent.stages.undo import undo
from agent.stages.verification_to_outcome import verification_to_outcome
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


def test_an_approval_that_runs_out_while_the_platform_is_asked_is_none(start_request):
    """The worker stood still in its last look, for less than its lease and longer than the approval had left."""
    expires = start_request.now().decision.expires_at
    start_request.clock.step((expires - start_request.clock.now()).total_seconds() - 10)
    look = start_request.platform.describe

    def slow(service):
        start_request.clock.step(20)
        return look(service)

    start_request.platform.describe = slow
    assert start_request.run(call_platform) is StageOutcome.MOVED
    effect = start_request.now().effect(EffectKind.APPLY)
    assert (effect.state, start_request.platform.calls) == (EffectState.FAILED, [])
    assert "the approval expired at" in effect.message
    assert start_request.control.intent(effect.key).closed


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
    assert start_request.run(call_platform) is StageOutcome.WAITING
    assert (ordered, start_request.now().stuck.startswith(REMAINS)) == ([], True)


REMAINS = "half applied: the app is to be started"
DENIED = PolicyRefused("the pod was not deleted", why="403", hint="grant it")
EXPIRED = CredentialsRefused("the service was not read", why="the token expired", hint="log in again")


def refusing(error):
    def refuse(*_, **__):
        raise error

    return refuse


def test_what_is_half_made_waits_while_changes_are_stopped_and_then_goes_on(start_request):
    """It is open and nobody is told that it was not applied, for however long; then it has all the time of a rollout."""
    bench = start_request
    ordered, key = half_made(bench), bench.now().effect(EffectKind.APPLY).key
    bench.control.set_kill_switch(KillSwitch(on=True, by="ben", why="a drill"))
    assert bench.run(call_platform) is StageOutcome.WAITING
    waits = bench.now()
    assert (
        waits.stuck == f"{REMAINS}; it waits until changes are allowed again: the kill switch is on (by ben: a drill)"
    )
    assert (waits.phase, bench.control.intent(key).closed) == (Phase.APPLYING, "")
    assert changed_so_far(waits) == "The change was made and is being rolled out."
    bench.clock.step(10 * bench.executor.rules.times.rollout_limit_s)
    assert bench.run(call_platform) is StageOutcome.WAITING
    assert (bench.now(), ordered) == (waits, [])
    bench.control.set_kill_switch(KillSwitch(on=False, by="ben"))
    assert bench.run(call_platform) is StageOutcome.NOTED
    bench.platform.remains("apply", "")
    assert bench.run(watch_operation, as_tick=True) is StageOutcome.WAITING
    effect = bench.now().effect(EffectKind.APPLY)
    assert ([o.effect_key for o in ordered], effect.state, bench.now().stuck) == ([key], EffectState.STARTED, "")


@pytest.mark.parametrize("where", ["find", "apply"])
@pytest.mark.parametrize("error", [EXPIRED, DENIED], ids=["credentials", "right"])
def test_a_refused_second_call_is_tried_again_and_told_once(start_request, monkeypatch, where, error):
    bench = start_request
    ordered, key = half_made(bench), bench.now().effect(EffectKind.APPLY).key
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(bench.platform, where, refusing(error))
        assert bench.run(call_platform) is StageOutcome.WAITING
        waits = bench.now()
        assert waits.stuck.startswith(f"{REMAINS}; it is tried again until 04:00:00 UTC, because ")
        assert waits.stuck.endswith(f", because {error.cause} ({error.hint})")
        bench.clock.step(bench.executor.rules.times.rollout_limit_s - 1)
        assert bench.run(call_platform) is StageOutcome.WAITING
        assert (bench.now(), bench.control.intent(key).closed) == (waits, "")
    assert bench.run(call_platform) is StageOutcome.NOTED
    assert ([o.effect_key for o in ordered], bench.now().stuck) == ([key], "")
    bench.clock.step(60)
    bench.platform.remains("apply", "")
    assert bench.run(watch_operation, as_tick=True) is StageOutcome.WAITING


@pytest.mark.parametrize("where", ["find", "apply"])
def test_credentials_that_nobody_renews_leave_it_half_applied_for_a_person(start_request, monkeypatch, where):
    bench = start_request
    half_made(bench)
    key = bench.now().effect(EffectKind.APPLY).key
    monkeypatch.setattr(bench.platform, where, refusing(EXPIRED))
    bench.run(call_platform)
    bench.clock.step(bench.executor.rules.times.rollout_limit_s)
    assert bench.run(call_platform) is StageOutcome.MOVED
    ended = bench.now()
    assert (ended.phase, ended.ended_why) == (Phase.ESCALATED, f"{REMAINS}: {EXPIRED}")
    assert (bench.control.intent(key).closed, ended.remedies[-1].applied, ended.remedies[-1].restored) == (
        "",
        True,
        False,
    )
    assert "not applied" not in " ".join(event.what for event in bench.executor.store.timeline(ended.id))


def test_credentials_that_expired_while_changes_were_stopped_are_waited_for_as_long(start_request, monkeypatch):
    bench = start_request
    half_made(bench)
    bench.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    bench.run(call_platform)
    bench.clock.step(10 * bench.executor.rules.times.rollout_limit_s)
    bench.control.set_kill_switch(KillSwitch(on=False, by="ben"))
    monkeypatch.setattr(bench.platform, "find", refusing(EXPIRED))
    for _ in range(2):
        assert bench.run(call_platform) is StageOutcome.WAITING
        bench.clock.step(60)
    bench.clock.step(bench.executor.rules.times.rollout_limit_s)
    bench.run(call_platform)
    assert bench.now().phase is Phase.ESCALATED


def test_a_right_that_nobody_grants_ends_it_as_half_applied_and_it_is_put_back(start_request, monkeypatch):
    bench = start_request
    half_made(bench)
    monkeypatch.setattr(bench.platform, "apply", refusing(DENIED))
    bench.clock.step(bench.executor.rules.times.rollout_limit_s)
    assert bench.run(call_platform) is StageOutcome.MOVED
    assert bench.now().verification.measurements[-1].says == f"{REMAINS}: {DENIED}"
    for stage in (execution_to_verification, verification_to_outcome):
        bench.run(stage, as_tick=True)
    for _ in range(2):
        bench.run(undo)
    assert (bench.now().phase, bench.platform.calls) == (Phase.ROLLING_BACK, ["apply", "restore"])


def test_a_call_that_was_refused_after_it_was_made_whole_is_found(start_request, monkeypatch):
    """The answer of the last of its calls said no, and the platform has it all the same."""
    made = start_request.platform.apply

    def refused(order):
        made(order)
        raise DENIED

    monkeypatch.setattr(start_request.platform, "apply", refused)
    assert start_request.run(call_platform) is StageOutcome.NOTED
    assert start_request.now().effect(EffectKind.APPLY).state is EffectState.STARTED


def test_what_remains_is_known_though_the_first_answer_was_lost_and_nobody_can_look_now(start_request, monkeypatch):
    bench, made = start_request, start_request.platform.apply

    def lost(order):
        made(order)
        bench.platform.remains("apply", "the app is to be started")
        raise DENIED

    monkeypatch.setattr(bench.platform, "apply", lost)
    bench.run(call_platform)
    monkeypatch.setattr(bench.platform, "find", refusing(EXPIRED))
    assert bench.run(call_platform) is StageOutcome.WAITING
    assert bench.now().stuck.startswith(REMAINS)


def test_a_service_that_is_gone_is_not_waited_for(start_request, monkeypatch):
    half_made(start_request)
    gone = NotDeployed("'svc' is not there", why="deleted", hint="look")
    monkeypatch.setattr(start_request.platform, "find", refusing(gone))
    assert start_request.run(call_platform) is StageOutcome.MOVED
    assert start_request.now().effect(EffectKind.APPLY).message == f"{REMAINS}: {gone}"
