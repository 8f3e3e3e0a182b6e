"""Tools about what broke: a text classified, incidents listed and shown, and the plan that would mend one."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from agent.entrypoints.mcp.tools.result import PAGE_BYTES, Result, Untrusted, one_line, page_of, untrusted
from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.core.incident.incident import Incident
    from agent.core.plan.plan import Plan
    from agent.entrypoints.operator_client.protocol import OperatorClient
    from agent.failures.match.matcher import Matcher

IncidentId = Annotated[str, Field(max_length=128, description="as list_incidents gives it")]
Offset = Annotated[int, Field(ge=0, description="next_offset of the page before")]

_ROWS = 100  # more fit no page: each takes 220 bytes or more
_PART = PAGE_BYTES // 3  # of a result that holds several texts
_QUERIED = 5_000  # lines of a query that are classified
_STEPS = 40  # of a timeline


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
    note: str = ""


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
    usd_per_million_output_tokens_before: float | None
    usd_per_million_output_tokens_after: float | None
    risk: str
    undo: str
    expires_at: str
    decided_by: str = "a person: in the console, in Slack, by a signed webhook, or with sre-agent approve"


class IncidentShown(Result):
    """One incident: where it stands, why, and the plan; ``timeline`` holds its newest steps."""

    id: str
    service: str
    phase: str
    status: str
    failure_class: str
    root_cause: Untrusted
    certain: bool
    evidence: Untrusted
    plan: PlanShown | None
    timeline: Untrusted


class IncidentTools:
    """The tools about failures.

    Args:
        client: Opens the operator's client; called per question.
        matcher: The compiled failure catalogue.
        titles: A line for people by signature.
        entries: Reads log entries by a filter of Cloud Logging and hours, with the credentials of whoever runs this.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self,
        client: "Callable[[], OperatorClient]",
        *,
        matcher: "Callable[[], Matcher]",
        titles: Callable[[], dict[str, str]],
        entries: Callable[[str, float], Iterable[dict[str, Any]]],
        redact: Callable[[str], str],
    ) -> None:
        self._client, self._matcher, self._titles = client, matcher, titles
        self._entries, self._redact = entries, redact

    def diagnose(
        self,
        *,
        log: Annotated[str, Field(max_length=1_000_000, description="one log line, or an instance's whole log")] = "",
        query: Annotated[str, Field(max_length=2_000, description="a Cloud Logging filter, in place of log")] = "",
        hours: Annotated[float, Field(gt=0, le=168, description="how far back the query looks")] = 2.0,
        platform: Annotated[str | None, Field(max_length=40, description="such as cloud_run or kubernetes")] = None,
    ) -> Diagnosed:
        """Say what broke from log text or a Cloud Logging query: class, decisive lines, numbers, and what to do."""
        from agent.core.intake.classify_text import classify_text

        if bool(log.strip()) == bool(query.strip()):
            why = "the log is empty, and no query was given" if not query.strip() else "a log and a query were given"
            raise InputRejected("nothing was diagnosed", why=why, hint="give the lines that you have, or a query")
        text = log if log.strip() else self._queried(query, hours)
        found = classify_text(text, matcher=self._matcher(), whole_log="\n" in text.strip(), platform=platform)
        return Diagnosed(
            failure_class=str(found.class_),
            signature=found.signature,
            title=self._titles().get(found.signature or ""),
            confidence=round(found.confidence, 3),
            certain=found.certain,
            benign=found.benign,
            fields={k: one_line(v, redact=self._redact) if isinstance(v, str) else v for k, v in found.fields.items()},
            fix_actions=list(found.fix_actions),
            evidence=untrusted([line.text for line in found.evidence], redact=self._redact),
        )

    def _queried(self, query: str, hours: float) -> str:
        from agent.failures.text.entry_text import entry_lines

        lines = (line for entry in self._entries(query, hours) for line in entry_lines(entry))
        text = "\n".join(islice(lines, _QUERIED))
        if not text.strip():
            raise InputRejected(
                "nothing was diagnosed",
                why=f"the query found no text in the last {hours:g} h",
                hint="widen the filter, or give more hours",
            )
        return text

    def list_incidents(
        self,
        *,
        service: Annotated[str | None, Field(max_length=63)] = None,
        open_only: bool = False,
        offset: Offset = 0,
    ) -> IncidentList:
        """List incidents and requested changes, newest first."""
        from agent.ports.store import MOST_LISTED, Query

        limit = min(offset + _ROWS + 1, MOST_LISTED)  # the one more says that there is a next page
        found = self._client().incidents(Query(service=service, open_only=open_only, limit=limit))
        rows, following = page_of([self._row(incident) for incident in found], offset=offset)
        note = f"only the newest {MOST_LISTED} are listed" if len(found) == MOST_LISTED else ""
        return IncidentList(incidents=rows, next_offset=following, note=note)

    def show_incident(self, incident_id: IncidentId, evidence_offset: Offset = 0) -> IncidentShown:
        """Show one incident: where it stands, its root cause with evidence, its plan and its timeline."""
        from agent.entrypoints.operator_client.protocol import now
        from agent.presentation.standing import standing

        client = self._client()
        incident = client.incident(incident_id)
        diagnosis = incident.diagnosis
        steps = [f"{e.at.isoformat()} {e.phase}: {e.what}".replace("\n", " ") for e in client.timeline(incident.id)]
        cause = diagnosis.root_cause.splitlines() if diagnosis else []
        evidence = [entry.line for entry in incident.correlated]
        return IncidentShown(
            id=incident.id,
            service=incident.service,
            phase=incident.phase.value,
            status=one_line(standing(incident, now()).says, redact=self._redact, most=1_000),
            failure_class=incident.cause,
            root_cause=untrusted(cause, redact=self._redact, most_bytes=_PART // 3),
            certain=diagnosis.certain if diagnosis else False,
            evidence=untrusted(evidence, redact=self._redact, offset=evidence_offset, most_bytes=_PART),
            plan=shown_plan(incident.plan, redact=self._redact) if incident.plan else None,
            timeline=untrusted(steps[-_STEPS:], redact=self._redact, most_bytes=_PART),
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
        from agent.entrypoints.operator_client.protocol import now
        from agent.presentation.terminal_text import lines

        incident = self._client().incident(incident_id)
        return untrusted(list(lines(incident, now=now())), redact=self._redact, offset=offset)

    def _row(self, incident: "Incident") -> IncidentRow:
        from agent.entrypoints.operator_client.protocol import now
        from agent.presentation.terminal_text import headline

        return IncidentRow(
            id=incident.id,
            service=incident.service,
            phase=incident.phase.value,
            failure_class=incident.cause,
            headline=one_line(headline(incident, now=now()), redact=self._redact),
            opened_at=incident.opened_at.isoformat(),
            plan=incident.plan.id if incident.plan else None,
        )


def shown_plan(plan: "Plan", *, redact: Callable[[str], str]) -> PlanShown:
    """Return a plan as a tool shows it."""
    from agent.presentation.plan_cost import token_prices
    from agent.presentation.plan_title import plan_title
    from agent.presentation.proof_text import proof_text

    per_token = token_prices(plan)
    return PlanShown(
        plan=plan.id,
        digest=plan.digest,
        title=one_line(plan_title(plan), redact=redact),
        difference=[one_line(f"{d.path}: {d.before} -> {d.after}", redact=redact) for d in plan.difference],
        proof=[one_line(line, redact=redact, most=500) for line in proof_text(plan)],
        takes_away=one_line(plan.takes_away, redact=redact),
        cost_before_usd_per_h=plan.cost_before_usd_per_h,
        cost_after_usd_per_h=plan.cost_after_usd_per_h,
        usd_per_million_output_tokens_before=per_token[0],
        usd_per_million_output_tokens_after=per_token[1],
        risk=plan.risk.value,
        undo=one_line(plan.undo, redact=redact),
        expires_at=plan.expires_at.isoformat(),
    )
