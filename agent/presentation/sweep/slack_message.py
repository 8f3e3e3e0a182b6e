"""A load measurement that waits for an answer, as one Slack message: what would be sent, what it costs, two buttons."""

import json
from collections.abc import Callable
from typing import Any, Final

from agent.core.sweep.sweep import Sweep
from agent.core.text.safe_text import slack_code, slack_mrkdwn, slack_plain
from agent.presentation.sweep.plan_text import plan_lines

APPROVE_SWEEP: Final = "sre_sweep_approve"
REJECT_SWEEP: Final = "sre_sweep_reject"
_DETAILS: Final = "sre_plan_details"  # the button that is about no plan: its press is answered with nothing


def sweep_message(
    sweep: Sweep, *, redact: Callable[[str], str], console_url: str, answered: str = ""
) -> dict[str, Any]:
    """Return the text and blocks; the id of the request, which stands for every byte of it, is in both buttons.

    Args:
        sweep: What was asked for; names in it are untrusted.
        redact: Takes secrets out of a text.
        console_url: Where the console stands, for the Details button.
        answered: What became of it; then it has no buttons.
    """
    request = sweep.request
    title = redact(f"Load measurement of {request.service or request.endpoint}")
    asks = f"{redact(request.asker)} asks to send load to it."
    says = f"{asks} {redact(answered) or 'It runs once it is approved, within 24 hours.'}"
    value = json.dumps({"sweep": request.id}, separators=(",", ":"))
    buttons = [_button("Approve", APPROVE_SWEEP, value, "primary"), _button("Reject", REJECT_SWEEP, value, "danger")]
    if console_url.startswith(("https://", "http://")):
        url = f"{console_url.rstrip('/')}/sweeps/{request.id}"
        buttons.append({"type": "button", "action_id": _DETAILS, "text": _plain("Details"), "url": url})
    plan = redact("\n".join(plan_lines(sweep)))
    actions = {"type": "actions", "block_id": f"sre_{request.id}"[:255], "elements": buttons}
    return {
        "text": slack_mrkdwn(f"{title}: {says}", limit=1000),
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": slack_plain(title, limit=150), "emoji": False}},
            _section(slack_mrkdwn(says, limit=1500)),
            _section(slack_code(plan, limit=2800)),
            *([] if answered else [actions]),
        ],
    }


def _button(label: str, action: str, value: str, style: str) -> dict[str, Any]:
    return {"type": "button", "action_id": action, "text": _plain(label), "value": value, "style": style}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}
