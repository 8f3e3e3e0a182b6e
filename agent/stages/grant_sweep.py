"""A sweep is allowed by a person, by the rules of a change: signed, on record, and checked again before it runs."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Channel, Person
from agent.core.decision.policy import Mode, Requirement
from agent.core.decision.self_approval import may_approve_own
from agent.core.incident.incident import Incident
from agent.core.intake.signal import LIVE
from agent.core.sweep.grant import VALID, SweepGrant, SweepRequest, check_signed, sign_grant
from agent.core.value import Value
from agent.errors import PolicyRefused
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import person_of, unproven_refusal
from agent.stages.shared.database_pair import put_on_record
from agent.stages.shared.freezes import freezes_at
from agent.stages.shared.kill_switch import changes_stopped
from agent.stages.shared.other_changes import open_on

ANYBODY: Final = Requirement(mode=Mode.PERSON)
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


class SweepApproval(Value):
    """What became of a person's approval of a sweep.

    Attributes:
        given: Who approved it so far, as their channels name them.
        needed: How many different people must.
        grant: The signed grant; None while more must approve.
    """

    given: tuple[str, ...]
    needed: int
    grant: SweepGrant | None = None


def grant_sweep(context: StageContext, request: SweepRequest, person: Person) -> SweepApproval:
    """Approve a sweep: sign it and put it on record; the same approval again returns the one that is held.

    Where the policy wants several people, each approval is a row of the record, and the last one makes the grant.

    Args:
        context: Of the owner `decide`, which signs.
        request: What is to be allowed.
        person: Who approves.

    Raises:
        PolicyRefused: This person may not, changes are stopped, a freeze window holds, or an incident is open.
        DependencyFailed: Nobody knows, or it could not be recorded.
    """
    _check(context, request, (person,))
    needed = _required(context, request).approvals
    people = (person,) if needed < 2 else _put_on_record(context, request, person)
    given = tuple(each.who for each in people)
    if len(people) < needed:
        return SweepApproval(given=given, needed=needed)
    grant = _signed(context, request, people[:needed])
    last = grant.people[-1]
    answer = GivenAnswer(
        kind=GRANTED, who=last.who, channel=last.channel, verified=last.verified, body=grant.model_dump_json()
    )
    held = SweepGrant.model_validate_json(answer_once(context, request, answer).body)
    return SweepApproval(given=given, needed=needed, grant=held)


def _put_on_record(context: StageContext, request: SweepRequest, approver: Person) -> tuple[Person, ...]:
    """Record one approval of several; return the different people who approved and still may, the first one first.

    Who writes looks afterwards: of two who approve at the same moment at least one sees both.
    """
    people = _approvers(context, request)
    if _person(context, approver) in {_person(context, each) for each in people}:
        return people
    body = _signed(context, request, (approver,)).model_dump_json()
    put_on_record(context, at=context.clock.now(), kind=APPROVED, incident=request.id, who=approver.who, body=body)
    return _approvers(context, request)


def _approvers(context: StageContext, request: SweepRequest) -> tuple[Person, ...]:
    found: dict[str, Person] = {}
    rows = [row for row in sweep_rows(context) if row.kind == APPROVED and row.incident == request.id]
    for row in reversed(rows):
        grant = SweepGrant.model_validate_json(row.body)
        approver = grant.people[-1]
        if _holds(context, grant, request) and not may_not_answer(context, request, approver):
            found.setdefault(_person(context, approver), approver)
    return tuple(found.values())


def _holds(context: StageContext, grant: SweepGrant, request: SweepRequest) -> bool:
    """Whether a recorded approval is signed and not too old; what is not counts for nothing."""
    try:
        check_signed(grant, request, context.receipts(), now=context.clock.now())
    except PolicyRefused:
        return False
    return True


def _person(context: StageContext, approver: Person) -> str:
    return person_of(context, person=approver)


def _signed(context: StageContext, request: SweepRequest, people: tuple[Person, ...]) -> SweepGrant:
    *others, last = people
    now = context.clock.now()
    made = SweepGrant(
        request=request,
        approver=last.who,
        channel=last.channel,
        verified=last.verified,
        approved_at=now,
        expires_at=now + VALID,
        others=tuple(others),
    )
    return sign_grant(made, context.receipts())


def answer_once(context: StageContext, request: SweepRequest, given: GivenAnswer) -> GivenAnswer:
    """Claim the one answer to a sweep and put it on record; return it as it is held, for whoever repeats their word.

    The claim holds the whole answer, so that whoever comes next finishes what a dead writer began.

    Raises:
        PolicyRefused: It was answered before, by somebody else or otherwise.
        DependencyFailed: It could not be recorded; the answer may be given again.
    """
    name = f"{request.id}-answer"  # a claim is found by this name alone
    held = GivenAnswer.model_validate_json(context.control_store().claim(request.id, name, given.model_dump_json()))
    put_on_record(context, at=context.clock.now(), kind=held.kind, incident=request.id, who=held.who, body=held.body)
    if held.with_(body="") != given.with_(body=""):
        said = "approved" if held.kind == GRANTED else "rejected"
        raise PolicyRefused(
            f"sweep {request.id!r} was not answered again",
            why=f"{held.who!r} {said} it before",
            hint="plan it again with another --out to ask again",
        )
    return held


def check_grant(context: StageContext, grant: SweepGrant, request: SweepRequest) -> None:
    """Refuse a sweep whose grant does not hold now.

    Raises:
        PolicyRefused: See :func:`agent.core.sweep.grant.check_signed` and :func:`grant_sweep`; or the policy wants
            more people by now.
        DependencyFailed: Nobody knows.
    """
    check_signed(grant, request, context.receipts(), now=context.clock.now())
    _check(context, request, grant.people)
    needed, people = _required(context, request).approvals, {_person(context, each) for each in grant.people}
    if len(people) < needed:
        raise _not_allowed(request, f"{len(people)} of {needed} people approved it")


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


def _check(context: StageContext, request: SweepRequest, people: tuple[Person, ...]) -> None:
    refusals = (may_not_answer(context, request, each) for each in people)
    why = next(filter(None, refusals), "") or why_stopped(context, request.service)
    why = why or _frozen(context, request, context.clock.now())
    if why:
        raise _not_allowed(request, why)


def _not_allowed(request: SweepRequest, why: str) -> PolicyRefused:
    return PolicyRefused(
        f"sweep {request.id!r} is not allowed",
        why=why,
        hint="try again when that is over; who may approve stands in policy.toml",
    )


def _required(context: StageContext, request: SweepRequest) -> Requirement:
    return context.rules.policy.sweep_requirement(request.service)


def may_not_answer(context: StageContext, request: SweepRequest, person: Person, *, approves: bool = True) -> str:
    """Return why this person may not approve a sweep (or not reject it), or nothing."""
    policy, required, who = context.rules.policy, _required(context, request), person.who
    if person.channel in {Channel.MCP, Channel.POLICY}:
        return "a person approves a sweep"
    if required.mode is Mode.NEVER and approves:
        return f"policy.toml never allows a sweep of {request.service!r}"
    if is_own_act(request) and person.channel in _LOCAL and context.local and who == request.asker:
        return ""
    own = not approves or may_approve_own(
        local=context.local, verified=person.verified, asked_through=request.channel, rule=required.self_approve
    )
    if not person.verified:
        return _refusal_of_unproven(context, request, person, required if approves else ANYBODY, own=own)
    barred = policy.bars(person.channel, who, request.service, required if approves else None)
    known = policy.approver(person.channel, who)
    if barred or known is None:
        return barred or "nobody is named"
    asked = request.asker.casefold() in known.identities and not own
    return f"{known.name!r} asked for it, and who asks does not approve" if asked else ""


def _refusal_of_unproven(
    context: StageContext, request: SweepRequest, approver: Person, required: Requirement, *, own: bool
) -> str:
    who = approver.who
    if not context.local or approver.channel not in _LOCAL:
        return f"nothing proves that {who!r} is who it says"
    return unproven_refusal(required, who=who, asked_by=request.asker, may_self_approve=own)


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


ASKED: Final = "sweep.asked"
APPROVED: Final = "sweep.approved"  # by one of several people who must; signed like a grant, and none by itself
GRANTED: Final = "sweep.granted"
REJECTED: Final = "sweep.rejected"
PAGE_ROWS: Final = 500
MOST_PAGES: Final = 40


def sweep_rows(context: StageContext) -> Iterator[AuditRow]:
    """Yield them, the newest first, back to where no answer counts any more.

    Raises:
        DependencyFailed: The record cannot be read.
    """
    control, before = context.control_store(), None
    since = context.clock.now() - VALID - timedelta(hours=1)
    for _ in range(MOST_PAGES):
        piece = control.audit(PAGE_ROWS, before=before)
        for row in reversed(piece):
            if row.at < since:
                return
            if row.kind in {ASKED, APPROVED, GRANTED, REJECTED}:
                yield row
        if len(piece) < PAGE_ROWS:
            return
        before = piece[0].number
