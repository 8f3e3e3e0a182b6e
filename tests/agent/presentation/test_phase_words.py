"""One table says every phase; a task and a request differ only where their rows say so."""

import pytest

from agent.core.incident.phase import ENDS, NEXT_OF_REQUEST, Phase
from agent.presentation.phase_words import OF_REQUEST, OF_TASK, WORDS, phase_words


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_a_label_a_headline_and_a_line_of_the_timeline(phase):
    row = WORDS[phase]
    assert row.label
    assert row.headline
    said = row.event.format(plan="Plan 7", name="plan 7", by="ada")
    assert said.endswith(".") or phase in ENDS or phase is Phase.DIAGNOSED
    assert "{" not in said


def test_a_request_is_named_as_one_and_keeps_the_words_that_it_shares(stage):
    incident = stage.open()
    assert phase_words(Phase.REFUSED, incident).headline == "fix refused at the final check"
    assert OF_REQUEST[Phase.REFUSED].headline == "refused"
    assert not OF_REQUEST[Phase.REFUSED].label
    assert WORDS[Phase.REFUSED].label == "Refused"


def test_rows_that_differ_are_of_phases_that_can_be_reached():
    assert set(OF_TASK) <= set(Phase)
    assert set(OF_REQUEST) - {Phase.SUPERSEDED} <= set(NEXT_OF_REQUEST)
