"""Whether the two databases belong together: one installation id, and how far each has seen the other come."""

from agent.core.value import Value


class InstallationMark(Value):
    """What one of the two databases says of the installation.

    Attributes:
        installation: The id that both carry; given once.
        paired: Whether the other one is known to carry it too; then it cannot be missing without a loss.
        reached: In the incident database the newest row of the record that it has seen, in the control database the
            highest number that the incident database is known to hold. Moves with decisions and the kill switch.
    """

    installation: str
    paired: bool = False
    reached: int = 0


class DatabasePairing(Value):
    """What `decide` says of its two databases; ``apart`` is empty where they belong together."""

    apart: str


def advanced(mark: InstallationMark, reached: int) -> InstallationMark:
    """Return the mark of a database that has seen the other one come that far; it never goes back."""
    return mark.with_(reached=max(mark.reached, reached))


def pair_fault(incidents: InstallationMark | None, control: InstallationMark | None, *, recorded: int) -> str:
    """Return why nothing may be changed on the word of these two databases, or nothing.

    Args:
        incidents: The mark of the incident database.
        control: The mark of the control database.
        recorded: The number of the newest row of the record in the control database, 0 where it has none.
    """
    if incidents is None and control is None:
        return ""  # a new installation, or one from before marks were kept: it is stamped
    why = ""
    if incidents is None or control is None:
        why = f"the {'control' if incidents else 'incident'} database is missing or was emptied"
    elif incidents.installation != control.installation:
        why = f"one is of installation {incidents.installation!r}, the other of {control.installation!r}"
    elif incidents.reached > max(control.reached, recorded):
        why = (
            "the control database is older than the incident database: "
            f"its record ends at row {recorded}, and row {incidents.reached} was written"
        )
    elif control.reached > incidents.reached:
        why = (
            "the incident database is older than the control database: "
            f"it knows of row {incidents.reached} of the record, and knew of row {control.reached}"
        )
    return f"the two databases do not belong together: {why}" if why else ""
