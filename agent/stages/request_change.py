"""A person asks for a change: the request is checked, signed, recorded and put on its way; nothing is changed yet."""

from datetime import datetime, timedelta
from typing import Final

from agent.core.change.asked_settings import check_one_value_each
from agent.core.change.request import (
    ASKER_CHARS,
    WHY_CHARS,
    ChangeRequest,
    DesiredChange,
    request_id,
    request_key,
    sign_request,
)
from agent.core.decision.decision import NO_REASON, Channel, Person
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.core.plan.action import ForPerson
from agent.core.planning.requested import check_policy
from agent.core.value import digest
from agent.errors import InputRejected, PolicyRefused, StateConflict
from agent.ports.stage_context import StageContext
from agent.ports.store import repeat_head, request_head
from agent.stages.shared.commit import save, send_outbox
from agent.stages.shared.database_pair import note_reached, put_on_record
from agent.stages.shared.other_changes import open_on, under_way
from agent.stages.shared.spans import incident_span

PER_HOUR: Final = 12  # requests of one person in one hour of the clock
RIVALS: Final = 5
_BEFORE_APPROVAL: Final = frozenset({Phase.OPEN, Phase.PLANNED, Phase.ASKED})
_TAKEN_BACK: Final = "taken back by"
_LOCAL: Final = frozenset({Channel.COMMAND_LINE, Channel.CONSOLE, Channel.MCP})


class RequestLimitReached(PolicyRefused):
    """This person asked for too many changes recently."""


class AlreadyOpen(StateConflict):
    """Something else is open on the service, and the asker did not say that the request takes its place."""


class ChangeAsked(DesiredChange):
    """What somebody asks for, as the channel received it.

    Attributes:
        by: Who asks.
    """

    by: Person


def request_change(context: StageContext, asked: ChangeAsked) -> Incident:
    """Record what a person asks for, and order its plan; the same request again returns the one that is open.

    Args:
        context: Of the owner `decide`, which signs.
        asked: What is asked for.

    Returns:
        The life of the request: OPEN where it is new.

    Raises:
        InputRejected: There is no such service, or no reason was given.
        PolicyRefused: Policy never allows it, or does not know who asks.
        RequestLimitReached: This person asked for too much recently.
        AlreadyOpen: Something else is open on the service.
        StateConflict: Others wrote first several times in a row.
        DependencyFailed: A store did not answer; the same may be asked again.
    """
    watched = context.rules.services.service(asked.service)
    service = watched.name
    if not asked.actions or any(isinstance(action, ForPerson) for action in asked.actions):
        raise InputRejected(
            f"the change of {service!r} was not recorded",
            why="it names nothing that the agent could do",
            hint="name a change; see: sre-agent change --help",
        )
    check_one_value_each(asked.actions)
    why = _reason(context, asked)
    _check_asker(context, asked)
    check_policy(watched, asked.actions, context.rules.policy)
    key = request_key(asked.by.who, service, asked.actions, asked.target)
    for _ in range(RIVALS):
        newest = context.store.head(repeat_head(LIVE, key))
        earlier = context.store.load(newest) if newest is not None else None
        if earlier is not None and not earlier.ended:
            send_outbox(context, earlier.id)
            return earlier
        try:
            return _record(context, asked, why, key, earlier)
        except AlreadyOpen:
            raise
        except StateConflict:
            continue
    raise StateConflict(
        f"the change of {service!r} was not recorded",
        why=f"others wrote to its requests {RIVALS} times in a row",
        hint="ask again",
    )


def withdraw_request(context: StageContext, request: str, person: Person, *, why: str) -> Incident:
    """Take a request back before anybody approves it; its asker may, and whoever may reject its plan rejects that.

    The record first keeps that it was said, and that it came about only once the incident shows it. Who heard no answer
    says it again: that finishes the record.

    Args:
        context: Of the owner `decide`.
        request: Its id.
        person: Who takes it back; the asker is known under their other names in the policy too.
        why: Their reason, untrusted; secrets are taken out of it.

    Raises:
        InputRejected: There is no request of that id.
        PolicyRefused: Somebody else asked for it, or it was approved already.
        StateConflict: Others kept writing to it; say it again.
    """
    for _ in range(RIVALS):
        incident = context.store.load(request)
        before = _withdrawal_of(context, incident)
        _check_withdrawal(context, incident, person, again=before is not None)
        if before is not None:
            return _on_record(context, incident, before)
        try:
            return _withdrawn(
                context, incident, who=person.who, said=context.rules.redact(why)[:WHY_CHARS] or NO_REASON
            )
        except StateConflict:
            continue
    raise StateConflict(
        f"request {request!r} was not taken back",
        why=f"others wrote to it {RIVALS} times in a row",
        hint="say it again",
    )


