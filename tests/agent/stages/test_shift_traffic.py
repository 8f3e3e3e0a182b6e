"""A staged revision gets the traffic once the executor has measured it itself."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.change.verification import Check, Measurement, Verdict
from agent.core.plan.plan import Rollout
from agent.core.service.serving import Traffic
from agent.ports.store import Change
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shift_traffic import shift_traffic
from agent.stages.verification_to_outcome import verification_to_outcome
from agent.stages.watch_operation import watch_operation


@pytest.fixture
def ordered(bench):
    bench.platform.live = bench.platform.live.with_(traffic=(Traffic(revision="svc-1", percent=100),))
    bench.approved(rollout=Rollout.STAGED)
    bench.run(begin_execution)
    bench.run(call_platform)
    bench.platform.ends("apply", ok=True)
    bench.run(watch_operation, as_tick=True)
    now = bench.now()
    known = now.verification.with_(verdict=Verdict.RECOVERED, why="-")
    bench.executor.store.commit(Change(incident=now.with_(verification=known)))
    bench.run(verification_to_outcome, as_tick=True)
    return bench


def test_it_is_shifted_once_and_followed_to_its_end(ordered):
    ordered.good()
    assert ordered.run(shift_traffic) is StageOutcome.WAITING
    ordered.platform.ends("shift", ok=True)
    assert ordered.run(shift_traffic) is StageOutcome.NOTED
    assert ordered.now().effect(EffectKind.SHIFT).state is EffectState.DONE
    assert ordered.platform.calls == ["apply", "shift"]


def test_what_could_not_be_measured_again_waits_and_then_gets_none(ordered):
    assert ordered.run(shift_traffic) is StageOutcome.WAITING
    ordered.clock.step(600)
    assert ordered.run(shift_traffic) is StageOutcome.NOTED
    assert ordered.now().verification.verdict is Verdict.NOT_RECOVERED
    assert ordered.platform.calls == ["apply"]


def test_the_verdict_of_the_incident_database_is_not_enough(ordered):
    bad = Measurement(check=Check.COMPLETION, good=False, says="empty answer", at=ordered.clock.now())
    ordered.platform.measured = (bad,)
    ordered.run(shift_traffic)
    effect = ordered.now().effect(EffectKind.SHIFT)
    assert (effect.state, "empty answer" in effect.message) == (EffectState.FAILED, True)
    assert ordered.platform.calls == ["apply"]


def test_what_somebody_changed_since_gets_no_traffic_of_ours(ordered):
    ordered.good()
    ordered.platform.somebody_else()
    ordered.run(shift_traffic)
    assert "somebody changed 'svc' since" in ordered.now().effect(EffectKind.SHIFT).message


def moving(ordered, says="the traffic is being moved to svc-2"):
    """Let the shift that was called go on, in the words of its platform."""
    made = ordered.platform.made
    made |= {key: o.model_copy(update={"says": says}) for key, o in made.items() if o.name == "shift-1"}


def test_a_shift_that_takes_its_time_is_followed_to_its_end(ordered):
    """What the platform says while it moves the traffic is no refusal."""
    ordered.good()
    ordered.run(shift_traffic)
    moving(ordered)
    assert ordered.run(shift_traffic) is StageOutcome.WAITING
    assert ordered.now().effect(EffectKind.SHIFT).state is EffectState.STARTED
    ordered.platform.ends("shift", ok=True)
    assert ordered.run(shift_traffic) is StageOutcome.NOTED
    assert (ordered.now().effect(EffectKind.SHIFT).state, ordered.now().verification.verdict) == (
        EffectState.DONE,
        Verdict.RECOVERED,
    )


def test_a_shift_without_an_end_is_rolled_back_once_its_time_is_over(ordered):
    ordered.good()
    ordered.run(shift_traffic)
    moving(ordered)
    ordered.clock.step(ordered.executor.rules.times.rollout_limit_s)
    assert ordered.run(shift_traffic) is StageOutcome.NOTED
    now = ordered.now()
    assert now.verification.verdict is Verdict.NOT_RECOVERED
    assert "did not end in time: the traffic is being moved" in now.effect(EffectKind.SHIFT).message


def test_its_time_begins_when_the_platform_has_it(ordered):
    """Whoever may change services was away between the intent and the call."""
    ordered.clock.step(1000)
    ordered.good()
    limit_s = ordered.executor.rules.times.rollout_limit_s
    assert ordered.run(shift_traffic) is StageOutcome.WAITING
    ordered.clock.step(limit_s - 1)
    assert ordered.run(shift_traffic) is StageOutcome.WAITING
    ordered.clock.step(1)
    ordered.run(shift_traffic)
    assert ordered.now().effect(EffectKind.SHIFT).state is EffectState.FAILED
