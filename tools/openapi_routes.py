"""What each HTTP entry takes and gives, by method and path; the routes themselves are read from the applications."""

from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from agent.core.change.config_drift import ServiceRecord
from agent.core.database_pair import DatabasePairing
from agent.core.decision.audit import AuditRow
from agent.core.incident.incident import Event, Incident
from agent.entrypoints.console.render import SCRIPT_PATH, STYLE_PATH
from agent.entrypoints.http.change_requests import ChangeBody, RequestShown, WithdrawalBody
from agent.entrypoints.http.incident_commands import CommandBody, IncidentShown
from agent.entrypoints.http.operators import (
    AuditQuery,
    ChangesQuery,
    DecisionBody,
    IncidentsQuery,
    KillSwitchBody,
    Recorded,
)
from agent.entrypoints.http.sweep_requests import SweepBody, SweepShown
from agent.entrypoints.http.webhook_request import WebhookAnswer, WebhookRecorded
from agent.ports.control import KillSwitch, Limits
from agent.presentation.report.postmortem import Postmortem

JSON: Final = "application/json"
TEXT: Final = "text/plain"
HTML: Final = "text/html"
OBJECT: Final[dict[str, Any]] = {"type": "object"}
STRING: Final[dict[str, Any]] = {"type": "string"}
REFUSED: Final = {
    400: "not understood",
    401: "not authenticated, or not signed",
    403: "refused",
    404: "nothing there",
    409: "replayed, or somebody was faster",
    503: "not recorded, or not read: send the same again",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry.

    Attributes:
        by: Ways of proof, each enough; empty where none is needed.
        takes: The form of the body, by media type.
        query: The form of the query.
        headers: Names of headers that are read, and whether they must be there.
        gives: The form of the answer 200, by media type; none is an empty body.
        many: Whether the answer is a list of it.
        nullable: Whether the answer may be null.
        also: Further answers without a body, by status.
        refuses: The statuses of refusals.
        refused_as: The media type of refusals; JSON is the form of every one of ours, others are text for people.
    """

    by: tuple[str, ...] = ()
    takes: dict[str, type[BaseModel] | dict[str, Any]] = field(default_factory=dict)
    query: type[BaseModel] | None = None
    headers: dict[str, bool] = field(default_factory=dict)
    gives: dict[str, type[BaseModel] | dict[str, Any]] = field(default_factory=dict)
    many: bool = False
    nullable: bool = False
    also: dict[int, str] = field(default_factory=dict)
    refuses: tuple[int, ...] = tuple(REFUSED)
    refused_as: str = JSON


def _act(takes: type[BaseModel], gives: type[BaseModel]) -> Entry:
    return Entry(by=("idToken",), takes={JSON: takes}, gives={JSON: gives})


def _look(
    gives: type[BaseModel], query: type[BaseModel] | None = None, *, many: bool = False, nullable: bool = False
) -> Entry:
    by = ("idToken", "iapAssertion")
    return Entry(by=by, query=query, gives={JSON: gives}, many=many, nullable=nullable)


SIGNED: Final = {
    ("POST", "/slack/actions"): Entry(
        by=("slackSignature",),
        takes={
            "application/x-www-form-urlencoded": OBJECT
            | {"required": ["payload"], "properties": {"payload": STRING | {"contentMediaType": JSON}}}
        },
        headers={"X-Slack-Request-Timestamp": True},
        refuses=(400, 401, 503),
    ),
    ("POST", "/pagerduty/events"): Entry(
        by=("pagerDutySignature",),
        takes={JSON: OBJECT},
        gives={JSON: OBJECT | {"properties": {"ignored": STRING | {"description": "Why it changed nothing here."}}}},
        refuses=(400, 401, 409, 503),
    ),
    ("POST", "/webhooks/{sender}"): Entry(
        by=("webhookSignature",),
        takes={JSON: WebhookAnswer},
        headers={"webhook-id": True, "webhook-timestamp": True},
        gives={JSON: WebhookRecorded},
        refuses=(400, 401, 403, 404, 409, 503),
    ),
}
OPERATORS: Final = {
    ("POST", "/decisions"): _act(DecisionBody, Recorded),
    ("POST", "/requests"): _act(ChangeBody, RequestShown),
    ("POST", "/requests/withdraw"): _act(WithdrawalBody, RequestShown),
    ("POST", "/commands"): _act(CommandBody, IncidentShown),
    ("POST", "/sweeps/decisions"): _act(SweepBody, SweepShown),
    ("POST", "/kill-switch"): _act(KillSwitchBody, KillSwitch),
    ("GET", "/sweeps"): _look(SweepShown, many=True),
    ("GET", "/kill-switch"): _look(KillSwitch),
    ("GET", "/databases"): _look(DatabasePairing),
    ("GET", "/audit"): _look(AuditRow, AuditQuery, many=True),
    ("GET", "/incidents"): _look(Incident, IncidentsQuery, many=True),
    ("GET", "/services/{name}"): _look(ServiceRecord, nullable=True),
    ("GET", "/services/{name}/changes"): _look(Limits, ChangesQuery),
    ("GET", "/incidents/{incident_id}"): _look(Incident),
    ("GET", "/incidents/{incident_id}/timeline"): _look(Event, many=True),
}
INTAKE: Final = {
    ("POST", "/ingest/{sender}"): Entry(
        by=("senderBearer", "senderBasic", "senderHeader"),
        takes={JSON: OBJECT, "application/cloudevents+json": OBJECT},
        gives={TEXT: STRING},
        refuses=(400, 401, 413, 503),
        refused_as=TEXT,
    ),
    ("OPTIONS", "/ingest/{sender}"): Entry(
        headers={"WebHook-Request-Origin": True, "WebHook-Request-Rate": False}, refuses=(400,), refused_as=TEXT
    ),
}
PROGRAMS: Final = {
    ("GET", "/healthz"): Entry(gives={TEXT: STRING}, refuses=(503,), refused_as=TEXT),
    ("GET", "/health"): Entry(gives={TEXT: STRING}, refuses=(503,), refused_as=TEXT),
    ("GET", "/readyz"): Entry(gives={TEXT: STRING}, refuses=(503,), refused_as=TEXT),
    ("GET", "/incidents/{incident_id}/report.{form}"): Entry(
        gives={JSON: Postmortem, "text/markdown": STRING, HTML: STRING}, refuses=(403, 404, 503), refused_as=HTML
    ),
    ("GET", "/incidents/{incident_id}/events"): Entry(
        gives={"text/event-stream": STRING},
        also={204: "It does not move any more.", 404: "There is none."},
        refuses=(403, 503),
        refused_as=HTML,
    ),
}
"""What programs read of the console; where IAP stands before it, it asks who they are."""
UP_ALONE: Final = {
    ("GET", "/metrics"): Entry(
        gives={TEXT: STRING, "application/openmetrics-text": STRING}, refuses=(403, 503), refused_as=HTML
    ),
}
"""What of the console `sre-agent up` answers, and no function."""
AI_CLIENTS: Final = {
    ("POST", "/mcp"): Entry(
        takes={JSON: OBJECT | {"description": "JSON-RPC 2.0, as the Model Context Protocol has it; see mcp.md."}},
        headers={"Accept": True},
        gives={JSON: OBJECT, "text/event-stream": STRING},
        also={202: "A notification was taken."},
        refuses=(),
    )
}
PAGES: Final = frozenset(
    {
        ("GET", path)
        for path in (
            "/",
            "/incidents",
            "/incidents/{incident_id}",
            "/plans/{plan_id}",
            "/plans/{plan_id}/decision",
            "/plans/{plan_id}/answer",
            "/services",
            "/services/{name}",
            "/policy",
            "/statistics",
            "/queue",
            "/kill-switch",
            "/changes",
            "/audit",
            "/sweeps",
            "/sweeps/{sweep_id}",
            "/favicon.ico",
            STYLE_PATH,
            SCRIPT_PATH,
        )
    }
    | {
        ("POST", path)
        for path in (
            "/plans/{plan_id}/decision",
            "/services/{name}/requests",
            "/requests/{request_id}/withdrawal",
            "/incidents/{incident_id}/commands",
            "/queue/redelivery",
            "/kill-switch",
            "/sweeps/{sweep_id}/decision",
        )
    }
)
"""Pages and forms of the console, for people with a browser; a form counts only with the page's own mark in it."""
