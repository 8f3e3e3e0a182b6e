"""A person acts on an incident: acknowledge, assign, comment, close, finish a task, ask for another plan, roll back."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from agent.core.decision.decision import Channel, Choice, Person, PersonAct
from agent.core.decision.roll_back import RollBackDecision, claim_name
from agent.core.incident.command import MYSELF, NAME_CHARS, NOBODY, TEXT_CHARS, Command, DesiredCommand, impossible
from agent.core.incident.incident import Incident
from agent.core.incident.phase import EventKind, Phase
from agent.errors import InputRejected, PolicyRefused, StateConflict
from agent.ports.stage_context import StageContext
from agent.ports.store import head_key
from agent.stages.plan_to_decision import plan_to_decision
from agent.stages.shared.approval import refusal_of_person
from agent.stages.shared.commit import save
from agent.stages.shared.database_pair import WAY_BACK, pairing_fault, put_on_record
from agent.stages.shared.decision_request import DecisionRequest, NotRecorded
from agent.stages.shared.effects import valid_change
from agent.stages.shared.kill_switch import kill_switch_reason
from agent.stages.shared.other_changes import open_on
from agent.stages.shared.spans import incident_span

RIVALS: Final = 5
_NEEDS_TEXT: Final = {
    Command.COMMENT: ("it says nothing", "write the comment"),
    Command.CLOSE: ("it needs a reason", "say why in a sentence: --why TEXT"),
    Command.ROLL_BACK: ("it needs a reason", "say why in a sentence: --why TEXT"),
    Command.ASSIGN: ("it names nobody", f"name a person, {MYSELF!r} or {NOBODY!r}"),
}
_NOT: Final = {
    Command.ACKNOWLEDGE: "was not acknowledged",
    Command.ASSIGN: "was not assigned",
    Command.COMMENT: "was not commented on",
    Command.CLOSE: "was not closed",
    Command.DONE: "has no task that was marked as done",
    Command.REPLAN: "gets no other plan",
    Command.ROLL_BACK: "was not rolled back",
}


class CommandRequest(DesiredCommand):
    """What somebody wants to do about an incident, as the channel received it.

    Attributes:
        by: Who it is.
        is_awaited: Whether somebody still waits for the answer; asked right before it is recorded.
    """

    by: Person
    is_awaited: Callable[[], bool] = lambda: True


def carry_out(context: StageContext, asked: CommandRequest) -> Incident:
    """Check, record and carry out what a person does about an incident.

    The record keeps it before the incident shows it; who heard no answer says it again, and it is done once.

    Args:
        context: Of the owner `decide`, which signs.
        asked: What is asked for.

    Returns:
        The incident as it is then; unchanged where it was done before.

    Raises:
        InputRejected: There is no such incident, or what must be said is missing or too long.
        PolicyRefused: It does not go with the phase, or who asks may not.
        NotRecorded: Others kept writing, or nobody waits any more; say it again.
        DependencyFailed: A store did not answer; say it again.
    """
    text = _text(context, asked)
    for _ in range(RIVALS):
        incident = context.store.load(asked.incident)
        barred = refusal_of_person(context, incident.service, person=asked.by)
        if barred:
            raise refused(incident, asked.command, barred, "ask somebody whom policy.toml names for this service")
        if _is_done(context, incident, asked, text):
            return incident
        said = impossible(incident, asked.command)
        if said is not None:
            raise refused(incident, asked.command, said.why, said.hint)
        if not asked.is_awaited():
            raise _not_recorded(asked, "it took longer than the caller waits")
        try:
            with incident_span(context, asked.command.value, incident, channel=asked.by.channel.value):
                return _CARRY_OUT[asked.command](context, incident, asked, _act(context, asked, text, incident))
        except NotRecorded:
            raise
        except StateConflict:
            continue
    raise _not_recorded(asked, "other workers are writing to it")


def refused(incident: Incident, command: Command, why: str, hint: str) -> PolicyRefused:
    """Return the refusal of a command."""
    return PolicyRefused(f"incident {incident.id!r} {_NOT[command]}", why=why, hint=hint)


def _check_shown(incident: Incident, asked: CommandRequest) -> None:
    """Refuse an answer about another plan than the incident's, and a page's word that an old page may have sent.

    Raises:
        PolicyRefused: See above.
    """
    plan, hint = incident.require_plan(), f"look again: sre-agent incidents show {incident.id}"
    if not asked.plan_digest:
        if asked.command is Command.DONE and asked.by.channel is Channel.CONSOLE:
            raise refused(incident, asked.command, "the page does not say which task it showed", hint)
        return
    if not plan.digest.startswith(asked.plan_digest):
        why = f"what was shown had digest {asked.plan_digest[:8]!r}, the plan has {plan.digest[:8]!r}"
        raise refused(incident, asked.command, why, hint)


def _not_recorded(asked: CommandRequest, why: str) -> NotRecorded:
    return NotRecorded(f"incident {asked.incident!r} {_NOT[asked.command]}", why=why, hint="say it again")


def _text(context: StageContext, asked: CommandRequest) -> str:
    limit = NAME_CHARS if asked.command is Command.ASSIGN else TEXT_CHARS
    text = context.rules.redact(asked.text).strip()
    why, hint = _NEEDS_TEXT.get(asked.command, ("", ""))
    if len(asked.text) > limit:
        why, hint = f"the text has {len(asked.text)} characters, and at most {limit} are kept", "say it in fewer words"
    elif text:
        why = ""
    if why:
        raise InputRejected(f"incident {asked.incident!r} {_NOT[asked.command]}", why=why, hint=hint)
    return text[:limit]


def _act(context: StageContext, asked: CommandRequest, text: str, incident: Incident) -> PersonAct:
    approver = context.rules.policy.approver(asked.by.channel, asked.by.who) if asked.by.verified else None
    return PersonAct(
        who=asked.by.who,
        name=approver.name if approver is not None else "",
        verified=asked.by.verified,
        channel=asked.by.channel,
        at=context.now_for(incident),
        why=text,
    )


def _is_done(context: StageContext, incident: Incident, asked: CommandRequest, text: str) -> bool:
    """Whether this was done before, so that a repeated word is not an error and writes nothing."""
    if asked.command is Command.COMMENT:
        return incident.comments > 0 and _commented(context, incident, asked, text)
    if asked.command is Command.ACKNOWLEDGE:
        return incident.acknowledged is not None
    if asked.command is Command.ASSIGN:
        return incident.assignee == _assignee(context, asked, text)
    acts = {
        Command.CLOSE: incident.closed,
        Command.DONE: incident.task_done,
        Command.REPLAN: incident.replan,
        Command.ROLL_BACK: incident.roll_back.by if incident.roll_back is not None else None,
    }
    return _spoke(acts[asked.command], asked)


def _spoke(act: PersonAct | None, asked: CommandRequest) -> bool:
    return act is not None and (act.channel, act.who) == (asked.by.channel, asked.by.who)


def _commented(context: StageContext, incident: Incident, asked: CommandRequest, text: str) -> bool:
    """Whether the newest comment is this very one: its answer was lost, or the form was sent twice."""
    newest = [e for e in context.store.timeline(incident.id) if e.kind is EventKind.COMMENTED][-1:]
    return any(e.what == _comment(_act(context, asked, text, incident)) for e in newest)


def _comment(act: PersonAct) -> str:
    return f"comment by {act.shown}: {act.why}"


def _on_record(context: StageContext, incident: Incident, command: Command, act: PersonAct) -> None:
    """Write it down before the incident shows it; a retry finds the same version and leaves no second row."""
    said = f"{act.shown} through {act.channel}, incident version {incident.version}{f': {act.why}' if act.why else ''}"
    put_on_record(context, at=act.at, kind=f"incident.{command}", incident=incident.id, who=act.who, body=said)


def _noted(
    context: StageContext,
    incident: Incident,
    command: Command,
    act: PersonAct,
    *,
    what: str,
    kind: EventKind,
    **changes: object,
) -> Incident:
    """Record it, and save the incident with a line of its timeline."""
    _on_record(context, incident, command, act)
    wake = kind in {EventKind.REPLAN_ASKED, EventKind.TASK_DONE}
    changed = incident.with_(**changes)
    return save(context, changed, what, now=act.at, by=act.name or act.who, wake=wake, kind=kind)


def _acknowledge(context: StageContext, incident: Incident, _: CommandRequest, act: PersonAct) -> Incident:
    what = f"acknowledged by {act.shown}"
    return _noted(context, incident, Command.ACKNOWLEDGE, act, what=what, kind=EventKind.ACKNOWLEDGED, acknowledged=act)


def _assignee(context: StageContext, asked: CommandRequest, text: str) -> str:
    """Return whom a word names: who says it, nobody, an approver of the policy by any of their names, or the word."""
    if text.casefold() == NOBODY:
        return ""
    policy = context.rules.policy
    if text.casefold() == MYSELF:
        own = policy.approver(asked.by.channel, asked.by.who) if asked.by.verified else None
        return own.name if own is not None else asked.by.who
    known = (a for a in policy.approvers if text.casefold() in {a.name.casefold(), *a.identities})
    return next((approver.name for approver in known), text)


def _assign(context: StageContext, incident: Incident, asked: CommandRequest, act: PersonAct) -> Incident:
    name = _assignee(context, asked, act.why)
    what = f"assigned to {name or NOBODY} by {act.shown}"
    return _noted(context, incident, Command.ASSIGN, act, what=what, kind=EventKind.ASSIGNED, assignee=name)


def _add_comment(context: StageContext, incident: Incident, _: CommandRequest, act: PersonAct) -> Incident:
    count, kind = incident.comments + 1, EventKind.COMMENTED
    return _noted(context, incident, Command.COMMENT, act, what=_comment(act), kind=kind, comments=count)


def _close(context: StageContext, incident: Incident, _: CommandRequest, act: PersonAct) -> Incident:
    _on_record(context, incident, Command.CLOSE, act)
    why = f"{act.shown} closed it: {act.why}"
    moved = incident.move(Phase.CLOSED, now=act.at, due_at=None, ended_why=why, closed=act)
    return save(context, moved, f"closed: {why}", now=act.at, by=act.name or act.who)


def _replan(context: StageContext, incident: Incident, _: CommandRequest, act: PersonAct) -> Incident:
    newest = context.store.head(head_key(incident.run, incident.service, None))
    others = tuple(i.id for i in open_on(context, incident.run, incident.service, but=incident.id))
    other = next(iter(others), newest if newest is not None and newest != incident.id else None)
    if other is not None:
        why, hint = f"{other} is a newer one of {incident.service}", f"look at it: sre-agent incidents show {other}"
        raise refused(incident, Command.REPLAN, why, hint)
    what = f"another plan was asked for by {act.shown}" + (f": {act.why}" if act.why else "")
    kind = EventKind.REPLAN_ASKED
    return _noted(context, incident, Command.REPLAN, act, what=what, kind=kind, replan=act, due_at=act.at)


def _done(context: StageContext, incident: Incident, asked: CommandRequest, act: PersonAct) -> Incident:
    _check_shown(incident, asked)
    plan = incident.require_plan()
    if incident.phase is Phase.ESCALATED:
        why = f"{act.shown} did the task" + (f": {act.why}" if act.why else "")
        _on_record(context, incident, Command.DONE, act)
        moved = incident.move(Phase.CLOSED, now=act.at, due_at=None, ended_why=why, closed=act, task_done=act)
        return save(context, moved, f"closed: {why}", now=act.at, by=act.name or act.who)
    if incident.phase is Phase.ASKED:  # who did it has taken it on
        request = DecisionRequest(
            plan=plan.id, answer=Choice.APPROVE, by=asked.by, plan_digest=plan.digest, is_awaited=asked.is_awaited
        )
        plan_to_decision(context, request)
        incident = context.store.load(incident.id)
        if incident.require_plan().id != plan.id:  # refused and planned anew meanwhile: nobody has done that one
            raise StateConflict(
                "the task was not marked", why="another plan has taken its place", hint="look at the new plan"
            )
    what = f"the task is done, says {act.shown}" + (f": {act.why}" if act.why else "")
    seen = incident.verification
    if seen is not None:
        until = min(seen.until, _checked_until(context, act.at))
        seen = seen.with_(until=until)
    changes = {"task_done": act, "due_at": act.at, "verification": seen}
    return _noted(context, incident, Command.DONE, act, what=what, kind=EventKind.TASK_DONE, **changes)


def _checked_until(context: StageContext, at: datetime) -> datetime:
    return at + timedelta(seconds=context.rules.times.verify_s)


def _roll_back(context: StageContext, incident: Incident, asked: CommandRequest, act: PersonAct) -> Incident:
    """Sign the decision, claim the change with it, and order the roll-back.

    Raises:
        PolicyRefused: The change is too old or not ours, or nothing may be changed now.
    """
    _check_shown(incident, asked)
    plan = incident.require_plan()
    apart, stopped = pairing_fault(context), kill_switch_reason(context)
    if apart or stopped:
        way = WAY_BACK if apart else "turn it off (sre-agent stop --off) and say it again"
        raise refused(incident, Command.ROLL_BACK, apart or stopped, way)
    applied = valid_change(context, incident, act.at)
    made = RollBackDecision(
        incident=incident.id, plan=plan.id, plan_digest=applied.plan_digest, effect=applied.key, by=act
    ).signed(context.receipts())
    claimed = context.control_store().claim(incident.id, claim_name(applied.key), made.model_dump_json())
    held = RollBackDecision.model_validate_json(claimed)
    by, body = held.by, held.model_dump_json()
    put_on_record(context, at=by.at, kind="decision.roll_back", incident=incident.id, who=by.who, body=body)
    now = max(act.at, incident.phase_at)
    moved = incident.move(Phase.ROLLING_BACK, now=now, due_at=now, roll_back=held)
    what = f"rolling back: {held.by.shown} decided it through {held.by.channel}: {held.by.why}"
    return save(context, moved, what, now=now, by=held.by.name or held.by.who)


_CARRY_OUT: Final[dict[Command, Callable[[StageContext, Incident, CommandRequest, PersonAct], Incident]]] = {
    Command.ACKNOWLEDGE: _acknowledge,
    Command.ASSIGN: _assign,
    Command.COMMENT: _add_comment,
    Command.CLOSE: _close,
    Command.DONE: _done,
    Command.REPLAN: _replan,
    Command.ROLL_BACK: _roll_back,
}
