"""Every phase, voice and rollout has plain words; the sentences follow from effects and verification."""

import pytest

from agent.core.decision.decision import Channel, Choice
from agent.core.decision.person_act import PersonAct
from agent.core.diagnosis.diagnosis import DiagnosisSource
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.plan import Rollout
from agent.presentation.phase_words import label_of
from agent.presentation.standing import ROLLOUTS, SOURCES, standing, way


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
