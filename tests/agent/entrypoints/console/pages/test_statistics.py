"""The page of statistics: figures of a window, an objective that is chosen, and few reads."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.service_records import SqliteRequestCounts
from agent.core.decision.decision import Choice
from agent.core.diagnosis.model_request import ModelRequest, Spend
from agent.core.service.request_counts import RequestCounts
from agent.core.service.services import Service, Services
from agent.entrypoints.console.pages import statistics as module
from tests.agent.entrypoints.console.conftest import SETTINGS

WATCHED = Service(
    name="gemma-a", platform="host", model="google/gemma", accelerator="cpu", owner="console", objective=99.0
)


def text(browser, query=""):
    return browser.get(f"/statistics{query}").get_data(as_text=True)


def test_an_empty_window_says_so(browser):
    assert "No incidents in this window" in text(browser)


def test_classes_times_verdicts_and_time_without_answers_stand_there(stage, browser):
    stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting("gemma-a"), Choice.APPROVE))))
    stage.waiting("gemma-b")
    stage.requested("gemma-c")
    stage.waiting("gemma-d", run="replay-1")
    page = text(browser)
    assert "2 incidents since" in page
    assert "1 recovered, 0 escalated, 1 open" in page
    assert re.search(r"startup probe failed before the server was ready</th><td data-label=\"Incidents\">2<", page)
    assert re.search(r"<dt>Recovered</dt><dd>1 change</dd>", page)
    assert "gemma-c" not in page
    assert "/services/gemma-a" in page


def test_the_objective_and_the_window_are_chosen(stage, browser):
    stage.waiting("gemma-a")
    stage.clock.step(86_400 * 10)
    assert "No incidents in this window" in text(browser, "?days=7")
    assert 'value="99.9" selected' in text(browser, "?objective=99.9&days=30")


def test_where_requests_are_counted_their_budget_stands_there_against_the_services_own_objective(
    stage, browser_of, tmp_path
):
    """Also of a service without an incident; where nothing is counted the page says so, and what would."""
    assert "No requests are counted." in text(browser_of(stage.world))
    counts = SqliteRequestCounts(SqliteDatabase(tmp_path / "s.db", Kind.STATE))
    now = stage.clock.now()
    counts.add_requests("gemma-quiet", RequestCounts(answered=9980, failed=20), at=now)
    counts.add_requests(WATCHED.name, RequestCounts(answered=980, failed=20), at=now)
    rules = replace(stage.world.rules, services=Services(services=(WATCHED,)))
    page = text(browser_of(replace(stage.world, request_counts=counts, rules=rules)))
    rows = re.findall(r'/services/([\w-]+)">.*?"Answered">([^<]+)<.*?>(\d+ % used)</span> at ([\d.]+) %', page)
    assert rows == [
        (WATCHED.name, "98.000 %, 20 failed", "200 % used", "99"),
        ("gemma-quiet", "99.800 %, 20 failed", "40 % used", "99.5"),
    ]
    assert "10,000</td>" in page


def test_requests_are_said_to_count_from_the_hour_that_they_are_kept_under(stage, browser_of, tmp_path):
    """A window begins within an hour, of which the whole is summed; it is also said what is no user's request."""
    counts = SqliteRequestCounts(SqliteDatabase(tmp_path / "s.db", Kind.STATE))
    since = stage.clock.now() - timedelta(days=7)
    assert since.minute == 31
    counts.add_requests("gemma", RequestCounts(answered=5), at=since.replace(minute=2))
    page = text(browser_of(replace(stage.world, request_counts=counts)), "?days=7")
    assert ">5</td>" in page
    assert re.search(r"itself counted since 2026-06-01 14:00", page)
    assert "those of the agent's verifications and load measurements among them" in page


@pytest.mark.parametrize("query", ["?days=8", "?objective=100", "?days="])
def test_what_is_none_of_the_list_is_refused(browser, query):
    assert browser.get(f"/statistics{query}").status_code == 400


def test_only_so_many_timelines_are_read_and_the_page_says_so(stage, browser, monkeypatch):
    monkeypatch.setattr(module, "LOOKED_THROUGH", 3)
    read, real = [], stage.world.store.timeline
    for n in range(5):
        stage.clock.step(60)
        stage.open(f"svc-{n}")
    monkeypatch.setattr(stage.world.store, "timeline", lambda i: read.append(i) or real(i))
    assert "were looked at; the figures begin" in text(browser)
    assert len(read) == 3


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        ({}, "no price is set"),
        ({"model_usd_in": 1.0, "model_usd_out": 4.0}, "1.50 USD at the prices that are set"),
        ({"model_usd_in": 0.001, "model_usd_out": 0.004}, "less than 0.01 USD"),
        ({"model_usd_in": 0.0, "model_usd_out": 0.0}, "0.00 USD"),
    ],
)
def test_what_the_model_cost_is_said_where_a_price_is_set(stage, browser_of, prices, says):
    now = stage.clock.now()
    spent = Spend(calls=3, tokens=750_000, tokens_out=250_000, seconds=9)
    asked = ModelRequest(about="x", next_at=now, give_up_at=now, plan_from=now, spent=spent)
    stage.open("gemma-a", model_request=asked)
    assert says in text(browser_of(stage.world, settings=SETTINGS.with_(**prices)))
