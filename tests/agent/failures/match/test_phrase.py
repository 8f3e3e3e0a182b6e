"""Phrases: parts in order, no overlap, a rare anchor."""

import pytest

from agent.failures.match.phrase import parse_phrase


def test_parts_must_stand_in_order_and_without_overlap() -> None:
    phrase = parse_phrase("Free memory <*> less than <*> GiB")
    assert phrase.stands_in(b"free memory on cuda:0 less than 3 gib")
    assert not phrase.stands_in(b"less than 3 gib free memory")
    assert not parse_phrase("abab<*>abab").stands_in(b"ababab")


def test_the_anchor_is_the_longest_part_that_is_no_common_word() -> None:
    assert parse_phrase("cuMemCreate<*>out of memory").anchor == b"cumemcreate"
    assert parse_phrase("hub<*>not found").anchor == b"not found"


@pytest.mark.parametrize("text", ["", "<*>", "ab<*>cd", "line\nbreak here", "   "])
def test_a_phrase_without_a_useful_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"literal|line break"):
        parse_phrase(text)
