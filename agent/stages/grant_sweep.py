"""A sweep is allowed by a person, by the rules of a change: signed, on record, and checked again before it runs."""

from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from agent.core.decision.decision import Channel
from agent.core.decision.self_approval import may_approve_own
from agent.core.incident.incident import Incident
from agent.core.intake.signal import LIVE
from agent.core.sweep.grant import VALID, SweepGrant, SweepRequest, check_signed, sign_grant
from agent.core.value import Value
from agent.errors import PolicyRefused
from agent.ports.stage_context import StageContext
from agent.stages.shared.database_pair import note_reached
from agent.stages.shared.freezes import freezes_at
from agent.stages.shared.kill_switch import changes_stopped
from agent.stages.shared.other_changes import open_on

GRANTED: Final = "sweep.granted"
REJECTED: Final = "sweep.rejected"
_LOCAL: Final = frozenset({Channel.COMMAND_LINE, Channel.CONSOLE})


class GivenAnswer(Value):
    """The one answer to a sweep, as the control database holds it.

    Attributes:
        kind: Of its row of the record.
        who: As the channel names them.
        verified: Whether the channel proved who they are.
        body: Of its row: the signed grant, or the reason of a rejection.
    """

    kind: str
    who: str
    channel: Channel
    verified: bool
    body: str


def grant_sweep(
    context: StageContext, request: SweepRequest, *, who: str, channel: Channel, verified: bool
) -> SweepGrant:
    """Approve a sweep: sign it and put it on record; the same approval again returns the one that is held.

    Args:
        context: Of the owner `decide`, which signs.
        request: What is to be allowed.
        who: Who approves, as the channel names them.
        channel: Through which.
        verified: Whether the channel proved who they are.

    Raises:
        PolicyRefused: This person may not, changes are stopped, a freeze window holds, or an incident is open.
        DependencyFailed: Nobody knows, or it could not be recorded.
    """
    now = context.clock.now()
    made = SweepGrant(
        request=request, approver=who, channel=channel, verified=verified, approved_at=now, expires_at=now + VALID
    )
    _check(context, made, now)
    grant = sign_grant(made, context.receipts())
    given = GivenAnswer(kind=GRANTED, who=who, channel=channel, verified=verified, body=grant.model_dump_json())
    return SweepGrant.model_validate_json(answer_once(context, request, given).body)


def answer_once(context: StageContext, request: SweepRequest, given: GivenAnswer) -> GivenAnswer:
    """Claim the one answer to a sweep and put it on record; return it as it is held, for whoever repeats their word.

    The claim holds the whole answer, so that whoever comes next finishes what a dead writer began.

    Raises:
        PolicyRefused: It was answered before, by somebody else or otherwise.
        DependencyFailed: It could not be recorded; the answer may be given again.
    """
    control = context.control_store()
    held = GivenAnswer.model_validate_json(
        control.claim(
            request.id, f"{request.id}-answer", given.model_dump_json()
        )  # a claim is found by this name alone
    )
    row = control.append(
        at=context.clock.now(), kind=held.kind, incident=request.id, who=held.who, body=held.body, once=True
    )
    note_reached(context.store, control, row.number)
    if held.with_(body="") != given.with_(body=""):
        said = "approved" if held.kind == GRANTED else "rejected"
        raise PolicyRefused(
            f"sweep {request.id!r} was not answered again",
            why=f"{held.who!r} {said} it before",
            hint="plan it anew with another --out to ask again",
        )
    return held


def may_not_answer(context: StageContext, request: SweepRequest, *, who: str, channel: Channel, verified: bool) -> str:
    """Return why this person may not approve a sweep, or nothing."""
    now = context.clock.now()
    made = SweepGrant(
        request=request, approver=who, channel=channel, verified=verified, approved_at=now, expires_at=now + VALID
    )
    return _refusal_of_approver(context, made)


def check_grant(context: StageContext, grant: SweepGrant, request: SweepRequest) -> None:
    """Refuse a sweep whose grant does not hold now.

    Raises:
        PolicyRefused: See :func:`agent.core.sweep.grant.check_signed` and :func:`grant_sweep`.
        DependencyFailed: Nobody knows.
    """
    now = context.clock.now()
    check_signed(grant, request, context.receipts(), now=now)
    _check(context, grant, now)


def why_stopped(context: StageContext, service: str) -> str:
    """Return why no load may be sent now, or nothing: the kill switch, or something open on the service.

    Raises:
        DependencyFailed: Nobody knows; no load may be sent.
    """
    stopped = changes_stopped(context)
    if stopped or not service:
        return stopped
    return _open_on(open_on(context, LIVE, service))


def is_own_act(request: SweepRequest) -> bool:
    """Whether it loads nothing but a server on this machine that no watched service is.

    Then whoever runs it needs nobody's approval.
    """
    return not request.service and is_here(request.endpoint)


def is_here(endpoint: str) -> bool:
    """Whether an address is surely one of this machine; a host name other than localhost may mean any."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _check(context: StageContext, grant: SweepGrant, now: datetime) -> None:
    request = grant.request
    why = (
        _refusal_of_approver(context, grant) or why_stopped(context, request.service) or _frozen(context, request, now)
    )
    if why:
        raise PolicyRefused(
            f"sweep {request.id!r} is not allowed",
            why=why,
            hint="try again when that is over; who may approve stands in policy.toml",
        )


def _refusal_of_approver(context: StageContext, grant: SweepGrant) -> str:
    request, policy = grant.request, context.rules.policy
    if grant.channel in {Channel.MCP, Channel.POLICY}:
        return "a person approves a sweep"
    if is_own_act(request) and grant.channel in _LOCAL and context.local and grant.approver == request.asker:
        return ""
    own = may_approve_own(local=context.local, verified=grant.verified, asked_through=request.channel)
    if not grant.verified:
        if not context.local or grant.channel not in _LOCAL:
            return f"nothing proves that {grant.approver!r} is who it says"
        same = grant.approver.casefold() == request.asker.casefold()
        return f"{grant.approver!r} asked for it, and who asks does not approve" if same and not own else ""
    barred = policy.bars(grant.channel, grant.approver, request.service)
    approver = policy.approver(grant.channel, grant.approver)
    if barred or approver is None:
        return barred or "nobody is named"
    asked = request.asker.casefold() in approver.identities and not own
    return f"{approver.name!r} asked for it, and who asks does not approve" if asked else ""


def _frozen(context: StageContext, request: SweepRequest, now: datetime) -> str:
    if not request.service:
        return ""
    spans = [span for span in freezes_at(context, request.service, now) if span.stops_change(asked_for=True)]
    return f"the freeze window {spans[0].name!r} holds" if spans else ""


def _open_on(found: Iterable[Incident]) -> str:
    first = next(iter(found), None)
    if first is None:
        return ""
    what = "the change request" if first.request is not None else "the incident"
    return f"{what} {first.id} is open on {first.service!r}, and a load would disturb both"
