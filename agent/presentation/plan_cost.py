"""What a plan does to the price of a token, from the speeds and prices that it was made with."""

from agent.core.plan.plan import FitSummary, Plan
from agent.fit.speed.price import price_change, told_apart, usd_per_million_tokens

OF_WHAT = "USD per million output tokens of one busy request, computed"


def token_prices(plan: Plan) -> tuple[float | None, float | None]:
    """Return the USD per million output tokens of one busy request, before and after; None where nobody knows.

    A plan that changes how many instances may run has the price of all of them: what one request costs stays unknown.
    """
    if plan.scales:
        return None, None
    before = usd_per_million_tokens(plan.cost_before_usd_per_h, _speed(plan.fit_before))
    return before, usd_per_million_tokens(plan.cost_after_usd_per_h, _speed(plan.fit_after))


def token_prices_text(plan: Plan) -> str:
    """Return the same for people; nothing where neither is known."""
    prices = token_prices(plan)
    if prices == (None, None):
        return ""
    before, after = told_apart(*prices)
    return f"{price_change(*prices)} {OF_WHAT}{', as before' if before == after else ''}"


def hourly_cost_text(plan: Plan) -> str:
    """Return the price of a running hour before and after, once where it does not change."""
    texts = told_apart(plan.cost_before_usd_per_h, plan.cost_after_usd_per_h)
    before, after = (text if text == "unknown" else f"{text} USD" for text in texts)
    if before != after:
        return f"{before} -> {after} per hour"
    return after if after == "unknown" else f"{after} per hour, unchanged"


def plan_costs(plan: Plan) -> dict[str, object]:
    """Return a plan's costs before and after, as programs read them."""
    before, after = token_prices(plan)
    return {
        "id": plan.id,
        "cost_before_usd_per_h": plan.cost_before_usd_per_h,
        "cost_after_usd_per_h": plan.cost_after_usd_per_h,
        "usd_per_million_output_tokens_before": before,
        "usd_per_million_output_tokens_after": after,
    }


def _speed(fit: FitSummary) -> float | None:
    found = (fit.report or {}).get("decode_tokens_per_s")
    return float(found) if isinstance(found, int | float) else None
