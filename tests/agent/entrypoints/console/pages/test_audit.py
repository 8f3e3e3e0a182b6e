"""The page of the record: filtered, paged, and checked."""

import json
import re
from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel, Choice, Person
from agent.entrypoints.console.pages import audit as module
from agent.settings import Settings
from agent.stages.decide_sweep import SweepAnswer, answer_sweep, ask_sweep
from tests.agent.stages.test_decide_sweep import a_sweep


@pytest.fixture
def record(stage):
    for n in range(6):
        stage.world.control.append(
            at=stage.clock.step(1), kind="kill_switch.on" if n % 2 else "decision.approve", incident=f"inc-{n}",
            who="ada" if n < 3 else "ben", body=json.dumps({"plan": f"p-{n}", "channel": "slack", "why": "it burns"}),
        )  # fmt: skip
    return stage.world.control


def rows(browser, query=""):
    page = browser.get(f"/audit{query}").get_data(as_text=True)
    return [int(n) for n in re.findall(r'<tr id="row-(\d+)"', page)]


def test_an_empty_record_says_so(browser):
    assert "Nothing has been decided yet" in browser.get("/audit").get_data(as_text=True)


def test_the_newest_are_on_top_and_say_what_was_decided(browser, record):
    assert rows(browser) == [6, 5, 4, 3, 2, 1]
    page = browser.get("/audit").get_data(as_text=True)
    assert "p-4 through slack: it burns" in page
    assert "/incidents/inc-5" in page


@pytest.mark.parametrize("kind", ["kill_switch.on", "sweep.rejected", "decision.approve", "sweep.granted"])
@pytest.mark.parametrize(
    "body", ['{"request": 1}', '{"plan": "p", "by": 3}', '{"plan": "p-1", "channel": "slack"}', "[1]"]
)
def test_a_reason_in_the_form_of_a_decision_stays_a_reason_and_none_breaks_the_page(stage, browser, kind, body):
    """A row cannot be taken back: a page that one of them breaks stays broken."""
    stage.world.control.append(at=stage.clock.step(1), kind=kind, incident="", who="ada", body=body)
    page = browser.get("/audit").get_data(as_text=True)
    read_as_decision = kind == "decision.approve" and "slack" in body
    assert ("p-1 through slack" in page) == read_as_decision
    assert (body.replace('"', "&#34;") in page) != read_as_decision


def test_a_load_measurement_is_said_in_words_and_leads_to_its_page(stage, browser):
    sweep = a_sweep(asker="ada", verified=False, made_at=stage.world.clock.now())
    ask_sweep(stage.world, sweep)
    by = Person(who="ada", channel=Channel.CONSOLE, verified=False)
    answer_sweep(stage.world, SweepAnswer(sweep=sweep.request.id, answer=Choice.APPROVE, by=by))
    page = browser.get("/audit").get_data(as_text=True)
    bounds = f"load measurement of {sweep.request.service}, at most 20 minutes and 1 USD, through"
    assert page.count(bounds) == 2
    assert f"{bounds} console" in page
    assert f'href="/sweeps/{sweep.request.id}"' in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?kind=kill_switch", [6, 4, 2]),
        ("?who=BEN", [6, 5, 4]),
        ("?q=P-2+burns", [3]),
        ("?q=inc-4&who=ada", []),
        ("?before=3", [2, 1]),
    ],
)
def test_it_is_filtered(browser, record, query, found):
    assert rows(browser, query) == found


def test_a_long_record_is_read_page_by_page(browser, record, monkeypatch):
    monkeypatch.setattr(module, "SHOWN", 2)
    monkeypatch.setattr(module, "LOOKED_THROUGH", 3)
    seen, path = [], "?who=a"
    for _ in range(9):
        seen += rows(browser, path)
        page = browser.get(f"/audit{path}").get_data(as_text=True)
        older = re.search(r'href="/audit(\?before=[^"]+)">Older rows', page)
        if older is None:
            break
        path = older[1].replace("&amp;", "&")
    assert seen == [3, 2, 1]


def test_an_address_that_is_looked_for_stays_as_it_was_typed(stage, browser, monkeypatch):
    """In the field and in the link to the next page: disarmed there, it would find nothing any more."""
    monkeypatch.setattr(module, "SHOWN", 1)
    for n in range(2):
        stage.world.control.append(at=stage.clock.step(1), kind="x", incident="", who="alice@example.com", body=f"{n}")
    page = browser.get("/audit?who=alice%40example.com&q=%3Cb%3E").get_data(as_text=True)
    assert 'name="who" value="alice@example.com"' in page
    assert 'name="q" type="search" value="&lt;b&gt;"' in page
    page = browser.get("/audit?who=alice%40example.com").get_data(as_text=True)
    assert 'href="/audit?before=2&amp;who=alice%40example.com"' in page
    assert rows(browser, "?before=2&who=alice%40example.com") == [1]


def test_a_sound_record_is_found_sound_in_pieces(browser, record, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 2)
    page = browser.get("/audit?verify=1").get_data(as_text=True)
    assert "Sound: 6 rows, each chained to the one before it" in page
    assert record.audit()[-1].chain in page


def test_many_who_verify_cost_one_check_a_minute(browser, record, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    asked, real = [], record.audit
    monkeypatch.setattr(record, "audit", lambda limit=1000, **more: asked.append(limit) or real(limit, **more))
    for _ in range(3):
        assert "Sound: 6 rows" in browser.get("/audit?verify=1").get_data(as_text=True)
    assert asked.count(module.PIECE) == 1
    clock[0] += module.KEPT_S + 1
    browser.get("/audit?verify=1")
    assert asked.count(module.PIECE) == 2
    browser.get(f"/audit?verify=1&chain={'a' * 64}")  # another question
    assert asked.count(module.PIECE) == 3


def test_a_reader_without_a_name_has_nothing_verified(stage, browser_of, record):
    settings = Settings(platform="cloud_run:example", bind="0.0.0.0")
    page = browser_of(replace(stage.world, local=False), settings=settings).get("/audit?verify=1")
    assert "Sound: 6 rows" not in page.get_data(as_text=True)
    assert "sre-agent audit verify" in page.get_data(as_text=True)
    assert 'name="verify"' not in page.get_data(as_text=True)


def test_a_long_record_is_checked_as_far_as_a_page_may_and_says_so(browser, record, monkeypatch):
    monkeypatch.setattr(module, "CHECKED", 4)
    page = browser.get("/audit?verify=1").get_data(as_text=True)
    assert "the newest 4 rows" in page
    assert "sre-agent audit verify" in page


def test_a_row_that_was_changed_is_named(browser, record, monkeypatch):
    real = record.audit

    def changed(limit=1000, *, before=None):
        return tuple(row.with_(who="eve") if row.number == 4 else row for row in real(limit, before=before))

    monkeypatch.setattr(record, "audit", changed)
    page = browser.get("/audit?verify=1").get_data(as_text=True)
    assert "not sound" in page
    assert "Row 4 says something else than when it was written" in page


def test_rows_taken_from_the_end_are_noticed_by_a_chain_noted_before(browser, record):
    page = browser.get(f"/audit?verify=1&chain={'a' * 64}").get_data(as_text=True)
    assert "does not hold the hash that you gave" in page


@pytest.mark.parametrize("query", ["before=x", "before=0", "before=" + "9" * 40, "chain=xyz", "who=" + "a" * 400])
def test_a_strange_question_is_refused_in_words(browser, query):
    answer = browser.get(f"/audit?{query}")
    assert (answer.status_code, "The record was not read" in answer.get_data(as_text=True)) == (400, True)
