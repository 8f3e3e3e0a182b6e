"""An incident as one Slack message: what broke, what would be done about it, and the buttons while they count."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from agent.core.decision.decision import NO_REASON, Choice
from agent.core.incident.impact import severity_of
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import BEFORE_DECISION, Phase
from agent.core.plan.action import ForPerson, Restart
from agent.core.plan.plan import Plan, Risk
from agent.core.text.safe_text import slack_code, slack_mrkdwn, slack_plain
from agent.core.value import Value, digest
from agent.presentation.event_text import steps
from agent.presentation.evidence import place_of
from agent.presentation.freeze_text import limit_lines
from agent.presentation.impact_text import SEVERITY_WORDS, impact_text, span
from agent.presentation.incident_title import incident_title
from agent.presentation.measured import COMPUTED
from agent.presentation.memory_bar import memory_lines
from agent.presentation.phase_words import Tone
from agent.presentation.plan_cost import hourly_cost_text
from agent.presentation.plan_title import as_sentence, plan_title
from agent.presentation.proof_text import PROOFS, proof_lines
from agent.presentation.request_text import request_reason
from agent.presentation.standing import standing

APPROVE: Final = "sre_plan_approve"
REJECT: Final = "sre_plan_reject"
DETAILS: Final = "sre_plan_details"
BREAK_GLASS: Final = "sre_plan_break_glass"
WITHDRAW: Final = "sre_vote_withdraw"
WITHDRAW_REQUEST: Final = "sre_request_withdraw"
REASON: Final = "sre_plan_reason"
REASON_CHARS: Final = 1000  # as by webhook; Slack takes 3,000

Redact = Callable[[str], str]
Block = dict[str, Any]

PUSH_CHARS: Final = 240  # a lock screen shows about four lines
_SHOWN_DIFFERENCES = 12
_SHOWN_EVENTS = 4
_GROUP = re.compile(r"S[A-Z0-9]{2,20}")
_USER = re.compile(r"[UW][A-Z0-9]{2,20}")
_ICON: Final = {Tone.GOOD: "🟢", Tone.BAD: "🔴", Tone.WAITING: "🟠", Tone.QUIET: "⚪", Tone.MOVING: "🔵"}


class Card(Value):
    """A message: ``blocks`` to show, ``text`` for notifications and screen readers.

    Limits of Slack (https://docs.slack.dev/reference/block-kit, 2026-11-21): 50 blocks, header 150, section 3,000,
    field 2,000, button 75, its value 2,000, ten elements of a context, each 2,000, an input's label 2,000, its
    placeholder 150, its text 3,000.
    """

    text: str
    blocks: tuple[Block, ...]

    @property
    def digest(self) -> str:
        """Whether two cards look the same."""
        return digest(self)


def card(incident: Incident, timeline: tuple[Event, ...], *, redact: Redact, console_url: str, owner: str = "") -> Card:
    """Return the message of an incident as it is now.

    Args:
        incident: Its present state; all text in it is untrusted.
        timeline: Its timeline.
        redact: Takes secrets out of a text; everything passes through it before it is made harmless.
        console_url: Where the console stands, for the Details button.
        owner: Of the service, from services.toml; a Slack id in it is mentioned.
    """

    def prose(text: str, limit: int) -> str:
        return slack_mrkdwn(redact(text), limit=limit)

    def code(text: str, limit: int) -> str:
        return slack_code(redact(text), limit=limit)

    now = standing(incident, incident.phase_at)
    title = redact(incident_title(incident, incident.phase_at))
    if incident.ended and incident.phase is not Phase.ESCALATED:
        return _collapsed(incident, timeline, title, prose)
    blocks: list[Block] = [
        header(title),
        section(
            f"{_ICON[now.tone]} *{now.label}* · {_severity(incident, prose)}{_provisional(incident)}"
            f"{_replayed(incident)}{owner_mention(owner)}\n{prose(now.says, 1500)}"
        ),
        *_trouble(incident, prose, code),
    ]
    if incident.plan is not None:
        blocks += _plan(incident.plan, prose, code)
        blocks += _decided(incident, prose)
        blocks += _limits(incident, prose)
        if incident.phase is Phase.ASKED:
            blocks += _asking(incident, incident.plan, console_url)
    if incident.request is not None and incident.phase in BEFORE_DECISION:
        blocks.append(_withdrawal(incident.id))
    if incident.ended_why:
        blocks.append(section(f"*Reason:* {prose(incident.ended_why, 1500)}"))
    newest = tuple(steps(timeline, incident))[-_SHOWN_EVENTS:]
    blocks.append(_context([prose(f"{step.at:%H:%M:%S} {step.says}", 1500) for step in newest], incident))
    return Card(text=slack_mrkdwn(_push(incident, title, redact), limit=PUSH_CHARS), blocks=tuple(blocks))


def _push(incident: Incident, title: str, redact: Redact) -> str:
    """The text of a push message: what is wrong, how bad it is, and what is asked, in what a lock screen shows."""
    label = standing(incident, incident.phase_at).label
    plan = incident.plan if incident.phase is Phase.ASKED else None
    loss = f" Trade-off: {redact(plan.takes_away)}" if plan is not None and plan.takes_away else ""
    return f"{SEVERITY_WORDS[severity_of(incident)]}: {title} - {label}.{loss}"


def _severity(incident: Incident, prose: Callable[[str, int], str]) -> str:
    return f"{SEVERITY_WORDS[severity_of(incident)]}: {prose(impact_text(incident), 300)}"


def owner_mention(owner: str) -> str:
    """Return the words that name a service's owner; only an id that services.toml gives is mentioned.

    Args:
        owner: Such as ``slack:U0123ABCD`` (a person), ``slack:S0123ABCD`` (a group), ``slack:#llm`` or ``console``.
    """
    kind, _, name = owner.partition(":")
    if kind != "slack" or not name:
        return ""
    if _USER.fullmatch(name):
        return f" · <@{name}>"
    return f" · <!subteam^{name}>" if _GROUP.fullmatch(name) else f" · {slack_mrkdwn(name, limit=80)}"


def _collapsed(incident: Incident, timeline: tuple[Event, ...], title: str, prose: Callable[[str, int], str]) -> Card:
    """What is over: how it ended, how long it took, what it was, and who decided."""
    now = standing(incident, incident.phase_at)
    took = span((incident.phase_at - incident.opened_at).total_seconds())
    lines = [f"{_ICON[now.tone]} *{now.label}* after {took}{_replayed(incident)}", prose(now.says, 1500)]
    if incident.request is not None:
        lines.append(f"*Request:* {prose(request_reason(incident.request), 600)}")
    elif incident.diagnosis is not None:
        lines.append(f"*Diagnosis:* {prose(incident.diagnosis.root_cause, 600)}")
    if incident.plan is not None:
        lines.append(f"*Plan {prose(incident.plan.id, 100)}:* {prose(plan_title(incident.plan), 300)}")
    reason = [section(f"*Reason:* {prose(incident.ended_why, 600)}")] if incident.ended_why else []
    last = [prose(f"{step.at:%H:%M:%S} {step.says}", 600) for step in tuple(steps(timeline, incident))[-1:]]
    blocks = [header(title), section("\n".join(lines)), *_decided(incident, prose), *reason, _context(last, incident)]
    simulated = f", {COMPUTED}" if COMPUTED in now.says else ""
    push = slack_mrkdwn(f"{title} - {now.label} after {took}{simulated}.", limit=PUSH_CHARS)
    return Card(text=push, blocks=tuple(blocks))


def _trouble(incident: Incident, prose: Callable[[str, int], str], code: Callable[[str, int], str]) -> list[Block]:
    diagnosis = incident.diagnosis
    if incident.request is not None:
        return [section(f"*Request:* {prose(request_reason(incident.request), 1500)}")]
    if diagnosis is None:
        return []
    blocks = [section(f"*Diagnosis:* {prose(diagnosis.root_cause, 1500)}")]
    if diagnosis.decisive is not None:
        where = prose(place_of(diagnosis.decisive.signal, incident.platform), 200)
        blocks += [section(f"*Key log line* ({where})"), section(code(diagnosis.decisive.line, 900))]
    if diagnosis.changes:
        blocks.append(section(f"*Changed before:* {prose(diagnosis.changes[0], 600)}"))
    if diagnosis.unknown:
        blocks.append(section(f"*Unknown:* {prose('; '.join(diagnosis.unknown), 800)}"))
    return blocks


def _plan(plan: Plan, prose: Callable[[str, int], str], code: Callable[[str, int], str]) -> list[Block]:
    blocks = [
        section(f"*Plan {prose(plan.id, 100)}:* {prose(plan_title(plan), 500)}\n{prose(as_sentence(plan.why), 1500)}")
    ]
    lines = [f"{d.path}: {_value(d.before)} -> {_value(d.after)}" for d in plan.difference[:_SHOWN_DIFFERENCES]]
    if len(plan.difference) > _SHOWN_DIFFERENCES:
        lines.append(f"and {len(plan.difference) - _SHOWN_DIFFERENCES} more: see Details")
    for action in plan.actions:
        if isinstance(action, ForPerson):
            lines += [action.instruction, *action.commands]
        if isinstance(action, Restart):
            lines.append("no setting changes; the same configuration is started again")
    if lines:
        blocks.append(section(code("\n".join(lines), 2800)))
    if bars := [line for when, drawn in _bars(plan) for line in _indented(when, drawn)]:
        blocks.append(section(code("\n".join(bars), 1500)))
    blocks.append(
        section(f"*Before:* {prose(plan.fit_before.sentence, 600)}\n*After:* {prose(plan.fit_after.sentence, 600)}")
    )
    reasons = f" ({prose('; '.join(plan.risk_reasons), 600)})" if plan.risk_reasons else ""
    blocks.append(
        section(f"*Cost:* {hourly_cost_text(plan)}\n*Risk:* {plan.risk}{reasons}\n*Undo:* {prose(plan.undo, 600)}")
    )
    if plan.takes_away:
        blocks.append(section(f"*Trade-off:* {prose(plan.takes_away, 300)}"))
    missing = f": {prose('; '.join(plan.proof_missing), 600)}" if plan.proof_missing else ""
    blocks.append(section(f"*Proof of memory:* {PROOFS[plan.proof]}{missing}"))
    blocks += [section(code(line, 600)) for _, line in proof_lines(plan)[:1]]
    if plan.notes:
        blocks.append(section("\n".join(f"• {prose(note, 400)}" for note in plan.notes[:6])))
    return blocks


def _bars(plan: Plan) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("before", memory_lines(plan.fit_before.report)), ("after ", memory_lines(plan.fit_after.report))


def _indented(when: str, drawn: tuple[str, ...]) -> list[str]:
    return [f"{when} {drawn[0]}", *(f"  {line}" for line in drawn[1:])] if drawn else []


def _decided(incident: Incident, prose: Callable[[str, int], str]) -> list[Block]:
    decision = incident.decision
    if decision is None:
        return []
    word = "Approved" if decision.answer is Choice.APPROVE else "Rejected"
    proven = "" if decision.verified else ", not verified"
    why = decision.why or (NO_REASON if decision.answer is Choice.REJECT else "")
    why = f": {prose(why, 600)}" if why else ""
    by = prose(decision.shown, 200)
    return [section(f"*{word}* by {by} through {decision.channel}{proven}, {decision.at:%H:%M:%S} UTC{why}")]


def _limits(incident: Incident, prose: Callable[[str, int], str]) -> list[Block]:
    """Freeze windows and whom the plan was put to, for as long as it can be answered."""
    if incident.phase is not Phase.ASKED:
        return []
    said = limit_lines(incident.approvals, incident.phase_at)
    return [section("\n".join(prose(line, 600) for line in said[:4]))] if said else []


def mention(incident: Incident) -> str:
    """Return the words that notify the group that was told last; only ids of Slack's form are mentioned."""
    approvals = incident.approvals
    notified = approvals.escalations[: approvals.groups_notified] if approvals is not None else ()
    people = [f"<@{user}>" for user in (notified[-1].slack if notified else ()) if _USER.fullmatch(user)]
    plan = incident.plan.id if incident.plan is not None else "the plan"
    asks = slack_mrkdwn(f"Nobody has answered {plan} for {incident.service} yet.", limit=500)
    return " ".join((*people, asks))


def _asking(incident: Incident, plan: Plan, console_url: str) -> list[Block]:
    """The question, bound to one plan: id and digest stand in the button, and both are checked when it is pressed."""
    value = json.dumps({"plan": plan.id, "digest": plan.digest}, separators=(",", ":"))
    until = int(plan.expires_at.timestamp())
    stamp = f"<!date^{until}^{{date_short_pretty}} {{time}}|{plan.expires_at:%Y-%m-%d %H:%M} UTC>"
    may_apply = incident.may_change or plan.by_person
    elements: list[Block] = []
    if may_apply:
        approve = button("Assign to me" if plan.by_person else "Approve", APPROVE, value=value, style="primary")
        if plan.risk is Risk.HIGH and not plan.by_person:
            approve["confirm"] = _CONFIRM
        elements.append(approve)
        elements += _special(incident, plan, value)
    elements.append(button("Reject", REJECT, value=value, style="danger"))
    elements += details_button(console_url, f"plans/{plan.id}")
    asked = f"*Until {stamp}.* {slack_mrkdwn(plan.if_unanswered, limit=500)}"
    if not may_apply:
        asked += " This is a replay: it changes nothing, so it cannot be approved."
    return [
        section(asked),
        _reason(plan),
        {"type": "actions", "block_id": f"sre_{plan.id}"[:255], "elements": elements},
    ]


def _special(incident: Incident, plan: Plan, value: str) -> list[Block]:
    """The buttons that only some plans have: to break the glass of a freeze window, to take an approval back."""
    approvals = incident.approvals
    if approvals is None or plan.by_person:
        return []
    found = []
    if any(s.break_glass and s.stops_change(asked_for=approvals.asked_for) for s in approvals.freezes):
        found.append(button("Break glass and approve", BREAK_GLASS, value=value, style="danger") | _REALLY_BREAK)
    if approvals.given:
        found.append(button("Withdraw my approval", WITHDRAW, value=value))
    return found


def _withdrawal(request: str) -> Block:
    """The button of whoever asked, for as long as nobody approved it; who presses is checked then."""
    value = json.dumps({"request": request}, separators=(",", ":"))
    back = button("Withdraw this request", WITHDRAW_REQUEST, value=value)
    return {"type": "actions", "block_id": f"sre_back_{request}"[:255], "elements": [back]}


def reason_block(plan_id: str) -> str:
    """Return the id of the block in which a reason is typed.

    The same in every version of the message, and another for another plan: Slack keeps what somebody types by block and
    action (https://github.com/slackapi/bolt-js/issues/1372, 2026-11-21), so that an update in between loses nothing and
    no reason is taken for another plan's. Not promised by Slack: it recommends a new id with each update.
    """
    return f"sre_why_{plan_id}"[:255]


def _reason(plan: Plan) -> Block:
    """Where a reason may be typed; it comes with the press, and typing alone sends nothing."""
    element = {"type": "plain_text_input", "action_id": REASON, "multiline": False, "max_length": REASON_CHARS}
    element["placeholder"] = _plain("What should be tried instead, or why it cannot wait")
    label = _plain("Reason: optional to reject, required to break the glass of a freeze window")
    return {"type": "input", "block_id": reason_block(plan.id), "optional": True, "label": label, "element": element}


def button(label: str, action: str, *, value: str = "", style: str = "", url: str = "") -> Block:
    """Return a button; an empty value, style or address is left out."""
    made: Block = {"type": "button", "action_id": action, "text": _plain(label)}
    return made | {k: v for k, v in (("value", value), ("style", style), ("url", url)) if v}


def details_button(console_url: str, path: str) -> list[Block]:
    """Return the button that opens a page of the console; none where the console has no address."""
    if not console_url.startswith(("https://", "http://")):
        return []
    return [button("Details", DETAILS, url=f"{console_url.rstrip('/')}/{path}")]


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": slack_plain(text, limit=280), "emoji": False}


_CONFIRM: Final[Block] = {
    "title": _plain("Apply a change of high risk?"),
    "text": _plain("Its outcome is not proven; the message says why."),
    "confirm": _plain("Apply"),
    "deny": _plain("Not yet"),
}


_REALLY_BREAK: Final[Block] = {
    "confirm": {
        "title": _plain("Approve in the freeze window?"),
        "text": _plain("The reason that you typed is kept in the audit record, with your name."),
        "confirm": _plain("Break the glass"),
        "deny": _plain("Not now"),
    }
}


def header(title: str) -> Block:
    """Return the title of a message."""
    return {"type": "header", "text": {"type": "plain_text", "text": slack_plain(title, limit=150), "emoji": False}}


def section(text: str) -> Block:
    """Return a paragraph; the text is Slack's mrkdwn, made harmless before."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _context(lines: list[str], incident: Incident) -> Block:
    shown = [
        *lines,
        slack_mrkdwn(f"{incident.id} · {incident.cause} · {incident.revision or 'no revision'}", limit=300),
    ]
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": line, "verbatim": True} for line in shown]}


def _provisional(incident: Incident) -> str:
    return " (provisional diagnosis)" if incident.diagnosis and incident.diagnosis.provisional else ""


def _replayed(incident: Incident) -> str:
    return "" if incident.run == "live" else f" · replay {slack_mrkdwn(incident.run, limit=100)}"


def _value(value: str | None) -> str:
    return "(absent)" if value is None else (value or "on")
