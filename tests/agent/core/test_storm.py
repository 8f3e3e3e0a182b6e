"""A storm is kept in bounded memory, and what tells is kept."""

from agent.bootstrap import matcher
from agent.core.storm import AROUND, HEAD, SIGHTS, TAIL, Digest, Tally

OOM = "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB."


def fed(lines: list[str], *, by: int = 5000) -> Digest:
    digest = Digest(matcher())
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


def test_a_short_log_is_kept_whole() -> None:
    """Nothing is lost where there is room for all."""
    lines = [f"line {n}" for n in range(HEAD + TAIL)]
    assert fed(lines, by=333).lines() == tuple(lines)


def test_everything_is_counted() -> None:
    """What is not kept is counted."""
    digest = fed([OOM] * 12_345)
    assert digest.total == 12_345
    assert list(digest.counts().values()) == [12_345]


def test_the_size_does_not_grow_with_the_storm() -> None:
    """Ten times the lines, the same kept."""
    assert len(fed([OOM] * 100_000).lines()) == len(fed([OOM] * 10_000).lines())


def test_a_tally_tells_the_first_and_each_power_of_two() -> None:
    """1, 2, 4, 8: and nothing between."""
    tally = Tally()
    assert [n for n in range(1, 20) if tally.tells("x")] == [1, 2, 4, 8, 16]
    assert tally.total == 19


def test_a_tally_of_endless_kinds_stays_bounded() -> None:
    """Hostile variety shares one count in the end, and is still counted."""
    tally = Tally()
    told = sum(tally.tells(n) for n in range(50_000))
    assert tally.total == 50_000
    assert told < 10_100
