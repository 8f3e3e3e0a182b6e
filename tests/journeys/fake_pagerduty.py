"""A PagerDuty on loopback: its Events API v2 with the limits that it documents, and one alert for each dedup key."""

import http.server
import json
import threading
from datetime import datetime

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
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

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

    def _handler(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if outer.answers:
                    status, said = outer.answers.pop(0), {"status": "throttled", "message": "try later"}
                else:
                    status, said = outer.take(self.path, self.headers["content-type"], body)
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