def _check_withdrawal(context: StageContext, incident: Incident, person: Person, *, again: bool) -> None:
    asked = incident.request
    if asked is None:
        raise InputRejected(
            f"{incident.id!r} was not taken back", why="it is no change request", hint="see: sre-agent incidents list"
        )
    same = _is_asker(asked, person) or _is_alias(context, asked, person)
    why = "" if same else f"{asked.asker!r} asked for it, not {person.who!r}"
    hint = f"reject its plan instead: sre-agent incidents show {incident.id}"
    if same and incident.phase not in _BEFORE_APPROVAL and not again:
        why, hint = f"it is {incident.phase}", f"see: sre-agent incidents show {incident.id}"
    if why:
        raise PolicyRefused(f"request {incident.id!r} was not taken back", why=why, hint=hint)


def _withdrawn(context: StageContext, incident: Incident, *, who: str, said: str) -> Incident:
    now = context.now_for(incident)
    context.control_store().append(at=now, kind="request.withdraw", incident=incident.id, who=who, body=said, once=True)
    moved = incident.move(Phase.WITHDRAWN, now=now, due_at=now, ended_why=f"{who} took it back: {said}")
    saved = save(context, moved, f"{_TAKEN_BACK} {who}: {said}", now=now, by=who)
    withdrawal = _withdrawal_of(context, saved)
    assert withdrawal is not None, "its line was saved just now"
    return _on_record(context, saved, withdrawal)


def _withdrawal_of(context: StageContext, incident: Incident) -> Event | None:
    """Return what its history says of who took it back; None where it ended otherwise, or goes on."""
    if incident.phase not in {Phase.WITHDRAWN, Phase.CLOSED}:
        return None
    events = context.store.timeline(incident.id)
    return next(
        (e for e in events if e.phase is Phase.WITHDRAWN and e.what.startswith(f"{_TAKEN_BACK} {e.by}: ")), None
    )


def _on_record(context: StageContext, incident: Incident, withdrawal: Event) -> Incident:
    """Write the row of a withdrawal that the incident shows, once."""
    at, who, said = withdrawal.at, withdrawal.by, withdrawal.what.removeprefix(f"{_TAKEN_BACK} {withdrawal.by}: ")
    put_on_record(context, at=at, kind="request.withdrawn", incident=incident.id, who=who, body=said)
    return incident


def may_withdraw(incident: Incident, person: Person) -> bool:
    """Whether somebody may take it back: their own request, before anybody approved it."""
    asked = incident.request
    return asked is not None and _is_asker(asked, person) and incident.phase in _BEFORE_APPROVAL


def _is_asker(request: ChangeRequest, person: Person) -> bool:
    return (request.asker.casefold(), request.verified) == (person.who.casefold(), person.verified)


def _is_alias(context: StageContext, request: ChangeRequest, person: Person) -> bool:
    """Whether both were proved to be one person of the policy, whom each channel names in its own way."""
    if not person.verified or not request.verified:
        return False
    through = Channel.COMMAND_LINE if request.channel is Channel.MCP else request.channel
    policy = context.rules.policy
    asker, speaker = policy.approver(through, request.asker), policy.approver(person.channel, person.who)
    return asker is not None and asker == speaker


def _reason(context: StageContext, asked: ChangeAsked) -> str:
    why = context.rules.redact(asked.why).strip()
    if not why or len(asked.why) > WHY_CHARS:
        raise InputRejected(
            f"the change of {asked.service!r} was not recorded",
            why=f"it needs a reason of 1 to {WHY_CHARS} characters",
            hint="say why in a sentence: --why TEXT",
        )
    return why[:WHY_CHARS]


def may_not_ask(context: StageContext, person: Person) -> str:
    """Return why somebody may not ask for changes, or nothing.

    Args:
        context: Policy, and whether this is one machine's own installation.
        person: Who they are.
    """
    who, channel = person.who, person.channel
    if not person.verified:
        trusted = context.local and channel in _LOCAL and bool(who)
        return "" if trusted else f"nothing proves that {who or 'the reader'!r} is who it says"
    proved_by = Channel.COMMAND_LINE if channel is Channel.MCP else channel
    known = context.rules.policy.approver(proved_by, who) is not None
    return "" if known else f"policy.toml does not name {who!r}"


