"""A load measurement in Slack, over Slack's own wire: told once, approved by a press, refused to who asked."""

import threading
from dataclasses import replace

import pytest
from slack_sdk import WebClient
from werkzeug.serving import make_server

from agent.adapters.notifier.slack import SlackNotifier
from agent.core.decision.decision import Channel
from agent.core.decision.policy import Approver, Policy
from agent.entrypoints.http.decide import beside
from agent.entrypoints.http.decide_service import DecideService
from agent.errors import DependencyFailed
from agent.ports.notifier import SweepNotifier
from agent.presentation.sweep.slack_message import APPROVE_SWEEP
from agent.stages.decide_sweep import ask_sweep, asked_sweep
from tests.agent.stages.conftest import SERVICE, Bench
from tests.agent.stages.test_decide_sweep import a_sweep
from tests.journeys import fake_slack

SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
PEOPLE = tuple(Approver(name=name, slack=f"U0{name.upper()}", services=(SERVICE,)) for name in ("Ada", "Ben"))


@pytest.fixture
def slack():
    found = fake_slack.FakeSlack(SECRET)
    yield found
    found.close()


def notifier_of(slack: fake_slack.FakeSlack) -> SlackNotifier:
    client = WebClient(token=fake_slack.TOKEN, base_url=slack.url, retry_handlers=[])
    return SlackNotifier(client, channel="C0SRE", redact=str, console_url="https://console.example.com")


def test_it_is_told_once_and_approved_by_a_press(slack) -> None:
    """By the person whom the policy names, not by who asked."""
    bench, replies = Bench(), []
    context = replace(bench.executor, local=False, rules=replace(bench.executor.rules, policy=Policy(approvers=PEOPLE)))
    sweep = a_sweep(asker="U0BEN", channel=Channel.SLACK)
    ask_sweep(context, sweep)
    notifier = notifier_of(slack)
    assert isinstance(notifier, SweepNotifier)
    notifier.tell_sweep(sweep, answered="", reference=None)
    assert (len(slack.messages), slack.errors) == (1, [])
    collapsed = []
    gate = DecideService(
        context=context, clock=bench.clock, slack_secret=SECRET, reply=lambda _url, text: replies.append(text),
        replace=lambda _url, message: collapsed.append(message),
    )  # fmt: skip
    server = make_server("127.0.0.1", 0, beside(lambda _environ, _start: [], gate), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/slack/actions"
        for user in ("U0BEN", "U0ADA", "U0BEN"):
            bench.clock.step(1)
            slack.press(url, APPROVE_SWEEP, user=user, now=bench.clock.now())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert "who asks does not approve" in replies[0]
    assert replies[1].endswith("is approved; it starts when its command runs.")
    assert asked_sweep(context, sweep.request.id).grant.approver == "U0ADA"
    assert "was not answered again" in replies[2]
    for message in collapsed:  # by the answer itself, and by a press on what somebody answered elsewhere
        assert fake_slack.problems(message) == []
        assert all(block["type"] != "actions" for block in message["blocks"])
        assert "Approved by Ada; it starts when its command runs." in message["text"]
    assert len(collapsed) == 2


def test_slack_that_refuses_is_an_error_that_telling_survives(slack) -> None:
    """Typed; who asks goes on without it."""
    slack.refuse = "channel_not_found"
    with pytest.raises(DependencyFailed, match="channel_not_found"):
        notifier_of(slack).tell_sweep(a_sweep(), answered="", reference=None)
