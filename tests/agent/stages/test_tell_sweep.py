"""A load measurement stands in Slack once, and its buttons go wherever it is answered; over Slack's own wire."""

import threading
from dataclasses import replace

import pytest

from agent.core.decision.decision import Choice
from agent.stages.decide_sweep import answer_sweep, ask_sweep
from agent.stages.tell_sweep import tell_sweep
from tests.agent.stages.conftest import Bench
from tests.agent.stages.test_decide_sweep import a_sweep, word
from tests.agent.stages.test_grant_sweep import POLICY, TWO
from tests.journeys import fake_slack
from tests.journeys.test_sweep_in_slack import SECRET, notifier_of


@pytest.fixture
def slack():
    found = fake_slack.FakeSlack(SECRET)
    yield found
    found.close()


@pytest.fixture
def where(slack):
    """An installation with a Slack notifier, and one sweep that Ada asks for."""
    bench = Bench()
    context = replace(bench.executor, local=False, rules=replace(bench.executor.rules, policy=POLICY))
    context = replace(context, notifiers={"slack": notifier_of(slack), "deaf": object()})
    ask_sweep(context, a_sweep())
    return context


def message(slack):
    (found,) = slack.messages.values()
    return found


def buttons(found):
    return [block for block in found["blocks"] if block["type"] == "actions"]


@pytest.mark.parametrize("answer", list(Choice))
def test_an_answer_from_elsewhere_takes_the_buttons_off(where, slack, answer):
    sweep = a_sweep().request.id
    tell_sweep(where, sweep)
    tell_sweep(where, sweep)
    assert buttons(message(slack))
    answer_sweep(where, word(answer=answer))
    tell_sweep(where, sweep)
    assert not buttons(message(slack))
    said = {Choice.APPROVE: "Approved by", Choice.REJECT: "Rejected by"}[answer]
    assert f"{said} {POLICY.approvers[1].name}" in message(slack)["text"]
    assert slack.errors == []


def test_while_another_person_must_approve_the_buttons_stay(where, slack):
    context = replace(where, rules=replace(where.rules, policy=TWO))
    sweep = a_sweep().request.id
    tell_sweep(context, sweep)
    answer_sweep(context, word())
    tell_sweep(context, sweep)
    assert buttons(message(slack))


def test_what_nobody_was_told_of_is_not_told_when_it_is_over(where, slack):
    answer_sweep(where, word())
    tell_sweep(where, a_sweep().request.id)
    assert slack.messages == {}


def test_a_slack_that_refuses_holds_nothing_up(where, slack):
    """Nor does a sweep that is on nobody's record."""
    slack.refuse = "channel_not_found"
    tell_sweep(where, a_sweep().request.id)
    tell_sweep(where, "sweep-000000000000")
    slack.refuse = ""
    tell_sweep(where, a_sweep().request.id)
    assert buttons(message(slack))


class Meanwhile:
    """A notifier during whose first call somebody else, in another process or thread, does something."""

    def __init__(self, inner, act):
        self.inner, self.act, self.acts = inner, act, 0

    def tell_sweep(self, sweep, *, answered, reference):
        self.acts += 1
        if self.acts == 1:
            other = threading.Thread(target=self.act)
            other.start()
            other.join()
        return self.inner.tell_sweep(sweep, answered=answered, reference=reference)


@pytest.mark.parametrize("answer", list(Choice))
def test_an_answer_while_the_first_message_is_on_its_way_takes_its_buttons_off(where, slack, answer):
    """Whoever answers sees no message yet; who posted it looks again."""
    sweep = a_sweep().request.id

    def answered():
        answer_sweep(where, word(answer=answer))
        tell_sweep(where, sweep)

    tell_sweep(replace(where, notifiers={"slack": Meanwhile(notifier_of(slack), answered)}), sweep)
    assert not buttons(message(slack))
    assert f"by {POLICY.approvers[1].name}" in message(slack)["text"]


def test_two_who_tell_at_once_post_once(where, slack):
    """As after the first of two approvals, while the first message is still on its way."""
    sweep = a_sweep().request.id
    notifier = Meanwhile(notifier_of(slack), lambda: tell_sweep(where, sweep))
    tell_sweep(replace(where, notifiers={"slack": notifier}), sweep)
    assert buttons(message(slack))
    assert slack.errors == []
