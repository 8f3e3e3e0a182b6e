"""PagerDuty over its real wire: one alert for an incident, whatever is sent twice, late or not at all."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.http.client import HttpClient
from agent.adapters.notifier.pagerduty import RESOLVED, EventRefused, PagerDutyNotifier
from agent.app.redaction import redact
from agent.core.diagnosis.diagnosis import Diagnosis, Evidence
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import EventKind, Phase
from agent.errors import DependencyFailed
from tests.agent.adapters.notifier.test_webhook import plan, request
from tests.journeys.fake_pagerduty import KEY, FakePagerDuty

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)


@pytest.fixture
def pager():
    made = FakePagerDuty()
    yield made
    made.close()


def notifier(pager, key=KEY):
    client = HttpClient(timeout_s=5)
    return PagerDutyNotifier(
        pager.url, routing_key=key, client=client, redact=redact, console_url="https://sre.example.com",
        owner_of={"gemma": "slack:#llm"}.get,
    )  # fmt: skip


def incident(phase, **changes):
    fields = {"id": "inc-a", "service": "gemma", "platform": "cloud_run", "phase": phase}
    times = {"opened_at": NOW, "phase_at": NOW, "quiet_since": NOW}
    return Incident(**(fields | times | changes))


def line(phase, by="agent"):
    return Event(at=NOW, phase=phase, what="x", by=by)


def told(pager, *steps, key=KEY):
    """Tell one phase after the other, as an incident goes on; each step is a phase and who is named in its line."""
    here, reference, timeline = notifier(pager, key), None, ()
    for phase, by in steps:
        timeline += (line(phase, by),)
        asked = {"plan": plan(1, "why")} if phase not in {Phase.OPEN, Phase.DIAGNOSED} else {}
        reference = here.tell(incident(phase, **asked), timeline, reference=reference)
    return reference


def life(*phases, by="Ada"):
    return [(phase, by if phase in {Phase.APPROVED, Phase.REJECTED} else "agent") for phase in phases]


P = Phase
HEALED = (P.OPEN, P.DIAGNOSED, P.PLANNED, P.ASKED, P.APPROVED, P.APPLYING, P.VERIFYING, P.RESOLVED)


def test_an_incident_is_one_alert_from_its_trigger_to_its_end(pager):
    assert told(pager, *life(*HEALED)) == RESOLVED
    assert pager.actions == ["trigger", "trigger", "acknowledge", "resolve"]
    assert pager.alerts == {"inc-a": "resolved"}
    assert pager.errors == []


def test_what_policy_approves_leaves_the_page_open_until_it_is_over(pager):
    told(pager, *life(*HEALED[:-1], by="policy"))
    assert pager.alerts == {"inc-a": "triggered"}


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        ((P.OPEN,), None),
        ((P.OPEN, P.DIAGNOSED, P.SELF_RECOVERED), "resolved"),
        ((P.OPEN, P.DIAGNOSED, P.ASKED, P.REJECTED), "acknowledged"),
        ((P.OPEN, P.DIAGNOSED, P.ASKED, P.EXPIRED, P.ESCALATED), "triggered"),
        ((P.APPLYING,), "triggered"),
        ((P.SELF_RECOVERED,), None),
    ],
)
def test_each_way_leaves_the_alert_as_the_incident_stands(pager, phases, state):
    """The last two: PagerDuty could not be reached until then; who would be paged about what is over?"""
    told(pager, *life(*phases))
    assert pager.alerts.get("inc-a") == state


def test_who_acknowledges_here_acknowledges_there(pager):
    here, seen = notifier(pager), line(P.DIAGNOSED, "Ada").with_(kind=EventKind.ACKNOWLEDGED)
    here.tell(incident(P.DIAGNOSED), (line(P.DIAGNOSED), seen), reference="diagnosed/triggered")
    assert pager.actions == ["acknowledge"]


def test_what_a_person_closes_is_resolved_there(pager):
    told(pager, *life(P.OPEN, P.DIAGNOSED, P.ESCALATED, P.CLOSED))
    assert pager.alerts == {"inc-a": "resolved"}


def test_a_request_pages_nobody_unless_undoing_it_failed(pager):
    here = notifier(pager)
    asked = {"id": "rq-0123456789ab", "request": request()}
    for phase in (P.OPEN, P.ASKED, P.APPROVED, P.CLOSED):
        assert here.tell(incident(phase, **asked), (), reference=None) is None
    assert pager.events == []
    here.tell(incident(P.ESCALATED, **asked), (), reference=None)
    assert pager.alerts == {"rq-0123456789ab": "triggered"}


def test_the_same_state_is_not_sent_again(pager):
    here, shown = notifier(pager), incident(P.DIAGNOSED)
    reference = here.tell(shown, (line(P.DIAGNOSED),), reference=None)
    for _ in range(3):
        reference = here.tell(shown, (line(P.DIAGNOSED),), reference=reference)
    assert pager.actions == ["trigger"]


def test_an_event_whose_answer_was_lost_is_the_same_alert_when_it_comes_again(pager):
    here, shown = notifier(pager), incident(P.DIAGNOSED)
    here.tell(shown, (), reference=None)
    here.tell(shown, (), reference=None)
    assert pager.actions == ["trigger", "trigger"]
    assert pager.alerts == {"inc-a": "triggered"}


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
def test_what_was_not_taken_is_a_failure_of_telling_and_is_sent_again(pager, status):
    here = notifier(pager)
    pager.answers = [status]
    with pytest.raises(EventRefused, match=str(status)) as caught:
        here.tell(incident(P.DIAGNOSED), (), reference=None)
    assert caught.value.code == status
    assert caught.value.redeliver
    assert "throttled" in str(caught.value) or "try later" in str(caught.value)
    here.tell(incident(P.DIAGNOSED), (), reference=None)
    assert pager.alerts == {"inc-a": "triggered"}


def test_a_wrong_key_is_told_with_what_to_do_and_without_the_key(pager):
    wrong = "f" * 32
    with pytest.raises(EventRefused) as caught:
        told(pager, *life(P.DIAGNOSED), key=wrong)
    assert "Invalid routing key" in str(caught.value)
    assert "PAGERDUTY_ROUTING_KEY" in caught.value.hint
    assert wrong not in str(caught.value)


def test_a_pager_that_cannot_be_reached_is_a_failure_of_telling(pager):
    here = notifier(pager)
    pager.close()
    with pytest.raises(DependencyFailed):
        here.tell(incident(P.DIAGNOSED), (), reference=None)


def test_the_page_says_what_broke_how_severe_whose_it_is_and_where_to_go(pager):
    of = plan(1, "more memory").with_(takes_away="loses images", expires_at=NOW + timedelta(minutes=30))
    broken = Diagnosis(
        class_="oom_load", signature=None, root_cause="The weights do not fit", confidence=1, certain=True,
        provisional=False, log_read=True, made_at=NOW, evidence=(Evidence(signal="s1", line="CUDA out of memory"),),
    )  # fmt: skip
    notifier(pager).tell(incident(P.ASKED, plan=of, diagnosis=broken), (line(P.ASKED),), reference=None)
    [event] = pager.events
    assert event["client_url"] == "https://sre.example.com/incidents/inc-a"
    assert event["payload"]["severity"] == "error"
    assert event["payload"]["class"] == "oom_load"
    details = event["payload"]["custom_details"]
    assert details["cause"] == "The weights do not fit."
    assert details["log"] == "CUDA out of memory"
    assert details["trade-off"] == "loses images"
    assert details["answer_until"] == "2026-11-22 03:30 UTC"
    assert details["owner"] == "＃llm"


def test_secrets_and_links_of_a_log_do_not_leave(pager):
    line_ = "key hf_" + "Ab3" * 11 + "x https://evil.example <!channel> \x1b[31m"
    broken = Diagnosis(
        class_="unknown", signature=None, root_cause=line_, confidence=1, certain=True, provisional=False,
        log_read=True, made_at=NOW, evidence=(Evidence(signal="s1", line=line_),),
    )  # fmt: skip
    notifier(pager).tell(incident(P.ESCALATED, diagnosis=broken, ended_why=line_), (), reference=None)
    sent = json.dumps(pager.events)
    for bad in ("hf_Ab3", "https://evil", "<!channel>", "\\u001b"):
        assert bad not in sent
    assert pager.events[0]["payload"]["severity"] == "critical"
