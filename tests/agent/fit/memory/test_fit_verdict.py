"""The verdict names the first step that fails."""

import pytest

from agent.fit.bounds import Bounds
from agent.fit.memory.fit_verdict import Step, decide
from agent.fit.memory.support import Verdict
from agent.fit.report import FitReason


def step(reason, low, high):
    return Step(reason=reason, need=Bounds.exactly(10), margin=Bounds(low=low, best=(low + high) // 2, high=high))


PASSES, FAILS, DOUBTFUL = (1, 3), (-5, -1), (-4, 2)


@pytest.mark.parametrize(
    ("margins", "verdict", "fits", "reason"),
    [
        ((PASSES, PASSES), Verdict(), True, "fits"),
        ((PASSES, FAILS), Verdict(), False, "no_kv"),
        ((FAILS, FAILS), Verdict(), False, "load_peak"),
        ((DOUBTFUL, FAILS), Verdict(), False, "no_kv"),
        ((DOUBTFUL, PASSES), Verdict(), None, "unknown"),
        ((PASSES, PASSES), Verdict(doubts=("x",)), None, "unknown"),
        ((PASSES, FAILS), Verdict(doubts=("x",)), None, "unknown"),
        ((PASSES, PASSES), Verdict(left_out=("x",)), None, "unknown"),
        ((PASSES, FAILS), Verdict(left_out=("x",)), False, "no_kv"),
        ((PASSES, PASSES), Verdict(refusals=("x",)), False, "unsupported"),
        ((PASSES, FAILS), Verdict(refusals=("x",)), False, "unsupported"),
        ((PASSES, FAILS), Verdict(flag_refusals=("x",)), False, "no_kv"),
        ((PASSES, PASSES), Verdict(flag_refusals=("x",)), False, "unsupported"),
    ],
)
def test_verdict(margins, verdict, fits, reason):
    steps = [step(FitReason.LOAD_PEAK, *margins[0]), step(FitReason.NO_KV, *margins[1])]
    outcome = decide(steps, verdict)
    assert (outcome.fits, outcome.reason) == (fits, reason)


def test_the_shortfall_is_what_the_failing_step_misses():
    outcome = decide([step(FitReason.LOAD_PEAK, -6, -2)], Verdict())
    assert outcome.shortfall == Bounds(low=2, best=4, high=6)


def test_what_passes_misses_nothing():
    assert decide([step(FitReason.LOAD_PEAK, 2, 6)], Verdict()).shortfall == Bounds.exactly(0)
