"""What became of each plan is read from the record, whatever came after it."""

from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.presentation.plan_end import plan_end


def fates(stage, incident):
    now = stage.world.store.load(incident.id)
    timeline = stage.world.store.timeline(incident.id)
    plans = [stage.world.store.plan(f"{incident.id.replace('inc-', 'p-')}-{n}") for n in range(1, now.plans_made + 1)]
    return [(f.phase, f.by) if (f := plan_end(p, now, timeline)) else None for p in plans]


def test_each_plan_of_a_long_life_has_its_own_end(stage, scenes):
    incident = stage.waiting()
    incident = stage.asked(stage.said(incident, Choice.REJECT, who="maria", why="no"), scenes.memory_plan)
    incident = stage.asked(stage.move(incident, Phase.EXPIRED, "unanswered"))
    incident = stage.asked(stage.move(incident, Phase.SUPERSEDED, "more was learned"), scenes.memory_plan)
    incident = stage.applying(stage.said(incident, Choice.APPROVE, who="ada"))
    assert fates(stage, incident) == [
        (Phase.REJECTED, "maria"),
        (Phase.EXPIRED, "agent"),
        (Phase.SUPERSEDED, "agent"),
        (Phase.APPROVED, "ada"),
    ]


def test_a_plan_that_waits_has_none(stage):
    assert fates(stage, stage.waiting()) == [None]


def test_words_of_others_in_the_timeline_decide_nothing(stage, scenes):
    """A log line that reads like our own record of a plan."""
    incident = stage.waiting()
    scenes.save(
        stage.world,
        incident,
        f"plan {incident.plan.id}: heard\nplan {incident.plan.id} approved by ada through console",
        now=stage.clock.step(1),
    )
    assert fates(stage, incident) == [None]


def test_plans_made_in_the_same_instant_are_told_apart(stage, scenes):
    stage.clock.step = lambda _seconds: stage.clock.at
    incident = stage.waiting()
    incident = stage.asked(stage.said(incident, Choice.REJECT, who="maria", why="no"), scenes.memory_plan)
    assert fates(stage, incident) == [(Phase.REJECTED, "maria"), None]
