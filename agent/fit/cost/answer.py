"""The answer to "what does it cost": rows, where to run it, and what the figures do not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from agent.fit.cost.load import Load
from agent.fit.cost.offers import Offer, where_to_run
from agent.fit.flags.flag_text import flag_line
from agent.fit.needs import Needs

OLD_DAYS = 90
"""Prices older than this are shown with their age."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CostAnswer:
    """What a model costs.

    Attributes:
        model: As it was asked for.
        load: How it is used.
        needs: Context and users.
        tokens_per_s: What one request must get at least.
        rows: One for each shape, those that meet the needs first, by the price of a month.
        today: To tell the age of prices.
        notes: What was taken for granted, and what is not in the figures.
        plans: Open plans with their cost before and after.
        now: The service as it runs, where one was asked for.
    """

    model: str
    load: Load
    needs: Needs
    tokens_per_s: float | None
    rows: tuple[Offer, ...]
    today: date
    notes: tuple[str, ...] = ()
    plans: tuple[Mapping[str, Any], ...] = ()
    now: Offer | None = None

    @property
    def best(self) -> Offer | None:
        """The cheapest that meets the needs."""
        return where_to_run(self.rows)

    def with_plans(self, plans: tuple[Mapping[str, Any], ...], *, notes: tuple[str, ...] = ()) -> CostAnswer:
        """Return the answer with open plans, and more to know."""
        return replace(self, plans=plans, notes=(*notes, *self.notes))

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it."""
        best = self.best
        return {
            "model": self.model,
            "load": {
                "busy": self.load.busy,
                "requests": self.load.requests,
                "min_instances": self.load.min_instances,
                "wakes_per_day": self.load.wakes_per_day,
            },
            "needs": {
                "context": self.needs.context_tokens,
                "users": self.needs.users,
                "tokens_per_s": self.tokens_per_s,
            },
            "now": None if self.now is None else row_json(self.now, self.today),
            "rows": [row_json(row, self.today) for row in self.rows],
            "where_to_run": None if best is None else best.shape.name,
            "plans": [dict(plan) for plan in self.plans],
            "notes": list(self.notes),
        }


def age_days(as_of: str, today: date) -> int:
    """Days since the date of a price; 0 for one of the future, and for what is given without a date."""
    if not as_of:
        return 0
    return max(0, (today - date.fromisoformat(as_of)).days)


def why_no_input_price(row: Offer) -> str:
    """Why a row prices no input tokens; empty where it does.

    They are not computed: how fast a prompt is read is bound by arithmetic whose share nobody recorded (docs/fit.md has
    rates of decoding alone), and how many of an hour's tokens are input depends on the prompts.
    """
    if row.bill.usd_per_h is None:
        return "its price is unknown"
    return "" if row.throughput.input else "no sweep measured its input tokens"


def row_json(row: Offer, today: date) -> dict[str, Any]:
    """One row as programs read it; None is unknown."""
    shape, bill, speed = row.shape, row.bill, row.throughput
    age = age_days(shape.as_of, today)
    return {
        "shape": shape.name,
        "platform": shape.platform,
        "accelerator": shape.accelerator,
        "count": shape.count,
        "flags": flag_line(row.flags),
        "fits": row.fits,
        "meets_needs": row.meets,
        "misses": list(row.misses),
        "requests_at_once": row.requests,
        "tokens_per_s": None if speed.output is None else [round(end, 2) for end in speed.output],
        "input_tokens_per_s": speed.input,
        "speed": "measured" if speed.measured else "computed",
        "speed_source": speed.source,
        "usd_per_h": bill.usd_per_h,
        "billed_share": round(bill.billed_share, 4),
        "usd_per_month": _rounded(bill.usd_per_month),
        "usd_per_million_output_tokens": _middle(bill.output),
        "usd_per_million_output_tokens_range": _ends(bill.output),
        "usd_per_million_output_tokens_busy": _middle(bill.busy_output),
        "usd_per_million_input_tokens_busy": _rounded(bill.busy_input),
        "input_price_unknown_because": why_no_input_price(row),
        "scales_to_zero": shape.sleeps,
        "start": None if row.start is None else row.start.to_json(),
        "region": shape.region,
        "as_of": shape.as_of,
        "price_age_days": age,
        "price_is_old": age > OLD_DAYS,
        "source": shape.source,
    }


def _middle(prices: tuple[float, float, float] | None) -> float | None:
    return None if prices is None else round(prices[1], 4)


def _ends(prices: tuple[float, float, float] | None) -> list[float] | None:
    return None if prices is None else [round(prices[0], 4), round(prices[2], 4)]


def _rounded(price: float | None) -> float | None:
    return None if price is None else round(price, 4)
