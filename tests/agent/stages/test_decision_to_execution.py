"""An approved plan becomes a stored intent, or is refused with a reason."""

from agent.core.change.execution import EffectKind
from agent.core.incident.phase import Phase
from agent.ports.control import KillSwitch
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.effects import key_of, stored_intent
from agent.stages.shared.outcome import StageOutcome


def test_the_intent_stands_in_the_control_database_before_the_incident_moves(bench):
    bench.approved()
    assert bench.run(begin_execution) is StageOutcome.MOVED
    begun = bench.now()
    intent = stored_intent(bench.executor, begun, EffectKind.APPLY)
    assert begun.phase is Phase.APPLYING
    assert (intent.target, intent.etag, intent.prior_template) == (begun.plan.target, "e1", '{"was":1}')
    assert bench.platform.calls == []


def test_a_service_that_changed_since_is_refused(bench):
    bench.approved()
    bench.platform.somebody_else()
    bench.run(begin_execution)
    assert bench.now().phase is Phase.REFUSED
    assert "changed since the plan was made" in bench.now().ended_why
    assert bench.control.intent(key_of(bench.now(), EffectKind.APPLY)) is None


def test_the_kill_switch_refuses(bench):
    bench.approved()
    bench.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    bench.run(begin_execution)
    assert (bench.now().phase, "kill switch is on" in bench.now().ended_why) == (Phase.REFUSED, True)


def test_a_plan_whose_difference_is_not_its_own_is_refused(bench):
    bench.approved(difference=())
    bench.run(begin_execution)
    assert "does not show what it would change" in bench.now().ended_why
