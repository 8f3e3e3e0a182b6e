"""Words by which any program tells how it is: what each kind says, and how a phrase is written."""

import re

import pytest

from agent.catalogue.load_failures import FailureCatalogue
from agent.failures.text.words import Says, StatusWords, Words, pattern_of


@pytest.fixture(scope="module")
def words(catalogue: FailureCatalogue) -> StatusWords:
    return StatusWords(catalogue.words)


def test_every_kind_has_words_and_no_phrase_stands_twice_in_a_kind(catalogue: FailureCatalogue) -> None:
    assert {group.says for group in catalogue.words} == set(Says)
    for says in Says:
        phrases = [phrase for group in catalogue.words if group.says is says for phrase in group.phrases]
        assert len(phrases) == len(set(phrases)), says


@pytest.mark.parametrize(
    ("phrase", "in_it", "not_in_it"),
    [
        ("time-out*", "two Time-Outs", "time outs"),
        ("app [is] up", "the app up", "app was up"),
        ("rc<is><fault>", "rc=139", "rc=0"),
        ("<no> fit", "does not fit", "fits"),
        ("<no> <word> fit", "none would fit", "one would fit"),
        ("| <5xx>", "| 503 |", "| 5031"),
        ("<request> <ok>", "GET /lamps 201", "get /lamps 201"),
        ("ready<end>", "lamp is ready.", "ready or not"),
        ("0 workers", "0 workers left, of 9", "10.0 workers"),
        ("0 workers", "lamp: 0 workers", "10 workers"),
        ("reached <*> limit", "reached its own limit", "limit reached"),
    ],
)
def test_what_stands_for_what(phrase: str, in_it: str, not_in_it: str) -> None:
    pattern = re.compile(pattern_of(phrase), re.IGNORECASE)
    assert pattern.search(in_it)
    assert not pattern.search(not_in_it)


@pytest.mark.parametrize("phrase", ["<lamp>", "<*>", "..."])
def test_a_phrase_without_a_word_is_refused(phrase: str) -> None:
    with pytest.raises(ValueError, match=r"stands for nothing|has no word"):
        pattern_of(phrase)


def test_a_line_that_denies_that_it_is_up_does_not_say_so(words: StatusWords) -> None:
    assert words.up("listening on port 3000")
    assert not words.up("not listening on port 3000")
    assert not words.up('{"success": false}')
    assert words.without_up("lamp listening on 3000").split() == ["lamp", "3000"]


def test_words_are_found_where_they_are_written_as_one(words: StatusWords) -> None:
    assert words.wrong("LampNotFound")
    assert words.down_at("lamp-2 NOT_READY") is not None
    assert words.down_at("NOT_READY: 2") is None
    assert list(words.may_be_down(["lamp is lit", "lamp-2 NOT_READY"])) == [1]
    assert list(words.may_be_down(["lamp is lit", "0 workers"])) == [1]


def test_half_a_character_is_survived(words: StatusWords) -> None:
    assert words.wrong("\ud800 failed")
    assert not words.up("\ud800")


def test_without_words_nothing_is_said() -> None:
    none = StatusWords()
    assert [none.up("listening on 1"), none.troubled("failed"), *none.may_be_down(["down"])] == [False, False]
    assert StatusWords([Words(says=Says.WELL, proves="A lamp burns.", phrases=("lit",))]).well("the lamp is lit")
