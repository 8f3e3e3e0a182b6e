"""R19: two databases of one moment belong together, every other pair does not, and a new installation does."""

from datetime import UTC, datetime

import pytest

from agent.core.database_pair import InstallationMark, advanced, pair_fault
from agent.core.decision.audit import AuditRow

HERE = InstallationMark(installation="installation-a", paired=True, reached=7, chain="c7")


def row(number: int, chain: str = "c7") -> AuditRow:
    at = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
    return AuditRow(number=number, at=at, kind="k", incident="i", who="w", body="b", chain=chain)


@pytest.mark.parametrize(
    ("incidents", "control", "newest"),
    [
        (None, None, None),
        (HERE, HERE, None),
        (HERE, HERE.with_(reached=5), row(7)),
        (HERE.with_(chain=""), HERE.with_(reached=5), row(7, "x")),
        (HERE.with_(chain=""), HERE, None),
    ],
    ids=[
        "new",
        "settled",
        "stopped before the control database noted it",
        "from before chains were kept",
        "and the other one since",
    ],
)
def test_what_belongs_together_has_no_fault(
    incidents: InstallationMark | None, control: InstallationMark | None, newest: AuditRow | None
) -> None:
    assert pair_fault(incidents, control, row=newest) == ""


@pytest.mark.parametrize(
    ("incidents", "control", "newest", "says"),
    [
        (None, HERE, None, "the incident database is missing or was emptied"),
        (HERE, None, None, "the control database is missing or was emptied"),
        (HERE, HERE.with_(installation="installation-b"), None, "'installation-a', the other of 'installation-b'"),
        (HERE, HERE.with_(reached=5), row(6), "the control database is older than the incident database: its record"),
        (HERE, HERE.with_(reached=0), None, "its record ends at row 0, and row 7 was written"),
        (HERE, HERE.with_(reached=5), row(7, "x"), "row 7 of its record is not the one that was written first"),
        (HERE, HERE.with_(chain="x"), None, "row 7 of the record is another one in each"),
        (
            HERE.with_(reached=5),
            HERE,
            None,
            "the incident database is older than the control database: it knows of row 5",
        ),
    ],
    ids=[
        "incidents lost",
        "control lost",
        "of two installations",
        "control older",
        "record empty",
        "record begun anew",
        "on apart",
        "incidents older",
    ],
)
def test_what_does_not_says_why(
    incidents: InstallationMark | None, control: InstallationMark | None, newest: AuditRow | None, says: str
) -> None:
    fault = pair_fault(incidents, control, row=newest)
    assert fault.startswith("the two databases do not belong together: ")
    assert says in fault


def test_a_mark_never_goes_back() -> None:
    assert advanced(HERE, row(3, "c3")) == HERE
    assert advanced(HERE, row(7, "another")) == HERE
    assert advanced(HERE, row(9, "c9")) == HERE.with_(reached=9, chain="c9")


def test_a_mark_without_a_chain_learns_that_of_its_row() -> None:
    assert advanced(HERE.with_(chain=""), row(6, "c6")) == HERE.with_(chain="")
    assert advanced(HERE.with_(chain=""), row(7)) == HERE
