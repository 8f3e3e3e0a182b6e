"""A comparison says how much, how sure, and what else differs."""

import random
import re

from agent.core.sweep.comparison import compare
from agent.presentation.report.plain_text import plain_text
from agent.presentation.sweep.comparison_text import comparison_report
from tests.agent.core.sweep.served import sweep_of


def said(one, other, **more):
    (before, rows), (after, others) = one, other
    return plain_text(comparison_report(compare(before, after, (rows, others), chance=random.Random(0), **more)))


def test_a_change_of_flags_is_compared_with_what_differs_at_the_top():
    text = said(sweep_of(8, grid=(8, 16)), sweep_of(16, grid=(8, 16), flags="--max-num-seqs 16"), anyway=True)
    assert "12 figures of 2 cells: 3 better, 0 worse." in text
    assert "The sweeps are unlike in flags: any of it may be the cause." in text
    assert "--max-num-seqs 8  --max-num-seqs 16" in text
    (line,) = [one for one in text.splitlines() if re.search(r" 16 +TTFT p50", one)]
    assert line.endswith("better")
    assert "%" in line


def test_errors_are_compared_in_points_and_few_requests_say_so():
    text = said(sweep_of(8, grid=(4,)), sweep_of(8, grid=(4,), failing=20))
    assert "+10.0 points" in text
    few = sweep_of(8, grid=(4,), rows={"requests": 5})
    assert "0 show no difference, 6 are of too few requests." in said(few, few)
    assert "Only the second measured c128-o32-n8." in said(sweep_of(8, grid=(4,)), sweep_of(8, grid=(4, 8)))
