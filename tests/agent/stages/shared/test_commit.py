"""A line of the timeline keeps what was true at its moment, whatever the incident becomes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.app import build_app_in_memory
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Restart
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.serving import Target
from agent.entrypoints.cli.analysis import SteppedClock
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.shared.commit import poll_again, save
from agent.stages.shared.outcome import StageOutcome

ROOT = Path(__file__).resolve().parents[4]
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def plan(number: int) -> Plan:
    return Plan(
        id=f"p-a-{number}", incident="inc-a", run="live", ordinal=number, cause="engine_dead", why=f"reason {number}",
        actions=(Restart(),), difference=(), target=Target(service="s", uid="u", generation=1, digest="d"),
        rollout=Rollout.IN_PLACE, risk=Risk.LOW, undo="-", if_unanswered="-", proof=Proof.NOT_NEEDED,
        made_at=T0, expires_at=T0 + timedelta(hours=1),
    )  # fmt: skip


def test_each_line_names_the_plan_and_cause_that_the_incident_had_then(tmp_path: Path) -> None:
    settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / 'gemma4-26b-l4-startup-probe'}")
    context = build_app_in_memory(settings, clock=SteppedClock(T0), state=tmp_path).contexts[Owner.INCIDENT]
    context = replace(context, notifiers={})
    first, second = plan(1), plan(2)
    now = Incident(id="inc-a", service="s", platform="p", opened_at=T0, phase_at=T0, quiet_since=T0)
    now = save(context, now, "opened", now=T0)
    now = save(context, now.move(Phase.DIAGNOSED, now=T0), "diagnosed", now=T0)
    now = save(context, now.move(Phase.PLANNED, now=T0, plan=first), "planned", now=T0, plan=first)
    now = save(context, now.move(Phase.ASKED, now=T0), "asked", now=T0)
    now = save(context, now.move(Phase.SUPERSEDED, now=T0), "withdrawn", now=T0)
    save(context, now.move(Phase.PLANNED, now=T0, plan=second), "planned again", now=T0, plan=second)
    lines = [(e.what, e.plan, e.plan_digest, e.cause) for e in context.store.timeline("inc-a")]
    assert lines == [
        ("opened", None, None, "unknown"),
        ("diagnosed", None, None, "unknown"),
        ("planned", first.id, first.digest, "unknown"),
        ("asked", first.id, first.digest, "unknown"),
        ("withdrawn", first.id, first.digest, "unknown"),
        ("planned again", second.id, second.digest, "unknown"),
    ]


def test_a_poll_writes_what_it_learned_and_nothing_else(bench: Any) -> None:
    """Unwritten, the incident stays due; a longer wait is written, so that ticks do not read it for nothing."""
    before = bench.put(bench.asked().with_(due_at=bench.clock.now()))
    bench.clock.step(60)
    now = bench.clock.now()
    assert poll_again(bench.tick, before, now=now) is StageOutcome.WAITING
    assert poll_again(bench.tick, before, now=now, seen=before.with_(), in_s=10) is StageOutcome.WAITING
    assert bench.now() == before
    poll_again(bench.tick, before, now=now, in_s=300)
    assert bench.now().due_at == now + timedelta(seconds=300)
    poll_again(bench.tick, bench.now(), now=now, seen=bench.now().with_(received=7))
    assert (bench.now().received, bench.now().due_at) == (7, now + timedelta(seconds=10))
