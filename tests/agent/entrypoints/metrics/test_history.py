"""Counters from the record: the same after a restart, in several processes, however often they are read."""

import random
from datetime import timedelta

import pytest

from agent.core.decision.decision import Choice
from agent.core.diagnosis.model_request import ModelPrice, ModelRequest, Spend
from agent.core.incident.phase import Phase
from agent.entrypoints.metrics import history as module
from agent.entrypoints.metrics import incident_pages
from agent.entrypoints.metrics.history import History
from agent.errors import DependencyFailed
from agent.ports.store import Change
from tests.agent.entrypoints.console import scenes

WATCHED = ("gemma-a", "gemma-b")
A = {"service": "gemma-a"}


@pytest.fixture
def stage():
    return scenes.a_stage()


@pytest.fixture
def history(stage):
    return History(stage.world.store, WATCHED, ModelPrice(usd_per_million_in=1, usd_per_million_out=4))


def value(history, name, **labels):
    return history.registry.get_sample_value(name, labels)


def everything(history):
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in history.registry.collect()
        for s in family.samples
    }


def recovered(stage, service="gemma-a"):
    return stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(service), Choice.APPROVE))))


def failed(stage, service="gemma-b"):
    return stage.rolled_back(
        stage.verifying(stage.applying(stage.said(stage.waiting(service), Choice.APPROVE)), good=False)
    )


def test_a_life_is_counted_once(stage, history):
    recovered(stage)
    stage.requested("gemma-b")
    stage.waiting("gemma-b", run="replay-1")
    for _ in range(3):
        history.read(stage.clock.now())
    assert value(history, "sre_first_diagnosis_seconds_count", **A) == 1
    assert value(history, "sre_first_diagnosis_seconds_sum", **A) == 4
    assert value(history, "sre_plan_seconds_count", **A) == 1
    assert value(history, "sre_decision_seconds_sum", **A) == 20
    assert value(history, "sre_recovery_seconds_bucket", le="900.0", **A) == 1
    assert value(history, "sre_recovery_seconds_bucket", le="600.0", **A) == 0
    assert value(history, "sre_incidents_opened_total", **A) == 1
    assert value(history, "sre_incidents_ended_total", outcome="resolved", **A) == 1
    assert value(history, "sre_incidents_classified_total", **A, **{"class": "startup_probe_failed"}) == 1
    assert value(history, "sre_verifications_total", verdict="RECOVERED", **A) == 1
    assert value(history, "sre_decisions_total", answer="approved", **A) == 1
    assert value(history, "sre_incidents_opened_total", service="gemma-b") == 0, "requests and replays are no incidents"


def test_what_happens_between_two_scrapes_is_added(stage, history):
    waiting = stage.waiting("gemma-b")
    history.read(stage.clock.now())
    assert value(history, "sre_decisions_total", answer="rejected", service="gemma-b") == 0
    stage.said(waiting, Choice.REJECT, why="not now")
    recovered(stage)
    history.read(stage.clock.now())
    assert value(history, "sre_decisions_total", answer="rejected", service="gemma-b") == 1
    assert value(history, "sre_incidents_ended_total", outcome="resolved", **A) == 1


def test_a_restart_comes_to_the_same_numbers(stage, history):
    """One process saw every step, the other only what is stored."""
    recovered(stage)
    history.read(stage.clock.now())
    undone = failed(stage)
    history.read(stage.clock.now())
    stage.escalated(undone)
    history.read(stage.clock.now())
    assert value(history, "sre_roll_backs_total", service="gemma-b") == 1
    assert value(history, "sre_verifications_total", verdict="NOT_RECOVERED", service="gemma-b") == 1
    assert value(history, "sre_incidents_ended_total", outcome="escalated", service="gemma-b") == 1
    other = History(stage.world.store, WATCHED, ModelPrice(usd_per_million_in=1, usd_per_million_out=4))
    other.read(stage.clock.now())
    assert everything(other) == everything(history)


