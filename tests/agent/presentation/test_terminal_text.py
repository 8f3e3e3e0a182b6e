"""What a terminal shows of a plan: that something stays as it is, only where it is known."""

import pytest

from agent.core.plan.plan import FitSummary
from agent.presentation.terminal_text import plan_lines
from tests.contracts.values import plan

FITS = FitSummary(fits=True, reason="fits", sentence="fit: yes, 20.1 of 24.0 GiB")


def shown(**changed):
    made = plan().with_(**changed)
    said = [line.strip() for line in plan_lines(made, now=made.made_at, asked=False)]
    return [line for line in said if line.startswith(("memory ", "before ", "after ", "cost "))]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (0.71, 0.71, "cost     0.71 USD per hour, unchanged"),
        (0.71, 1.42, "cost     0.71 USD -> 1.42 USD per hour"),
        (0.6712, 0.6748, "cost     0.6712 USD -> 0.6748 USD per hour"),
        (None, None, "cost     unknown"),
        (None, 0.71, "cost     unknown -> 0.71 USD per hour"),
    ],
)
def test_a_price_is_unchanged_only_where_both_are_known_and_equal(before, after, line):
    assert line in shown(cost_before_usd_per_h=before, cost_after_usd_per_h=after)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (FITS, FITS, ["memory   unchanged: fit: yes, 20.1 of 24.0 GiB"]),
        (FitSummary(), FitSummary(), ["memory   fit: not computed"]),
        (FitSummary(), FITS, ["before   fit: not computed", "after    fit: yes, 20.1 of 24.0 GiB"]),
        (
            FITS,
            FITS.with_(report={"kv_tokens": 9}),
            ["before   fit: yes, 20.1 of 24.0 GiB", "after    fit: yes, 20.1 of 24.0 GiB"],
        ),
    ],
)
def test_memory_is_unchanged_only_where_both_are_computed_and_equal(before, after, lines):
    assert shown(fit_before=before, fit_after=after)[: len(lines)] == lines
