"""The forms of values: what they take, and what they never take."""

import pytest

from agent.core.decision.value_form import form_error, matches_form

TAKEN = [
    ("switch", ""),
    ("whole 1..8", "8"),
    ("number 0.05..1", "0.05"),
    ("word", "qwen3_coder"),
    ("'auto' | whole 1..9", "auto"),
    ("json", '{"image": 0, "video": 0}'),
    ("json", "[1, 2, 4]"),
]
REFUSED = [
    ("switch", "true"),
    ("whole 1..8", "9"),
    ("whole 1..8", "1.0"),
    ("whole 1..8", "-1"),
    ("whole 1..8", "１"),
    ("whole 1..8", "1\n"),
    ("number 0.05..1", "nan"),
    ("number 0.05..1", "1e-1"),
    ("word", "my.module.Class"),
    ("word", "/etc/passwd"),
    ("word", "--trust-remote-code"),
    ("word", ""),
    ("'auto'", "Auto"),
    ("json", '{"a": {"b": 1}}'),
    ("json", '{"backend": "evil.module.Backend"}'),
    ("json", '{"a": [1]}'),
    ("json", "1"),
    ("json", "{"),
    ("json", "[" * 600),
]


@pytest.mark.parametrize(("form", "value"), TAKEN)
def test_a_value_of_the_form_is_taken(form, value):
    assert matches_form(form, value)


@pytest.mark.parametrize(("form", "value"), REFUSED)
def test_anything_else_is_not(form, value):
    assert not matches_form(form, value)


@pytest.mark.parametrize("form", ["", "anything", "whole 8..1", "whole a..b", "'a b'", "word |"])
def test_a_form_that_is_none_is_a_mistake(form):
    assert form_error(form)
