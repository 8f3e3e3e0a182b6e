"""What a terminal broke says what it says in one line."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.rejoined import rejoined

REFUSED = "BadRequestError: Error code: 400 - {'error': {'message': 'This model's maximum "
NO_CHOICE = "BadRequestError: Error code: 400 - {'message': '\"auto\" tool choice requires --enable-auto-to"


@pytest.mark.parametrize("prefix", ["", "vllm-1  | ", "2031-05-06T07:08:09.123456789Z stderr F "])
@pytest.mark.parametrize(
    ("above", "below", "class_"),
    [
        (REFUSED + "context ", "length is 8192 tokens. However, you asked for more'", "context_length_exceeded"),
        (REFUSED + "context", " length is 8192 tokens. However, you asked for more'", "context_length_exceeded"),
        (REFUSED + "conte", "xt length is 8192 tokens. However, you asked for more'", "context_length_exceeded"),
        (NO_CHOICE, "ol-choice and --tool-call-parser to be set'", "tool_parser_error"),
    ],
    ids=["behind a blank", "before a blank", "within a word", "before a hyphen"],
)
def test_a_refusal_that_was_broken_is_not_benign(
    matcher: Matcher, prefix: str, above: str, below: str, class_: str
) -> None:
    said = f"{prefix}{above}\n{prefix}{below}"
    assert matcher.classify(said, whole_log=True, platform=None).class_ == class_


def test_what_begins_anew_is_no_rest_of_the_line_above() -> None:
    long = "INFO the lamp is lit and will be lit for as long as anybody wants it to be"
    for apart in (
        [long, "openai.BadRequestError: Error code: 400"],
        ["lamp-1  | " + long, "lamp-2  | which is good"],
        [long, "INFO the lamp is out"],
        ["the lamp is lit", "which is good"],
        [
            "NAME                             STATUS   ROLES    AGE   VERSION",
            "lamp-7-yard    Ready    <none>   15m   v1",
        ],
    ):
        assert rejoined(apart) == apart
