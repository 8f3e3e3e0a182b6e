"""Whose word counts: a proven name must be listed for the service, and the page offers no more than `decide` takes."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel, Choice, Person
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.entrypoints.console.permission import may_not_approve, may_not_decide
from agent.errors import PolicyRefused
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision

ADA = Person(who="ada@example.com", channel=Channel.CONSOLE, verified=True)


def under(stage, made):
    """The world of the stage, under another policy."""
    return replace(stage.world, rules=replace(stage.world.rules, policy=made))


def policy(*services, email="ada@example.com"):
    slack = None if email else "U0ADA"  # an approver has some identity, perhaps none that this page can prove
    return Policy(approvers=(Approver(name="Ada", email=email, slack=slack, services=services),))


@pytest.mark.parametrize("services", [("gemma4-26b-qat-l4",), ("gemma4-*",), ("other", "gemma4-?6b-*")])
def test_a_listed_approver_of_the_service_may(stage, services):
    plan = stage.waiting().plan
    assert may_not_decide(under(stage, policy(*services)), ADA, plan) == ""


@pytest.mark.parametrize(
    "made",
    [Policy(), policy(), policy("other"), policy("gemma4-*", email="eve@example.com"), policy("gemma4-*", email=None)],
    ids=["no approvers", "no services", "another service", "somebody else", "no e-mail"],
)  # fmt: skip
def test_everybody_else_may_not(stage, made):
    assert may_not_decide(under(stage, made), ADA, stage.waiting().plan)


def test_the_operator_of_this_machine_may_without_a_list(stage):
    assert (
        may_not_decide(
            under(stage, Policy()), Person(who="ada", channel=Channel.CONSOLE, verified=False), stage.waiting().plan
        )
        == ""
    )


NEVER = Rule(services=("gemma4-*",), kinds=("set_*",), mode=Mode.NEVER)
WHOLE = Approver(name="Ada", slack="U0ADA", webhook="pager", email="ada@example.com", services=("gemma4-*",))


@pytest.mark.parametrize(
    ("asked_by", "rules", "says"),
    [
        ("Ada@Example.com", (), "who asks does not approve"),
        ("U0ADA", (), "who asks does not approve"),
        ("pager", (), "who asks does not approve"),
        ("ada", (), "who asks does not approve"),
        (None, (NEVER,), "never allows"),
        ("ben@example.com", (), ""),
    ],
)
def test_the_page_offers_to_approve_exactly_what_decide_takes(stage, asked_by, rules, says):
    """The asker is known by all of their names, and what policy never allows has no button."""
    incident = stage.waiting(plan={"asked_by": asked_by})
    world = under(stage, Policy(approvers=(WHOLE,), rules=rules))
    objection = may_not_approve(world, ADA, incident, incident.plan)
    assert says in objection
    assert may_not_decide(world, ADA, incident.plan) == ""
    word = DecisionRequest(plan=incident.plan.id, answer=Choice.APPROVE, by=ADA)
    if says:
        with pytest.raises(PolicyRefused, match=says):
            plan_to_decision(world, word)
    else:
        assert plan_to_decision(world, word).answer is Choice.APPROVE


def test_an_unproven_name_is_offered_nothing_where_it_does_not_count(stage):
    away = replace(under(stage, Policy()), local=False)
    assert may_not_decide(away, Person(who="ada", channel=Channel.CONSOLE, verified=False), stage.waiting().plan)
