"""Tools about what broke: a text classified, incidents listed and shown, and the plan that would mend one."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from agent.core.incident.incident import Incident
from agent.core.intake.classify_text import classify_text
from agent.core.plan.plan import Plan
from agent.entrypoints.mcp.result import Result, Untrusted, page_of, untrusted
from agent.entrypoints.operator_client.protocol import OperatorClient, now
from agent.errors import InputRejected
from agent.failures.match.matcher import Matcher
from agent.ports.store import Query
from agent.presentation.plan_title import plan_title
from agent.presentation.proof_text import proof_text
from agent.presentation.standing import standing
from agent.presentation.terminal_text import headline, lines

IncidentId = Annotated[str, Field(max_length=128, description="as list_incidents gives it")]
Offset = Annotated[int, Field(ge=0, description="next_offset of the page before")]

_LISTED = 1000


class Diagnosed(Result):
    """What broke, by the failure catalogue; ``certain`` means that it may be acted on without a model."""

    failure_class: str
    signature: str | None
    title: str | None
    confidence: float
    certain: bool
    benign: bool
    fields: dict[str, Any]
    fix_actions: list[str]
    evidence: Untrusted


class IncidentRow(Result):
    """One incident of a list."""

    id: str
    service: str
    phase: str
    failure_class: str
    headline: str
    opened_at: str
    plan: str | None


class IncidentList(Result):
    """A page of incidents, newest first."""

    incidents: list[IncidentRow]
    next_offset: int | None


class PlanShown(Result):
    """A plan that a person decides about; nothing here approves it."""

    plan: str
    digest: str
    title: str
    difference: list[str]
    proof: list[str]
    takes_away: str
    cost_before_usd_per_h: float | None
    cost_after_usd_per_h: float | None
    risk: str
    undo: str
    expires_at: str
    decided_by: str = "a person: in the console, in Slack, by a signed webhook, or with sre-agent approve"


class IncidentShown(Result):
    """One incident: where it stands, why, and the plan."""

    id: str
    service: str
    phase: str
    status: str
    failure_class: str
    root_cause: str | None
    certain: bool
    evidence: Untrusted
    plan: PlanShown | None
    timeline: list[str]


class IncidentTools:
    """The tools about failures.

    Args:
        client: Opens the operator's client; called per question.
        matcher: The compiled failure catalogue.
        titles: A line for people by signature.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self,
        client: Callable[[], OperatorClient],
        *,
        matcher: Callable[[], Matcher],
        titles: Callable[[], dict[str, str]],
        redact: Callable[[str], str],
    ) -> None:
        self._client, self._matcher, self._titles, self._redact = client, matcher, titles, redact

    def diagnose(
        self,
        log: Annotated[str, Field(max_length=1_000_000, description="one log line, or an instance's whole log")],
        platform: Annotated[str | None, Field(max_length=40, description="such as cloud_run or kubernetes")] = None,
    ) -> Diagnosed:
        """Say what broke from log text: class, decisive lines, numbers found, and what to do, best first."""
        if not log.strip():
            raise InputRejected("nothing was diagnosed", why="the log is empty", hint="give the lines that you have")
        found = classify_text(log, matcher=self._matcher(), whole_log="\n" in log.strip(), platform=platform)
        return Diagnosed(
            failure_class=str(found.class_),
            signature=found.signature,
            title=self._titles().get(found.signature or ""),
            confidence=round(found.confidence, 3),
            certain=found.certain,
            benign=found.benign,
            fields={key: self._redact(v) if isinstance(v, str) else v for key, v in found.fields.items()},
            fix_actions=list(found.fix_actions),
            evidence=untrusted([line.text for line in found.evidence], redact=self._redact),
        )

    def list_incidents(
        self,
        *,
        service: Annotated[str | None, Field(max_length=63)] = None,
        open_only: bool = False,
        offset: Offset = 0,
    ) -> IncidentList:
        """List incidents and requested changes, newest first."""
        found = self._client().incidents(Query(service=service, open_only=open_only, limit=_LISTED))
        rows, following = page_of([self._row(incident) for incident in found], offset=offset)
        return IncidentList(incidents=[IncidentRow(**row) for row in rows], next_offset=following)

    def show_incident(self, incident_id: IncidentId) -> IncidentShown:
        """Show one incident: where it stands, its root cause with evidence, its plan and its timeline."""
        client = self._client()
        incident = client.incident(incident_id)
        diagnosis = incident.diagnosis
        timeline = [f"{e.at.isoformat()} {e.phase}: {self._redact(e.what)}"[:300] for e in client.timeline(incident.id)]
        return IncidentShown(
            id=incident.id,
            service=incident.service,
            phase=incident.phase.value,
            status=self._redact(standing(incident, now()).says),
            failure_class=incident.cause,
            root_cause=self._redact(diagnosis.root_cause) if diagnosis else None,
            certain=diagnosis.certain if diagnosis else False,
            evidence=untrusted([entry.line for entry in incident.correlated], redact=self._redact),
            plan=shown_plan(incident.plan, redact=self._redact) if incident.plan else None,
            timeline=timeline[-40:],
        )

    def suggest_remediation(self, incident_id: IncidentId) -> PlanShown:
        """Return the plan of an incident with its proof, or say why there is none."""
        incident = self._client().incident(incident_id)
        if incident.plan is None:
            raise InputRejected(
                f"incident {incident_id!r} has no plan",
                why=f"it is {incident.phase.value}",
                hint="show it with show_incident; a plan follows a diagnosis within about a minute",
            )
        return shown_plan(incident.plan, redact=self._redact)

    def incident_report(self, incident_id: IncidentId, offset: Offset = 0) -> Untrusted:
        """Report an incident as text: status, diagnosis, signals, plan and measurements, page by page."""
        incident = self._client().incident(incident_id)
        return untrusted(list(lines(incident, now=now())), redact=self._redact, offset=offset)

    def _row(self, incident: Incident) -> dict[str, Any]:
        return {
            "id": incident.id,
            "service": incident.service,
            "phase": incident.phase.value,
            "failure_class": incident.cause,
            "headline": self._redact(headline(incident, now=now())),
            "opened_at": incident.opened_at.isoformat(),
            "plan": incident.plan.id if incident.plan else None,
        }


def shown_plan(plan: Plan, *, redact: Callable[[str], str]) -> PlanShown:
    """Return a plan as a tool tells it."""
    return PlanShown(
        plan=plan.id,
        digest=plan.digest,
        title=redact(plan_title(plan)),
        difference=[redact(f"{d.path}: {d.before} -> {d.after}") for d in plan.difference],
        proof=[redact(line) for line in proof_text(plan)],
        takes_away=plan.takes_away,
        cost_before_usd_per_h=plan.cost_before_usd_per_h,
        cost_after_usd_per_h=plan.cost_after_usd_per_h,
        risk=plan.risk.value,
        undo=plan.undo,
        expires_at=plan.expires_at.isoformat(),
    )
