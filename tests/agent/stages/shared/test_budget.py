"""No approved change makes all watched services together cost more than the budget; doubt about a price refuses."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.change.execution import UNDO_VALID, EffectKind
from agent.core.decision.decision import Channel, Choice
from agent.core.decision.policy import Approver, Policy
from agent.core.decision.rule import ServiceLimit
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetScaling
from agent.core.service.services import Service, Services
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.control import ReceiptUse
from agent.presentation.freeze_text import budget_line
from agent.stages.ask import approvals_for
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.shared.budget import budget_refusal, budget_uses, over_budget
from agent.stages.shared.outcome import StageOutcome
from tests.agent.stages.conftest import Arithmetic
from tests.contracts import values as make

L4, H100 = 0.71, 3.0
ADA = Approver(name="Ada", email="ada@example.com", services=("svc",))
BY_ADA = {"who": "ada@example.com", "channel": Channel.CONSOLE, "verified": True}


class Priced(Arithmetic):
    """Prices of an instance's hour by accelerator."""

    def cost_usd_per_h(self, _service, config):
        return {"nvidia-l4": L4, "nvidia-h100-80gb": H100}.get(config.accelerator)


def watched(name):
    return Service(name=name, platform="host", model="m", accelerator="nvidia-l4", owner="console")


@pytest.fixture
def fleet(bench):
    """The service of the bench on an L4, one instance at most, beside others."""

    def under(policy, **others):
        configs = {"svc": ServingConfig(accelerator="nvidia-l4", max_instances=1, concurrency=4), **others}
        bench.platform.live = bench.platform.live.with_(config=configs["svc"])

        def platform_of(name):
            if configs.get(name) == "down":
                raise DependencyFailed("x", why="y", hint="z")
            if name != "svc" and configs.get(name) is None:
                return None
            live = bench.platform.live.with_(service=name, config=configs[name]) if name != "svc" else None
            return bench.platform if live is None else Described(live)

        services = Services(services=tuple(watched(name) for name in configs))
        bench.under(policy.with_(approvers=(ADA,)))
        rules = replace(bench.executor.rules, fits=Priced(), services=services)
        bench.executor = replace(bench.executor, rules=rules, platform_of=platform_of)
        return bench

    return under


class Described:
    def __init__(self, live):
        self.live = live

    def describe(self, _service):
        return self.live


def scaled(bench, most):
    """A plan that lets the service run so many instances."""
    live = bench.platform.live
    actions = (SetScaling(min_instances=0, max_instances=most),)
    from agent.core.plan.action import applied, difference

    return bench.plan(actions=actions, difference=difference(live.config, applied(live.config, actions)))


def says(bench, plan):
    return budget_refusal(bench.executor, plan, bench.platform.live.config)


def test_the_price_of_all_services_is_compared_with_the_budget(fleet):
    bench = fleet(Policy(budget_usd_per_h=5), other=ServingConfig(accelerator="nvidia-h100-80gb", max_instances=1))
    assert says(bench, scaled(bench, 2)) == ""
    assert (
        says(bench, scaled(bench, 3))
        == "all watched services would cost 5.13 USD/h with it, and the budget is 5.00 USD/h"
    )


def test_a_change_that_costs_no_more_is_never_over_budget(fleet):
    """Not even where the budget is broken already, or a price is unknown."""
    other = ServingConfig(accelerator="nvidia-h100-80gb", max_instances=9)
    bench = fleet(Policy(budget_usd_per_h=5), other=other, strange=ServingConfig(accelerator="x"))
    assert says(bench, bench.plan()) == ""
    bench = fleet(Policy(budget_usd_per_h=5), svc=ServingConfig(accelerator="x", concurrency=4))
    assert says(bench, bench.plan()) == ""


@pytest.mark.parametrize(
    "other", [ServingConfig(accelerator="x"), ServingConfig(image="x"), None], ids=["no price", "cpu", "no adapter"]
)
def test_a_price_that_nobody_knows_refuses_what_costs_more(fleet, other):
    bench = fleet(Policy(budget_usd_per_h=5), other=other)
    assert says(bench, scaled(bench, 2)) == (
        "the price of 'other' is unknown, so nobody can tell whether the budget of 5.00 USD/h of all watched services is kept"
    )


