"""A verdict rests on measurements; none of them is no success."""

import pytest

from agent.core.change.verification import Check, Measurement, Verdict
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.execution_to_verification import execution_to_verification
from agent.stages.shared.outcome import StageOutcome
from agent.stages.watch_operation import watch_operation


@pytest.fixture
def up(bench):
    """A change that came up."""
    bench.approved()
    bench.run(begin_execution)
    bench.run(call_platform)
    bench.platform.ends("apply", ok=True)
    bench.run(watch_operation, as_tick=True)
    return bench


def test_what_answers_for_the_whole_window_recovered(up):
    up.good()
    assert up.run(execution_to_verification, as_tick=True) is StageOutcome.WAITING
    up.clock.step(600)
    assert up.run(execution_to_verification, as_tick=True) is StageOutcome.NOTED
    assert up.now().verification.verdict is Verdict.RECOVERED


def test_what_could_not_be_measured_is_inconclusive(up):
    up.clock.step(600)
    up.run(execution_to_verification, as_tick=True)
    assert up.now().verification.verdict is Verdict.INCONCLUSIVE


def test_a_wrong_answer_is_enough_at_once(up):
    wrong = Measurement(check=Check.COMPLETION, good=False, says="empty answer", at=up.clock.now())
    up.platform.measured = (wrong,)
    up.run(execution_to_verification, as_tick=True)
    assert (up.now().verification.verdict, up.now().verification.why) == (Verdict.NOT_RECOVERED, "empty answer")
