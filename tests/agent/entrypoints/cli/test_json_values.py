"""Values out of an endless array, wherever the chunks happen to end."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.entrypoints.cli import json_values
from agent.entrypoints.cli.json_values import values_of
from tests.counts import tries

_OBJECTS = st.lists(
    st.dictionaries(
        st.text(max_size=4),
        st.text(alphabet='\\"{}[],ab\n', max_size=8)
        | st.lists(st.integers(), max_size=2)
        | st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
        max_size=3,
    ),
    max_size=5,
)


@settings(max_examples=tries(20, ci=100, soak=100), deadline=None)
@given(_OBJECTS, st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_values_are_found_wherever_the_chunks_end(objects, chunk, indent, wrapped):
    """Brackets and quotes inside text do not count; an array and a row of objects give the same."""
    data = (
        json.dumps(objects, indent=indent)
        if wrapped
        else "\n".join(json.dumps(item, indent=indent) for item in objects)
    )
    before = json_values.CHUNK
    json_values.CHUNK = chunk
    try:
        found = [json.loads(raw) for _, raw in values_of(io.BytesIO(data.encode()), 10_000)]
    finally:
        json_values.CHUNK = before
    assert found == objects


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"[]", []),
        (b"[1, {}]", [b"1", b"{}"]),
        (b'[{"a":1}, trailing', [b'{"a":1}', b"trailing"]),
        (b'[{"a":1}] {"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'[{"a":"', [b'{"a":"']),
        (b"]]]{}", [b"]", b"]", b"]", b"{}"]),
    ],
)
def test_what_is_no_value_comes_out_as_it_stands(data, found):
    """It is refused by whoever parses it, not lost."""
    assert [raw for _, raw in values_of(io.BytesIO(data), 1000)] == found


def test_a_value_too_long_is_named_once_and_forgotten():
    """The values after it come out, on their lines."""
    data = b'[{"a":"' + b"x" * 300_000 + b'","b":{}},\n{"c":1},\n{"d":2}]'
    assert list(values_of(io.BytesIO(data), 1000)) == [(1, None), (2, b'{"c":1}'), (3, b'{"d":2}')]
