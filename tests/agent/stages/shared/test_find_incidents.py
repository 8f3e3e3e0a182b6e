"""A search reads a bounded number of incidents, and says from where it goes on."""

from datetime import timedelta

from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.core.incident.search import IncidentSearch
from agent.ports.store import Query
from agent.stages.shared import find_incidents as module
from agent.stages.shared.find_incidents import find_incidents, similar_earlier
from tests.agent.entrypoints.console import scenes
from tests.contracts import values as make


class Counting(SqliteStore):
    """Counts what a question may read."""

    asked = 0

    def incidents(self, query):
        self.asked += query.limit
        return super().incidents(query)


def filled(count):
    store = Counting(InMemoryDatabase(Kind.STATE))
    for n in range(count):
        store.commit(make.change(make.incident(f"inc-{n:03}", service=f"s{n % 7}", opened_at=make.at(n))))
    return store


def test_page_by_page_a_search_finds_everything_and_reads_a_bounded_part_each_time(monkeypatch):
    monkeypatch.setattr(module, "LOOKED_THROUGH", 10)
    store, search = filled(95), IncidentSearch(text="s3")
    found, pages, before = [], 0, None
    while True:
        page = find_incidents(store, search, Query(before=before), limit=5)
        found += [i.id for i in page.incidents]
        pages += 1
        if page.further_before is None:
            break
        before = page.further_before
    assert found == [f"inc-{n:03}" for n in range(94, -1, -1) if n % 7 == 3]
    assert store.asked == 10 * pages


def test_more_matches_than_are_shown_go_on_after_the_last_one_shown():
    page = find_incidents(filled(20), IncidentSearch(), Query(), limit=5)
    assert [i.id for i in page.incidents] == [f"inc-{n:03}" for n in (19, 18, 17, 16, 15)]
    assert page.further_before == make.at(15)


def test_the_store_itself_keeps_to_the_times(monkeypatch):
    monkeypatch.setattr(module, "LOOKED_THROUGH", 3)
    search = IncidentSearch(since=make.at(2), until=make.at(4))
    page = find_incidents(filled(50), search, Query(before=make.at(40)), limit=5)
    assert [i.id for i in page.incidents] == ["inc-003", "inc-002"]
    assert page.further_before is None


def test_similar_ones_are_found_without_reading_all(monkeypatch):
    stage = scenes.a_stage()
    earlier = [stage.waiting("gemma")]
    stage.clock.step(3600)
    for n in range(3):
        stage.waiting(f"other-{n}")
    stage.clock.step(3600)
    now = earlier[0].with_(id="inc-now", opened_at=stage.clock.now())
    monkeypatch.setattr(module, "SIMILAR_SHOWN", 2)
    assert [i.id for i in similar_earlier(stage.world.store, now)] == [
        earlier[0].id,
        stage.world.store.incidents(Query(before=now.opened_at))[0].id,
    ]
    assert similar_earlier(stage.world.store, stage.open("quiet")) == ()
    assert now.opened_at - earlier[0].opened_at > timedelta(hours=1)
