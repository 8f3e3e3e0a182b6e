"""A load measurement in Slack: what would be sent, two buttons with its id, and nothing of others that acts."""

import json

from agent.presentation.sweep.slack_message import APPROVE_SWEEP, REJECT_SWEEP, sweep_message
from tests.agent.stages.test_decide_sweep import a_sweep


def test_the_plan_and_two_buttons() -> None:
    """The buttons carry the id of the request, Details leads to its page."""
    sweep = a_sweep()
    shown = sweep_message(sweep, redact=str, console_url="https://sre.example")
    approve, reject, details = shown["blocks"][-1]["elements"]
    assert [approve["action_id"], reject["action_id"]] == [APPROVE_SWEEP, REJECT_SWEEP]
    assert json.loads(approve["value"]) == json.loads(reject["value"]) == {"sweep": sweep.request.id}
    assert details["url"] == f"https://sre.example/sweeps/{sweep.request.id}"
    assert "at most 2 cells, 20 minutes and 1 USD of load" in shown["blocks"][2]["text"]["text"]
    assert shown["text"].startswith("Load measurement of svc: ada")


def test_names_of_others_mention_nobody_and_keep_no_secret() -> None:
    """An AI client chose its name."""
    sweep = a_sweep(asker="<!channel> <https://evil.example|ok> hunter2")
    shown = json.dumps(sweep_message(sweep, redact=lambda text: text.replace("hunter2", "[secret]"), console_url=""))
    assert "<!channel>" not in shown
    assert "<https" not in shown
    assert "hunter2" not in shown
