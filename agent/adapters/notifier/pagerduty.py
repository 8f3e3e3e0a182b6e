"""PagerDuty's Events API v2: one alert for each incident, by its id; triggered, acknowledged and resolved."""

import json
from collections.abc import Callable
from typing import Any, Final

from agent.adapters.http.client import HttpClient, HttpResponse
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import EventKind, Phase
from agent.core.text.safe_text import plain
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from agent.presentation.notification import Notification, notification, test_notification
from agent.strict_json import read_object

PATH: Final = "/v2/enqueue"
RESOLVED: Final = "resolved"
ACKNOWLEDGED: Final = "acknowledged"
TEST_KEY: Final = "sre-agent-test"
_LATE: Final = "late"  # nothing could be sent at the moment at which a person should have been called
_ANSWERED: Final = frozenset({Phase.APPROVED, Phase.REJECTED})
_NOBODY: Final = frozenset({"agent", "policy"})
_OVER: Final = frozenset({Phase.RESOLVED, Phase.SELF_RECOVERED, Phase.CLOSED})
_ANSWER_BYTES: Final = 16_384
_SUMMARY_CHARS: Final = 1024  # https://developer.pagerduty.com/docs/send-alert-event (2026-11-22)


class PagerDutyNotifier:
    """Keeps one alert in step with an incident; its reference is ``MOMENT/STATE`` of what was sent, or ``resolved``.

    The dedup key is the incident's id, so an event that is sent twice is one event there. It pages at the first
    diagnosis, when a plan needs an answer, and when a person must take over. An answer of a person acknowledges it;
    what policy approves does not, so that the page goes on until somebody or something has resolved it. An incident
    that is over before PagerDuty could be reached pages nobody.

    Args:
        url: Of the Events API, without a path.
        routing_key: The integration key of the service in PagerDuty.
        client: Follows no redirects.
        redact: Takes secrets out of a text.
        console_url: Where the console stands.
        owner_of: Who is to care for a service, by its name.
    """

    def __init__(
        self,
        url: str,
        *,
        routing_key: str,
        client: HttpClient,
        redact: Callable[[str], str],
        console_url: str,
        owner_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._url, self._routing_key, self._client = f"{url}{PATH}", routing_key, client
        self._redact, self._console_url, self._owner_of = redact, console_url, owner_of

    def tell(self, incident: Incident, timeline: tuple[Event, ...], *, reference: str | None) -> str | None:
        """Send what PagerDuty does not know yet; see the port.

        Raises:
            DependencyFailed: An event was not taken; it is sent again, with the same key.
        """
        if reference is None and (incident.phase in _OVER or not _pages(incident)):
            return None
        if incident.phase in _OVER:
            if reference != RESOLVED:
                self._send({"event_action": "resolve", "dedup_key": incident.id})
            return RESOLVED
        moment, _, state = ("" if reference in {None, RESOLVED} else str(reference)).partition("/")
        wanted = _moment(incident) or moment or _LATE
        if wanted != moment:
            self._send(self._trigger(incident))
        if state != ACKNOWLEDGED and is_acknowledged(timeline):
            self._send({"event_action": "acknowledge", "dedup_key": incident.id})
            state = ACKNOWLEDGED
        return f"{wanted}/{state or 'triggered'}"

    def send_test(self) -> None:
        """Open an alert of severity info and resolve it at once; see the port."""
        said = test_notification(self._console_url)
        payload = {"summary": said.title, "source": "sre-agent", "severity": said.severity.value}
        self._send({"event_action": "trigger", "dedup_key": TEST_KEY, "client": "sre-agent", "payload": payload})
        self._send({"event_action": "resolve", "dedup_key": TEST_KEY})

    def _trigger(self, incident: Incident) -> dict[str, Any]:
        said = notification(
            incident, redact=self._redact, console_url=self._console_url, owner=self._owner_of(incident.service)
        )
        return {
            "event_action": "trigger",
            "dedup_key": incident.id,
            "client": "sre-agent",
            "client_url": said.url,
            "links": [{"href": said.url, "text": "Open the incident in the console"}],
            "payload": self._payload(incident, said),
        }

    def _payload(self, incident: Incident, said: Notification) -> dict[str, Any]:
        details = {line.label.lower().replace(" ", "_"): line.text for line in said.lines}
        return {
            "summary": said.title[:_SUMMARY_CHARS],
            "source": incident.service,
            "severity": said.severity.value,
            "timestamp": incident.opened_at.isoformat(),
            "component": incident.service,
            "group": incident.platform,
            "class": incident.cause,
            "custom_details": details | {"incident": incident.id, "phase": incident.phase.value},
        }

    def _send(self, event: dict[str, Any]) -> None:
        body = json.dumps({"routing_key": self._routing_key} | event, ensure_ascii=False).encode()
        try:
            answer = self._client.request("POST", self._url, headers={"content-type": "application/json"}, body=body)
        except PolicyRefused as error:
            raise DependencyFailed("PagerDuty was not notified", why=error.why, hint=error.hint) from error
        if not 200 <= answer.status < 300:
            raise EventRefused(answer)


class EventRefused(DependencyFailed):
    """PagerDuty answered, and did not take the event; too many requests say nothing about it."""

    def __init__(self, answer: HttpResponse) -> None:
        hints = {400: "check PAGERDUTY_ROUTING_KEY", 429: "it is sent again later"}
        super().__init__(
            "PagerDuty was not notified",
            why=f"it answered with {answer.status}{_said(answer)}",
            hint=hints.get(answer.status, "it is sent again"),
        )
        self.code = answer.status


def is_acknowledged(timeline: tuple[Event, ...]) -> bool:
    """Whether a person has taken note: they said so, or answered a plan; what policy approves is no word of people."""
    return any(
        event.kind is EventKind.ACKNOWLEDGED or (event.phase in _ANSWERED and event.by not in _NOBODY)
        for event in timeline
    )


def _pages(incident: Incident) -> bool:
    """Whether it ever wakes anybody: a trouble once it is diagnosed; a request only where undoing it failed."""
    if incident.request is not None:
        return incident.phase is Phase.ESCALATED
    return incident.phase is not Phase.OPEN


def _moment(incident: Incident) -> str:
    """Name the moment at which a person is called, or nothing where none is."""
    if incident.phase is Phase.ASKED and incident.plan is not None and incident.request is None:
        return f"asked:{incident.plan.id}"
    if incident.phase is Phase.ESCALATED:
        return "escalated"
    return "diagnosed" if incident.request is None and incident.phase is Phase.DIAGNOSED else ""


def _said(answer: HttpResponse) -> str:
    """Return what PagerDuty says of its refusal; anything else than its JSON says nothing."""
    try:
        body = read_object(answer.body[:_ANSWER_BYTES], what="answer", limit=_ANSWER_BYTES)
    except InputRejected:
        return ""
    errors = body.get("errors")
    words = [str(body.get("message") or ""), *(map(str, errors) if isinstance(errors, list) else ())]
    return f": {plain('; '.join(filter(None, words)), limit=300)}" if any(words) else ""
