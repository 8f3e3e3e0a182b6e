"""Every phase, voice and rollout has plain words; the sentences follow from effects and verification."""

import pytest

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
