"""The quarantine in the Firestore database of the incidents."""

from collections.abc import Callable, Mapping
from typing import Final

from agent.adapters.bus.quarantine.message_key import FAILURES_KEPT, key_of, row_of
from agent.adapters.store.firestore.documents import Data, Documents, Write, document_path
from agent.adapters.store.firestore.errors import FirestoreTimeout, Rival
from agent.ports.bus import Delivery
from agent.ports.clock import Clock

ATTEMPTS: Final = 20
FAILURES_TTL_FIELD: Final = "kept_until"
"""Of ``failures``; Terraform sets the policy."""

BODY_LIMIT: Final = 900_000  # bytes; a document holds 1 MiB with everything beside it


class FirestoreQuarantine:
    """Keeps the promises of :class:`agent.ports.bus.Quarantine`.

    A body longer than ``BODY_LIMIT`` is cut, and says so; Pub/Sub's own dead letters keep the whole.

    Args:
        documents: The database of the incidents.
        clock: Dates the rows.
        redact: Takes secrets out of a text before it is kept.
    """

    def __init__(self, documents: Documents, clock: Clock, *, redact: Callable[[str], str]) -> None:
        self._documents = documents
        self._clock = clock
        self._redact = redact

    def failed(self, delivery: Delivery, reason: str) -> int:
        """Count a handled failure; see the port. Older ones than a message can live are forgotten by the TTL."""
        path = document_path("failures", key_of(delivery))
        for _ in range(ATTEMPTS):
            found = self._documents.get(path)
            count = 1 + (found.data["count"] if found is not None else 0)
            until = self._clock.now() + FAILURES_KEPT
            data: Data = {"count": count, "reason": self._redact(reason), FAILURES_TTL_FIELD: until}
            stamp = found.stamp if found is not None else None
            try:
                self._documents.write([Write(path=path, data=data, absent=found is None, stamp=stamp)])
            except Rival:
                continue
            return count
        raise FirestoreTimeout(
            "a failure was not counted", why="other workers are counting the same message", hint="it is delivered again"
        )

    def put(self, delivery: Delivery, reason: str) -> None:
        """Keep a message with its reason; the first reason stays. See the port."""
        row = row_of(delivery, reason, redact=self._redact)
        body, encoding = row.pop("data").encode(), row["encoding"]
        if len(body) > BODY_LIMIT:
            body, encoding = body[:BODY_LIMIT], f"{encoding}, cut"
        kept = {"at": self._clock.now().isoformat(), "body": body.decode("utf-8", "ignore"), "encoding": encoding}
        self._documents.create(document_path("quarantine", key_of(delivery)), row | kept)
        self._documents.write([Write(path=document_path("failures", key_of(delivery)), data=None)])

    def rows(self, limit: int = 100) -> tuple[Mapping[str, str], ...]:
        """Return what is kept, newest first; see the port."""
        found = self._documents.select("quarantine", order=(("at", True),), limit=limit)
        return tuple(
            {"data" if key == "body" else key: str(value) for key, value in f.data.items()}
            for f in sorted(found, key=lambda f: (f.data["at"], f.id), reverse=True)
        )
