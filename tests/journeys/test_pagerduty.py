"""From a log event to RESOLVED with PagerDuty told over its own wire, and with a PagerDuty that is down."""

import json

import pytest

from agent.app.channels import open_notifiers
from agent.core.decision.policy import Approver
from agent.core.incident.phase import EventKind, Phase
from agent.core.service.services import Services
from agent.entrypoints.http.application import make_http_app
from agent.entrypoints.http.decide import decisions
from agent.entrypoints.http.decide_service import DecideService
from agent.entrypoints.service import handlers
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from tests.agent.entrypoints.http.test_pagerduty_request import SECRET, event, signature
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


PAGER = Approver(name="On call", webhook="pagerduty", services=("gemma4-*",))


def posted(door, body, secret=SECRET):
    """Send an event as PagerDuty does, through the web application."""
    headers = {"X-PagerDuty-Signature": signature(body, secret), "X-Webhook-Id": "1"}
    return door.test_client().post("/pagerduty/events", data=body, headers=headers)


def test_an_acknowledgement_there_shows_here_once(journey):
    """Signed and fresh; the same event again, another's signature, or an unknown incident changes nothing."""
    told = journey(PROBE)
    incident = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    world = told.installation.contexts[Owner.DECIDE]
    rules = type(world.rules)(**(vars(world.rules) | {"policy": world.rules.policy.with_(approvers=(PAGER,))}))
    world = type(world)(**(vars(world) | {"rules": rules}))
    door = make_http_app(decisions(DecideService(context=world, clock=told.clock, pagerduty_secrets=(SECRET,))))
    body = json.dumps(event(key=incident.id, at=told.clock.now())).encode()
    assert posted(door, body, b"another-secret-0123").status_code == 401
    assert told.installation.store.load(incident.id).acknowledged is None
    assert [posted(door, body).status_code for _ in range(2)] == [200, 200]
    seen = told.installation.store.load(incident.id)
    assert (seen.acknowledged.name, seen.acknowledged.why) == ("On call", "acknowledged there by Tenex Engineer")
    lines = [e for e in told.installation.store.timeline(incident.id) if e.kind is EventKind.ACKNOWLEDGED]
    assert len(lines) == 1
    unknown = json.dumps(event(key="inc-000000000000", at=told.clock.now(), id="another")).encode()
    answer = posted(door, unknown)
    assert (answer.status_code, "ignored" in answer.json) == (200, True)


def test_pagerduty_without_a_place_in_the_policy_acknowledges_nothing(journey):
    told = journey(PROBE)
    incident = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    world = told.installation.contexts[Owner.DECIDE]
    door = make_http_app(decisions(DecideService(context=world, clock=told.clock, pagerduty_secrets=(SECRET,))))
    answer = posted(door, json.dumps(event(key=incident.id, at=told.clock.now())).encode())
    assert (answer.status_code, "names no approver" in answer.json["ignored"]) == (200, True)
    assert told.installation.store.load(incident.id).acknowledged is None
