"""The budget: what all watched services together may cost after a change; a price that nobody knows is doubt."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from agent.core.change.execution import UNDO_VALID, Intent
from agent.core.plan.action import NO_SERVICE, Action, applied
from agent.core.plan.plan import Plan
from agent.core.service.serving import Live, ServingConfig
from agent.core.value import Value
from agent.errors import InputRejected, PolicyRefused, SreError
from agent.ports.clock import machine_time
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import refused

Prices = Callable[[str], float | None]
"""USD of an hour of a watched service as it is now; None where nobody knows."""


def budget_refusal(context: StageContext, plan: Plan, live: ServingConfig) -> str:
    """Return why a change would break a budget, or nothing; one that does not raise the cost breaks none.

    What counts is the price of an hour in which every service runs as many instances as it may.

    Args:
        context: Of an owner that describes services and has the prices.
        plan: What would be done.
        live: The configuration of its service now.

    Raises:
        DependencyFailed: A platform did not describe a service of the budget; ask again.
    """
    if plan.by_person:
        return ""
    return _refusal(context, plan.target.service, plan.actions, live, lambda name: cost_now(context, name))


def check_budget(context: StageContext, plan: Plan, live: Live) -> int | None:
    """Refuse an approved change that would break a budget; asked as it begins, and again right before it is made.

    A change that has begun counts as made, so that two that begin together do not break a budget between them.

    Returns:
        How many changes had begun when it was asked, for :meth:`agent.ports.control.ControlStore.begin`; None where no
        budget counts.

    Raises:
        PolicyRefused: It would, as all services are now and will be when what has begun is made.
        DependencyFailed: A platform did not describe a service of the budget, or the control database did not answer;
            ask again.
    """
    if plan.by_person or not has_budget(context, plan.target.service):
        return None
    begun = context.control_store().begun(machine_time(context.clock) - UNDO_VALID)

    def price(name: str) -> float | None:
        return cost_now(context, name, begun=begun.intents)

    over = _refusal(context, plan.target.service, plan.actions, live.config, price)
    if over:
        raise refused(plan, over, "raise budget_usd_per_h in policy.toml, or reject the plan")
    return begun.count


def over_budget(context: StageContext, service: str, live: ServingConfig) -> Callable[[tuple[Action, ...]], str]:
    """Return what says of actions on a service why they would break a budget, as far as that can be told now.

    Each service is described once, when it is first needed. Where one cannot be, nothing is said: the executor asks
    again before anything is changed.

    Args:
        context: Of an owner that describes services and has the prices.
        service: What would be changed.
        live: Its configuration now.
    """
    prices = cache(lambda name: cost_now(context, name))

    def said(actions: tuple[Action, ...]) -> str:
        try:
            return _refusal(context, service, actions, live, prices)
        except SreError:
            return ""

    return said


class BudgetUse(Value):
    """A budget with what its services may cost now.

    Attributes:
        whose: Of a limit of the policy; empty for the budget over all.
        usd_per_h: The budget.
        used_usd_per_h: What the services whose price is known may cost together.
        unknown: Those whose price nobody knows.
    """

    whose: str
    usd_per_h: float
    used_usd_per_h: float
    unknown: tuple[str, ...] = ()


def budget_uses(context: StageContext) -> tuple[BudgetUse, ...]:
    """Return every budget of the policy with what is used of it; who cannot describe a service does not know it."""
    policy = context.rules.policy
    names = tuple(service.name for service in context.rules.services.services)
    budgets = [("", names, policy.budget_usd_per_h)]
    budgets += [(m.name, tuple(filter(m.covers, names)), m.budget_usd_per_h) for m in policy.limits]
    prices = cache(lambda name: _known_cost(context, name))
    return tuple(
        BudgetUse(
            whose=whose,
            usd_per_h=budget,
            used_usd_per_h=sum(price for name in own if (price := prices(name)) is not None),
            unknown=tuple(name for name in own if prices(name) is None),
        )
        for whose, own, budget in budgets
        if budget is not None
    )


def _known_cost(context: StageContext, service: str) -> float | None:
    try:
        return cost_now(context, service)
    except SreError:
        return None


def has_budget(context: StageContext, service: str) -> bool:
    """Whether the policy names any budget that a service counts for."""
    return next(budgets_of(context, service), None) is not None


def _refusal(
    context: StageContext, service: str, actions: tuple[Action, ...], live: ServingConfig, price_now: Prices
) -> str:
    budgets = list(budgets_of(context, service))
    if not budgets:
        return ""
    after = applied(live, actions)
    if not _raises(context, service, live, after):
        return ""
    own = hourly_cost(context, service, after)
    for whose, names, budget in budgets:
        prices = {name: own if name == service else price_now(name) for name in names}
        unknown = [name for name, price in prices.items() if price is None]
        if unknown:
            return (
                f"the price of {' and '.join(repr(name) for name in unknown)} is unknown, so nobody can tell whether "
                f"the budget of {budget:.2f} USD/h of {whose} is kept"
            )
        total = sum(price for price in prices.values() if price is not None)
        if total > budget:
            return f"{whose} would cost {total:.2f} USD/h with it, and the budget is {budget:.2f} USD/h"
    return ""


def hourly_cost(context: StageContext, service: str, config: ServingConfig) -> float | None:
    """Return the USD of an hour in which a service runs all the instances that it may; None where nobody knows."""
    if config == NO_SERVICE:
        return 0.0
    price = context.rules.fits.cost_usd_per_h(service, config)
    most = config.max_instances if config.max_instances is not None else 1
    return 0.0 if most == 0 else price * most if price is not None else None


def budgets_of(context: StageContext, service: str) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """The budgets that a service counts for: whose each is, its services, and USD per hour."""
    policy = context.rules.policy
    watched = (service, *(s.name for s in context.rules.services.services if s.name != service))
    if policy.budget_usd_per_h is not None:
        yield "all watched services", watched, policy.budget_usd_per_h
    for limit in policy.limits_of(service):
        if limit.budget_usd_per_h is not None:
            yield f"{limit.name!r}", tuple(n for n in watched if limit.covers(n)), limit.budget_usd_per_h


def _raises(context: StageContext, service: str, before: ServingConfig, after: ServingConfig) -> bool:
    """Whether a change may make the service cost more; where the price is unknown, unless nothing priced changes."""
    old, new = hourly_cost(context, service, before), hourly_cost(context, service, after)
    if old is None or new is None:
        return _priced(before) != _priced(after)
    return new > old


def _priced(config: ServingConfig) -> tuple[object, ...]:
    return config.accelerator, config.accelerator_count, config.cpu, config.memory_mib, config.max_instances


def cost_now(context: StageContext, service: str, *, begun: Sequence[Intent] = ()) -> float | None:
    """Return what an hour of a service may cost as it is now; None where nobody knows.

    Args:
        context: Of an owner that describes services and has the prices.
        service: Its name.
        begun: Intents of changes that have begun. One that was not made yet counts where the service costs more with
            it. It can be made only while the service has the etag that the intent names.

    Raises:
        DependencyFailed: Its platform did not describe it.
    """
    try:
        live = context.live(service)
    except (InputRejected, PolicyRefused):
        return None
    if live is None:
        return None
    awaited = [i.actions for i in begun if i.service == service and i.etag == live.etag]
    costs = [
        hourly_cost(context, service, config) for config in (live.config, *(applied(live.config, a) for a in awaited))
    ]
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None
