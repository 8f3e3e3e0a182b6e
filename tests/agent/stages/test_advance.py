"""A lost race is looked at again at once: what stands is sent, and what is left to others is left to them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.app import build_app_in_memory
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Restart
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.serving import Target
from agent.entrypoints.cli.analysis import SteppedClock
from agent.errors import InputRejected, StateConflict
from agent.ports.stage_context import Owner
from agent.ports.store import Change
from agent.presentation.standing import standing
from agent.settings import read_settings
from agent.stages.advance import advance
from agent.stages.shared.outcome import StageOutcome

ROOT = Path(__file__).resolve().parents[3]
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
PLAN = Plan(
    id="p-a-1", incident="inc-a", run="live", ordinal=1, cause="engine_dead", why="-", actions=(Restart(),),
    difference=(), target=Target(service="s", uid="u", generation=1, digest="d"), rollout=Rollout.IN_PLACE,
    risk=Risk.LOW, undo="-", if_unanswered="-", proof=Proof.NOT_NEEDED, made_at=T0, expires_at=T0 + timedelta(minutes=30),
)  # fmt: skip


class Raced(SqliteStore):
    """A store in which somebody writes the very same a moment earlier, and dies before sending it."""

    racing = False

    def commit(self, change: Change) -> Incident:
        committed = super().commit(change)
        if self.racing:
            self.racing = False
            raise StateConflict("not written", why="somebody was faster", hint="load it again")
        return committed


def test_what_a_dead_rival_committed_is_sent_before_the_delivery_is_acknowledged(tmp_path: Path) -> None:
    """Nothing is left to do for us, so that nobody else would send it before the next tick."""
    settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / 'gemma4-26b-l4-startup-probe'}")
    store, clock = Raced(InMemoryDatabase(Kind.STATE)), SteppedClock(T0)
    installation = build_app_in_memory(settings, clock=clock, state=tmp_path)
    context = replace(installation.contexts[Owner.TICK], store=store)
    asked = Incident(
        id="inc-a", service="s", platform="p", opened_at=T0, phase_at=T0, quiet_since=T0, phase=Phase.ASKED, plan=PLAN
    )
    store.commit(Change(incident=asked, plan=PLAN))
    clock.step(1801)
    store.racing = True
    assert advance(context, "inc-a") == (StageOutcome.NOT_OURS,)
    assert store.load("inc-a").phase is Phase.EXPIRED
    assert store.outbox("inc-a") == ()
    assert installation.bus.waiting()["sre-incidents-sub"] == 2  # type: ignore[attr-defined] # the step that is next, and the people


@pytest.mark.parametrize(
    ("phase", "owner"),
    [(Phase.APPROVED, Owner.DECISION), (Phase.PLANNED, Owner.INCIDENT), (Phase.APPLYING, Owner.TICK)],
    ids=["approved", "planned", "applying"],
)
def test_a_row_that_no_code_of_ours_wrote_is_told_by_its_name(phase: Phase, owner: Owner, tmp_path: Path) -> None:
    """A phase without its plan is given up at once, with a sentence that names the incident, and a log event."""
    settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / 'gemma4-26b-l4-startup-probe'}")
    installation = build_app_in_memory(settings, clock=SteppedClock(T0), state=tmp_path)
    row = Incident(
        id="inc-a", service="s", platform="p", opened_at=T0, phase_at=T0, quiet_since=T0, phase=phase, due_at=T0
    )
    installation.store.commit(Change(incident=row))
    with capture_logs() as log, pytest.raises(InputRejected, match="'inc-a' cannot go on") as told:
        advance(installation.contexts[owner], "inc-a")
    assert not told.value.redeliver
    assert f"says {phase}" in str(told.value)
    (event,) = [e for e in log if e["event"] == "incident.impossible"]
    assert (event["incident"], event["phase"], event["log_level"]) == ("inc-a", phase, "error")
    with pytest.raises(InputRejected):  # it stays due, should that mend, and people are told once
        advance(installation.contexts[owner], "inc-a")
    assert installation.bus.waiting()["sre-incidents-sub"] == 1  # type: ignore[attr-defined]
    stuck = installation.store.load("inc-a")
    assert f"its stored row says {phase}" in standing(stuck, T0).says
    assert len(installation.store.timeline("inc-a")) == 1
