"""A PagerDuty on loopback: its Events API v2 with the limits that it documents, and one alert for each dedup key."""

import json
from datetime import datetime

from tests.loopback import Loopback

KEY = "0123456789abcdef0123456789abcdef"
SEVERITIES = {"critical", "error", "warning", "info"}
TOP = {"routing_key", "event_action", "dedup_key", "payload", "images", "links", "client", "client_url"}
PAYLOAD = {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}


def problems(event):
    """What https://developer.pagerduty.com/docs/send-alert-event (2026-11-22) would find wrong with an event."""
    found = [] if set(event) <= TOP else [f"unknown fields {sorted(set(event) - TOP)}"]
    found += [] if event.get("routing_key") == KEY else ["Invalid routing key"]
    found += [] if event.get("event_action") in {"trigger", "acknowledge", "resolve"} else ["event_action"]
    found += [] if 0 < len(event.get("dedup_key", "")) <= 255 else ["dedup_key"]
    if event.get("event_action") != "trigger":
        return found
    payload = event.get("payload", {})
    found += [] if set(payload) <= PAYLOAD else [f"unknown fields {sorted(set(payload) - PAYLOAD)}"]
    found += [] if 0 < len(payload.get("summary", "")) <= 1024 else ["summary"]
    found += [] if payload.get("source") else ["source"]
    found += [] if payload.get("severity") in SEVERITIES else ["severity"]
    found += [] if datetime.fromisoformat(payload.get("timestamp", "2026-01-01")) else ["timestamp"]
    found += [] if all(set(link) == {"href", "text"} for link in event.get("links", [])) else ["links"]
    return found


class FakePagerDuty:
    """Takes events; ``answers`` are given first, as status or as status with headers."""

    def __init__(self):
        self.events, self.alerts, self.errors, self.answers = [], {}, [], []
        self.server = Loopback(self._reply, methods=["POST"])
        self.url, self.close = self.server.url, self.server.close

    @property
    def actions(self):
        return [event["event_action"] for event in self.events]

    def take(self, path, content_type, body):
        event = json.loads(body)
        found = (
            [] if path == "/v2/enqueue" and content_type == "application/json" and len(body) <= 512_000 else ["form"]
        )
        found += problems(event)
        if found:
            self.errors += found
            said = {"status": "invalid event", "message": "Event object is invalid", "errors": found}
            return 400, said
        self.events.append(event)
        states = {"trigger": "triggered", "acknowledge": "acknowledged", "resolve": "resolved"}
        key, state = event["dedup_key"], states[event["event_action"]]
        before = self.alerts.get(key)
        opens = state == "triggered" and before in {None, "resolved"}
        moves = state != "triggered" and before not in {None, "resolved"}
        if opens or moves:
            self.alerts[key] = state
        return 202, {"status": "success", "message": "Event processed", "dedup_key": key}

    def _reply(self, request):
        if self.answers:
            return self.answers.pop(0), {"status": "throttled", "message": "try later"}
        return self.take(request.path, request.headers["content-type"], request.body)
