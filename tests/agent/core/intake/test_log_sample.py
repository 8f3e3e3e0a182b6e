"""A storm is kept in bounded memory, and what tells is kept."""

import pytest

from agent.app.catalogues import matcher
from agent.core.intake.log_sample import AROUND, HEAD, PART_CHARS, SIGHTS, TAIL, LogSample, PowerOfTwoCounter
from agent.failures.text.log_text import MAX_LINE_CHARS, looks_like_failure
from tests.counts import tries

OOM = "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB."


def fed(lines: list[str], *, by: int = 5000, whole_chars: int = 0) -> LogSample:
    digest = LogSample(matcher(), whole_chars=whole_chars)
    for start in range(0, len(lines), by):
        digest.add(lines[start : start + by])
    return digest


def test_head_tail_and_first_sights_are_kept_in_order() -> None:
    """Of 50,000 lines the start, the end, and the first three of a failure with the lines around them."""
    lines = [f"INFO step {n}" for n in range(50_000)]
    for place in (20_000, 20_500, 21_000, 21_500, 30_000):
        lines[place] = OOM
    kept = fed(lines).lines()
    assert kept[:HEAD] == tuple(lines[:HEAD])
    assert kept[-TAIL:] == tuple(lines[-TAIL:])
    assert [line for line in kept if line == OOM] == [OOM] * (SIGHTS + 1)
    assert f"INFO step {20_000 - AROUND}" in kept
    assert len(kept) <= HEAD + TAIL + (SIGHTS * (2 * AROUND + 1)) + 1


BANNER = "(APIServer pid=7) INFO 05-06 07:08:01 [api_server.py:1] vLLM API server version 0.19.1"


@pytest.mark.parametrize("by", [700, 5000], ids=["many stretches", "few"])
def test_the_first_error_of_each_start_is_kept_and_so_is_the_end(by: int) -> None:
    """Nine starts that fail alike, far apart, are nine failures of nine starts; what follows an error is no first one."""
    filler = [f"INFO step {n}" for n in range(900)]
    starts = [[BANNER, *filler, f"{OOM} start {n}", *filler, f"{OOM} again {n}"] for n in range(9)]
    lines = [*filler * 3, *(line for start in starts for line in start), *filler * 3, "INFO the end"]
    kept = fed(lines, by=by).lines()
    assert [line for line in kept if line == BANNER] == [BANNER] * 9
    assert {f"{OOM} start {n}" for n in range(9)} <= set(kept)
    assert f"{OOM} again 5" not in kept
    assert kept[-1] == "INFO the end"


def test_a_server_that_starts_without_end_stays_bounded() -> None:
    """Ten times the starts, the same kept."""
    assert len(fed([BANNER, OOM] * 50_000).lines()) == len(fed([BANNER, OOM] * 5_000).lines())


def test_a_short_log_is_kept_whole() -> None:
    """Nothing is lost where there is room for all."""
    lines = [f"line {n}" for n in range(HEAD + TAIL)]
    assert fed(lines, by=333).lines() == tuple(lines)


def test_everything_is_counted() -> None:
    """What is not kept is counted."""
    digest = fed([OOM] * 12_345)
    assert digest.total == 12_345
    assert list(digest.counts().values()) == [12_345]


@pytest.mark.slow
def test_the_size_does_not_grow_with_the_storm() -> None:
    """Ten times the lines, the same kept."""
    assert len(fed([OOM] * 100_000).lines()) == len(fed([OOM] * 10_000).lines())


LOUD_WORDS = (
    "ERROR CRITICAL FATAL PANIC EMERG SEVERE Fatal panicked Failed failure Cannot",
    "Traceback Unhandled denied Refused killed crashed Aborted Exceeded invalid",
    "FluxError: gone|builtins.KeyboardInterrupt: x|a.b.SystemExit: 3|OddFailure|ReadTimeout: x|SomeException: y",
    "Unable to start|unable to start|timed out|timeout|Timed out|time out|Not found|not found",
)


@pytest.mark.parametrize(
    "words", [word for row in LOUD_WORDS for word in (row.split("|") if "|" in row else row.split())]
)
def test_whatever_speaks_of_a_failure_is_kept_though_no_rule_knows_it(words: str) -> None:
    """In the middle of a long log, however it is spelled."""
    line = f"11-20 03:00:00 the lamp: {words}"
    assert looks_like_failure(line)
    kept = fed([f"INFO step {n}" for n in range(5000)] + [line] + [f"INFO step {n}" for n in range(5000)]).lines()
    assert line in kept


@pytest.mark.slow
def test_hostile_lines_cost_no_more_than_their_bound() -> None:
    """Endless lines, each with a signature or loud words: some tens of megabytes are kept at most."""
    lines = [f"ERROR {n} CUDA out of memory " + "x" * 100_000 for n in range(300)]
    digest = fed(lines * tries(3, ci=10, soak=10), by=100)
    assert sum(map(len, digest.lines())) < 4 * PART_CHARS
    assert max(map(len, digest.lines())) <= MAX_LINE_CHARS


def test_a_log_within_the_limit_is_kept_whole_and_a_longer_one_is_not() -> None:
    lines = [f"INFO step {n}" for n in range(20_000)]
    assert fed(lines, whole_chars=1_000_000).lines() == tuple(lines)
    assert len(fed(lines, whole_chars=100_000).lines()) == HEAD + TAIL


def test_a_tally_tells_the_first_and_each_power_of_two() -> None:
    """1, 2, 4, 8: and nothing between."""
    tally = PowerOfTwoCounter()
    assert [n for n in range(1, 20) if tally.tells("x")] == [1, 2, 4, 8, 16]
    assert tally.total == 19


def test_a_tally_of_endless_kinds_stays_bounded() -> None:
    """Hostile variety shares one count in the end, and is still counted."""
    tally = PowerOfTwoCounter()
    told = sum(tally.tells(n) for n in range(50_000))
    assert tally.total == 50_000
    assert told < 10_100
