"""What an incident adds to the metrics, from its timeline."""

from agent.core.decision.decision import Choice
from agent.core.incident.observed import Took, observed
from tests.agent.entrypoints.console import scenes


def of(stage, incident):
    return observed(stage.world.store.load(incident.id), stage.world.store.timeline(incident.id))


def test_an_open_incident_took_nothing_yet():
    stage = scenes.a_stage()
    assert of(stage, stage.open()).took == ()


def test_the_class_is_the_one_that_was_known_then():
    """A later diagnosis names another class; what was counted under the first one stays there."""
    stage = scenes.a_stage()
    first = stage.diagnosed(stage.open())
    later = first.with_(diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    seen = of(stage, stage.planned(later))
    classes = {took.part: took.class_ for took in seen.took}
    assert classes["first_diagnosis"] == "startup_probe_failed"
    assert classes["plan"] == later.diagnosis.class_ != "startup_probe_failed"


def test_a_line_of_the_same_phase_is_no_second_plan():
    stage = scenes.a_stage()
    waiting = stage.waiting()
    from agent.stages.shared.commit import save

    save(stage.world, waiting, "the model added nothing", now=stage.clock.now())
    seen = of(stage, waiting)
    assert (seen.plans, seen.answers) == (1, {})


def test_a_second_plan_is_counted_and_the_first_answer_is_timed():
    stage = scenes.a_stage()
    rejected = stage.said(stage.waiting(), Choice.REJECT, why="not now")
    approved = stage.said(stage.asked(rejected), Choice.APPROVE)
    seen = of(stage, approved)
    assert seen.plans == 2
    assert seen.answers == {"rejected": 1, "approved": 1}
    assert [t for t in seen.took if t.part == "decision"] == [
        Took(part="decision", class_="startup_probe_failed", seconds=20)
    ]


def test_an_escalated_incident_that_is_closed_ended_once():
    from agent.core.incident.phase import Phase

    stage = scenes.a_stage()
    escalated = stage.escalated(stage.diagnosed(stage.open()))
    assert of(stage, escalated).ends == {"escalated": 1}
    assert of(stage, stage.move(escalated, Phase.CLOSED, "closed: done")).ends == {"escalated": 1}