def _check_asker(context: StageContext, asked: ChangeAsked) -> None:
    """Refuse whom policy does not know; on one machine its operator is taken on trust."""
    if len(asked.by.who) > ASKER_CHARS:
        raise InputRejected(
            f"the change of {asked.service!r} was not recorded",
            why=f"the name of who asks has {len(asked.by.who)} characters, and at most {ASKER_CHARS} are kept",
            hint="give a shorter one: --by NAME",
        )
    why = may_not_ask(context, person=asked.by)
    if why:
        raise PolicyRefused(
            f"the change of {asked.service!r} was not recorded",
            why=why,
            hint="ask somebody whom policy.toml names, or have yourself added; see docs/policy.md",
        )


def _record(context: StageContext, asked: ChangeAsked, why: str, key: str, earlier: Incident | None) -> Incident:
    rivals = open_on(context, LIVE, asked.service)
    first = under_way(rivals)
    superseded = _superseded(asked, tuple(r for r in rivals if first is None or r.id != first.id))
    heads = (request_head(LIVE, asked.service), repeat_head(LIVE, key))
    seen = {head: context.store.head(head) for head in heads}
    ordinal = earlier.episode + 1 if earlier is not None else 1
    control, now = context.control_store(), context.clock.now()
    name = request_id(key, ordinal)
    held = control.change_request(name)
    if held is None:
        _take_slot(context, asked.by.who, now)
        made = ChangeRequest(
            id=name,
            service=asked.service,
            actions=asked.actions,
            why=why,
            asker=asked.by.who,
            channel=asked.by.channel,
            verified=asked.by.verified,
            made_at=now,
            target=asked.target,
            superseded=superseded,
            waits_for=first.id if first is not None else None,
        )
        held = control.add_request(sign_request(made, context.receipts()))
    row = control.append(
        at=held.made_at, kind="request.made", incident=held.id, who=held.asker, body=held.model_dump_json(), once=True
    )
    incident = _life(context, held, ordinal, now)
    said = f"{held.asker} asks for a change: {held.why}"
    with incident_span(context, request_change.__name__, incident, channel=held.channel.value):
        made_life = save(context, incident, said, now=now, by=held.asker, heads=heads, seen=seen)
    note_reached(context.store, control, row)
    return made_life


def _superseded(asked: ChangeAsked, rivals: tuple[Incident, ...]) -> tuple[str, ...]:
    """Return whose plans the request takes the place of: of all that is open and that nobody approved yet."""
    if not rivals or asked.supersede:
        return tuple(rival.id for rival in rivals)
    rival = rivals[0]
    what = "a change request" if rival.request is not None else "an incident"
    by = f" of {rival.request.asker}" if rival.request is not None else ""
    raise AlreadyOpen(
        f"the change of {asked.service!r} was not recorded",
        why=f"{what}{by} is open on it: {rival.id} is {rival.phase}",
        hint=f"look at it: sre-agent incidents show {rival.id}; to let the new request take its place: --supersede",
    )


def _take_slot(context: StageContext, who: str, now: datetime) -> None:
    """Count the request against its asker; a name is used up for each, so that no two workers count the same one."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    person = digest(["request", who.casefold()])[:24]
    for number in range(PER_HOUR):
        name = f"request-{person}-{hour:%Y%m%d%H}-{number}"
        if context.control_store().use_once(name, at=now, until=hour + timedelta(hours=1)):
            return
    raise RequestLimitReached(
        "the change was not recorded",
        why=f"{who!r} asked for {PER_HOUR} changes in this hour",
        hint=f"ask again after {hour + timedelta(hours=1):%H:%M} UTC",
    )


def _life(context: StageContext, request: ChangeRequest, ordinal: int, now: datetime) -> Incident:
    return requested_incident(request, context.rules.services.service(request.service).platform, now, episode=ordinal)


def requested_incident(request: ChangeRequest, platform: str, now: datetime, *, episode: int = 1) -> Incident:
    """Return the life of a request at its beginning; nothing is stored."""
    return Incident(
        id=request.id,
        run=LIVE,
        service=request.service,
        platform=platform,
        episode=episode,
        opened_at=now,
        phase_at=now,
        quiet_since=now,
        due_at=now,
        request=request,
    )
