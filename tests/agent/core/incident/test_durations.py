"""Durations: measured between signals and lines of the timeline; what has not happened took no time."""

from datetime import timedelta

import pytest

from agent.core.decision.decision import Choice
from agent.core.incident.durations import Durations, durations, is_recorded
from tests.agent.entrypoints.console import scenes


@pytest.fixture
def stage():
    return scenes.a_stage()


def of(stage, incident):
    return durations(incident, stage.world.store.timeline(incident.id))


def test_a_whole_life(stage):
    """First sign 14 s before the opening, diagnosed after 4 s, planned after 8 s, answered 20 s after the question."""
    asked = stage.waiting()
    assert of(stage, asked) == Durations(detect_s=14, diagnose_s=4, plan_s=8)
    decided = stage.said(asked, Choice.APPROVE)
    assert of(stage, decided).decide_s == 20
    resolved = stage.resolved(stage.verifying(stage.applying(decided)))
    took = (resolved.phase_at - resolved.opened_at).total_seconds()
    assert of(stage, resolved) == Durations(detect_s=14, diagnose_s=4, plan_s=8, decide_s=20, recover_s=took)


def test_a_replay_was_not_detected_by_us(stage):
    """Its signals are recorded: the time between them and the replay says nothing."""
    assert of(stage, stage.open(run="r1")).detect_s is None


def test_a_rehearsal_of_an_old_recording_was_not_detected_by_us_either(stage):
    """A rehearsal runs as live; what it replays is older than any queue keeps a message."""
    incident = stage.open()
    assert not is_recorded(incident)
    old = tuple(s.with_(at=s.at - timedelta(days=150)) for s in incident.correlated)
    assert is_recorded(incident.with_(correlated=old))
    assert of(stage, incident.with_(correlated=old)).detect_s is None


def test_clocks_that_contradict_each_other_measure_nothing(stage):
    incident = stage.open()
    ahead = tuple(s.with_(at=s.at + timedelta(minutes=10)) for s in incident.correlated)
    assert of(stage, incident.with_(correlated=ahead)).detect_s is None


def test_what_ended_without_health_did_not_recover(stage):
    measured = stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE)), good=False)
    assert of(stage, stage.escalated(stage.rolled_back(measured))).recover_s is None


def test_the_first_answer_counts(stage):
    rejected = stage.said(stage.waiting(), Choice.REJECT, why="no")
    again = stage.said(stage.asked(rejected), Choice.APPROVE)
    assert of(stage, again).decide_s == 20
