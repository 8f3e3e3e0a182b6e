"""Standard Webhooks to whoever listens: an event for each step of an incident, signed, in order, sent until taken."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from agent.adapters.http.client import HttpClient
from agent.core.change.request import ChangeRequest
from agent.core.decision.decision import Choice
from agent.core.decision.signed_request import standard_headers
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.text.safe_text import plain
from agent.core.value import digest
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.clock import Clock
from agent.presentation.event_text import event_text
from agent.presentation.event_types import type_of
from agent.presentation.impact_text import impact_text
from agent.presentation.incident_title import incident_title
from agent.presentation.notification import TEST_TITLE, incident_url, urgency
from agent.presentation.webhook_event import (
    TEST,
    Current,
    CurrentApprovals,
    DecisionSaid,
    EventData,
    RequestSaid,
    TestMessage,
    WebhookEvent,
    data_form,
    memory_figures,
)

ANSWER_OF: Final = {Phase.APPROVED: Choice.APPROVE, Phase.REJECTED: Choice.REJECT}
GONE: Final = "gone"


class WebhookNotifier:
    """Sends events to one address; its reference is the number of timeline lines that were sent.

    An event may be sent long after its moment: what it says is made from its phase and from the plan of its own
    moment, and what stands by now is marked as ``current``.

    Args:
        url: Where to.
        secrets: One, or two while they are rotated; every event is signed with each.
        client: Reaches public addresses only.
        clock: The time of an attempt.
        redact: Takes secrets out of a text.
        plan_of: Finds a plan as it was made, by its id.
        console_url: Where the console stands.
        owner_of: Whom services.toml names for a service.
        routing_key_of: Its ``routing_key`` there; nothing where it has none.
    """

    def __init__(
        self,
        url: str,
        *,
        secrets: Sequence[bytes],
        client: HttpClient,
        clock: Clock,
        redact: Callable[[str], str],
        plan_of: Callable[[str], Plan | None],
        console_url: str,
        owner_of: Callable[[str], str | None] = lambda _: "",
        routing_key_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._console_url, self._owner_of, self._routing_key_of = console_url, owner_of, routing_key_of
        self._url, self._secrets, self._client = url, tuple(secrets), client
        self._clock, self._redact, self._plan_of = clock, redact, plan_of

    def tell(self, incident: Incident, timeline: tuple[Event, ...], *, reference: str | None) -> str | None:
        """Send what was not sent yet, oldest first; see the port.

        Raises:
            DependencyFailed: An event was not taken; it is sent again, with the same id, before any later one.
        """
        if reference == GONE:
            return reference
        sent = int(reference) if reference and reference.isdigit() else 0
        for number, (event, before) in enumerate(zip(timeline, (None, *timeline), strict=False)):
            if number < sent:
                continue
            kind = type_of(incident, event, before)
            if kind is not None and not self._send(incident, event, number, kind):
                return GONE
        return str(len(timeline))

    def send_test(self) -> None:
        """Send an event of the type ``notification.test``; see the port."""
        now = self._clock.now()
        data = TestMessage(what=f"{TEST_TITLE}. Nothing is wrong, and nothing needs to be done.")
        event = WebhookEvent[TestMessage](type=TEST, timestamp=now, data=data)
        self._post(f"msg_{digest([now.isoformat(), self._url])[:32]}", event)

    def _send(self, incident: Incident, event: Event, number: int, kind: str) -> bool:
        """Send one event; False where the receiver said that it wants none any more (410)."""
        id_ = f"msg_{digest([incident.id, number, kind, self._url])[:32]}"
        return self._post(id_, self._event(incident, event, kind))

    def _post(self, id_: str, event: WebhookEvent[Any]) -> bool:
        said = event.model_dump(mode="json", exclude_unset=True, serialize_as_any=True)
        body = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
        headers = standard_headers(id_, body, secrets=self._secrets, at=self._clock.now())
        try:
            status = self._client.send("POST", self._url, headers=headers, body=body)
        except PolicyRefused as error:
            raise DependencyFailed("the webhook was not sent", why=error.why, hint=error.hint) from error
        if status == 410:
            return False
        if not 200 <= status < 300:
            raise DeliveryRefused(status)
        return True

    def _event(self, incident: Incident, event: Event, kind: str) -> WebhookEvent[EventData]:
        plan = self._plan_then(event)
        data: dict[str, Any] = {
            "incident": incident.id,
            "service": incident.service,
            "run": incident.run,
            "phase": event.phase,
            "what": self._safe(event_text(event, incident, plan)),
            "by": self._safe(event.by),
            "cause": event.cause or None,
            "plan": event.plan,
            "plan_digest": event.plan_digest,
            "current": self._current(incident),
        }
        if kind.startswith("plan.") and plan is not None:
            data |= self._plan(plan)
        if kind == "plan.decided":
            data["decision"] = self._decision(incident, event)
        if kind.startswith("request.") and incident.request is not None:
            data["request"] = self._request(incident.request)
        return WebhookEvent[EventData](type=kind, timestamp=event.at, data=data_form(kind)(**data))

    def _plan_then(self, event: Event) -> Plan | None:
        """Return the event's own plan; never another one."""
        plan = self._plan_of(event.plan) if event.plan is not None else None
        return plan if plan is not None and plan.digest == event.plan_digest else None

    def _plan(self, plan: Plan) -> dict[str, Any]:
        rows = [d.model_dump() for d in plan.difference[:20]]
        return {
            "why": self._safe(plan.why),
            "difference": [{k: self._safe(v) if v else v for k, v in row.items()} for row in rows],
            "takes_away": self._safe(plan.takes_away),
            "memory_before": memory_figures(plan.fit_before.report),
            "memory_after": memory_figures(plan.fit_after.report),
            "fits": plan.fit_after.fits,
            "proof": plan.proof,
            "cost_before_usd_per_h": plan.cost_before_usd_per_h,
            "cost_after_usd_per_h": plan.cost_after_usd_per_h,
            "risk": plan.risk,
            "undo": self._safe(plan.undo),
            "expires_at": plan.expires_at,
        }

    def _decision(self, incident: Incident, event: Event) -> DecisionSaid:
        said: dict[str, Any] = {"answer": ANSWER_OF[event.phase], "who": self._safe(event.by)}
        decision = incident.decision
        if decision is not None and decision.plan == event.plan:
            said["channel"] = decision.channel
        return DecisionSaid(**said)

    def _request(self, request: ChangeRequest) -> RequestSaid:
        return RequestSaid(
            asker=self._safe(request.asker),
            verified=request.verified,
            channel=request.channel,
            why=self._safe(request.why),
            kinds=tuple(action.kind for action in request.actions),
            supersedes=request.superseded,
            waits_for=request.waits_for,
        )

    def _current(self, incident: Incident) -> Current:
        """Return how the incident stands while this is sent, and what a person reads first."""
        plan, diagnosis = incident.plan, incident.diagnosis
        line = diagnosis.decisive.line if diagnosis is not None and diagnosis.decisive is not None else None
        return Current(
            phase=incident.phase,
            cause=incident.cause,
            root_cause=self._safe(diagnosis.root_cause) if diagnosis is not None else None,
            plan=plan.id if plan is not None else None,
            plan_digest=plan.digest if plan is not None else None,
            approvals=self._approvals(incident),
            title=self._safe(incident_title(incident, incident.phase_at)),
            severity=urgency(incident),
            impact=self._safe(impact_text(incident)),
            evidence=self._safe(line) if line else None,
            owner=self._owner_of(incident.service) or "",
            routing_key=self._routing_key_of(incident.service) or None,
            url=incident_url(incident, self._console_url),
        )

    def _approvals(self, incident: Incident) -> CurrentApprovals | None:
        """Return how far a plan that is asked about has come; None of every other."""
        approvals = incident.approvals
        if approvals is None or incident.phase is not Phase.ASKED:
            return None
        given = tuple(self._safe(approval.name) for approval in approvals.given)
        frozen_by = tuple(span.name for span in approvals.freezes)
        return CurrentApprovals(needed=approvals.needed, given=given, frozen_by=frozen_by)

    def _safe(self, text: str) -> str:
        return plain(self._redact(text), limit=1000)


class DeliveryRefused(DependencyFailed):
    """The receiver answered, and not with a yes; too many requests say nothing about the message."""

    def __init__(self, status: int) -> None:
        super().__init__("the webhook was not taken", why=f"it was answered with {status}", hint="it is sent again")
        self.code = status
