"""A prompt is versioned, digested, and filled without reading what fills it."""

import pytest

from agent.core.diagnosis.prompt import parse_prompt
from agent.errors import SettingsRejected

TEXT = """---
name: greet
version: 2
input: who
output: text
why: to test
---
Be kind.
--- user ---
Hello $who, between $fence.
"""


def test_a_prompt_says_its_name_version_and_digest():
    """Another byte is another digest."""
    prompt = parse_prompt(TEXT, file="greet.v2.md")
    assert prompt.label.startswith("greet.v2 ")
    assert parse_prompt(TEXT.replace("kind", "mild"), file="greet.v2.md").digest != prompt.digest


def test_a_filling_is_not_read_again():
    """Dollar signs of the filling stay what they are."""
    prompt = parse_prompt(TEXT, file="greet.v2.md")
    assert prompt.fill(who="$fence ${who} $$", fence="x") == ("Be kind.", "Hello $fence ${who} $$, between x.")


@pytest.mark.parametrize(
    "text",
    [
        "no front matter",
        TEXT.replace("version: 2", "version: 3"),
        TEXT.replace("why: to test\n", ""),
        TEXT.replace("--- user ---", ""),
        TEXT.replace("input: who", "input: whom"),
        TEXT.replace("$who", "$who $other"),
    ],
)
def test_a_prompt_that_is_not_whole_is_refused(text):
    """At the start of the process, with the file's name."""
    with pytest.raises(SettingsRejected, match="greet"):
        parse_prompt(text, file="greet.v2.md")
