"""A plan is answered once, and only by somebody whose word counts."""

import pytest

from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.errors import PolicyRefused, StateConflict
from agent.ports.control import KillSwitch


def test_an_approval_is_signed_and_moves_the_incident(bench):
    asked = bench.asked()
    decision = bench.answer(asked.plan.id, Choice.APPROVE)
    assert (bench.now().phase, bench.now().decision) == (Phase.APPROVED, decision)
    assert decision.plan_digest == asked.plan.digest


def test_the_second_answer_loses_and_is_told_who_was_first(bench):
    asked = bench.asked()
    first = bench.answer(asked.plan.id, Choice.REJECT, why="no")
    assert bench.answer(asked.plan.id, Choice.REJECT) == first
    with pytest.raises(StateConflict, match="said reject"):
        bench.answer(asked.plan.id, Choice.APPROVE)
    assert bench.now().phase is Phase.REJECTED


def test_an_expired_plan_another_digest_and_a_stopped_agent_are_no_approval(bench):
    asked = bench.asked()
    with pytest.raises(PolicyRefused, match="what was shown had digest"):
        bench.answer(asked.plan.id, Choice.APPROVE, plan_digest="0" * 64)
    bench.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    with pytest.raises(PolicyRefused, match="kill switch is on"):
        bench.answer(asked.plan.id, Choice.APPROVE)
    bench.control.set_kill_switch(KillSwitch(on=False))
    bench.clock.step(1801)
    with pytest.raises(PolicyRefused, match="it expired"):
        bench.answer(asked.plan.id, Choice.APPROVE)
    assert bench.now().phase is Phase.ASKED
