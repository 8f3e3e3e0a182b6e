"""Figures have three digits and a unit."""

import pytest

from agent.presentation.sweep.figure_text import digits, rate_text, seconds_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0 ms"),
        (0.0237, "23.7 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (12.345, "12.3 s"),
        (1234, "1,234 s"),
    ],
)
def test_times(value, text):
    assert seconds_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.00012, "0.000120"), (9.876, "9.88"), (764.2, "764"), (12_345.6, "12,346")]
)
def test_numbers_have_no_exponent(value, text):
    assert digits(value) == text


def test_a_rate_that_was_not_measured_is_a_dash():
    assert rate_text(None) == "-"
