"""A verdict ends the incident, orders the traffic, or orders the way back."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.change.verification import Verdict
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Rollout
from agent.ports.store import Change
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.outcome import StageOutcome
from agent.stages.verification_to_outcome import verification_to_outcome
from agent.stages.watch_operation import watch_operation


def judged(bench, verdict, **plan):
    bench.approved(**plan)
    bench.run(begin_execution)
    bench.run(call_platform)
    bench.platform.ends("apply", ok=True)
    bench.run(watch_operation, as_tick=True)
    now = bench.now()
    known = now.verification.with_(verdict=verdict, why="as measured")
    bench.executor.store.commit(Change(incident=now.with_(verification=known)))


def test_what_recovered_is_resolved_and_remembered_as_a_remedy(bench):
    judged(bench, Verdict.RECOVERED)
    assert bench.run(verification_to_outcome, as_tick=True) is StageOutcome.MOVED
    ended = bench.now()
    assert (ended.phase, ended.ended_why, ended.due_at) == (Phase.RESOLVED, "as measured", None)
    assert [(r.ended, r.applied) for r in ended.remedies] == [("RECOVERED", True)]


@pytest.mark.parametrize("verdict", [Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE])
def test_everything_else_is_rolled_back(bench, verdict):
    judged(bench, verdict)
    bench.run(verification_to_outcome, as_tick=True)
    assert bench.now().phase is Phase.ROLLING_BACK


def test_a_staged_revision_gets_its_traffic_before_anything_is_resolved(bench):
    judged(bench, Verdict.RECOVERED, rollout=Rollout.STAGED)
    assert bench.run(verification_to_outcome, as_tick=True) is StageOutcome.NOTED
    shift = bench.now().effect(EffectKind.SHIFT)
    assert (bench.now().phase, shift.state, bench.platform.calls) == (Phase.VERIFYING, EffectState.INTENDED, ["apply"])
