"""What every store of either database promises of the mark of its installation."""

from datetime import UTC, datetime

import pytest

from agent.core.database_pair import InstallationMark
from agent.core.decision.audit import AuditRow

MARK = InstallationMark(installation="installation-a")
HERE = MARK.installation


def row(number, chain=None):
    at = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
    return AuditRow(number=number, at=at, kind="k", incident="i", who="w", body="b", chain=chain or f"c{number}")


class Marks:
    """The suite; ``opened`` opens one more handle to the same database."""

    def test_a_new_database_has_none_and_the_first_one_stays(self, opened):
        assert opened().mark() is None
        assert opened().first_mark(MARK) == MARK
        assert opened().first_mark(InstallationMark(installation="installation-b", paired=True)) == MARK
        assert opened().mark() == MARK

    def test_it_grows_and_never_goes_back(self, opened):
        store = opened()
        store.reach(row(5), of=HERE)
        store.pair()
        assert store.mark() is None
        store.first_mark(MARK)
        for number, reached in ((5, 5), (3, 5), (9, 9)):
            store.reach(row(number), of=HERE)
            assert opened().mark() == MARK.with_(reached=reached, chain=f"c{reached}")
        store.reach(row(9, "another"), of=HERE)
        store.reach(row(11), of="installation-b")
        assert opened().mark() == MARK.with_(reached=9, chain="c9")

    def test_it_learns_the_chain_of_the_row_it_has_reached(self, opened):
        """A mark from before chains were kept has none."""
        store = opened()
        store.first_mark(MARK.with_(reached=9))
        store.reach(row(8), of=HERE)
        assert opened().mark() == MARK.with_(reached=9)
        store.reach(row(9), of=HERE)
        assert opened().mark() == MARK.with_(reached=9, chain="c9")

    def test_pairing_it_changes_nothing_else(self, opened):
        store = opened()
        store.first_mark(MARK.with_(reached=9, chain="c9"))
        for _ in range(2):
            store.pair()
            assert opened().mark() == MARK.with_(paired=True, reached=9, chain="c9")

    def test_it_can_be_set_anew(self, opened):
        store = opened()
        store.first_mark(MARK.with_(reached=9))
        anew = InstallationMark(installation="installation-b", paired=True, reached=2, chain="c2")
        store.set_mark(anew)
        assert opened().mark() == anew

    def test_racers_who_set_the_first_one_agree(self, opened, make):
        handles = [opened() for _ in range(4)]
        marks = make.together(
            8, lambda n: handles[n % 4].first_mark(InstallationMark(installation=f"installation-{n}"))
        )
        assert len(set(marks)) == 1

    def test_racers_who_let_it_grow_leave_the_highest(self, opened, make):
        """And who notes the pair beside them takes nothing back."""
        handles = [opened() for _ in range(4)]
        handles[0].first_mark(MARK)
        make.together(8, lambda n: handles[n % 4].reach(row(n), of=HERE) if n else handles[0].pair())
        assert opened().mark() == MARK.with_(paired=True, reached=7, chain="c7")


class TestIncidentDatabase(Marks):
    @pytest.fixture
    def opened(self, open_store):
        return open_store


class TestControlDatabase(Marks):
    @pytest.fixture
    def opened(self, open_control):
        return open_control