def test_a_long_past_is_read_in_pieces_and_shown_when_it_is_whole(stage, history, monkeypatch):
    """Until then a counter would look as if it had begun anew; several incidents may share a moment."""
    monkeypatch.setattr(module, "PAGE", 3)
    monkeypatch.setattr(module, "PAGES", 1)
    for number in range(7):
        stage.open(f"svc-{number // 2}-{number}")
        stage.clock.step(3600 * (number % 2))
    seen = []
    for _ in range(9):
        history.read(stage.clock.now())
        seen.append(history.complete)
        if history.complete:
            break
    assert seen[0] is False
    assert value(history, "sre_incidents_opened_total", service="other") == 7


def test_a_scrape_reads_only_what_moved(stage, history, monkeypatch):
    for number in range(20):
        stage.open(f"svc-{number}")
    history.read(stage.clock.now())
    read, real = [], stage.world.store.timeline
    monkeypatch.setattr(stage.world.store, "timeline", lambda i: read.append(i) or real(i))
    history.read(stage.clock.now())
    assert read == []
    waiting = stage.diagnosed(stage.open("gemma-a"))
    history.read(stage.clock.now())
    assert read == [waiting.id]


def test_names_of_no_watched_service_make_no_series(stage, history):
    for number in range(50):
        stage.diagnosed(stage.open(f"from-a-log-{number}"))
    history.read(stage.clock.now())
    services = {dict(labels)["service"] for _, labels in everything(history)}
    assert services == {*WATCHED, "other"}
    assert value(history, "sre_incidents_opened_total", service="other") == 50


def test_tokens_cost_what_the_price_says_and_a_question_under_way_nothing(stage, history):
    incident = stage.diagnosed(stage.open("gemma-a"))
    now = stage.clock.now()
    wanted = ModelRequest(
        about="x", next_at=now, give_up_at=now + timedelta(minutes=9), plan_from=now,
        spent=Spend(calls=1, tokens=1500, tokens_out=500, seconds=2.5),
    ).reserved(now)  # fmt: skip
    incident = stage.world.store.commit(Change(incident=incident.with_(model_request=wanted)))
    history.read(now)
    assert value(history, "sre_model_calls_total", **A) == 1
    assert value(history, "sre_model_tokens_total", direction="input", **A) == 1000
    assert value(history, "sre_model_tokens_total", direction="output", **A) == 500
    assert value(history, "sre_model_wait_seconds_total", **A) == 2.5
    assert value(history, "sre_model_cost_usd_total", **A) == pytest.approx((1000 * 1 + 500 * 4) / 1e6)
    settled = wanted.settled(Spend(calls=2, tokens=3000, tokens_out=600, seconds=4))
    stage.world.store.commit(Change(incident=incident.with_(model_request=settled)))
    history.read(now)
    assert value(history, "sre_model_calls_total", **A) == 2
    assert value(history, "sre_model_tokens_total", direction="output", **A) == 600


def test_without_a_price_no_cost_is_told(stage):
    history = History(stage.world.store, WATCHED)
    history.read(stage.clock.now())
    assert value(history, "sre_model_cost_usd_total", **A) is None
    assert value(history, "sre_model_calls_total", **A) == 0


def test_a_store_that_fails_in_between_leaves_nothing_counted_twice(stage, history, monkeypatch):
    recovered(stage)
    recovered(stage, "gemma-b")
    real, calls = stage.world.store.timeline, []

    def failing(incident_id):
        calls.append(incident_id)
        if len(calls) == 2:
            raise DependencyFailed("the timeline was not read", why="the store is down", hint="try again")
        return real(incident_id)

    monkeypatch.setattr(stage.world.store, "timeline", failing)
    with pytest.raises(DependencyFailed):
        history.read(stage.clock.now())
    assert not history.complete
    history.read(stage.clock.now())
    assert value(history, "sre_incidents_opened_total", **A) == 1
    assert value(history, "sre_incidents_opened_total", service="gemma-b") == 1


def test_every_series_of_a_watched_service_begins_at_zero(stage, history):
    """Prometheus sees no increase in a series that begins at 1, and incidents are rare."""
    before = set(everything(history))
    recovered(stage)
    stage.escalated(failed(stage))
    history.read(stage.clock.now())
    assert set(everything(history)) == before


