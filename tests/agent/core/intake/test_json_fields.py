"""Fields of untrusted objects: wrong types are missing, hostile values are survived."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.intake.json_fields import FIELD_LIMIT, facts, name, names, part, time_of
from tests.counts import tries

TIMES = {
    "2026-09-18T02:25:21.526978817Z": "2026-09-18T02:25:21.526978+00:00",
    "2026-11-20T10:16:00.0000000Z": "2026-11-20T10:16:00+00:00",
    "2026-11-20T10:15:00.000+0000": "2026-11-20T10:15:00+00:00",
    "2026-11-20T12:15:00+02:00": "2026-11-20T10:15:00+00:00",
    "2026-11-20T10:15:00": "2026-11-20T10:15:00+00:00",
    "2023-04-18 15:55:43 +0000 UTC": "2023-04-18T15:55:43+00:00",
    1795169700: "2026-11-20T10:15:00+00:00",
    1795169700.5: "2026-11-20T10:15:00.500000+00:00",
}
NO_TIMES = [
    None, "", "now", "2026", "2026-W01-1", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "2026-11-20T10:15:00Z\n", "٢٠٢٦-11-20T10:15:00Z", True, 0, -1,
    10**400, 1e308, float("nan"), float("inf"), [], {},
]  # fmt: skip


@pytest.mark.parametrize(("said", "at"), TIMES.items())
def test_a_moment_is_read_in_every_documented_spelling(said, at):
    """Nanoseconds are cut, zones are turned to UTC, Go's printed time is known."""
    found = time_of(said)
    assert found is not None
    assert found.isoformat() == at


@pytest.mark.parametrize("said", NO_TIMES, ids=lambda value: repr(value)[:24])
def test_what_is_no_moment_is_none(said):
    """Zero values, other centuries, other types and nonsense."""
    assert time_of(said) is None


@settings(max_examples=tries(40, ci=200, soak=200), deadline=None)
@given(st.text(max_size=40) | st.integers() | st.floats() | st.binary(max_size=8))
def test_no_value_breaks_the_reading_of_times_and_names(value):
    """Whatever stands there, the answer is a value or None."""
    assert time_of(value) is None or 2000 <= time_of(value).year < 2100
    assert name(value) is None or len(value) <= 253


@pytest.mark.parametrize("value", ["", " a", "a\n", "a\u202eb", "<script>", "x" * 254, "../../etc", None, 5, ["a"]])
def test_what_cannot_name_a_service_is_no_name(value):
    """Control characters, markup, endless text and other types."""
    assert name(value) is None


def test_names_keep_their_order_and_come_once():
    """The best candidate stays first."""
    assert names("b", None, "a", "b", "\x00") == ("b", "a")


def test_a_part_of_the_wrong_type_is_empty():
    """A list, a text or nothing where an object should be."""
    body = {"a": {"b": {"c": 1}}, "x": [1], "y": "z"}
    assert part(body, "a", "b") == {"c": 1}
    assert [part(body, *path) for path in (("x",), ("y",), ("a", "b", "c"), ("no", "where"))] == [{}, {}, {}, {}]


def test_facts_are_small_texts():
    """Empty and structured values are left out, long ones are cut."""
    found = facts(a=1, b="", c=None, d={"x": 1}, e="y" * 5000, f=0)
    assert found == {"a": "1", "e": "y" * FIELD_LIMIT, "f": "0"}
