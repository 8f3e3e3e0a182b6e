"""What a terminal broke says what it says in one line."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.log_text import MAX_LINE_CHARS
from agent.failures.text.rejoined import joined_at_width, rejoined
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS

REFUSED = "BadRequestError: Error code: 400 - {'error': {'message': 'This model's maximum "
NO_ROOM = (
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
    "the engine, or ask for fewer tokens than those that it is to hold at once and for less of everything beside them"
)
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


def broken_at(width: int, lines: list[str]) -> list[str]:
    """The lines as a terminal of so many columns shows them."""
    return [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]


@pytest.mark.parametrize("width", [60, 77, 80, 100])
@pytest.mark.parametrize(
    ("log", "class_"),
    [
        ([*HEALTHY_START, *TOKENS, *TOKENS], "benign"),
        ([*HEALTHY_START, f"(EngineCore pid=71) ERROR 05-06 07:09:11 [core.py:5] {NO_ROOM}"], "kv_cache_insufficient"),
    ],
    ids=["healthy", "failed"],
)
def test_a_log_that_was_broken_at_one_width_says_the_same(
    matcher: Matcher, width: int, log: list[str], class_: str
) -> None:
    """Every line that is wider stands whole in its first line, and no line moves."""
    broken = broken_at(width, log)
    whole = joined_at_width(broken)
    assert len(whole) == len(broken)
    assert [line for line in whole if line] == log
    assert matcher.classify("\n".join(broken), whole_log=True, platform=None).class_ == class_


def test_lines_of_one_length_are_not_broken_ones() -> None:
    """A table, a progress bar, records, source below a frame, and a single line that happens to be the longest."""
    wide = "the lamp in the hall of the house is lit, and so is the one in the yard"
    for apart in (
        [f"| {wide}{at} | lamp{at}\n"[:-1] for at in range(5)],
        [f"+-{'-' * 70}-+", f"| {wide}x |", f"| {wide}y |", f"+-{'-' * 70}-+"],
        [f"Loading {wide} {at} of 9" for at in range(5)],
        [f"INFO 05-06 07:08:0{at} [lamp.py:{at}] {wide}" for at in range(5)],
        ['  File "/srv/' + "lamp" * 15 + f'{at}.py", line 7, in light\n    burn(the_lamp)' for at in range(5)],
        [wide, "is what they say"],
        [wide, "which is so", wide, "which is so"],
    ):
        lines = [line for text in apart for line in text.split("\n")]
        assert joined_at_width(lines) == lines


def test_a_line_that_is_broken_over_many_is_bounded() -> None:
    lines = ["lamp" * 20] * 3 + [f"lam{at:02}" * 16 for at in range(900)]
    assert max(map(len, joined_at_width(lines))) <= MAX_LINE_CHARS