@pytest.mark.parametrize(
    ("traceparent", "exemplars"),
    [
        (f"00-{'a' * 32}-{'1' * 16}-01", {"a" * 32}),
        (f"00-{'a' * 32}-{'1' * 16}-03", {"a" * 32}),
        (f"00-{'a' * 32}-{'1' * 16}-00", set()),
        ("", set()),
    ],
    ids=["sent", "sent, of a random id", "not sampled", "not traced"],
)
def test_an_exemplar_names_a_trace_that_was_sent(stage, history, traceparent, exemplars):
    stage.world.store.commit(Change(incident=stage.waiting("gemma-a").with_(traceparent=traceparent)))
    history.read(stage.clock.now())
    named = [s.exemplar.labels["trace_id"] for f in history.registry.collect() for s in f.samples if s.exemplar]
    assert set(named) == exemplars


@pytest.fixture
def calls(stage, monkeypatch):
    """Ids of what is asked for singly."""
    asked = {"load": [], "timeline": []}
    for name, ids in asked.items():
        real = getattr(stage.world.store, name)
        monkeypatch.setattr(stage.world.store, name, lambda i, ids=ids, real=real: ids.append(i) or real(i))
    return asked


def opened_by_the_hour(stage, count):
    made = []
    for number in range(count):
        made.append(stage.diagnosed(stage.open(f"svc-{number}")))
        stage.clock.step(3600)
    return made


def test_more_that_ended_than_one_scrape_looks_at_are_counted_by_the_next_ones(stage, history, calls, monkeypatch):
    monkeypatch.setattr(module, "LEFT", 3)
    still_open = opened_by_the_hour(stage, 9)
    history.read(stage.clock.now())
    for incident in still_open:
        stage.escalated(incident)
    counted = []
    for _ in range(4):
        calls["load"].clear()
        history.read(stage.clock.now())
        assert len(calls["load"]) <= 3
        counted.append(value(history, "sre_incidents_ended_total", outcome="escalated", service="other"))
    assert counted[0] <= 4, "three and the newest, which is in the window"
    assert counted[-1] == 9


def test_open_incidents_beyond_the_list_are_looked_at_in_turn(stage, history, calls, monkeypatch):
    """A thousand that are open and not listed cost a few loads at a scrape; one that ends is found when its turn comes."""
    monkeypatch.setattr(incident_pages, "OPEN_PAGE", 2)
    monkeypatch.setattr(module, "LEFT", 2)
    still_open = opened_by_the_hour(stage, 30)
    history.read(stage.clock.now())
    stage.escalated(still_open[7])
    for _ in range(15):
        calls["load"].clear()
        history.read(stage.clock.now())
        assert len(calls["load"]) <= 2
    assert value(history, "sre_incidents_ended_total", outcome="escalated", service="other") == 1


def test_a_storm_of_moves_is_read_in_pieces(stage, history, calls, monkeypatch):
    monkeypatch.setattr(module, "MOVED", 4)
    still_open = opened_by_the_hour(stage, 12)
    history.read(stage.clock.now())
    for incident in still_open:
        stage.planned(incident)
    for _ in range(3):
        calls["timeline"].clear()
        history.read(stage.clock.now())
        assert len(calls["timeline"]) <= 5
    assert value(history, "sre_plans_total", service="other") == 12


def test_more_that_opened_and_ended_between_two_scrapes_than_one_reads_are_counted(stage, history, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 3)
    monkeypatch.setattr(module, "PAGES", 2)
    history.read(stage.clock.now())
    for number in range(20):
        stage.escalated(stage.diagnosed(stage.open(f"svc-{number}")))
        stage.clock.step(60)
    for _ in range(6):
        history.read(stage.clock.now())
    assert value(history, "sre_incidents_ended_total", outcome="escalated", service="other") == 20


def test_what_cannot_move_any_more_is_forgotten(stage, history):
    """The past is long; what is kept is what is open, what a person may take up again, and the newest minutes."""
    for number in range(20):
        recovered(stage, f"svc-{number}")
        stage.clock.step(3600)
    escalated = stage.escalated(failed(stage))
    stage.clock.step(3600)
    still_open = stage.open("gemma-a")
    history.read(stage.clock.now())
    assert set(history._counted) == {escalated.id, still_open.id}
    history.read(stage.clock.now())
    assert value(history, "sre_incidents_opened_total", service="other") == 20
    assert value(history, "sre_recovery_seconds_count", service="other") == 20


