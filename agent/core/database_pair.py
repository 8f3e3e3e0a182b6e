"""Whether the two databases belong together: one installation id, and how far each has seen the other come."""

from agent.core.decision.audit import AuditRow
from agent.core.value import Value


class InstallationMark(Value):
    """What one of the two databases says of the installation.

    Attributes:
        installation: The id that both carry; given once.
        paired: Whether the other one is known to carry it too; then it cannot be missing without a loss.
        reached: In the incident database the newest row of the record that it has seen, in the control database the
            highest number that the incident database is known to hold. Moves with decisions and the kill switch.
        chain: Of the row ``reached``; empty where no row was reached, or who noted it kept no chains.
    """

    installation: str
    paired: bool = False
    reached: int = 0
    chain: str = ""


class DatabasePairing(Value):
    """What `decide` says of its two databases; ``apart`` is empty where they belong together."""

    apart: str


def advanced(mark: InstallationMark, row: AuditRow) -> InstallationMark:
    """Return the mark of a database that has seen the other one come to ``row``; it never goes back."""
    known = mark.reached > row.number or (mark.reached == row.number and mark.chain != "")
    return mark if known else mark.with_(reached=row.number, chain=row.chain)


def pair_fault(
    incidents: InstallationMark | None, control: InstallationMark | None, *, row: AuditRow | None = None
) -> str:
    """Return why nothing may be changed on the word of these two databases, or nothing.

    Args:
        incidents: The mark of the incident database.
        control: The mark of the control database.
        row: The newest row of the record that is no newer than ``incidents.reached``; asked only where the control
            database does not say that it has come as far.
    """
    if incidents is None and control is None:
        return ""  # a new installation, or one from before marks were kept: it is stamped
    why = ""
    if incidents is None or control is None:
        why = f"the {'control' if incidents else 'incident'} database is missing or was emptied"
    elif incidents.installation != control.installation:
        why = f"one is of installation {incidents.installation!r}, the other of {control.installation!r}"
    elif incidents.reached > control.reached:
        why = _not_recorded(incidents, row)
    elif incidents.reached == control.reached and _are_of_two_records(incidents.chain, control.chain):
        why = f"row {incidents.reached} of the record is another one in each: they went on apart from each other"
    elif control.reached > incidents.reached:
        why = (
            "the incident database is older than the control database: "
            f"it knows of row {incidents.reached} of the record, and knew of row {control.reached}"
        )
    return f"the two databases do not belong together: {why}" if why else ""


def _not_recorded(incidents: InstallationMark, row: AuditRow | None) -> str:
    """Return why the record does not hold the row that the incident database has seen, or nothing where it does."""
    last = row.number if row else 0
    older = "the control database is older than the incident database: "
    if row is None or last < incidents.reached:
        return f"{older}its record ends at row {last}, and row {incidents.reached} was written"
    if _are_of_two_records(incidents.chain, row.chain):
        return f"{older}row {last} of its record is not the one that was written first"
    return ""


def _are_of_two_records(chain: str, other: str) -> bool:
    """Whether two chains of rows of one number are both known, and differ."""
    return bool(chain and other) and chain != other
