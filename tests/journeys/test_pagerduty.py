"""From a log event to RESOLVED with PagerDuty told over its own wire, and with a PagerDuty that is down."""

import pytest

from agent.app.channels import open_notifiers
from agent.core.incident.phase import Phase
from agent.core.service.services import Services
from agent.entrypoints.service import handlers
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from tests.journeys.fake_pagerduty import KEY, FakePagerDuty

PROBE = "gemma4-26b-l4-startup-probe"


@pytest.fixture
def pager():
    made = FakePagerDuty()
    yield made
    made.close()


def with_pager(told, pager):
    """The service as the settings make it, with PagerDuty on loopback."""
    app = told.installation
    settings = read_settings({"PAGERDUTY_ROUTING_KEY": KEY, "PAGERDUTY_URL": pager.url})
    made = open_notifiers(settings, told.clock, app.store.plan, Services(services=()))
    for owner, world in list(app.contexts.items()):
        app.contexts[owner] = type(world)(**(vars(world) | {"notifiers": made}))
    told.work = app.worker(handlers(app), threads=1).run_due
    return told


def test_a_person_is_paged_once_and_the_alert_follows_the_incident(journey, pager):
    told = with_pager(journey(PROBE), pager)
    incident = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.go(20)
    assert pager.alerts == {incident.id: "triggered"}
    told.answer(incident.plan.id)
    told.go(5)
    assert pager.alerts == {incident.id: "acknowledged"}
    ended = told.until(lambda i: i.ended, limit_s=900)
    told.go(30)
    assert ended.phase is Phase.RESOLVED
    assert pager.alerts == {incident.id: "resolved"}
    assert pager.actions[-1] == "resolve"
    assert pager.actions.count("resolve") == 1
    assert pager.errors == []


def test_a_pager_that_is_down_stops_nothing_and_hears_of_what_is_still_open(journey, pager):
    told = with_pager(journey(PROBE), pager)
    pager.answers = [503] * 4
    incident = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    assert pager.alerts == {}
    told.go(400)
    assert pager.alerts == {incident.id: "triggered"}
    assert told.installation.contexts[Owner.INCIDENT].cards.card(incident.id, "pagerduty")
