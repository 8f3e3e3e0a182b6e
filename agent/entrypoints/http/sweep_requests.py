"""Load measurements that wait for an answer: people with a token answer one, once."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agent.core.decision.decision import Choice, Person
from agent.core.value import Moment, Value
from agent.entrypoints.http.application import RawResponse, json_response
from agent.entrypoints.http.authenticator import Authenticator
from agent.entrypoints.http.decide_service import DecideService, until
from agent.entrypoints.http.operator_request import read_body, use_token_once
from agent.presentation.sweep.plan_text import plan_lines
from agent.stages.decide_sweep import AskedSweep, SweepAnswer, answer_sweep, asked_sweeps
from agent.stages.tell_sweep import tell_sweep

SWEEP_ID = r"^sweep-[0-9a-f]{6,64}$"


class SweepBody(Value):
    """An answer to a load measurement."""

    sweep: str = Field(pattern=SWEEP_ID)
    answer: Choice
    why: str = Field(default="", max_length=1000)


class SweepShown(Value):
    """A load measurement that was asked for.

    Attributes:
        plan: What would be sent and what it costs, line by line.
        approved_by: Null until as many people approved it as must; ``expires_at`` says until when it may start then.
        approvals: Who approved it so far, where several people must.
    """

    sweep: str
    service: str | None
    endpoint: str
    asker: str
    asked_at: Moment
    plan: tuple[str, ...]
    approved_by: str | None
    approvals: tuple[str, ...]
    approvals_needed: int
    expires_at: Moment | None
    rejected_by: str | None
    why: str


def answer(
    headers: Mapping[str, str], body: bytes, service: DecideService, authenticator: Authenticator
) -> RawResponse:
    """Record an answer.

    Raises:
        SreError: See :func:`agent.stages.decide_sweep.answer_sweep`.
    """
    sent = read_body(SweepBody, headers, body)
    principal = authenticator.operator(headers)
    word = SweepAnswer(
        sweep=sent.sweep,
        answer=sent.answer,
        by=Person(who=principal.who, channel=principal.channel, verified=True),
        why=sent.why,
    )
    is_awaited = until(service.answer_s)

    def record() -> AskedSweep:
        return answer_sweep(service.context, word, is_awaited=is_awaited)

    done = service.workers.within(
        service.answer_s, lambda: use_token_once(service, principal, sent.sweep, record), what="nothing was recorded"
    )
    tell_sweep(service.context, sent.sweep)
    return json_response(shown(done))


def waiting(service: DecideService) -> list[dict[str, Any]]:
    """Return what was asked for recently."""
    return [shown(each) for each in asked_sweeps(service.context)]


def shown(asked: AskedSweep) -> dict[str, Any]:
    """Return a sweep as programs read it."""
    request, grant = asked.sweep.request, asked.grant
    found = SweepShown(
        sweep=request.id,
        service=request.service,
        endpoint=request.endpoint,
        asker=request.asker,
        asked_at=asked.asked_at,
        plan=tuple(plan_lines(asked.sweep)),
        approved_by=grant.approver if grant is not None else None,
        approvals=asked.given,
        approvals_needed=asked.needed,
        expires_at=grant.expires_at if grant is not None else None,
        rejected_by=asked.rejected_by or None,
        why=asked.why,
    )
    return found.model_dump(mode="json")