def test_a_service_that_may_run_no_instance_costs_nothing(fleet):
    off = ServingConfig(accelerator="x", max_instances=1).model_copy(update={"max_instances": 0})
    bench = fleet(Policy(budget_usd_per_h=5), other=off)
    assert says(bench, scaled(bench, 2)) == ""


def test_the_budget_of_a_group_counts_its_services_alone(fleet):
    limit = ServiceLimit(name="prod", services=("svc", "prod-*"), budget_usd_per_h=2)
    one = ServingConfig(accelerator="nvidia-l4", max_instances=1)
    bench = fleet(Policy(limits=(limit,)), **{"prod-a": one, "dev": ServingConfig(accelerator="x")})
    assert says(bench, scaled(bench, 2)) == "'prod' would cost 2.13 USD/h with it, and the budget is 2.00 USD/h"


def test_the_executor_refuses_what_is_over_budget_and_people_read_it_before(fleet):
    bench = fleet(Policy(budget_usd_per_h=1))
    plan = scaled(bench, 2)
    asked = bench.asked(actions=plan.actions, difference=plan.difference, policy=bench.executor.rules.policy.digest)
    shown = approvals_for(bench.executor, asked.plan, bench.clock.now())
    over = "all watched services would cost 1.42 USD/h with it, and the budget is 1.00 USD/h"
    assert budget_line(shown) == f"Over budget: {over}."
    bench.answer("p-a-1", Choice.APPROVE, **BY_ADA)
    begin_execution(bench.executor, bench.now())
    assert (bench.now().phase, over in bench.now().ended_why) == (Phase.REFUSED, True)
    assert bench.platform.calls == []


def test_of_two_changes_that_began_together_the_second_to_be_made_is_over_budget(fleet):
    """Neither saw the other when it began; the one that was made since is seen before the next call."""
    configs = {"other": ServingConfig(accelerator="nvidia-l4", max_instances=1)}
    bench = fleet(Policy(budget_usd_per_h=2.2), **configs)
    plan = scaled(bench, 2)
    bench.asked(actions=plan.actions, difference=plan.difference, policy=bench.executor.rules.policy.digest)
    bench.answer("p-a-1", Choice.APPROVE, **BY_ADA)
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING
    described = bench.executor.platform_of("other").live
    grown = Described(described.with_(config=described.config.with_(max_instances=2)))
    alone = bench.executor.platform_of
    bench.executor = replace(bench.executor, platform_of=lambda name: grown if name == "other" else alone(name))
    call_platform(bench.executor, bench.now())
    assert bench.platform.calls == []
    assert "would cost 2.84 USD/h with it" in bench.now().effect(EffectKind.APPLY).message


def approved(bench, most):
    plan = scaled(bench, most)
    bench.asked(actions=plan.actions, difference=plan.difference, policy=bench.executor.rules.policy.digest)
    bench.answer("p-a-1", Choice.APPROVE, **BY_ADA)
    return bench.now()


def growing(bench, **fields):
    """The intent of a change that lets the other service run two instances."""
    etag = bench.executor.platform_of("other").live.etag
    actions = (SetScaling(min_instances=0, max_instances=2),)
    whole = {"service": "other", "actions": actions, "etag": etag, "applied_at": bench.clock.now()}
    return make.intent("e-other", "d-other", **(whole | fields))


def test_a_change_that_has_begun_counts_as_made(fleet):
    """The platform still shows the other service as it was; its change is stored and will be made."""
    bench = fleet(Policy(budget_usd_per_h=2.2), other=ServingConfig(accelerator="nvidia-l4", max_instances=1))
    approved(bench, 2)
    bench.executor.control_store().begin(growing(bench))
    begin_execution(bench.executor, bench.now())
    assert (bench.now().phase, "would cost 2.84 USD/h with it" in bench.now().ended_why) == (Phase.REFUSED, True)


@pytest.mark.parametrize("how", ["refused", "made or overtaken", "of yesterday"])
def test_a_change_that_will_not_be_made_any_more_does_not_count(fleet, how):
    bench = fleet(Policy(budget_usd_per_h=2.2), other=ServingConfig(accelerator="nvidia-l4", max_instances=1))
    approved(bench, 2)
    changed = {
        "made or overtaken": {"etag": "an older one"},
        "of yesterday": {"applied_at": bench.clock.now() - UNDO_VALID - timedelta(seconds=1)},
    }
    control = bench.executor.control_store()
    control.begin(growing(bench, **changed.get(how, {})))
    if how == "refused":
        control.close_intent("e-other", "refused")
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING


