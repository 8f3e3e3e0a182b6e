"""On a terminal `up` tells what happens to an incident; warnings stay, the steps' own lines do not."""

import pytest
import structlog

from agent.core.incident.phase import Phase
from agent.entrypoints.cli.story import Story
from tests.agent.entrypoints.console import scenes


@pytest.fixture
def stage():
    return scenes.a_stage()


@pytest.fixture
def waiting(stage):
    diagnosis = scenes.memory_diagnosis(stage.clock.now())
    return stage.waiting("gemma4-31b", make=scenes.memory_plan, diagnosis=diagnosis)


def heard(story, event, level="info"):
    """What became of an event: None where nothing more is printed."""
    try:
        return story(None, level, event)
    except structlog.DropEvent:
        return None


def test_a_move_is_one_sentence_and_a_question_says_how_to_answer(stage, waiting, capsys):
    held = {waiting.id: waiting.with_(phase=Phase.PLANNED)}
    story = Story(held.__getitem__, stage.clock)
    moved = {"event": "incident.moved", "incident": waiting.id}
    assert heard(story, dict(moved)) is None
    held[waiting.id] = waiting
    assert heard(story, dict(moved)) is None
    held[waiting.id] = waiting.with_(phase=Phase.APPLYING)
    assert heard(story, dict(moved)) is None
    first, command, last = capsys.readouterr().err.splitlines()
    assert first.endswith("gemma4-31b: out of GPU memory while loading; one fix fits")
    assert command.split()[:3] == ["sre-agent", "approve", waiting.plan.id]
    assert last.endswith("gemma4-31b: out of GPU memory while loading; fix is being applied")


def test_what_goes_as_it_should_is_not_printed_and_what_does_not_is(stage, capsys):
    story = Story({}.__getitem__, stage.clock)
    assert heard(story, {"event": "stage.finished"}) is None
    warning = {"event": "delivery.failed", "why": "x"}
    assert heard(story, warning, level="warning") == warning
    assert capsys.readouterr().err == ""
