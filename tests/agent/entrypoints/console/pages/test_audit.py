"""The page of the record: filtered, paged, and checked."""

import json
import re

import pytest

from agent.entrypoints.console.pages import audit as module


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
    assert "p-5 through slack: it burns" in page
    assert "/incidents/inc-5" in page


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


def test_a_sound_record_is_found_sound_in_pieces(browser, record, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 2)
    page = browser.get("/audit?verify=1").get_data(as_text=True)
    assert "Sound: 6 rows, each chained to the one before it" in page
    assert record.audit()[-1].chain in page


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
    assert "before the row whose chain you named" in browser.get(f"/audit?verify=1&chain={'a' * 64}").get_data(
        as_text=True
    )


@pytest.mark.parametrize("query", ["before=x", "before=0", "before=" + "9" * 40, "chain=xyz", "who=" + "a" * 400])
def test_a_strange_question_is_refused_in_words(browser, query):
    answer = browser.get(f"/audit?{query}")
    assert (answer.status_code, "The record was not read" in answer.get_data(as_text=True)) == (400, True)
