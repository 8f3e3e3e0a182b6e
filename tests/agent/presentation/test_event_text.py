"""A step in a sentence: made from state in every phase, true when read late, and never the words of a stage."""

import itertools
import re

import pytest

from agent.core.change.verification import Verdict
from agent.core.decision.decision import Channel, Choice, PersonAct
from agent.core.decision.roll_back import RollBackDecision
from agent.core.incident.incident import TAKEN_BACK
from agent.core.incident.phase import ENDS, NEXT, Phase
from agent.presentation.event_text import event_text, steps
from agent.presentation.plan_end import outcome
from agent.presentation.standing import standing
from agent.stages.shared.remedies import tried_remedies

RAW = re.compile(r"[A-Z]+_[A-Z]+|\bintends\b|[a-z]+_[a-z_]+|\.\.|None|\{")


def told(stage, incident):
    """Every line of the timeline with its sentence."""
    store = stage.world.store
    events = store.timeline(incident.id)
    return [(e.phase, event_text(e, incident, store.plan(e.plan) if e.plan else None)) for e in events]


def lives(stage, scenes):
    applying = stage.applying(stage.said(stage.waiting("s-a"), Choice.APPROVE))
    back = stage.rolled_back(
        stage.verifying(stage.applying(stage.said(stage.waiting("s-b"), Choice.APPROVE)), good=False)
    )
    return {
        "open": stage.open("s-open"),
        "resolved": stage.resolved(stage.verifying(applying)),
        "rolled back": stage.escalated(back),
        "rejected": stage.said(stage.waiting("s-no"), Choice.REJECT, why="too dear"),
        "refused": stage.move(stage.said(stage.waiting("s-ref"), Choice.APPROVE), Phase.REFUSED, "differs"),
        "expired": stage.move(stage.waiting("s-exp"), Phase.EXPIRED, "unanswered"),
        "superseded": stage.move(stage.waiting("s-sup"), Phase.SUPERSEDED, "more"),
        "recovered": stage.move(stage.waiting("s-rec"), Phase.SELF_RECOVERED, "healthy"),
        "withdrawn": stage.move(stage.planned(stage.requested("s-back")), Phase.WITHDRAWN, "taken back"),
        "closed": stage.move(stage.move(stage.requested("s-req"), Phase.REFUSED, "no"), Phase.CLOSED, "closed"),
        "task": stage.said(stage.waiting("s-task", make=scenes.person_plan), Choice.APPROVE),
    }


def test_every_phase_of_every_life_has_a_sentence_of_its_own(stage, scenes):
    seen = set()
    for name, incident in lives(stage, scenes).items():
        for phase, said in told(stage, incident):
            seen.add(phase)
            assert said.endswith("."), (name, phase, said)
            assert not RAW.search(said.partition(" Reason: ")[0]), (name, phase, said)
    assert seen == set(Phase)


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_has_a_sentence_with_and_without_a_plan(stage, scenes, phase):
    """Also where the plan is gone from the store."""
    for make in (scenes.a_plan, scenes.person_plan):
        incident = stage.waiting(f"s-{make.__name__}-{phase}", make=make)
        event = stage.world.store.timeline(incident.id)[-1].with_(phase=phase)
        for plan in (incident.plan, None):
            said = event_text(event, incident, plan)
            assert said.endswith(".")
            if phase not in {*ENDS, Phase.OPEN, Phase.DIAGNOSED}:
                assert incident.plan.id in said


def test_an_end_says_what_the_page_says(stage):
    incident = stage.move(stage.waiting("s-rec"), Phase.SELF_RECOVERED, "healthy")
    assert told(stage, incident)[-1][1].startswith(standing(incident, stage.clock.now()).says)


def test_who_answered_and_why_is_told(stage):
    rejected = stage.said(stage.waiting("s-no"), Choice.REJECT, why="too dear")
    phase, said = told(stage, rejected)[-1]
    assert phase is Phase.REJECTED
    assert said.endswith(f"rejected plan {rejected.plan.id}; it was not applied. Reason: Too dear.")


def test_a_task_of_a_person_is_never_called_a_change_of_ours(stage, scenes):
    incident = stage.said(stage.waiting("s-task", make=scenes.person_plan), Choice.APPROVE)
    event = stage.world.store.timeline(incident.id)[-1]
    for phase in set(NEXT) - ENDS:
        said = event_text(event.with_(phase=phase), incident, incident.plan)
        assert not re.search(r"was ordered|rollout|put back|was not applied", said), (phase, said)


