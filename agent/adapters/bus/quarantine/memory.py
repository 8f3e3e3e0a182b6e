"""The quarantine in memory."""

import json
import threading
from collections.abc import Callable, Mapping

from agent.adapters.bus.quarantine.message_key import as_text, key_of, topic_of
from agent.ports.bus import Delivery
from agent.ports.clock import Clock


class MemoryQuarantine:
    """Keeps the promises of :class:`agent.ports.bus.Quarantine` until the process ends.

    Args:
        clock: Dates the rows.
        redact: Takes secrets out of a text before it is kept.
    """

    def __init__(self, clock: Clock, *, redact: Callable[[str], str]) -> None:
        self._clock = clock
        self._redact = redact
        self._lock = threading.Lock()
        self._failures: dict[str, list[str]] = {}
        self._rows: dict[str, Mapping[str, str]] = {}

    def failed(self, delivery: Delivery, reason: str) -> int:
        """Count a handled failure; see the port."""
        with self._lock:
            reasons = self._failures.setdefault(key_of(delivery), [])
            reasons.append(self._redact(reason))
            return len(reasons)

    def put(self, delivery: Delivery, reason: str) -> None:
        """Keep a message with its reason; the first reason stays. See the port."""
        data, encoding = as_text(delivery.data)
        row = {
            "id": delivery.message_id,
            "topic": topic_of(delivery),
            "reason": self._redact(reason),
            "at": self._clock.now().isoformat(),
            "data": self._redact(data) if encoding == "utf-8" else data,
            "encoding": encoding,
            "attributes": self._redact(json.dumps(delivery.attributes)),
        }
        with self._lock:
            self._rows.setdefault(key_of(delivery), row)
            self._failures.pop(key_of(delivery), None)

    def rows(self, limit: int = 100) -> tuple[Mapping[str, str], ...]:
        """Return what is kept, newest first; see the port."""
        with self._lock:
            newest = sorted(self._rows.items(), key=lambda item: (item[1]["at"], item[0]), reverse=True)
        return tuple(row for _, row in newest[:limit])
