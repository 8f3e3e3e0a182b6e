"""The record of what was decided and done, and what a change to it looks like."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.core.decision.audit import AuditRow, Soundness, Verified, chain, next_row, verify

T0 = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


@pytest.fixture
def rows() -> list[AuditRow]:
    written: list[AuditRow] = []
    for n in range(6):
        last = written[-1] if written else None
        written.append(next_row(last, at=T0 + timedelta(seconds=n), kind="k", incident="i", who="w", body=f"{n}"))
    return written


def test_an_untouched_record_is_sound(rows: list[AuditRow]) -> None:
    assert verify(rows) == Verified(soundness=Soundness.SOUND, number=6)
    assert verify([]) == Verified(soundness=Soundness.SOUND, number=0)


@pytest.mark.parametrize("field", [f for f in AuditRow.model_fields if f not in {"number", "chain", "at"}])
@pytest.mark.parametrize("place", [0, 3, 5])
def test_any_changed_word_is_found_in_its_row(rows: list[AuditRow], field: str, place: int) -> None:
    rows[place] = rows[place].with_(**{field: getattr(rows[place], field) + "x"})
    assert verify(rows) == Verified(soundness=Soundness.CHANGED, number=place + 1)


def test_a_changed_microsecond_is_found(rows: list[AuditRow]) -> None:
    rows[2] = rows[2].with_(at=rows[2].at + timedelta(microseconds=1))
    assert verify(rows) == Verified(soundness=Soundness.CHANGED, number=3)


def test_a_row_that_was_written_anew_with_a_fitting_chain_breaks_the_next(rows: list[AuditRow]) -> None:
    forged = rows[2].with_(body="forged")
    rows[2] = forged.with_(chain=chain(rows[1].chain, forged))
    assert verify(rows) == Verified(soundness=Soundness.CHANGED, number=4)


def test_a_removed_a_doubled_and_a_swapped_row_are_found(rows: list[AuditRow]) -> None:
    missing = Soundness.MISSING
    assert verify([*rows[:2], *rows[3:]]) == Verified(soundness=missing, number=3)
    assert verify([*rows[:2], rows[1], *rows[2:]]) == Verified(soundness=missing, number=3)
    assert verify([rows[0], rows[2], rows[1], *rows[3:]]) == Verified(soundness=missing, number=2)


def test_a_cut_tail_is_found_by_whoever_noted_the_last_chain(rows: list[AuditRow]) -> None:
    assert verify(rows[:4]).soundness is Soundness.SOUND
    assert verify(rows[:4], last_chain=rows[-1].chain) == Verified(soundness=Soundness.TAIL_MISSING, number=4)
    assert verify([], last_chain=rows[-1].chain).soundness is Soundness.TAIL_MISSING
    assert verify(rows, last_chain=rows[-1].chain).soundness is Soundness.SOUND


def test_a_part_of_the_record_is_never_called_the_whole(rows: list[AuditRow]) -> None:
    assert verify(rows[2:]) == Verified(soundness=Soundness.BEGINNING_MISSING, number=3)
    rows[4] = rows[4].with_(who="somebody else")
    assert verify(rows[2:]) == Verified(soundness=Soundness.CHANGED, number=5)
    assert verify(rows[2:4], last_chain="0" * 64).soundness is Soundness.TAIL_MISSING
