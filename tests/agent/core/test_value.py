"""What others said is kept in whole words."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from agent.app.redaction import redact
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


FIRST_USE = """
import sys, threading
from pydantic import ValidationError
from agent.core.incident.incident import Incident
from agent.core.value import Value
sys.setswitchinterval(1e-6)
seen, together = [], threading.Barrier(8)
def first():
    together.wait()
    for value in (Incident, *Value.__subclasses__()):
        try:
            value.model_validate({"no such key": 1})
        except ValidationError as error:
            seen.append(error.error_count())
        except Exception as error:
            print(value, repr(error))
threads = [threading.Thread(target=first) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(seen) == 8 * (1 + len(Value.__subclasses__())))
"""


def test_threads_that_use_a_value_for_the_first_time_together_all_have_its_rules() -> None:
    """What a value accepts is compiled at its first use, of which a server has several at once."""
    ran = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"
