"""Redaction remembers harmless lines alone, and answers as the redactor does."""

import pytest

from agent.app import redaction
from agent.app.redaction import MEMO_CHARS, MEMO_TEXTS, redact, redactor

SECRET = "Authorization: Bearer ya29." + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"


@pytest.fixture(autouse=True)
def forgetful():
    redaction._harmless.cache_clear()


@pytest.mark.parametrize("text", ["Model loading took 19.8 GiB", SECRET, "", "\ud800", "x" * (MEMO_CHARS + 1) + SECRET])
def test_a_text_is_answered_as_the_redactor_answers_it_however_often(text):
    assert [redact(text) for _ in range(3)] == [redactor().redact(text).text] * 3


def test_a_text_with_a_secret_is_never_remembered():
    for _ in range(2):
        assert SECRET not in redact(f"it said {SECRET}")
    assert redaction._harmless.cache_info().currsize == 0


def test_what_is_remembered_is_bounded():
    for number in range(MEMO_TEXTS + 10):
        redact(f"line {number}")
    redact("x" * (MEMO_CHARS + 1))
    assert redaction._harmless.cache_info().currsize == MEMO_TEXTS
