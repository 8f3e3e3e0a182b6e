"""The prefilter: every literal of every line, whatever the chunks and the letters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.failures.match import prefilter
from agent.failures.match.prefilter import Prefilter
from tests.counts import tries

LITERALS = [b"alpha", b"phab", b"beta", b"alphabeta", "größe".encode()]


def naive(lines: list[str]) -> dict[int, set[int]]:
    lowered = [line.encode("utf-8", "surrogatepass").lower() for line in lines]
    found = {i: {n for n, literal in enumerate(LITERALS) if literal in line} for i, line in enumerate(lowered)}
    return {i: numbers for i, numbers in found.items() if numbers}


def test_it_finds_what_a_plain_search_finds() -> None:
    words = st.lists(st.sampled_from(["alpha", "Beta", "phab", "größe", "\u0130", " ", "x", "\ud800"]), max_size=5).map(
        "".join
    )

    @settings(max_examples=tries(20, ci=100, soak=100), deadline=None, derandomize=True)
    @given(st.lists(words, max_size=20))
    def check(lines: list[str]) -> None:
        hits = {index: set(numbers) for index, numbers, _, _ in Prefilter(LITERALS).scan(lines)}
        assert hits == naive(lines)

    check()


def test_a_hit_carries_the_line_in_lower_case_and_as_it_is() -> None:
    [(index, _, line, raw)] = Prefilter(LITERALS).scan(["nothing", "An ALPHA here"])
    assert (index, line, raw) == (1, b"an alpha here", b"An ALPHA here")


def test_indexes_run_on_over_chunks(monkeypatch: object) -> None:
    lines = ["x"] * (prefilter.CHUNK_LINES + 3) + ["alpha"]
    assert [hit[0] for hit in Prefilter(LITERALS).scan(lines)] == [prefilter.CHUNK_LINES + 3]


def test_long_lines_are_searched_in_small_chunks_and_lose_nothing() -> None:
    lines = ["y" * 3_000_000 + "alpha", "z" * 3_000_000, "beta"]
    assert [hit[0] for hit in Prefilter(LITERALS).scan(lines)] == [0, 2]


def test_a_marked_line_counts_as_it_is_rewritten() -> None:
    found = Prefilter(LITERALS, marks=[b"said"], rewrite=lambda line: line.split("said")[0])
    lines = ["alpha", "he said alpha", "alpha said he", "plain"]
    assert [(index, raw) for index, _, _, raw in found.scan(lines)] == [(0, b"alpha"), (2, b"alpha ")]


def test_a_line_is_rewritten_once_whatever_the_rewriting_leaves() -> None:
    found = Prefilter(LITERALS, marks=[b"said"], rewrite=lambda line: line + " said")
    assert [raw for _, _, _, raw in found.scan(["alpha said"])] == [b"alpha said said"]
