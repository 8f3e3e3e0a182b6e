"""The tables of both lives: every path ends, and an effect stands only behind an approval."""

import pytest

from agent.core.incident.phase import BEFORE_DECISION, CHANGED, ENDS, NEXT, NEXT_OF_REQUEST, UNDER_WAY, Phase

TABLES = {"incident": NEXT, "request": NEXT_OF_REQUEST}
both = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


def reached(table, start, *, without=frozenset()):
    seen, new = set(), {start}
    while new:
        seen |= new
        new = {after for phase in new - without for after in table[phase]} - seen
    return seen


def test_every_phase_is_in_a_table() -> None:
    """No phase without a row, no edge to something that has none."""
    assert set(NEXT) | set(NEXT_OF_REQUEST) == set(Phase)
    assert all(after <= set(table) for table in TABLES.values() for after in table.values())


@both
def test_every_path_can_end(table) -> None:
    """From every phase an end can be reached."""
    assert all(reached(table, start) & ENDS for start in table)


@both
def test_every_phase_can_be_reached_from_open(table) -> None:
    """No phase is dead code."""
    assert reached(table, Phase.OPEN) == set(table)


@both
def test_a_change_stands_only_behind_an_approval(table) -> None:
    """Without passing APPROVED, no phase in which something of ours may stand in the world can be reached."""
    seen = reached(table, Phase.OPEN, without={Phase.APPROVED})
    assert not seen & CHANGED
    assert seen >= BEFORE_DECISION & set(table)


def test_ends_are_the_four_that_people_know() -> None:
    """Resolved, self-recovered, a person has it, or a request is closed."""
    assert {Phase.RESOLVED, Phase.SELF_RECOVERED, Phase.ESCALATED, Phase.CLOSED} == ENDS


def test_a_request_is_never_planned_anew_nor_recovers_by_itself() -> None:
    """What did not come about is closed; a person has it only where the roll-back failed."""
    for phase in (Phase.REJECTED, Phase.EXPIRED, Phase.REFUSED, Phase.WITHDRAWN, Phase.ROLLED_BACK):
        assert NEXT_OF_REQUEST[phase] == {Phase.CLOSED}
    assert Phase.SELF_RECOVERED not in NEXT_OF_REQUEST
    assert [p for p, after in NEXT_OF_REQUEST.items() if Phase.ESCALATED in after] == [Phase.ROLLING_BACK]
    assert {Phase.APPROVED, Phase.APPLYING, Phase.VERIFYING, Phase.ROLLING_BACK} == UNDER_WAY