def test_a_verdict_is_not_claimed_before_it_stands(stage):
    verifying = stage.verifying(stage.applying(stage.said(stage.waiting("s-v"), Choice.APPROVE)))
    said = dict(told(stage, verifying))[Phase.VERIFYING]
    assert "is being measured" in said
    assert not any(str(verdict) in said for verdict in Verdict)


def test_an_old_task_of_a_person_is_told_as_one_when_its_plan_is_not_at_hand(stage, scenes):
    """The line itself keeps whose work it was; lines from before that was kept say it by the plan."""
    incident = stage.said(stage.waiting("s-task", make=scenes.person_plan), Choice.APPROVE)
    event = stage.world.store.timeline(incident.id)[-1]
    assert event.by_person is True
    assert "took plan" in event_text(event, incident, None)
    assert "took plan" in event_text(event.with_(by_person=None), incident, incident.plan)


def test_a_timeline_is_sentences_and_quotes_what_was_noted_then(stage):
    """One step for each line; a second line of the same step is told by its own note, never by the same sentence."""
    incident = stage.rolled_back(
        stage.verifying(stage.applying(stage.said(stage.waiting("s-b"), Choice.APPROVE)), good=False)
    )
    events = stage.world.store.timeline(incident.id)
    events = (*events, events[-1].with_(what="a further note"))
    shown = list(steps(events, incident))
    assert [(s.at, s.phase, s.by) for s in shown] == [(e.at, e.phase, e.by) for e in events]
    assert all(one.says != two.says for one, two in itertools.pairwise(shown))
    assert (shown[-1].says, shown[-1].note) == ("A further note.", "")
    assert not any("intends" in step.says for step in shown)
    assert any(step.note for step in shown)


def test_an_escalation_that_a_person_led_on_is_not_told_as_the_present_state(stage):
    """Read after another plan was asked for or the incident was closed, it says what was."""

    def escalated(service):
        return stage.escalated(stage.said(stage.waiting(service), Choice.REJECT, why="too dear"))

    stands = escalated("s-1")
    assert "does nothing more here" in dict(told(stage, stands))[Phase.ESCALATED]
    act = PersonAct(who="ben", verified=False, channel=Channel.CONSOLE, at=stage.clock.now())
    closed = stage.move(escalated("s-2"), Phase.CLOSED, "closed", ended_why="ben closed it: fixed", closed=act)
    for led_on in (stands.with_(replan=act), stage.planned(escalated("s-3")), closed):
        lines = [said for phase, said in told(stage, led_on) if phase is Phase.ESCALATED]
        assert lines == ["The agent did no more, and a person had to take over."]
    assert told(stage, closed)[-1][1] == (
        "A person closed the incident; the agent does nothing more here. Nothing has been changed."
        " Reason: Ben closed it: fixed."
    )


def test_a_roll_back_of_a_person_is_told_as_theirs(stage):
    """Whatever was measured: the page, the line of the plan and what was tried say that a person decided it."""
    act = PersonAct(who="ben", verified=False, channel=Channel.CONSOLE, at=stage.clock.now(), why="wrong answers")
    verifying = stage.verifying(stage.applying(stage.said(stage.waiting("s-b"), Choice.APPROVE)))
    decided = RollBackDecision(incident="i", plan="p", plan_digest="d", effect="e", by=act)
    rolling = stage.move(verifying, Phase.ROLLING_BACK, "rolling back: ben decided it", roll_back=decided)
    assert standing(rolling, stage.clock.now()).now == (
        "ben (not verified) decided to roll the change back; the state before it is being put back."
    )
    (remedy,) = tried_remedies(rolling, stage.clock.now())
    assert (remedy.ended, remedy.applied) == (TAKEN_BACK, True)
    assert outcome(rolling.plan, rolling.with_(remedies=(remedy,))) == "a person rolled it back; not put back"
    assert outcome(rolling.plan, rolling.with_(remedies=(remedy.with_(restored=True),))) == "a person rolled it back"


def test_a_task_that_is_done_is_told_by_whom(stage, scenes):
    act = PersonAct(who="ben", verified=False, channel=Channel.CONSOLE, at=stage.clock.now())
    task = stage.said(stage.waiting("s-task", make=scenes.person_plan), Choice.APPROVE)
    verifying = task.with_(phase=Phase.VERIFYING, task_done=act)
    assert standing(verifying, stage.clock.now()).says.startswith(
        "ben (not verified) says that the task is done; whether the service works is being checked."
    )
