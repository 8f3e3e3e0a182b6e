"""What did not help is put back, where nothing but our change stands in between."""

import pytest

from agent.core.change.execution import EffectKind
from agent.core.incident.phase import Phase
from agent.errors import CredentialsRefused
from agent.ports.control import KillSwitch
from agent.ports.platform import LeaseOver
from agent.presentation.standing import standing
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.execution_to_verification import execution_to_verification
from agent.stages.shared.outcome import StageOutcome
from agent.stages.undo import undo
from agent.stages.verification_to_outcome import verification_to_outcome
from agent.stages.watch_operation import watch_operation
from agent.stages.watch_undo import watch_undo


@pytest.fixture
def failed(bench):
    """A change whose rollout failed."""
    return fail(bench)


def fail(bench):
    bench.approved()
    bench.run(begin_execution)
    bench.run(call_platform)
    bench.platform.ends("apply", ok=False, says="it crashed")
    for stage in (watch_operation, execution_to_verification, verification_to_outcome):
        bench.run(stage, as_tick=True)
    assert bench.now().phase is Phase.ROLLING_BACK
    return bench


def test_the_prior_template_is_put_back_and_compared(failed):
    assert failed.run(undo) is StageOutcome.NOTED  # the intent is shown
    assert failed.run(undo) is StageOutcome.NOTED  # the call is made
    assert failed.platform.calls == ["apply", "restore"]
    assert failed.run(watch_undo, as_tick=True) is StageOutcome.WAITING
    failed.platform.ends("restore", ok=True)
    assert failed.run(watch_undo, as_tick=True) is StageOutcome.MOVED
    assert (failed.now().phase, failed.platform.live.template) == (Phase.ROLLED_BACK, '{"was":1}')


OLDER = {
    "as before": ("svc-0", False, "and svc-0 serves as before"),
    "ended by the change": (None, False, "svc-0, which served before, was ended by the change"),
    "what came up this time": ("svc-1", True, "the prior template serves again"),
}


@pytest.mark.parametrize(("serves", "ok", "says"), OLDER.values(), ids=OLDER)
def test_what_serves_after_the_way_back_is_looked_at(bench, serves, ok, says):
    """A strategy that frees an accelerator ends the older revision; nobody is told that it serves as before."""
    bench.platform.live = bench.platform.live.with_(ready=False, latest_ready_revision="svc-0")
    failed = fail(bench)
    failed.run(undo)
    failed.run(undo)
    failed.platform.ends("restore", ok=ok)
    failed.platform.live = failed.platform.live.with_(latest_ready_revision=serves)
    failed.run(watch_undo, as_tick=True)
    assert failed.now().phase is Phase.ROLLED_BACK
    assert says in failed.now().ended_why


def test_what_somebody_changed_since_is_left_alone(failed):
    failed.platform.somebody_else()
    failed.run(undo)
    assert failed.now().phase is Phase.ESCALATED
    assert "somebody changed 'svc' since" in failed.now().ended_why
    assert failed.platform.calls == ["apply"]


REPLACED = {"made again": ({"uid": "v"}, "deleted and made again"), "stamp gone": ({}, "nothing bears the stamp")}


@pytest.mark.parametrize(("how", "why"), REPLACED.values(), ids=REPLACED)
def test_a_change_that_somebody_replaced_was_made_all_the_same(failed, how, why):
    """The rollout was seen to start, so "never made" would be false; a person looks at what stands there."""
    failed.platform.made.clear()
    failed.platform.live = failed.platform.live.with_(**how)
    failed.run(undo)
    assert (failed.now().phase, failed.platform.calls) == (Phase.ESCALATED, ["apply"])
    assert why in failed.now().ended_why


def test_a_change_of_yesterday_is_a_persons_work(failed):
    failed.clock.step(86_401)
    failed.run(undo)
    assert "over 24 hours ago" in failed.now().ended_why


EXPIRED = CredentialsRefused("the service was not read", why="the token expired", hint="log in again")
WHERE = {"the first look": ("find", 0), "the last look": ("describe", 1), "the call": ("restore", 1)}


def locked_out(bench, monkeypatch, where):
    def refuse(*_, **__):
        raise EXPIRED

    monkeypatch.setattr(bench.platform, where, refuse)


@pytest.mark.parametrize(("where", "runs"), WHERE.values(), ids=WHERE)
def test_credentials_that_expired_delay_the_way_back_and_are_told_once(failed, monkeypatch, where, runs):
    for _ in range(runs):
        failed.run(undo)
    with monkeypatch.context() as meanwhile:
        locked_out(failed, meanwhile, where)
        assert failed.run(undo) is StageOutcome.WAITING
        waits = failed.now()
        assert (waits.phase, failed.platform.calls) == (Phase.ROLLING_BACK, ["apply"])
        says = standing(waits, failed.clock.now()).says
        assert says.startswith("The agent cannot go on: the roll-back is tried again until ")
        assert "because the service was not read: the token expired (log in again)" in says
        failed.clock.step(60)
        failed.run(undo)
        assert failed.now() == waits
    for _ in range(3 - runs):
        failed.run(undo)
    assert (failed.platform.calls, failed.now().stuck) == (["apply", "restore"], "")


