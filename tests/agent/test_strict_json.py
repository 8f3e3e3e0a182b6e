"""Outside JSON is read exactly, or refused with a reason, in time that grows with its length only."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import InputRejected
from agent.strict_json import MAX_DEPTH, read_json, read_object
from tests.counts import tries
from tests.outside import shared

REFUSED = {
    "a key twice": (b'{"a":1,"a":2}', "the key 'a' stands twice"),
    "a key twice inside": (b'{"x":[{"a":1,"a":1}]}', "the key 'a' stands twice"),
    "NaN": (b'{"a":NaN}', "the constant NaN is not JSON"),
    "infinity": (b'{"a":-Infinity}', "the constant -Infinity is not JSON"),
    "a number beyond a double": (b'{"a":1e999}', "beyond a double"),
    "a number of thousands of digits": (b'{"a":' + b"9" * 5000 + b"}", "digits"),
    "a byte-order mark": (b'\xef\xbb\xbf{"a":1}', "BOM"),
    "broken UTF-8": (b'{"a":"\xff"}', "byte 6 is not UTF-8"),
    "UTF-16": ('{"a":1}'.encode("utf-16"), "UTF-8"),
    "half a surrogate pair": (b'{"a":"\\ud800"}', "half of a surrogate pair"),
    "half a pair in a key": (b'{"\\uDC00":1}', "half of a surrogate pair"),
    "an array": (b"[1]", "it is a list, not an object"),
    "nothing": (b"", "Expecting value"),
    "a rest": (b'{"a":1} x', "Extra data"),
    "half": (b'{"a":', "Expecting value"),
}


@pytest.mark.parametrize(("raw", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_plain_json_is_refused_with_its_reason(raw, why):
    """Every kind of bad document gets the typed error, and the reason names what was wrong."""
    with pytest.raises(InputRejected) as refused:
        read_object(raw, what="body", limit=10_000)
    assert why in refused.value.why
    assert refused.value.what == "the body was not read"


def test_the_limit_is_in_bytes_and_inclusive():
    """A document of exactly the limit is read, one byte more is not."""
    assert read_json(b'"\xc3\xa9"', what="body", limit=4) == "é"
    with pytest.raises(InputRejected, match="it has 4 bytes, at most 3 are taken"):
        read_json(b'"\xc3\xa9"', what="body", limit=3)


@pytest.mark.parametrize("depth", [1, MAX_DEPTH, MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize("ends", [True, False], ids=["closed", "open"])
def test_nesting_is_measured_before_it_is_followed(depth, ends):
    """64 levels are read, 65 and 100,000 are refused, closed or not; there is no RecursionError."""
    raw = b"[" * depth + (b"]" * depth if ends else b"")
    if ends and depth <= MAX_DEPTH:
        assert read_json(raw, what="body", limit=None) is not None
        return
    with pytest.raises(InputRejected) as refused:
        read_json(raw, what="body", limit=None)
    assert ("nested" in refused.value.why) == (depth > MAX_DEPTH)


def test_brackets_inside_text_are_no_nesting():
    """A log line full of brackets and quotes is not deep."""
    said = '[[[{{{"\\' * 200
    assert read_json(json.dumps([said]).encode(), what="body", limit=None) == [said]


def test_a_known_document_may_hold_infinity():
    """Where the caller allows it, NaN and Infinity are floats; duplicate keys stay refused."""
    assert read_object(b'{"a":Infinity}', what="config", limit=None, allow_infinite=True) == {"a": float("inf")}
    with pytest.raises(InputRejected):
        read_object(b'{"a":1,"a":1}', what="config", limit=None, allow_infinite=True)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=tries(30, ci=150, soak=150), deadline=None)
@given(_VALUES, st.booleans())
def test_what_json_can_say_is_read_as_it_was_said(value, ascii_only):
    """Any value survives the trip, escaped or not."""
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert read_json(raw, what="body", limit=None) == value


@settings(max_examples=tries(60, ci=300, soak=300), deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u0d8e1.-tfn ', max_size=60).map(str.encode))
def test_no_bytes_raise_anything_else(raw):
    """Arbitrary bytes are read or refused, never another error."""
    with contextlib.suppress(InputRejected):
        read_json(raw, what="body", limit=None)


@pytest.mark.shared
def test_the_published_suite_is_judged_as_its_names_say():
    """JSONTestSuite: y_ is read but for duplicate keys, n_ is refused, i_ does not crash."""
    wrong = []
    for path in sorted(shared("data", "corpora", "JSONTestSuite").glob("*.json")):
        try:
            read_json(path.read_bytes(), what=path.name, limit=None)
            took = True
        except InputRejected:
            took = False
        duplicate = path.name.startswith("y_object_duplicated_key")
        if (path.name[0] == "y" and took is duplicate) or (path.name[0] == "n" and took):
            wrong.append(path.name)
    assert wrong == []


def test_half_a_document_is_no_document():
    """Every byte prefix of an object is refused: nothing is ever completed or repaired."""
    whole = json.dumps(
        {"actions": [{"kind": "set_flag", "name": "max-model-len", "value": 32768}], "why": "é 😀"}, ensure_ascii=False
    ).encode()
    for end in range(len(whole)):
        with pytest.raises(InputRejected):
            read_object(whole[:end], what="plan", limit=65_536)
    assert read_object(whole, what="plan", limit=65_536)["why"] == "é 😀"
