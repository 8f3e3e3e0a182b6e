"""The store of incidents: state, outgoing messages and timeline commit together, or not at all."""

from datetime import datetime
from typing import Final, Protocol

from pydantic import AwareDatetime, Field

from agent.core.database_pair import InstallationMark
from agent.core.decision.audit import AuditRow
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal
from agent.core.plan.plan import Plan
from agent.core.value import Value
from agent.ports.bus import Message

MOST_LISTED: Final = 1000


class Accepted(Value):
    """What became of a signal.

    Attributes:
        new: False when its key had been stored before.
        count: Signals of the incident, at least so many, never more than there are; a store that samples tells a power
            of two, perhaps one that it told before. None where it did not look.
    """

    new: bool
    count: int | None


class Change(Value):
    """Everything one stage writes, in one transaction.

    Attributes:
        incident: The new state; its ``version`` is the one that was read, the store adds one.
        heads: Head keys to point at this incident (see :func:`head_key`).
        seen: What head keys pointed at when this was decided; where one points elsewhere now, a rival was first.
        signals: Signals to store with it.
        messages: Outgoing messages, published by whoever drains the outbox.
        events: Lines for the timeline.
        plan: A new plan to keep for ever.
    """

    incident: Incident
    heads: tuple[str, ...] = ()
    seen: dict[str, str | None] = Field(default_factory=dict)
    signals: tuple[Signal, ...] = ()
    messages: tuple[Message, ...] = ()
    events: tuple[Event, ...] = ()
    plan: Plan | None = None


class Query(Value):
    """Which incidents to list, newest first; of times of opening, ``since`` is included and ``before`` is not.

    Attributes:
        waits_in: Only those that wait for a person in this phase, see :func:`agent.core.incident.renotify.waits_in`.
    """

    run: str | None = None
    service: str | None = None
    open_only: bool = False
    waits_in: Phase | None = None
    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    before: AwareDatetime | None = None
    since: AwareDatetime | None = None


class MarkStore(Protocol):
    """The mark of the installation that each of the two databases carries."""

    def mark(self) -> InstallationMark | None:
        """Return the mark; None where the database was never stamped, or was emptied."""
        ...

    def first_mark(self, mark: InstallationMark) -> InstallationMark:
        """Set the mark where there is none; return the one that stands."""
        ...

    def set_mark(self, mark: InstallationMark) -> None:
        """Set the mark, whatever stood there."""
        ...

    def pair(self) -> None:
        """Note that the other database carries the mark too; nothing happens where there is none."""
        ...

    def reach(self, row: AuditRow, *, of: str) -> None:
        """Let the mark grow to a row of the record, or learn the chain of the one it has reached; it never goes back.

        Nothing happens where the mark is not of the installation ``of``, or there is none.
        """
        ...


class IncidentStore(MarkStore, Protocol):
    """Incidents and what belongs to them.

    Every method raises DependencyFailed when the store does not answer; then nothing was written,
    or everything was, and the caller loads again to see which.
    """

    def accept(self, signal: Signal, incident_id: str) -> Accepted:
        """Store a signal once, by its key, without touching the incident."""
        ...

    def knows(self, signal_key: str) -> str | None:
        """Return the incident in which a signal with that key is stored."""
        ...

    def head(self, key: str) -> str | None:
        """Return the newest incident for a head key."""
        ...

    def load(self, incident_id: str) -> Incident:
        """Return the incident as last committed.

        Raises:
            NotFound: There is none with that id.
        """
        ...

    def signals(self, incident_id: str, limit: int = 2000) -> tuple[Signal, ...]:
        """Return stored signals by their own time; where there are more than ``limit``, the first and the last half."""
        ...

    def commit(self, change: Change) -> Incident:
        """Write everything in ``change`` or nothing; return the incident with its new version.

        Version 0 creates.

        Raises:
            StateConflict: Somebody else wrote first: another version stands, or one of the signals is stored already.
                Nothing was written.
            StoredOtherwise: The plan's id was given to another plan. Nothing was written.
        """
        ...

    def outbox(self, incident_id: str) -> tuple[Message, ...]:
        """Return what was committed and not yet marked as sent, oldest first."""
        ...

    def sent(self, message_ids: tuple[str, ...]) -> None:
        """Mark messages as sent; marking twice is harmless, and so is a mark that is lost: it is sent once more."""
        ...

    def unsent(self, limit: int = 100) -> tuple[str, ...]:
        """Return incidents whose outbox is not empty, the longest waiting first."""
        ...

    def due(self, now: datetime, limit: int = 100) -> tuple[str, ...]:
        """Return incidents whose ``wakes_at`` has come, the longest waiting first."""
        ...

    def latest_time(self) -> datetime | None:
        """Return the highest :func:`committed_at` of all commits, against clocks that step back."""
        ...

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """List incidents, newest first."""
        ...

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Return the timeline in the order it was committed."""
        ...

    def plan(self, plan_id: str) -> Plan | None:
        """Return a plan as it was made; plans are never changed."""
        ...


def head_key(run: str, service: str, revision: str | None) -> str:
    """Return the key under which the newest incident of a service, or of one of its revisions, is found."""
    return f"{run}|{service}|{revision or ''}"


def request_head(run: str, service: str) -> str:
    """Return the key under which the newest change request of a service is found; no signal ever asks for it."""
    return f"request|{run}|{service}"


def repeat_head(run: str, key: str) -> str:
    """Return the key under which the newest request with this asker, service, actions and target is found."""
    return f"request-key|{run}|{key}"


def change_head(run: str, service: str) -> str:
    """Return the key under which the request that changed a service last is found; it may have asked for an end."""
    return f"request-change|{run}|{service}"


def committed_at(change: Change) -> datetime:
    """Return the latest time that our own clock gave to a change; the times of signals are their sources' own."""
    incident = change.incident
    own = (incident.opened_at, incident.phase_at, incident.quiet_since)
    return max(*own, *(event.at for event in change.events))
