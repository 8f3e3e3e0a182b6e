"""The store of incidents in Firestore: preconditions and one batch for each commit, no transaction to wait for.

Layout: ``incidents/ID`` with ``timeline/VERSION`` and ``cards/NOTIFIER`` below it, ``signals/KEY`` (the dedup document
of one log entry or alert state), ``heads/KEY``, ``plans/ID``, ``outbox/MESSAGE``. Bodies are JSON text, kept out of
every index; what is asked by stands beside them.
"""

import hashlib
import threading
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final, TypeVar

from agent.adapters.store.conflict import head_moved, missing, plan_stored, signal_stored, stale
from agent.adapters.store.firestore.documents import Data, Documents, Found, Write, document_path
from agent.adapters.store.firestore.errors import Rival
from agent.adapters.store.firestore.mark import FirestoreMark
from agent.adapters.store.row_json import from_text, from_us, to_text, to_us
from agent.core.incident.incident import Event, Incident
from agent.core.incident.renotify import waits_in
from agent.core.intake.signal import Signal, in_order
from agent.core.plan.plan import Plan
from agent.errors import StateConflict
from agent.ports.bus import Message
from agent.ports.clock import Clock
from agent.ports.store import Accepted, Change, Query, committed_at

INDEXES: Final = (
    ("signals", (("incident", "ASCENDING"), ("at", "ASCENDING"))),
    ("signals", (("incident", "ASCENDING"), ("at", "DESCENDING"))),
    ("outbox", (("incident", "ASCENDING"), ("order", "ASCENDING"))),
    ("incidents", (("run", "ASCENDING"), ("opened_at", "DESCENDING"))),
    ("incidents", (("service", "ASCENDING"), ("opened_at", "DESCENDING"))),
    ("incidents", (("is_open", "ASCENDING"), ("opened_at", "DESCENDING"))),
    ("incidents", (("waits_in", "ASCENDING"), ("opened_at", "DESCENDING"))),
)
"""Composite indexes that Terraform makes; queries of several equal fields are joined from them."""

TTL_FIELD: Final = "kept_until"
"""Of ``signals``; Terraform sets the policy. Nothing relies on its working: what stands, counts."""

SIGNALS_KEPT: Final = timedelta(days=90)
COUNTED_FROM_BITS: Final = 3
REMEMBERED: Final = 512
ATTEMPTS: Final = 4

F = TypeVar("F")