def test_one_that_is_taken_up_again_adds_what_is_new(stage, history):
    escalated = stage.escalated(failed(stage))
    for number in range(3):
        stage.clock.step(3600)
        recovered(stage, f"svc-{number}")
        history.read(stage.clock.now())
    again = stage.planned(escalated)
    history.read(stage.clock.now())
    assert value(history, "sre_plans_total", service="gemma-b") == 2
    asked = stage.move(again, Phase.ASKED, "asked")
    stage.escalated(stage.move(asked, Phase.EXPIRED, "nobody answered"))
    history.read(stage.clock.now())
    assert value(history, "sre_incidents_ended_total", outcome="escalated", service="gemma-b") == 2
    assert value(history, "sre_incidents_opened_total", service="gemma-b") == 1
    assert everything(history) == everything(fresh(stage))


def test_an_end_whose_timeline_was_not_read_is_counted_later(stage, history, monkeypatch):
    (incident,) = opened_by_the_hour(stage, 1)
    recovered(stage)
    history.read(stage.clock.now())
    stage.escalated(incident)
    real = stage.world.store.timeline

    def down(_incident_id):
        raise DependencyFailed("the timeline was not read", why="the store is down", hint="try again")

    monkeypatch.setattr(stage.world.store, "timeline", down)
    with pytest.raises(DependencyFailed):
        history.read(stage.clock.now())
    monkeypatch.setattr(stage.world.store, "timeline", real)
    history.read(stage.clock.now())
    assert value(history, "sre_incidents_ended_total", outcome="escalated", service="other") == 1


def fresh(stage):
    """What a process counts that starts now and is given the time."""
    other = History(stage.world.store, WATCHED, ModelPrice(usd_per_million_in=1, usd_per_million_out=4))
    for _ in range(60):
        other.read(stage.clock.now())
    return other


@pytest.mark.parametrize("seed", range(2))
def test_whatever_the_limits_all_comes_to_the_same_numbers(stage, history, monkeypatch, seed):
    """Pages, lists and loads of one or two, and lives that begin, go on and end between scrapes."""
    for where, name, most in (
        (module, "PAGE", 2), (module, "PAGES", 1), (module, "MOVED", 1), (module, "LEFT", 1),
        (incident_pages, "OPEN_PAGE", 2), (incident_pages, "OPEN_PAGES", 1),
    ):  # fmt: skip
        monkeypatch.setattr(where, name, most)
    chance, live = random.Random(seed), []
    for number in range(25):
        live.append(stage.diagnosed(stage.open(f"svc-{number}")))
        stage.clock.step(chance.choice((0, 1, 200, 4000)))
        if chance.random() < 0.5:
            stage.escalated(live.pop(chance.randrange(len(live))))
        if chance.random() < 0.3:
            recovered(stage, f"well-{number}")
        for _ in range(chance.randrange(4)):
            history.read(stage.clock.now())
    for _ in range(60):
        history.read(stage.clock.now())
    assert everything(history) == everything(fresh(stage))


def test_one_that_a_slow_clock_opened_is_counted(stage, history):
    """It opened and ended between two scrapes, and by its writer's clock before the newest that was counted."""
    stage.open("gemma-a")
    history.read(stage.clock.now())
    stage.clock.step(-300)
    stage.escalated(stage.diagnosed(stage.open("gemma-b")))
    history.read(stage.clock.step(300))
    assert value(history, "sre_incidents_opened_total", service="gemma-b") == 1


def test_several_of_one_moment_are_counted_once_where_a_page_ends_among_them(stage, history, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 3)
    monkeypatch.setattr(module, "PAGES", 1)
    began = stage.clock.now()
    for number in range(9):
        stage.clock.at = began + timedelta(hours=number // 2)
        recovered(stage, f"svc-{number}")
    stage.open("gemma-a")
    for _ in range(9):
        history.read(stage.clock.now())
    assert history.complete
    assert value(history, "sre_incidents_opened_total", service="other") == 9
