"""From a log event to RESOLVED, with every webhook event held to the published schema."""

import pytest

from agent.adapters.notifier.webhook import WebhookNotifier
from agent.app.channels import open_notifiers
from agent.core.incident.phase import Phase
from agent.core.service.services import Service, Services
from agent.entrypoints.service import handlers
from agent.settings import read_settings
from tests.published_event import require_published

PROBE = "gemma4-26b-l4-startup-probe"
URL = "https://hooks.example.com/sre"


class Receiver:
    """Takes every event that is of its published form."""

    def __init__(self):
        self.events = []

    def send(self, _method, _url, *, headers, body):
        assert headers["webhook-id"].startswith("msg_")
        self.events.append(require_published(body))
        return 200


@pytest.fixture
def told(journey):
    """A recorded incident, told by webhook as the settings make it but for the client, which reaches nobody."""
    made = journey(PROBE)
    app = made.installation
    watched = Service(
        name="gemma4-26b-qat-l4", platform="host", model="m", accelerator="nvidia-l4", owner="slack:#llm",
        routing_key="team-llm",
    )  # fmt: skip
    settings = read_settings({"WEBHOOK_URLS": URL, "WEBHOOK_SECRETS": "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZg" * 2})
    (name, notifier), *_ = open_notifiers(settings, made.clock, app.store.plan, Services(services=(watched,))).items()
    assert isinstance(notifier, WebhookNotifier)
    made.receiver = notifier._client = Receiver()
    for owner, world in list(app.contexts.items()):
        app.contexts[owner] = type(world)(**(vars(world) | {"notifiers": {name: notifier}}))
    made.work = app.worker(handlers(app), threads=1).run_due
    return made


def test_every_event_of_a_recovery_is_of_its_published_form(told):
    incident = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.answer(incident.plan.id)
    told.until(lambda i: i.ended, limit_s=900)
    told.go(30)
    kinds = [event["type"] for event in told.receiver.events]
    assert kinds == ["incident.opened", "plan.proposed", "plan.decided", "plan.applied", "incident.resolved"]
    routed = {event["data"]["current"]["routing_key"] for event in told.receiver.events}
    assert (incident.service, routed) == ("gemma4-26b-qat-l4", {"team-llm"})
    proposed = told.receiver.events[1]["data"]
    assert proposed["memory_after"]["required_bytes"] is None or proposed["memory_after"]["required_bytes"] > 0
