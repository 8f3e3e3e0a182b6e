"""What an incident adds to the metrics, from its timeline."""

from agent.core.decision.decision import Choice
from agent.core.incident.observed import observed
from tests.agent.entrypoints.console import scenes


def of(stage, incident):
    return observed(stage.world.store.load(incident.id), stage.world.store.timeline(incident.id))


def test_an_open_incident_took_nothing_yet():
    stage = scenes.a_stage()
    assert of(stage, stage.open()).took == {}


def test_the_class_is_the_one_at_the_end():
    """A first diagnosis that named another class counts nowhere; an open incident has no class yet."""
    stage = scenes.a_stage()
    first = stage.diagnosed(stage.open())
    assert of(stage, first).class_ is None
    later = first.with_(diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    ended = stage.escalated(later)
    assert of(stage, ended).class_ == ended.diagnosis.class_ != first.diagnosis.class_


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
    assert seen.took["decision"] == 20


def test_an_escalated_incident_that_is_closed_ended_once():
    from agent.core.incident.phase import Phase

    stage = scenes.a_stage()
    escalated = stage.escalated(stage.diagnosed(stage.open()))
    assert of(stage, escalated).ends == {"escalated": 1}
    assert of(stage, stage.move(escalated, Phase.CLOSED, "closed: done")).ends == {"escalated": 1}
