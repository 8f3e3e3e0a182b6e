"""JSON from outside is refused for anything but the plain thing."""

import pytest

from agent.errors import InputRejected
from agent.fit.strict_json import strict_object


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(b'{"a": 1, "a": 2}', "'a' stands twice", id="key twice"),
        pytest.param(b'{"x": {"a": 1, "a": 2}}', "'a' stands twice", id="key twice, nested"),
        pytest.param(b'{"a": NaN}', "NaN is not JSON", id="NaN"),
        pytest.param(b'{"a": -Infinity}', "-Infinity is not JSON", id="infinity"),
        pytest.param(b'{"a": ' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply", id="100,000 levels"),
        pytest.param(b"[" * 1_000_000, "nested too deeply", id="unclosed lists"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "integer string", id="an integer of 5,000 digits"),
        pytest.param(b'{"a": "\xff"}', "utf-8", id="not UTF-8"),
        pytest.param(b'{"a": 1', "delimiter", id="cut off"),
        pytest.param(b"[1]", "it is a list", id="no object"),
        pytest.param(b"", "Expecting value", id="empty"),
    ],
)
def test_hostile_json_is_refused_with_its_reason(raw, why):
    with pytest.raises(InputRejected, match="header of 'x'") as caught:
        strict_object(raw, what="header of 'x'")
    assert why in str(caught.value)


def test_every_byte_prefix_of_a_document_is_refused():
    """Half an answer is no answer."""
    whole = b'{"weight": {"dtype": "BF16", "shape": [2, 3]}}'
    assert strict_object(whole, what="x") == {"weight": {"dtype": "BF16", "shape": [2, 3]}}
    for end in range(len(whole)):
        with pytest.raises(InputRejected):
            strict_object(whole[:end], what="x")


def test_an_infinite_limit_is_let_through_where_the_caller_allows_it():
    assert strict_object(b'{"time_step_limit": [0.0, Infinity]}', what="x", allow_infinite=True) == {
        "time_step_limit": [0.0, float("inf")]
    }
