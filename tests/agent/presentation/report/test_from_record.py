"""A postmortem draft says what the record says, in every phase, and claims no more."""

from datetime import timedelta

import pytest

from agent.core.change.execution import Change, present_change
from agent.core.decision.decision import Choice
from agent.core.incident.phase import NEXT, Phase
from agent.failures.follow_up import FollowUp, FollowUpKind
from agent.presentation.report.from_record import Record, postmortem
from agent.presentation.report.postmortem import Hardware
from agent.presentation.standing import standing
from tests.agent.entrypoints.console.test_read_routes import every_state

L4 = Hardware(accelerator="nvidia-l4", count=2)


def draft_of(stage, incident, **more):
    timeline = stage.world.store.timeline(incident.id)
    now = max(stage.clock.now(), incident.phase_at)
    return postmortem(Record(incident=incident, timeline=timeline, now=now, hardware=L4, **more))


def test_every_phase_has_a_draft_that_claims_no_more_than_its_state(stage, scenes):
    states = every_state(stage, scenes)
    assert {i.phase for i in states.values()} >= set(NEXT)
    for name, incident in states.items():
        draft = draft_of(stage, incident)
        now = max(stage.clock.now(), incident.phase_at)
        over = incident.phase in {Phase.RESOLVED, Phase.SELF_RECOVERED}
        assert draft.phase == standing(incident, now).label, name
        assert standing(incident, now).says in " ".join(draft.summary), name
        assert any("not over" in note for note in draft.notes) is not incident.ended, name
        assert (draft.times.over_at is not None) is over, name
        assert draft.fix.says.startswith("This change fixed it") is (incident.phase is Phase.RESOLVED), name
        assert bool(draft.fix.settings) is (present_change(incident.execution) is Change.APPLIED), name
        assert len({t.plan for t in draft.tried}) == len(draft.tried) == incident.plans_made, name


def test_earlier_plans_keep_their_place_and_their_end(stage, scenes):
    escalated = every_state(stage, scenes)["escalated"]
    first, second = draft_of(stage, escalated).tried
    assert any("put back" in step for step in first.steps)
    assert "2 tokens/s is of no use" in " ".join(second.steps)
    assert "Take the incident over" in draft_of(stage, escalated).actions[0].text


def test_the_cost_is_the_accelerators_times_the_time(stage):
    asked = stage.waiting("s-cost")
    stage.clock.step(1800)
    draft = draft_of(stage, asked)
    cost = draft.cost
    hours = (stage.clock.now() - draft.times.began_at).total_seconds() / 3600
    assert cost.gpu_hours == round(2 * hours, 3)
    assert cost.usd == round(hours * asked.plan.cost_before_usd_per_h, 2)
    assert "2 nvidia-l4" in cost.basis
    assert "so far" in cost.basis


def test_where_nobody_knows_the_accelerators_no_hours_are_told(stage):
    asked = stage.waiting("s-unknown")
    draft = postmortem(Record(incident=asked, timeline=(), now=stage.clock.now()))
    assert draft.cost.gpu_hours is None
    assert "Not known" in draft.cost.basis


def test_signals_that_are_older_records_do_not_lengthen_the_outage(stage):
    asked = stage.waiting("s-old")
    (first, *rest) = asked.correlated
    old = asked.with_(correlated=(first.with_(at=asked.opened_at - timedelta(days=160)), *rest))
    fresh = asked.with_(correlated=(first.with_(at=asked.opened_at - timedelta(minutes=4)), *rest))
    assert draft_of(stage, old).times.began_at == asked.opened_at
    assert draft_of(stage, fresh).times.began_at == asked.opened_at - timedelta(minutes=4)


def test_a_replay_and_a_rehearsal_are_named_first(stage):
    resolved = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting("s-re"), Choice.APPROVE))))
    checks = tuple(m.with_(real=False) for m in resolved.verification.measurements)
    rehearsed = resolved.with_(run="replay-1", verification=resolved.verification.with_(measurements=checks))
    notes = draft_of(stage, rehearsed).notes
    assert "replay-1" in notes[0]
    assert "simulated platform" in notes[1]
    assert draft_of(stage, resolved).notes == ()


def test_a_requested_change_has_no_outage_and_no_actions_of_a_class(stage):
    requested = stage.requested("s-request")
    catalogue = {"change_requested": (FollowUp(kind=FollowUpKind.PREVENT, text="Nothing."),)}
    draft = draft_of(stage, requested, follow_ups=catalogue)
    assert draft.cost.gpu_hours is None
    assert "no outage" in draft.cost.basis
    assert draft.actions == ()
    assert draft.cause is None


@pytest.mark.parametrize("phase", ["resolved", "expired"])
def test_action_items_are_those_of_the_record_then_those_of_the_class(stage, scenes, phase):
    incident = every_state(stage, scenes)[phase]
    catalogue = {incident.cause: (FollowUp(kind=FollowUpKind.DETECT, text="Watch the probe."),)}
    *own, last = draft_of(stage, incident, follow_ups=catalogue).actions
    assert (last.kind, last.text) == ("detect", "Watch the probe.")
    assert {"resolved": "deployed from", "expired": "on call"}[phase] in " ".join(item.text for item in own)
