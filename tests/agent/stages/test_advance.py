"""A lost race is looked at again at once: what stands is sent, and what is left to others is left to them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.adapters.store.memory.store import MemoryStore
from agent.app import build_app_in_memory
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Restart
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.service.serving import Target
from agent.entrypoints.cli.analysis import SteppedClock
from agent.errors import StateConflict
from agent.ports.stage_context import Owner
from agent.ports.store import Change
from agent.settings import read_settings
from agent.stages.advance import advance
from agent.stages.shared.outcome import StageOutcome

ROOT = Path(__file__).resolve().parents[3]
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
PLAN = Plan(
    id="p-a-1", incident="inc-a", run="live", ordinal=1, cause="engine_dead", why="-", actions=(Restart(),),
    difference=(), target=Target(service="s", uid="u", generation=1, digest="d"), rollout=Rollout.IN_PLACE,
    risk=Risk.LOW, undo="-", silence="-", made_at=T0, expires_at=T0 + timedelta(minutes=30),
)  # fmt: skip


class Raced(MemoryStore):
    """A store in which somebody writes the very same a moment earlier, and dies before sending it."""

    racing = False

    def commit(self, change: Change) -> Incident:
        committed = super().commit(change)
        if self.racing:
            self.racing = False
            raise StateConflict("not written", why="somebody was faster", mend="load it again")
        return committed


def test_what_a_dead_rival_committed_is_sent_before_the_delivery_is_acknowledged(tmp_path: Path) -> None:
    """Nothing is left to do for us, so that nobody else would send it before the next tick."""
    settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / 'gemma4-26b-l4-startup-probe'}")
    store, clock = Raced(), SteppedClock(T0)
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
