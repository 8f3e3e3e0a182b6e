"""Change requests of people with a token: recorded once and signed, or taken back by whoever asked."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from agent.core.change.request import MOST_ACTIONS
from agent.core.decision.decision import Channel, Person
from agent.core.incident.incident import Incident
from agent.core.plan.action import Action
from agent.core.service.serving import Target
from agent.core.value import Value
from agent.entrypoints.http.application import RawResponse, json_response
from agent.entrypoints.http.authenticator import Authenticator
from agent.entrypoints.http.decide_service import DecideService
from agent.entrypoints.http.operator_request import read_body, use_token_once
from agent.stages.request_change import ChangeAsked, request_change, withdraw_request

REQUEST_ID: Final = r"^rq-[0-9a-f]{12}$"


class ChangeBody(Value):
    """A change that somebody asks for.

    Attributes:
        target: The state of the service that they saw.
        supersede: Whether it takes the place of a plan that nobody approved yet.
        via: ``mcp`` where an AI client asks in the person's name.
        assertion: What Identity-Aware Proxy signed for the person, where the console hands their request on.
    """

    service: str = Field(min_length=1, max_length=63)
    actions: tuple[Action, ...] = Field(min_length=1, max_length=MOST_ACTIONS)
    why: str = Field(min_length=1, max_length=1000)
    target: Target | None = None
    supersede: bool = Field(default=False, strict=True)
    via: Literal["mcp"] | None = None
    assertion: str | None = Field(default=None, max_length=8192)


class WithdrawalBody(Value):
    """A request that its asker takes back."""

    request: str = Field(pattern=REQUEST_ID)
    why: str = Field(min_length=1, max_length=1000)
    assertion: str | None = Field(default=None, max_length=8192)


class RequestShown(Value):
    """A request as its asker is told of it; its plan is read with the incident, by the same ID."""

    request: str
    incident: Incident


def ask(headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator) -> RawResponse:
    """Record a request; the same again returns the one that is open.

    Raises:
        SreError: See :func:`agent.stages.request_change.request_change`.
    """
    sent = read_body(ChangeBody, headers, body)
    principal = authenticator.principal(headers, sent.assertion)
    asked = ChangeAsked(
        service=sent.service,
        actions=sent.actions,
        why=sent.why,
        by=Person(who=principal.who, channel=Channel.MCP if sent.via == "mcp" else principal.channel, verified=True),
        target=sent.target,
        supersede=sent.supersede,
    )

    def record() -> Incident:
        return request_change(service.context, asked)

    def work() -> Incident:
        # who was given a shared token may send it on; a request that is open is found again, whoever repeats it
        return use_token_once(service, principal, "request", record) if principal.shared else record()

    return json_response(shown(service.workers.within(service.answer_s, work)))


def withdraw(
    headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator
) -> RawResponse:
    """Take a request back.

    Raises:
        SreError: See :func:`agent.stages.request_change.withdraw_request`.
    """
    sent = read_body(WithdrawalBody, headers, body)
    principal = authenticator.principal(headers, sent.assertion)

    def work() -> Incident:
        person = Person(who=principal.who, channel=principal.channel, verified=True)
        return withdraw_request(service.context, sent.request, person, why=sent.why)

    return json_response(shown(service.workers.within(service.answer_s, work)))


def shown(incident: Incident) -> dict[str, Any]:
    """Return what the asker is told of a request."""
    return RequestShown(request=incident.id, incident=incident).model_dump(mode="json")
