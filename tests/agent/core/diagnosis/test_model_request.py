"""The way of a model's word: when it is wanted, when it is asked again, what it may cost."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.diagnosis.model_request import (
    ASK_AGAIN_S,
    GIVE_UP_S,
    INCIDENT_CAP,
    ROUND_CAP,
    Explanation,
    Spend,
    When,
    round_cap,
    start_request,
)
from agent.core.incident.incident import Incident

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def rules(*, certain=True, class_="host_oom"):
    return Diagnosis(
        class_=class_, signature="s", root_cause="r", confidence=0.9, certain=certain, provisional=not certain,
        log_read=True, made_at=NOW,
    )  # fmt: skip


def wanted(held=None, *, certain=True, class_="host_oom", when=When.ALWAYS, wake=When.UNCERTAIN, plan_from=NOW):
    diagnosis = rules(certain=certain, class_=class_)
    return start_request(held, diagnosis, when=when, wake=wake, plan_from=plan_from, now=NOW)


def after(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("when", "certain", "asked"),
    [
        (When.ALWAYS, True, True),
        (When.ALWAYS, False, True),
        (When.UNCERTAIN, True, False),
        (When.UNCERTAIN, False, True),
        (When.NEVER, False, False),
    ],
)
def test_gemma_when_decides_for_whom_the_model_is_asked(when, certain, asked):
    """always, uncertain, never."""
    assert (wanted(certain=certain, when=when) is not None) is asked


def test_a_sleeping_gpu_is_not_woken_for_what_is_certain():
    """MODEL_WAKE_WHEN defaults to uncertain."""
    assert not wanted(certain=True).may_wake
    assert wanted(certain=False).may_wake
    assert wanted(certain=True, wake=When.ALWAYS).may_wake
    assert not wanted(certain=False, wake=When.NEVER).may_wake


def test_a_plan_never_waits_longer_than_its_settling():
    """Diagnosed and uncertain: the model first, until the plan may be made; certain: the plan first, always."""
    uncertain = wanted(certain=False, plan_from=after(20))
    assert uncertain.due_before_plan(NOW)
    assert not uncertain.due_before_plan(after(20))
    assert not wanted(certain=True, plan_from=NOW).due_before_plan(NOW)
    assert uncertain.due(after(20))


def test_the_question_is_asked_again_each_minute_and_dropped_after_a_quarter_of_an_hour():
    """Fifteen times at most, none after the end."""
    held, now, times = wanted(), NOW, 0
    while held.state is Explanation.WANTED:
        assert held.due(now)
        assert not held.due(now - timedelta(seconds=1))
        times += 1
        held = held.again(now, "asleep")
        now = held.next_at
    assert times == GIVE_UP_S / ASK_AGAIN_S
    assert "asleep" in held.why
    assert not held.due(after(10 * GIVE_UP_S))


def test_a_round_is_paid_for_before_it_is_asked():
    """A crash after the reservation costs a round, and nobody else asks within its lease."""
    held = wanted()
    reserved = held.reserved(NOW)
    assert reserved.spent == ROUND_CAP
    assert not reserved.due(after(ROUND_CAP.seconds))
    assert reserved.due(after(ROUND_CAP.seconds + 30))


def test_crashes_cannot_ask_beyond_the_caps():
    """Rounds that are never settled end after three, whatever time there is."""
    held, rounds = wanted(), 0
    while (reserved := held.reserved(NOW)) is not None:
        assert reserved.spent.within(INCIDENT_CAP)
        held, rounds = reserved, rounds + 1
    assert rounds == INCIDENT_CAP.tokens // ROUND_CAP.tokens
    assert wanted().reserved(after(GIVE_UP_S)) is None


def test_what_was_spent_survives_a_change_of_mind():
    """Another class of the rules is explained anew, within the same caps; the same one is not asked twice."""
    spent = wanted().with_(spent=Spend(calls=2, tokens=5000, seconds=9))
    other = wanted(spent, class_="engine_dead")
    assert other.state is Explanation.WANTED
    assert other.spent == spent.spent
    assert round_cap(other).tokens == ROUND_CAP.tokens
    give_up = spent.give_up("nobody")
    assert wanted(give_up).state is Explanation.DROPPED
    assert wanted(spent, class_="engine_dead", when=When.UNCERTAIN).state is Explanation.DROPPED


def test_older_incidents_still_load():
    """An incident that was stored before there were explanations has none."""
    incident = Incident(
        id="inc-1", service="s", platform="host", opened_at=NOW, phase_at=NOW, quiet_since=NOW, diagnosis=rules()
    )
    old = incident.model_dump(mode="json")
    del old["model_request"]
    assert Incident.model_validate(old) == incident
