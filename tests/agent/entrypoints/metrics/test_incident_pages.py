"""Pages of incidents: nothing is passed over, and what is open is listed up to a limit."""

import pytest

from agent.entrypoints.metrics import incident_pages
from agent.entrypoints.metrics.incident_pages import next_before, open_incidents
from agent.ports.store import Query
from tests.agent.entrypoints.console import scenes


@pytest.fixture
def stage(monkeypatch):
    monkeypatch.setattr(incident_pages, "OPEN_PAGE", 3)
    return scenes.a_stage()


@pytest.mark.parametrize("step_s", [60, 0], ids=["one a minute", "all of a moment"])
@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_each_open_incident_is_listed_once_newest_first(stage, count, step_s):
    """More of one moment than a page holds are passed over; of times in microseconds that is no storm, but a fault."""
    opened = []
    for number in range(min(count, 3) if step_s == 0 else count):
        opened.append(stage.open(f"svc-{number}").id)
        stage.clock.step(step_s)
    stage.escalated(stage.diagnosed(stage.open("ended")))
    found = open_incidents(stage.world.store)
    assert sorted(i.id for i in found.incidents) == sorted(opened)
    assert [i.opened_at for i in found.incidents] == sorted((i.opened_at for i in found.incidents), reverse=True)
    assert not found.truncated


def test_incidents_that_share_a_moment_at_the_edge_of_a_page_are_listed(stage):
    for number in range(9):
        stage.open(f"svc-{number}")
        stage.clock.step(60 * (number % 2))
    assert len(open_incidents(stage.world.store).incidents) == 9


def test_a_list_that_is_too_long_says_that_the_oldest_are_missing(stage, monkeypatch):
    monkeypatch.setattr(incident_pages, "OPEN_PAGES", 2)
    for number in range(9):
        stage.open(f"svc-{number}")
        stage.clock.step(60)
    found = open_incidents(stage.world.store)
    assert found.truncated
    assert {"svc-8", "svc-7", "svc-6"} <= {i.service for i in found.incidents}
    assert "svc-0" not in {i.service for i in found.incidents}


def test_pages_always_come_to_an_end(stage):
    for number in range(4):
        stage.open(f"svc-{number}")
    before = None
    for _ in range(3):
        page = stage.world.store.incidents(Query(before=before, limit=3))
        if len(page) < 3:
            return
        before = next_before(page, before)
    pytest.fail("the same page again and again")
