"""Quantities between two ends add up without losing an end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fit.bounds import Bounds, independent_sum

numbers = st.integers(0, 2**45)


@st.composite
def bounds(draw):
    low, best, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    return Bounds(low=low, best=best, high=high)


@given(st.lists(bounds(), min_size=1, max_size=6))
def test_independent_errors_never_add_to_more_than_the_plain_sum(terms):
    whole, plain = independent_sum(terms), Bounds.exactly(0)
    for term in terms:
        plain = plain + term
    assert whole.best == plain.best
    assert plain.low - 1 <= whole.low <= whole.best <= whole.high <= plain.high + 1


@given(bounds())
def test_one_uncertain_term_keeps_its_ends(term):
    known = Bounds.exactly(5)
    assert abs(independent_sum((term, known)).low - term.low - 5) <= 1
    assert abs(independent_sum((term, known)).high - term.high - 5) <= 1


@given(bounds(), bounds())
def test_taking_away_what_was_added_covers_the_first(first, second):
    back = first + second - second
    assert back.best == first.best
    assert back.low <= first.low
    assert back.high >= first.high


def test_ends_out_of_order_are_a_bug():
    with pytest.raises(AssertionError, match="out of order"):
        Bounds(low=2, best=1, high=3)


def test_a_floor_lifts_every_end():
    assert Bounds(low=-5, best=-1, high=3).at_least(0) == Bounds(low=0, best=0, high=3)
