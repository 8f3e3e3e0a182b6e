"""A load measurement that waits for an answer, as one Slack message: what would be sent, what it costs, two buttons."""

import json
from collections.abc import Callable
from typing import Any, Final

from agent.core.sweep.sweep import Sweep
from agent.core.text.safe_text import slack_code, slack_mrkdwn
from agent.presentation.slack_card import button, details_button, header, section
from agent.presentation.sweep.plan_text import plan_lines

APPROVE_SWEEP: Final = "sre_sweep_approve"
REJECT_SWEEP: Final = "sre_sweep_reject"


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
    buttons = [
        button("Approve", APPROVE_SWEEP, value=value, style="primary"),
        button("Reject", REJECT_SWEEP, value=value, style="danger"),
        *details_button(console_url, f"sweeps/{request.id}"),
    ]
    plan = redact("\n".join(plan_lines(sweep)))
    actions = {"type": "actions", "block_id": f"sre_{request.id}"[:255], "elements": buttons}
    return {
        "text": slack_mrkdwn(f"{title}: {says}", limit=1000),
        "blocks": [
            header(title),
            section(slack_mrkdwn(says, limit=1500)),
            section(slack_code(plan, limit=2800)),
            *([] if answered else [actions]),
        ],
    }