def test_of_two_changes_that_are_checked_at_the_same_moment_one_begins(fleet):
    """The other change begins after the budget was checked and before this one is stored: it is checked again."""
    bench = fleet(Policy(budget_usd_per_h=2.2), other=ServingConfig(accelerator="nvidia-l4", max_instances=1))
    approved(bench, 2)
    control, rival = bench.executor.control_store(), growing(bench)
    raced: list[ReceiptUse] = []
    validate = bench.platform.validate

    def begins_meanwhile(order):
        raced.append(control.begin(rival).use)
        return validate(order)

    bench.platform.validate = begins_meanwhile
    assert begin_execution(bench.executor, bench.now()) is StageOutcome.WAITING
    assert (raced, bench.now().phase, bench.now().execution) == ([ReceiptUse.OURS], Phase.APPROVED, None)
    bench.platform.validate = validate
    begin_execution(bench.executor, bench.now())
    assert "would cost 2.84 USD/h with it" in bench.now().ended_why
    assert bench.platform.calls == []


def test_what_is_shown_as_over_budget_cannot_be_approved(fleet):
    bench = fleet(Policy(budget_usd_per_h=1))
    plan = scaled(bench, 2)
    asked = bench.asked(actions=plan.actions, difference=plan.difference)
    bench.put(asked.with_(approvals=approvals_for(bench.executor, asked.plan, bench.clock.now())))
    with pytest.raises(PolicyRefused, match=r"the budget is 1\.00 USD/h"):
        bench.answer("p-a-1", Choice.APPROVE, **BY_ADA)
    bench.answer("p-a-1", Choice.REJECT, why="too dear", **BY_ADA)
    assert bench.now().phase is Phase.REJECTED


def test_a_platform_that_does_not_answer_decides_nothing(fleet):
    """The executor tries again; people are asked meanwhile."""
    bench = fleet(Policy(budget_usd_per_h=5), other="down")
    plan = scaled(bench, 2)
    asked = bench.asked(actions=plan.actions, difference=plan.difference, policy=bench.executor.rules.policy.digest)
    assert approvals_for(bench.executor, asked.plan, bench.clock.now()).over_budget == ""
    bench.answer("p-a-1", Choice.APPROVE, **BY_ADA)
    with pytest.raises(DependencyFailed):
        begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPROVED


def test_what_is_used_of_each_budget_is_counted_as_it_is_enforced(fleet):
    limit = ServiceLimit(name="prod", services=("svc",), budget_usd_per_h=2)
    policy = Policy(budget_usd_per_h=5, limits=(limit, ServiceLimit(name="x", services=("svc",), max_instances=3)))
    bench = fleet(policy, other=ServingConfig(accelerator="nvidia-h100-80gb", max_instances=1), strange="down")
    used = [(u.whose, u.usd_per_h, round(u.used_usd_per_h, 2), u.unknown) for u in budget_uses(bench.executor)]
    assert used == [("", 5, L4 + H100, ("strange",)), ("prod", 2, L4, ())]


def test_many_candidates_describe_every_service_once(fleet):
    """Planning asks about each candidate; a platform that does not answer bars none of them."""
    bench = fleet(Policy(budget_usd_per_h=5), other=ServingConfig(accelerator="nvidia-h100-80gb", max_instances=1))
    asked = []
    platform_of = bench.executor.platform_of
    counted = replace(bench.executor, platform_of=lambda name: asked.append(name) or platform_of(name))
    over = over_budget(counted, "svc", bench.platform.live.config)
    said = [over((SetScaling(min_instances=0, max_instances=most),)) for most in (1, 2, 3, 4)]
    assert [bool(why) for why in said] == [False, False, True, True]
    assert asked == ["other"]
    down = fleet(Policy(budget_usd_per_h=5), other="down")
    assert over_budget(down.executor, "svc", down.platform.live.config)(scaled(down, 4).actions) == ""
