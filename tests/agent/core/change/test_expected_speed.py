"""A speed is judged by what the owner needs, and held against what the plan predicted."""

from datetime import UTC, datetime

import pytest

from agent.core.change.expected_speed import SLACK, WAY_S, compare_with_prediction, judge_by_need
from agent.core.change.verification import Check, Measurement

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
REPORT = {"ranges": {"decode_tokens_per_s": [40.0, 80.0], "first_token_s": [0.05, 0.1]}}


def speed(value: float | None, first_token_s: float | None = 0.2) -> Measurement:
    return Measurement(check=Check.SPEED, good=None, says="seen", value=value, first_token_s=first_token_s, at=AT)


@pytest.mark.parametrize(
    ("value", "need", "good"),
    [(20.0, 20, True), (19.9, 20, False), (None, 20, None), (5.0, None, None)],
    ids=["just enough", "too slow", "not measured", "no need"],
)
def test_the_owners_need_judges_and_a_missing_measurement_stays_missing(value, need, good) -> None:
    """Three values, and the words name the need."""
    judged = judge_by_need(speed(value), need)
    assert judged.good is good
    assert ("are needed" in judged.says) is (good is not None)


def test_what_a_platform_judged_itself_stays_judged() -> None:
    """A rehearsal judges by its own record."""
    assert judge_by_need(speed(5).with_(good=False), 1).good is False


@pytest.mark.parametrize(
    ("value", "first", "good", "says"),
    [
        (60, 0.2, True, "as predicted: 60 tokens/s, 40 to 80 tokens/s were computed"),
        (SLACK * 40, 0.2, True, "as predicted"),
        (SLACK * 40 - 0.1, 0.2, False, "slower than predicted: 31.9 tokens/s, 40 to 80"),
        (200, 0.2, True, "faster than predicted: 200 tokens/s"),
        (60, 0.1 + WAY_S, True, "as predicted"),
        (60, 0.2 + WAY_S, False, "first token after 1.2 s, 0.1 s were computed and 1 s for the way"),
        (10, 9, False, "slower than predicted: 10 tokens/s, 40 to 80 tokens/s were computed; first token after 9 s"),
        (None, None, None, "the speed was not measured; 40 to 80 tokens/s were computed"),
        (60, None, True, "as predicted"),
    ],
)
def test_a_speed_is_held_against_the_predicted_range(value, first, good, says: str) -> None:
    """Too slow deviates, faster harms nobody, and no measurement is no word either way."""
    found = compare_with_prediction(speed(value, first), REPORT, at=AT)
    assert (found.check, found.good) == (Check.PREDICTION, good)
    assert says in found.says
    assert (found.value, found.first_token_s) == (value, first)


@pytest.mark.parametrize(
    "report",
    [None, {}, {"ranges": None}, {"ranges": {"decode_tokens_per_s": [1]}}, {"ranges": {"decode_tokens_per_s": "12"}}],
    ids=["nothing computed", "a report of v0.1", "no ranges", "half a range", "no numbers"],
)
def test_without_a_prediction_nothing_is_judged(report) -> None:
    """Plans that were made before speeds were predicted hold none."""
    assert compare_with_prediction(speed(60), report, at=AT).good is None


def test_a_range_without_a_first_token_judges_the_rate_alone() -> None:
    """What was not computed cannot be missed."""
    assert compare_with_prediction(speed(60, 99), {"ranges": {"decode_tokens_per_s": [40, 80]}}, at=AT).good is True
