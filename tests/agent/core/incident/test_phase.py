"""The life table: every path ends, and an effect stands only behind an approval."""

from agent.core.incident.phase import BEFORE_DECISION, CHANGED, ENDS, NEXT, Phase


def test_every_phase_is_in_the_table() -> None:
    """No phase without a row, no edge to something that is no phase."""
    assert set(NEXT) == set(Phase)
    assert all(after <= set(Phase) for after in NEXT.values())


def test_every_path_can_end() -> None:
    """From every phase an end can be reached."""
    for start in Phase:
        seen, new = set(), {start}
        while new:
            seen |= new
            new = {after for phase in new for after in NEXT[phase]} - seen
        assert seen & ENDS, start


def test_every_phase_can_be_reached_from_open() -> None:
    """No phase is dead code."""
    seen, new = set(), {Phase.OPEN}
    while new:
        seen |= new
        new = {after for phase in new for after in NEXT[phase]} - seen
    assert seen == set(Phase)


def test_a_change_stands_only_behind_an_approval() -> None:
    """Without passing APPROVED, no phase in which something of ours may stand in the world can be reached."""
    seen, new = set(), {Phase.OPEN}
    while new:
        seen |= new
        new = {after for phase in new - {Phase.APPROVED} for after in NEXT[phase]} - seen
    assert not seen & CHANGED
    assert seen >= BEFORE_DECISION


def test_ends_are_the_three_that_people_know() -> None:
    """Resolved, self-recovered, or a person has it."""
    assert {Phase.RESOLVED, Phase.SELF_RECOVERED, Phase.ESCALATED} == ENDS
