"""Every phase, voice and rollout has plain words."""

import pytest

from agent.core.diagnosis import Voice
from agent.core.phase import ENDS, Phase
from agent.core.plan import Rollout
from agent.entrypoints.web import wording


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_a_label_a_sentence_and_a_place_on_the_way(stage, phase):
    incident = stage.open().with_(phase=phase)
    words = wording.words_of(incident, stage.clock.now())
    assert words.label
    assert words.says.endswith(".")
    states = [step.state for step in wording.way(incident)]
    assert states.count("now") == (0 if phase in ENDS else 1)


def test_every_voice_and_rollout_has_words():
    assert set(wording.VOICES) == set(Voice)
    assert set(wording.ROLLOUTS) == set(Rollout)


def test_phase_labels_are_told_apart():
    labels = [wording.label_of(phase) for phase in Phase]
    assert len(set(labels)) == len(labels)
