"""The two databases are stamped with one installation id, and compared before anything is changed."""

from datetime import datetime

from agent.core.database_pair import InstallationMark, pair_fault
from agent.core.decision.audit import AuditRow
from agent.core.value import short_id
from agent.ports.control import ControlStore, KillSwitch
from agent.ports.stage_context import StageContext
from agent.ports.store import IncidentStore

WAY_BACK = "restore both databases to one moment; see 'Restore' in docs/operate.md"


def pairing_fault(context: StageContext) -> str:
    """Return why nothing may be changed on the word of the two databases, or nothing.

    Where neither was ever stamped (a new installation, or one from before marks were kept), both are, once.

    Raises:
        DependencyFailed: One of them did not answer; nothing may be changed.
    """
    store, control = context.store, context.control_store()
    theirs, mine = control.mark(), store.mark()  # in this order: who notes a row tells the incident database first
    if theirs is None and mine is not None:  # somebody else stamped both in between, the control database first
        theirs, mine = control.mark(), store.mark()
    if mine is None and (theirs is None or not theirs.paired):
        seed = {"holder": context.holder, "at": context.clock.now().isoformat()}
        theirs = control.first_mark(InstallationMark(installation=short_id("installation", seed)))
        mine = store.first_mark(InstallationMark(installation=theirs.installation, paired=True))
    fault = _fault(control, mine, theirs)
    if fault or mine is None or theirs is None:
        return fault
    if not theirs.paired:
        control.pair()
    if mine.reached and not mine.chain:
        _learn_chain(store, control, mine)
    return ""


def _fault(control: ControlStore, mine: InstallationMark | None, theirs: InstallationMark | None) -> str:
    """Compare two marks; the record is read only where they alone do not settle it."""
    if mine is None or theirs is None or mine.reached <= theirs.reached:
        return pair_fault(mine, theirs)
    return pair_fault(mine, theirs, row=_row_at(control, mine.reached))


def _row_at(control: ControlStore, number: int) -> AuditRow | None:
    """Return the row of that number, or the newest one below it."""
    return next(iter(control.audit(1, before=number + 1)), None)


def _learn_chain(store: IncidentStore, control: ControlStore, mine: InstallationMark) -> None:
    """Note the chain of the row that the incident database has reached, where who noted it kept none."""
    row = _row_at(control, mine.reached)
    if row is not None and row.number == mine.reached:
        store.reach(row, of=mine.installation)


def note_reached(store: IncidentStore, control: ControlStore, row: AuditRow) -> None:
    """Note in each database how far the other has come: the record to ``row``, which is written by now.

    Nothing is noted where they are not stamped yet, since stamping begins at no row, nor where they do not belong
    together, since that would hide it.
    """
    theirs, mine = control.mark(), store.mark()  # in this order, as above
    if theirs is None or mine is None or _fault(control, mine, theirs):
        return
    store.reach(row, of=theirs.installation)
    control.reach(row, of=theirs.installation)


def put_on_record(context: StageContext, *, at: datetime, kind: str, incident: str, who: str, body: str) -> None:
    """Append a row to the record, once, and tell each database that it is written.

    Raises:
        DependencyFailed: A database did not answer; to say the same again leaves no second row.
    """
    control = context.control_store()
    row = control.append(at=at, kind=kind, incident=incident, who=who, body=body, once=True)
    note_reached(context.store, control, row)


def pair_again(context: StageContext, *, by: str, why: str, at: datetime) -> None:
    """Take both databases as they are for one installation; what was lost stays lost.

    The kill switch is turned on first, because how it stood may be among what was lost.

    Args:
        context: Of an owner that has the control database.
        by: Who asked for it.
        why: What was wrong with them.
        at: The time, UTC.

    Raises:
        DependencyFailed: One of them did not answer; ask again.
    """
    control = context.control_store()
    control.set_kill_switch(KillSwitch(on=True, by=by, why="the databases were paired anew", at=at))
    row = control.append(at=at, kind="databases.paired", incident="", who=by, body=why)
    seed = {"holder": context.holder, "at": at.isoformat()}
    named = short_id("installation", seed)
    mark = InstallationMark(installation=named, paired=True, reached=row.number, chain=row.chain)
    context.store.set_mark(mark)
    control.set_mark(mark)
