"""Whose word counts: a proven name must be listed for the service, and an empty list lists nobody."""

import pytest

from agent.core.policy import Approver, Policy
from agent.entrypoints.web.identity import Person
from agent.entrypoints.web.permission import may_not_decide

ADA = Person(name="ada@example.com", verified=True)


def policy(*services, email="ada@example.com"):
    slack = None if email else "U0ADA"  # an approver has some identity, perhaps none that this page can prove
    return Policy(approvers=(Approver(name="Ada", email=email, slack=slack, services=services),))


@pytest.mark.parametrize("services", [("gemma4-26b-qat-l4",), ("gemma4-*",), ("other", "gemma4-?6b-*")])
def test_a_listed_approver_of_the_service_may(stage, services):
    plan = stage.waiting().plan
    assert may_not_decide(policy(*services), ADA, plan) == ""


@pytest.mark.parametrize(
    "made",
    [Policy(), policy(), policy("*"), policy("other"), policy("gemma4-*", email="eve@example.com"), policy("gemma4-*", email=None)],
    ids=["no approvers", "no services", "a star alone", "another service", "somebody else", "no e-mail"],
)  # fmt: skip
def test_everybody_else_may_not(stage, made):
    assert may_not_decide(made, ADA, stage.waiting().plan)


def test_the_operator_of_this_machine_may_without_a_list(stage):
    assert may_not_decide(Policy(), Person(name="ada", verified=False), stage.waiting().plan) == ""
