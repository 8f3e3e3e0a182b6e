"""R19: two databases of one moment belong together, every other pair does not, and a new installation does."""

import pytest

from agent.core.database_pair import InstallationMark, advanced, pair_fault

HERE = InstallationMark(installation="installation-a", paired=True, reached=7)


@pytest.mark.parametrize(
    ("incidents", "control", "recorded"),
    [(None, None, 0), (HERE, HERE, 7), (HERE, HERE.with_(reached=5), 7), (HERE, HERE.with_(reached=5), 9)],
    ids=["new", "settled", "stopped before the control database was told", "further rows since"],
)
def test_what_belongs_together_has_no_fault(
    incidents: InstallationMark | None, control: InstallationMark | None, recorded: int
) -> None:
    assert pair_fault(incidents, control, recorded=recorded) == ""


@pytest.mark.parametrize(
    ("incidents", "control", "recorded", "says"),
    [
        (None, HERE, 7, "the incident database is missing or was emptied"),
        (HERE, None, 0, "the control database is missing or was emptied"),
        (HERE, HERE.with_(installation="installation-b"), 7, "'installation-a', the other of 'installation-b'"),
        (HERE, HERE.with_(reached=5), 6, "the control database is older than the incident database: its record"),
        (HERE.with_(reached=5), HERE, 7, "the incident database is older than the control database: it knows of row 5"),
    ],
    ids=["incidents lost", "control lost", "of two installations", "control older", "incidents older"],
)
def test_what_does_not_says_why(
    incidents: InstallationMark | None, control: InstallationMark | None, recorded: int, says: str
) -> None:
    fault = pair_fault(incidents, control, recorded=recorded)
    assert fault.startswith("the two databases do not belong together: ")
    assert says in fault


def test_a_mark_never_goes_back() -> None:
    assert advanced(HERE, 3) == HERE
    assert advanced(HERE, 9).reached == 9
