"""Numbers from the log."""

from agent.failures.measure import measure


def test_whole_numbers_decimals_thousands_and_words() -> None:
    patterns = {"a": r"a=([\d,]+)", "b_gib": r"b=(-?[\d.]+)", "c": r"c=(\w+)", "d": r"d=(\w+)"}
    assert measure(patterns, ["a=41,328 b=-1.25 c=half"], 0) == {"a": 41328, "b_gib": -1.25, "c": "half"}


def test_the_decisive_line_comes_before_the_lines_after_it_and_those_before_the_rest() -> None:
    lines = ["n=1", *["-"] * 30, "n=2", "n=3"]
    assert measure({"n": r"n=(\d+)"}, lines, 31) == {"n": 2}
    assert measure({"n": r"n=(\d+)"}, lines, 15) == {"n": 1}


def test_a_number_too_long_stays_text() -> None:
    assert measure({"n": r"n=(\d+)"}, ["n=" + "9" * 40], 0) == {"n": "9" * 40}
