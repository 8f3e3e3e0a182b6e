"""Every phase, voice and rollout has plain words; the sentences follow from effects and verification."""

import pytest

from agent.core.decision.decision import Channel, Choice, PersonAct
from agent.core.diagnosis.diagnosis import DiagnosisSource
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.plan import Rollout
from agent.presentation.phase_words import label_of
from agent.presentation.standing import ROLLOUTS, SOURCES, owner_text, responders_text, standing, way


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_a_label_a_sentence_and_a_place_on_the_way(stage, phase):
    incident = stage.open().with_(phase=phase)
    stands = standing(incident, stage.clock.now())
    assert stands.label
    assert stands.says.endswith(".")
    states = [step.state for step in way(incident)]
    assert states.count("now") == (0 if phase in ENDS else 1)


def test_every_voice_and_rollout_has_words():
    assert set(SOURCES) == set(DiagnosisSource)
    assert set(ROLLOUTS) == set(Rollout)


def test_phase_labels_are_told_apart():
    labels = [label_of(phase) for phase in Phase]
    assert len(set(labels)) == len(labels)


def test_a_task_is_named_and_counts_as_done_only_when_somebody_says_so(stage, scenes):
    """Nobody has done it while the agent only watches; the sentence says what there is to do."""
    taken = stage.said(stage.waiting(make=scenes.person_plan), Choice.APPROVE, who="ada")
    watched = taken.with_(phase=Phase.VERIFYING)
    (now,) = [step.label for step in way(watched) if step.state == "now"]
    assert now == "Done by a person"
    says = standing(watched, stage.clock.now()).says
    assert says.startswith(
        "ada (not verified) has this task: Give the service account read access to the bucket or folder"
    )
    act = PersonAct(who="ada", verified=False, channel=Channel.CONSOLE, at=stage.clock.now())
    (now,) = [step.label for step in way(watched.with_(task_done=act)) if step.state == "now"]
    assert now == "Verified"


def test_who_acknowledged_and_who_has_it(stage):
    incident = stage.open()
    assert responders_text(incident) == ""
    act = PersonAct(who="ana", verified=False, channel=Channel.CONSOLE, at=incident.opened_at)
    said = responders_text(incident.with_(acknowledged=act, assignee="Ben"))
    assert said == "acknowledged by ana (not verified) at 2026-06-08 14:31 UTC; assigned to Ben"
    assert responders_text(incident.with_(assignee="Ben")) == "assigned to Ben"


def test_where_nobody_has_reacted_it_says_when_people_are_reminded(stage):
    incident = stage.open()
    said = responders_text(incident.with_(renotify_at=incident.opened_at))
    assert said == "not acknowledged; reminder at 14:31 UTC"


def test_an_owner_is_named_before_the_channel_through_which_they_are_reached():
    assert [owner_text(owner) for owner in ("slack:#llm", "console")] == ["#llm (slack)", "console"]


def test_who_took_a_task_on_has_it_until_it_is_over(stage, scenes):
    incident = stage.waiting(make=scenes.person_plan)
    assert responders_text(incident) == "not acknowledged; reminder at 14:46 UTC"
    taken = stage.said(incident, Choice.APPROVE, who="ada")
    assert responders_text(taken) == "task taken on by ada (not verified)"
    plain = stage.said(stage.waiting("other"), Choice.APPROVE, who="ada")
    assert responders_text(plain) == ""
