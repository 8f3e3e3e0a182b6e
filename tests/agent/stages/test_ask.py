"""A plan is shown until it expires."""

from agent.core.incident.phase import Phase
from agent.ports.store import Change
from agent.stages.ask import ask, expire
from agent.stages.shared.outcome import StageOutcome


def test_a_planned_incident_asks_until_its_plan_expires(bench):
    planned = bench.asked().with_(phase=Phase.PLANNED)
    bench.executor.store.commit(Change(incident=planned))
    assert bench.run(ask) is StageOutcome.MOVED
    assert (bench.now().phase, bench.now().due_at) == (Phase.ASKED, planned.plan.expires_at)


def test_nothing_expires_before_its_time(bench):
    bench.asked()
    assert bench.run(expire, as_tick=True) is StageOutcome.WAITING
    bench.clock.step(1800)
    assert bench.run(expire, as_tick=True) is StageOutcome.MOVED
    assert bench.now().phase is Phase.EXPIRED
