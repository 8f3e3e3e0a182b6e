"""Plain logs: cut between lines, every stretch a signal of its own."""

from datetime import UTC, datetime

import pytest

from agent.core.intake.origin import Ignored, IgnoredBecause, Reading
from agent.core.intake.plain_log import signals_of_text
from agent.core.intake.signal import TEXT_LIMIT
from agent.errors import InputRejected

AT = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_long_log_is_cut_between_lines_and_nothing_is_lost():
    """All stretches together are the log; each fits a signal and says its first line."""
    words = "".join(f"line {number} {'x' * 90}\n" for number in range(3000))
    found = signals_of_text(words, named="boot.log", reading=Reading(service="gemma"), at=AT)
    assert len(found) > 1
    assert "".join(signal.text for signal in found) == words
    assert all(len(signal.text) <= TEXT_LIMIT and signal.text.endswith("\n") for signal in found)
    assert len({signal.key for signal in found}) == len(found)
    assert [int(signal.fields["line"]) for signal in found][:2] == [1, found[0].text.count("\n") + 1]


def test_a_line_without_an_end_is_cut_where_it_must():
    """One line of 200,000 characters becomes several stretches."""
    found = signals_of_text("x" * 200_000, named="boot.log", reading=Reading(service="gemma"), at=AT)
    assert sum(len(signal.text) for signal in found) == 200_000


def test_an_empty_log_is_ignored():
    """There is nothing in it."""
    assert signals_of_text(" \n", named="boot.log", reading=Reading(), at=AT) == (
        Ignored(because=IgnoredBecause.EMPTY, what="boot.log"),
    )


def test_a_log_without_a_name_is_refused():
    """Nobody knows whose it is."""
    with pytest.raises(InputRejected, match="service name is missing"):
        signals_of_text("x", named="\u202e", reading=Reading(), at=AT)