class FirestoreStore(FirestoreMark):
    """Keeps the promises of :class:`agent.ports.store.IncidentStore`.

    ``accept`` costs one ``create()``. Counting is sampled by the key: one that ends in *t* zero bits (of its SHA-256,
    *t* at least ``COUNTED_FROM_BITS``) asks how many signals there are, up to 2^(t+3), and reports the highest power
    of two that was reached. So a storm is counted about eight times between two powers of two, for 0.15 reads a signal
    and no write, without any process knowing of another.

    Args:
        documents: The database of the incidents.
        clock: Dates the end of dedup documents, and nothing else.
    """

    def __init__(self, documents: Documents, clock: Clock) -> None:
        super().__init__(documents)
        self._clock = clock
        self._lock = threading.Lock()
        self._read: OrderedDict[str, Found] = OrderedDict()  # incidents as last read: their stamps guard commits
        self._timelines: OrderedDict[str, tuple[Found, ...]] = OrderedDict()

    def accept(self, signal: Signal, incident_id: str) -> Accepted:
        """Store a signal once; see the port. The count is a lower bound, given now and then."""
        if not self._documents.create(document_path("signals", signal.key), self._signal_data(signal, incident_id)):
            return Accepted(new=False, count=None)
        return Accepted(new=True, count=self._counted(signal.key, incident_id))

    def knows(self, signal_key: str) -> str | None:
        """Return where a signal is stored; see the port."""
        found = self._documents.get(document_path("signals", signal_key))
        return None if found is None else str(found.data["incident"])

    def head(self, key: str) -> str | None:
        """Return the newest incident for a head key; see the port."""
        found = self._documents.get(document_path("heads", key))
        return None if found is None else found.data["incident"]

    def load(self, incident_id: str) -> Incident:
        """Return the incident as last committed; see the port."""
        found = self._documents.get(document_path("incidents", incident_id))
        if found is None:
            raise missing(incident_id)
        self._keep(self._read, incident_id, found)
        return from_text(Incident, found.data["body"])

    def signals(self, incident_id: str, limit: int = 2000) -> tuple[Signal, ...]:
        """Return stored signals by their own time; see the port."""
        own = (("incident", "==", incident_id),)
        first = self._documents.select("signals", where=own, order=(("at", False),), limit=limit + 1)
        if len(first) > limit:
            half = limit // 2
            last = self._documents.select("signals", where=own, order=(("at", True),), limit=half) if half else []
            first = first[: limit - half] + last
        return in_order(tuple(from_text(Signal, found.data["body"]) for found in first))

    def commit(self, change: Change) -> Incident:
        """Write everything in ``change`` or nothing; see the port."""
        keys = [signal.key for signal in change.signals]
        double = next((key for n, key in enumerate(keys) if key in keys[:n]), None)
        incident = change.incident.with_(version=change.incident.version + 1)
        plan = change.plan
        for _ in range(ATTEMPTS):
            before = self._before(change)
            heads = self._heads(change)
            if double is not None:
                raise signal_stored(double, incident.id)
            data = _incident_data(incident, change, before)
            writes = [
                Write(
                    path=document_path("incidents", incident.id),
                    data=data,
                    absent=before is None,
                    stamp=before.stamp if before is not None else None,
                ),
                *heads,
                *self._belongings(change, incident),
            ]
            if plan is not None:
                body: Data = {"incident": plan.incident, "body": to_text(plan)}
                writes.append(Write(path=document_path("plans", plan.id), data=body, absent=True))
            try:
                self._documents.write(writes)
            except Rival:
                self._forget(incident.id)
                plan = self._who_was_first(change)
                continue
            self._forget(incident.id)
            return incident
        raise StateConflict(
            f"incident {incident.id!r} was not written",
            why=f"others wrote beside it {ATTEMPTS} times in a row",
            hint="reload it and decide again",
        )

    def outbox(self, incident_id: str) -> tuple[Message, ...]:
        """Return what is to be sent, oldest first; see the port."""
        own = (("incident", "==", incident_id),)
        found = self._documents.select("outbox", where=own, order=(("order", False),))
        return tuple(from_text(Message, f.data["body"]) for f in found)

    def sent(self, message_ids: tuple[str, ...]) -> None:
        """Forget messages that were published; see the port."""
        if message_ids:
            self._documents.write(
                [Write(path=document_path("outbox", m), data=None) for m in dict.fromkeys(message_ids)]
            )

    def unsent(self, limit: int = 100) -> tuple[str, ...]:
        """Return incidents whose outbox is not empty; see the port."""
        asked = limit * 4
        while True:
            found = self._documents.select("outbox", order=(("at", False),), limit=asked, fields=("incident", "order"))
            waiting = tuple(dict.fromkeys(str(f.data["incident"]) for f in found))
            if len(waiting) >= limit or len(found) < asked:
                return waiting[:limit]
            asked *= 4

    def due(self, now: datetime, limit: int = 100) -> tuple[str, ...]:
        """Return incidents that are due; see the port."""
        found = self._documents.select(
            "incidents",
            where=(("due_at", "<=", to_us(now)),),
            order=(("due_at", False),),
            limit=limit,
            fields=("name",),
        )
        return tuple(str(f.data["name"]) for f in found)

    def latest_time(self) -> datetime | None:
        """Return the highest time ever committed; see the port. One read: each incident keeps its own highest."""
        found = self._documents.select("incidents", order=(("latest_at", True),), limit=1, fields=("latest_at",))
        return from_us(found[0].data["latest_at"]) if found else None

    def server_time(self) -> datetime:
        """Return the server's time, or the highest time ever committed where that is later; one read."""
        found = self._documents.select("incidents", order=(("latest_at", True),), limit=1, fields=("latest_at",))
        if not found:
            return self._documents.server_time()
        return max(found[0].read_at, from_us(found[0].data["latest_at"]))

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """List incidents, newest first; see the port."""
        where: list[tuple[str, str, object]] = []
        if query.run is not None:
            where.append(("run", "==", query.run))
        if query.service is not None:
            where.append(("service", "==", query.service))
        if query.open_only:
            where.append(("is_open", "==", True))
        if query.waits_in is not None:
            where.append(("waits_in", "==", query.waits_in.value))
        if query.before is not None:
            where.append(("opened_at", "<", to_us(query.before)))
        if query.since is not None:
            where.append(("opened_at", ">=", to_us(query.since)))
        found = self._documents.select("incidents", where=where, order=(("opened_at", True),), limit=query.limit)
        return tuple(from_text(Incident, f.data["body"]) for f in found)

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Return the timeline in the order it was committed; see the port.

        It only grows, so what was read before is not read again, but for its last document, which tells whether it
        still stands.
        """
        home = f"{document_path('incidents', incident_id)}/timeline"
        with self._lock:
            known = self._timelines.get(incident_id, ())
        found = self._documents.select(home, begin=f"{home}/{known[-1].id}" if known else None)
        if known and (not found or (found[0].id, found[0].stamp) != (known[-1].id, known[-1].stamp)):
            known, found = (), self._documents.select(home)
        found = [*known[:-1], *found]
        self._keep(self._timelines, incident_id, tuple(found))
        return tuple(from_text(Event, body) for f in found for body in f.data["events"])

    def plan(self, plan_id: str) -> Plan | None:
        """Return a plan as it was made; see the port."""
        found = self._documents.get(document_path("plans", plan_id))
        return None if found is None else from_text(Plan, found.data["body"])

    def _counted(self, key: str, incident_id: str) -> int | None:
        bits = _zero_bits(key)
        if bits < COUNTED_FROM_BITS:
            return None
        limit = 1 << (bits + 3)
        counted = self._documents.count("signals", where=(("incident", "==", incident_id),), limit=limit)
        return 1 << (counted.bit_length() - 1) if counted else None

    def _before(self, change: Change) -> Found | None:
        """Return the incident's document at the version that was read.

        Raises:
            StateConflict: Another version stands.
        """
        incident = change.incident
        with self._lock:
            known = self._read.get(incident.id)
        if known is None or known.data["version"] != incident.version:
            known = self._documents.get(document_path("incidents", incident.id)) if incident.version else None
            if incident.version == 0:
                return None  # the precondition tells whether there is one
        stored = known.data["version"] if known is not None else None
        if stored != incident.version:
            raise stale(incident.id, read=incident.version, stored=stored)
        return known

    def _heads(self, change: Change) -> list[Write]:
        """Return the writes of heads, guarded where the writer decided by what they pointed at.

        Raises:
            StateConflict: One points elsewhere now.
        """
        incident = change.incident.id
        writes = [
            Write(path=document_path("heads", key), data={"incident": incident})
            for key in dict.fromkeys(change.heads)
            if key not in change.seen
        ]
        held = self._documents.get_all([document_path("heads", key) for key in change.seen])
        for key, before in change.seen.items():
            found = held[document_path("heads", key)]
            if (found.data["incident"] if found is not None else None) != before:
                raise head_moved(key, incident)
            data: Data = {"incident": incident if key in change.heads else before}
            stamp = found.stamp if found is not None else None
            writes.append(Write(path=document_path("heads", key), data=data, absent=found is None, stamp=stamp))
        return writes

    def _belongings(self, change: Change, incident: Incident) -> list[Write]:
        home = document_path("incidents", incident.id)
        writes = [
            Write(path=document_path("signals", s.key), data=self._signal_data(s, incident.id), absent=True)
            for s in change.signals
        ]
        if change.events:
            events: Data = {"events": [to_text(event) for event in change.events]}
            writes.append(Write(path=f"{home}/timeline/{incident.version:010d}", data=events))
        for number, message in enumerate(change.messages):
            writes.append(Write(path=document_path("outbox", message.id), data=_outbox_data(message, incident, number)))
        return writes

    def _who_was_first(self, change: Change) -> Plan | None:
        """Say whose write stood in the way; return the plan that is still to be written, where another try may help.

        Raises:
            StateConflict: Somebody else wrote first.
            StoredOtherwise: Another plan has the id of the new one.
        """
        self._refuse_version(change)
        signals = self._documents.get_all([document_path("signals", s.key) for s in change.signals])
        for signal in change.signals:
            if signals[document_path("signals", signal.key)] is not None:
                raise signal_stored(signal.key, change.incident.id)
        plan = change.plan
        kept = self.plan(plan.id) if plan is not None else None
        if plan is None or kept is None:
            return plan
        if kept.digest != plan.digest:
            self._refuse_version(change)  # the reads are apart: a rival may have written both between them
            raise plan_stored(plan.id, change.incident.id)
        return None

    def _refuse_version(self, change: Change) -> None:
        found = self._documents.get(document_path("incidents", change.incident.id))
        stored = found.data["version"] if found is not None else None
        if (stored or 0) != change.incident.version:
            raise stale(change.incident.id, read=change.incident.version, stored=stored)

    def _signal_data(self, signal: Signal, incident_id: str) -> Data:
        return {
            "incident": incident_id,
            "at": to_us(signal.at),
            "body": to_text(signal),
            TTL_FIELD: self._clock.now() + SIGNALS_KEPT,
        }

    def _keep(self, kept: OrderedDict[str, F], incident_id: str, found: F) -> None:
        with self._lock:
            kept[incident_id] = found
            kept.move_to_end(incident_id)
            while len(kept) > REMEMBERED:
                kept.popitem(last=False)

    def _forget(self, incident_id: str) -> None:
        with self._lock:
            self._read.pop(incident_id, None)


def _incident_data(incident: Incident, change: Change, before: Found | None) -> Data:
    own, waits = to_us(committed_at(change)), waits_in(incident)
    return {
        "name": incident.id,
        "version": incident.version,
        "run": incident.run,
        "service": incident.service,
        "is_open": not incident.ended,
        "waits_in": None if waits is None else waits.value,
        "opened_at": to_us(incident.opened_at),
        "due_at": None if incident.wakes_at is None else to_us(incident.wakes_at),
        "latest_at": max(own, before.data["latest_at"]) if before is not None else own,
        "body": to_text(incident),
    }


def _outbox_data(message: Message, incident: Incident, number: int) -> Data:
    from google.cloud.firestore_v1 import SERVER_TIMESTAMP

    return {
        "incident": incident.id,
        "order": incident.version * 1000 + number,
        "at": SERVER_TIMESTAMP,
        "body": to_text(message),
    }


def _zero_bits(key: str) -> int:
    number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return (number & -number).bit_length() - 1 if number else 64