def test_expired_credentials_are_told_whatever_stood_in_the_way_before(failed, monkeypatch):
    """Once, though the other side says it in other words at each try."""
    failed.put(failed.now().with_(stuck="its stored row lacks what every incident there has"))
    locked_out(failed, monkeypatch, "find")
    failed.run(undo)
    waits = failed.now()
    assert waits.stuck.startswith("the roll-back is tried again until ")
    monkeypatch.setattr(EXPIRED, "why", "the token expired 60 s ago")
    failed.run(undo)
    assert failed.now() == waits


@pytest.mark.parametrize(("where", "runs"), WHERE.values(), ids=WHERE)
def test_credentials_that_nobody_renews_are_a_persons_work_in_the_end(failed, monkeypatch, where, runs):
    for _ in range(runs):
        failed.run(undo)
    locked_out(failed, monkeypatch, where)
    failed.run(undo)
    failed.clock.step(failed.executor.rules.times.rollout_limit_s)
    failed.run(undo)
    assert (failed.now().phase, failed.now().stuck) == (Phase.ESCALATED, "")
    assert "the token expired" in failed.now().ended_why


def test_credentials_that_expire_while_the_roll_back_is_watched_end_nothing(failed, monkeypatch):
    failed.run(undo)
    failed.run(undo)
    failed.platform.ends("restore", ok=True)
    with monkeypatch.context() as meanwhile:
        locked_out(failed, meanwhile, "restored")
        assert failed.run(watch_undo, as_tick=True) is StageOutcome.WAITING
        assert "the token expired" in failed.now().stuck
    failed.run(watch_undo, as_tick=True)
    assert (failed.now().phase, failed.now().stuck) == (Phase.ROLLED_BACK, "")


def test_the_kill_switch_stops_the_way_back_too(failed):
    failed.run(undo)
    failed.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    failed.run(undo)
    assert failed.platform.calls == ["apply"]
    assert (failed.now().phase, "kill switch" in failed.now().ended_why) == (Phase.ESCALATED, True)


def test_a_roll_back_that_fails_is_told_to_a_person(failed):
    failed.run(undo)
    failed.run(undo)
    failed.platform.ends("restore", ok=False, says="quota")
    failed.run(watch_undo, as_tick=True)
    assert failed.now().phase is Phase.ESCALATED
    assert failed.now().effect(EffectKind.ROLL_BACK).state == "done"  # put back and compared; it does not come up


def test_who_stood_still_past_the_lease_puts_nothing_back_and_the_next_one_does(failed):
    """A late call is refused and nobody is told that the roll-back failed: it is tried again under a new lease."""
    failed.run(undo)
    failed.platform.before_call = lambda: failed.clock.step(failed.executor.rules.times.lease_s)
    with pytest.raises(LeaseOver):
        failed.run(undo)
    assert (failed.platform.calls, failed.now().phase) == (["apply"], Phase.ROLLING_BACK)
    failed.platform.before_call = lambda: None
    assert failed.run(undo) is StageOutcome.NOTED
    assert failed.platform.calls == ["apply", "restore"]


def half_undone(failed):
    failed.run(undo)
    failed.run(undo)
    failed.platform.remains("restore", "the app is to be stopped")
    failed.platform.live = failed.platform.live.with_(template='{"half":1}')


def test_what_remains_of_a_roll_back_is_called_again_until_its_time_is_over(failed):
    """Then it is compared as it is, and a person is told."""
    half_undone(failed)
    assert failed.run(watch_undo, as_tick=True) is StageOutcome.NOTED
    assert failed.now().effect(EffectKind.ROLL_BACK).state == "intended"
    failed.run(undo)
    failed.clock.step(failed.executor.rules.times.rollout_limit_s)
    assert failed.run(watch_undo, as_tick=True) is StageOutcome.MOVED
    assert (failed.now().phase, "is not back" in failed.now().ended_why) == (Phase.ESCALATED, True)


def test_half_a_roll_back_of_yesterday_is_a_persons_work(failed):
    """What was begun in time is not gone on with after the day in which a change may be undone."""
    half_undone(failed)
    failed.run(watch_undo, as_tick=True)
    failed.clock.step(86_401)
    assert failed.run(undo) is StageOutcome.MOVED
    assert failed.platform.calls == ["apply", "restore"]
    assert (failed.now().phase, "over 24 hours ago" in failed.now().ended_why) == (Phase.ESCALATED, True)


def test_the_time_of_a_roll_back_begins_when_the_platform_has_it(failed, monkeypatch):
    """Whoever may change services was away between the intent and the call; for our credentials it counts the same."""
    limit_s = failed.executor.rules.times.rollout_limit_s
    failed.run(undo)
    failed.clock.step(limit_s - 100)
    failed.run(undo)
    failed.clock.step(200)
    assert failed.run(watch_undo, as_tick=True) is StageOutcome.WAITING
    failed.platform.ends("restore", ok=True)

    def expired(*_args, **_named):
        raise CredentialsRefused("the platform refused us", why="expired", hint="sign in again")

    monkeypatch.setattr(failed.platform, "restored", expired)
    failed.run(watch_undo, as_tick=True)
    assert failed.now().phase is Phase.ROLLING_BACK
    failed.clock.step(limit_s)
    failed.run(watch_undo, as_tick=True)
    assert failed.now().phase is Phase.ESCALATED
