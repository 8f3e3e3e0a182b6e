"""Requests are added up by service and hour, for every process over the file, and old hours are forgotten."""

from datetime import timedelta

import pytest

from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.service_records import KEPT, SqliteRequestCounts
from agent.core.service.request_counts import RequestCounts
from tests.contracts.values import at


@pytest.fixture
def open_counts(tmp_path):
    databases = []

    def open_() -> SqliteRequestCounts:
        databases.append(SqliteDatabase(tmp_path / "s.db", Kind.STATE))
        return SqliteRequestCounts(databases[-1])

    yield open_
    for database in databases:
        database.close()


def test_what_is_added_is_summed_from_an_hour_on(open_counts) -> None:
    counts, others = open_counts(), open_counts()
    assert counts.requests_since(at(0)) == {}
    counts.add_requests("gemma", RequestCounts(answered=5, failed=1), at=at(0))
    others.add_requests("gemma", RequestCounts(answered=2), at=at(3599))
    others.add_requests("gemma", RequestCounts(answered=10), at=at(3600))
    counts.add_requests("qwen", RequestCounts(failed=1), at=at(7200))
    assert others.requests_since(at(0)) == {
        "gemma": RequestCounts(answered=17, failed=1),
        "qwen": RequestCounts(failed=1),
    }
    assert counts.requests_since(at(3700)) == {"gemma": RequestCounts(answered=10), "qwen": RequestCounts(failed=1)}


def test_hours_that_no_page_shows_any_more_are_forgotten(open_counts) -> None:
    counts = open_counts()
    counts.add_requests("gemma", RequestCounts(answered=5), at=at(0))
    counts.add_requests("gemma", RequestCounts(answered=1), at=at(0) + KEPT + timedelta(hours=1))
    assert counts.requests_since(at(0)) == {"gemma": RequestCounts(answered=1)}
