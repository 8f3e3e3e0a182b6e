"""A press of a Slack button: signed, fresh, strictly read, and bound to exactly one plan."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from agent.core.decision.decision import Choice
from agent.core.decision.signed_request import Signed, check_slack
from agent.core.value import Value
from agent.errors import InputRejected
from agent.presentation.slack_card import (
    APPROVE,
    BREAK_GLASS,
    DETAILS,
    REASON,
    REASON_CHARS,
    REJECT,
    WITHDRAW,
    WITHDRAW_REQUEST,
    reason_block,
)
from agent.presentation.sweep.slack_message import APPROVE_SWEEP, REJECT_SWEEP
from agent.strict_json import read_object

BODY_LIMIT = 262_144  # bytes; a press carries the whole message that it was made on
REPLY_HOST = "hooks.slack.com"

_ANSWERS = {
    APPROVE: Choice.APPROVE,
    BREAK_GLASS: Choice.APPROVE,
    REJECT: Choice.REJECT,
    WITHDRAW: Choice.REJECT,  # whatever else was said, this approval does not count
}
_SWEEP_ANSWERS = {APPROVE_SWEEP: Choice.APPROVE, REJECT_SWEEP: Choice.REJECT}
_WITH_REASON = frozenset({REJECT, BREAK_GLASS})
_BUTTONS = frozenset({*_ANSWERS, *_SWEEP_ANSWERS, WITHDRAW_REQUEST})
_USER = re.compile(r"[UW][A-Z0-9]{2,20}")
_PLAN = re.compile(r"p-[A-Za-z0-9-]{1,80}")
_REQUEST = re.compile(r"rq-[A-Za-z0-9-]{1,80}")
_SWEEP = re.compile(r"sweep-[0-9a-f]{6,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TYPE = "application/x-www-form-urlencoded"


class Press(Value):
    """What somebody pressed.

    Attributes:
        user: Slack's id of the person; nothing else about them counts.
        answer: None for a button that is about no plan.
        request: The request that is taken back; empty for every other button.
        sweep: The load measurement that is answered; empty for every other button.
        withdraw: Whether an approval is taken back; the answer does not matter then.
        break_glass: Whether it is approved in spite of a freeze window.
        why: What was typed as the reason; untrusted text, perhaps none. Not read with a plain approval.
        reply_to: Where a word for this person alone may be sent; None where Slack names no place of its own.
    """

    signed: Signed
    user: str
    answer: Choice | None
    plan: str = ""
    plan_digest: str = ""
    request: str = ""
    sweep: str = ""
    withdraw: bool = False
    break_glass: bool = False
    why: str = ""
    reply_to: str | None = None


def press_of(headers: Mapping[str, str], body: bytes, *, secret: bytes, now: datetime) -> Press:
    """Read a press.

    Args:
        headers: Of the request, in any case.
        body: As it came.
        secret: The app's signing secret.
        now: The time, UTC.

    Raises:
        Unsigned: It does not come from our Slack app, or is older than five minutes.
        InputRejected: It comes from Slack and is no press of one of our buttons.
    """
    if len(body) > BODY_LIMIT:
        raise _odd(f"it has {len(body)} bytes, at most {BODY_LIMIT} are taken")
    signed = check_slack(headers, body, secret=secret, now=now)
    kind = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != _TYPE:
        raise _odd("it is no form")
    payload = _payload(body)
    if payload.get("type") != "block_actions":
        raise _odd("it is no press of a button")
    user = _text(payload.get("user"), "id", _USER)
    actions = payload.get("actions")
    if not isinstance(actions, list) or len(actions) != 1 or not isinstance(actions[0], dict):
        raise _odd("it holds not exactly one action")
    return _press(signed, user, actions[0], payload)


def _press(signed: Signed, user: str, action: dict[str, Any], payload: dict[str, Any]) -> Press:
    name = action.get("action_id")
    if name == DETAILS:
        return Press(signed=signed, user=user, answer=None)
    if not isinstance(name, str) or name not in _BUTTONS or action.get("type") != "button":
        raise _odd("it is none of our buttons")
    value = action.get("value")
    if not isinstance(value, str) or len(value) > 2000:
        raise _odd("the button has no value")
    named = read_object(value.encode("utf-8", "replace"), what="button", limit=2000)
    reply_to = _reply_to(payload.get("response_url"))
    if name == WITHDRAW_REQUEST:
        return Press(
            signed=signed, user=user, answer=None, request=_text(named, "request", _REQUEST), reply_to=reply_to
        )
    if name in _SWEEP_ANSWERS:
        sweep = _text(named, "sweep", _SWEEP)
        return Press(signed=signed, user=user, answer=_SWEEP_ANSWERS[name], sweep=sweep, reply_to=reply_to)
    if set(named) != {"plan", "digest"}:
        raise _odd("the button names no plan")
    plan, answer = _text(named, "plan", _PLAN), _ANSWERS[name]
    return Press(
        signed=signed,
        user=user,
        answer=answer,
        plan=plan,
        plan_digest=_text(named, "digest", _DIGEST),
        withdraw=name == WITHDRAW,
        break_glass=name == BREAK_GLASS,
        why=_reason(payload.get("state"), plan) if name in _WITH_REASON else "",
        reply_to=reply_to,
    )


def _reason(state: object, plan: str) -> str:
    """Read what was typed for this plan; nothing where the message has no such place, or nobody typed.

    The form is Slack's: ``state.values.BLOCK.ACTION`` with the element's type, and null for what was deleted
    (https://docs.slack.dev/changelog/2020-09-full-state-on-view-submisson-and-block-actions, 2026-11-21).
    """
    values = {} if state is None else _part(state, "values")
    if reason_block(plan) not in values:
        return ""
    typed = _part(_part(values, reason_block(plan)), REASON)
    text = typed.get("value")
    if typed.get("type") != "plain_text_input" or not isinstance(text, str | None):
        raise _odd("its reason is no text")
    if text is not None and len(text) > REASON_CHARS:
        raise _odd(f"its reason has {len(text)} characters, at most {REASON_CHARS} are taken")
    return (text or "").strip()


def _part(holder: object, name: str) -> dict[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, dict):
        raise _odd("what was typed beside the button is not of Slack's form")
    return found


def _payload(body: bytes) -> dict[str, Any]:
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=True, max_num_fields=8, errors="strict"
        )
    except ValueError as error:
        raise _odd("it is no form in ASCII") from error
    if [name for name, _ in fields] != ["payload"]:
        raise _odd("it has other fields than one payload")
    return read_object(fields[0][1].encode("utf-8", "replace"), what="payload of Slack", limit=BODY_LIMIT)


def _text(holder: object, name: str, pattern: re.Pattern[str]) -> str:
    value = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _odd(f"it has no {name} of Slack's form")
    return value


def _reply_to(url: object) -> str | None:
    """A signed payload names it; still only Slack's own host is ever written to."""
    if not isinstance(url, str) or len(url) > 1000:
        return None
    try:
        parts = urlsplit(url)
        own = parts.scheme == "https" and parts.netloc == REPLY_HOST and not parts.fragment
    except ValueError:
        return None
    return url if own else None


def _odd(why: str) -> InputRejected:
    return InputRejected(
        "the press was not read", why=why, hint="use the buttons of the message; see docs/slack.md for the set-up"
    )
