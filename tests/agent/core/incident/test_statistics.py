"""Figures over incidents: medians of what was reached, overlapping outages counted once, requests left out."""

from datetime import timedelta

import pytest

from agent.core.change.verification import Verdict
from agent.core.decision.decision import Choice
from agent.core.diagnosis.model_request import Spend
from agent.core.incident.durations import durations
from agent.core.incident.phase import Phase
from agent.core.incident.statistics import statistics_of, verdicts_of
from agent.core.service.serving import Serves
from agent.stages.shared.remedies import tried_remedies
from tests.agent.entrypoints.console import scenes


@pytest.fixture
def stage():
    return scenes.a_stage()


def figures(stage, *incidents, objective=0.99, days=1):
    now = scenes.START + timedelta(days=days)
    found = [(i, durations(i, stage.world.store.timeline(i.id))) for i in incidents]
    return statistics_of(found, since=scenes.START, now=now, objective=lambda _: objective)


def resolved(stage, name):
    return stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(name), Choice.APPROVE))))


def test_nothing_is_nothing(stage):
    empty = figures(stage)
    assert (empty.classes, empty.every.count, empty.every.recover_s, empty.outages) == ((), 0, None, ())
    assert empty.model == Spend()


def test_incidents_are_counted_by_class_and_by_what_came_of_them(stage):
    own = resolved(stage, "a")
    gave_up = stage.escalated(stage.diagnosed(stage.open("b")))
    oom = stage.waiting("c", diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    asked = stage.requested("d")
    found = figures(stage, own, gave_up, oom, asked)
    assert [(row.class_, row.count, row.still_open, row.recovered, row.escalated) for row in found.classes] == [
        ("startup_probe_failed", 2, 0, 1, 1),
        ("gpu_oom_weights", 1, 1, 0, 0),
    ]
    assert (found.every.count, found.every.recovered) == (3, 1)
    assert found.verdicts == {Verdict.RECOVERED: 1}


def test_times_are_medians_of_those_that_came_so_far(stage):
    own = resolved(stage, "a")
    (row,) = figures(stage, own, stage.open("b").with_(diagnosis=own.diagnosis)).classes
    assert row.recover_s == (own.phase_at - own.opened_at).total_seconds()
    assert row.diagnose_s == 4
    assert row.detect_s == 14


def down(stage, name, opened_h, for_h):
    """An incident of a service that answered nothing, over by itself after some hours."""
    incident = stage.diagnosed(stage.open(name))
    opened = scenes.START + timedelta(hours=opened_h)
    ended = opened + timedelta(hours=for_h)
    incident = incident.with_(
        opened_at=opened, phase_at=ended, phase=Phase.SELF_RECOVERED, serves=Serves(at=opened, ready=False)
    )
    return incident, durations(incident, ()).with_(recover_s=for_h * 3600.0)


def test_overlapping_outages_count_once_and_only_inside_the_window(stage):
    spans = [down(stage, f"gemma-{at}", at, hours) for at, hours in ((-2, 3), (0.5, 1), (5, 1))]
    found = [(incident.with_(service="gemma"), took) for incident, took in spans]
    now = scenes.START + timedelta(hours=100)
    (row,) = statistics_of(found, since=scenes.START, now=now, objective=lambda _: 0.99).outages
    assert (row.incidents, row.down_s, row.budget_s) == (3, pytest.approx(2.5 * 3600), pytest.approx(3600))
    assert row.used == pytest.approx(2.5)


def test_what_still_answers_uses_no_budget(stage):
    incident, took = down(stage, "gemma", 1, 1)
    older = incident.with_(serves=Serves(at=incident.opened_at, ready=False, older="gemma-00004"))
    (row,) = statistics_of(
        [(older, took)], since=scenes.START, now=scenes.START + timedelta(days=1), objective=lambda _: 0.999
    ).outages
    assert (row.incidents, row.down_s, row.used) == (1, 0, 0)


def test_a_verdict_counts_once_before_and_after_a_remedy_is_kept_of_it(stage):
    """A roll-back is judged at its beginning, and the remedy is kept of it some steps later."""
    judged = stage.verifying(stage.applying(stage.said(stage.waiting("a"), Choice.APPROVE)), good=False)
    judged = judged.with_(verification=judged.verification.with_(verdict=Verdict.NOT_RECOVERED, why="empty"))
    rolling = judged.with_(phase=Phase.ROLLING_BACK)
    back = rolling.with_(phase=Phase.ROLLED_BACK)
    kept = back.with_(remedies=tried_remedies(back, stage.clock.step(4)))
    again = kept.with_(phase=Phase.PLANNED)
    assert [verdicts_of(i) for i in (rolling, back, kept, again)] == [(Verdict.NOT_RECOVERED,)] * 4
