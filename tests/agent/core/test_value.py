"""What others said is kept in whole words."""

from datetime import UTC, datetime

import pytest

from agent.app.catalogues import redact
from agent.core.change.verification import Check, Measurement
from agent.core.value import EXCERPT_CHARS

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8J9k0" + "A1b2C3d4E5f6G7h8"


def kept(text: str) -> str:
    return Measurement(check=Check.READY, good=False, says=text, at=datetime(2026, 11, 23, tzinfo=UTC)).says


@pytest.mark.parametrize("around", [" ", '"', "\n"])
def test_half_a_secret_is_not_kept(around: str) -> None:
    """It would not be recognised as one when secrets are taken out later."""
    said = "x " * 990 + around + TOKEN + around + " and more" * 100
    assert redact(said) != said
    assert kept(said) == "x " * 990 + around


def test_a_short_text_is_kept_and_a_kept_one_stays_as_it_is() -> None:
    assert kept("a" * EXCERPT_CHARS) == "a" * EXCERPT_CHARS
    assert kept(kept("word " * 900)) == kept("word " * 900) == "word " * (EXCERPT_CHARS // 5)


def test_one_endless_word_is_named_by_its_length() -> None:
    assert kept("a" * 5000) == "(a word of 5000 characters)"
