"""The budget: what all watched services together may cost after a change; a price that nobody knows is doubt."""

from collections.abc import Iterator

from agent.core.plan.action import NO_SERVICE, applied
from agent.core.plan.plan import Plan
from agent.core.service.serving import ServingConfig
from agent.errors import InputRejected, PolicyRefused
from agent.ports.stage_context import StageContext


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
    budgets = list(_budgets(context, plan.target.service))
    after = applied(live, plan.actions)
    if not budgets or plan.by_person or not _raises(context, live, after):
        return ""
    prices: dict[str, float | None] = {plan.target.service: hourly_cost(context, after)}
    for whose, names, budget in budgets:
        for name in names:
            if name not in prices:
                prices[name] = _cost_now(context, name)
        unknown = [name for name in names if prices[name] is None]
        if unknown:
            return (
                f"the price of {' and '.join(repr(name) for name in unknown)} is unknown, so nobody can tell whether "
                f"the budget of {budget:.2f} USD/h of {whose} is kept"
            )
        total = sum(price for name in names if (price := prices[name]) is not None)
        if total > budget:
            return f"{whose} would cost {total:.2f} USD/h with it, and the budget is {budget:.2f} USD/h"
    return ""


def hourly_cost(context: StageContext, config: ServingConfig) -> float | None:
    """Return the USD of an hour in which a service runs all the instances that it may; None where nobody knows."""
    if config == NO_SERVICE:
        return 0.0
    price = context.rules.fits.cost_usd_per_h(config)
    most = config.max_instances if config.max_instances is not None else 1
    return 0.0 if most == 0 else price * most if price is not None else None


def _budgets(context: StageContext, service: str) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """The budgets that a service counts for: whose each is, its services, and USD per hour."""
    policy = context.rules.policy
    watched = (service, *(s.name for s in context.rules.services.services if s.name != service))
    if policy.budget_usd_per_h is not None:
        yield "all watched services", watched, policy.budget_usd_per_h
    for limit in policy.limits_of(service):
        if limit.budget_usd_per_h is not None:
            yield f"{limit.name!r}", tuple(n for n in watched if limit.covers(n)), limit.budget_usd_per_h


def _raises(context: StageContext, before: ServingConfig, after: ServingConfig) -> bool:
    """Whether a change may make the service cost more; where the price is unknown, unless nothing priced changes."""
    old, new = hourly_cost(context, before), hourly_cost(context, after)
    if old is None or new is None:
        return _priced(before) != _priced(after)
    return new > old


def _priced(config: ServingConfig) -> tuple[object, ...]:
    return config.accelerator, config.accelerator_count, config.cpu, config.memory_mib, config.max_instances


def _cost_now(context: StageContext, service: str) -> float | None:
    try:
        live = context.live(service)
    except (InputRejected, PolicyRefused):
        return None
    return hourly_cost(context, live.config) if live is not None else None
