"""A signal is one observation of one service: a log entry, an alert, a metric breach, a probe result."""

from datetime import datetime
from enum import StrEnum

from pydantic import AwareDatetime, Field

from agent.core.value import Value, digest

LIVE = "live"
TEXT_LIMIT = 65_536  # characters kept of one observation; a LogEntry holds at most 256 KB


class Source(StrEnum):
    """Who observed."""

    APP_LOG = "app_log"  # what the server itself printed
    PLATFORM_LOG = "platform_log"  # what the platform says about the instance: probes, exits, memory limit
    AUDIT_LOG = "audit_log"  # what was called on the platform, and how a rollout ended
    REQUEST_LOG = "request_log"  # one request that a client made
    ALERT = "alert"  # Monitoring, Alertmanager, Azure, EventBridge
    METRIC = "metric"  # a number the watch read
    PROBE = "probe"  # a health question that we asked ourselves


class AlertState(StrEnum):
    """What an alert says of itself."""

    OPEN = "open"
    CLOSED = "closed"


class Signal(Value):
    """One observation.

    Attributes:
        key: Two deliveries of one observation have the same key; made with :func:`log_key` or :func:`alert_key`.
        run: ``live``, or the id of a replay; runs never join.
        at: When it happened at its source, UTC.
        text: What was said; untrusted, redacted before it is stored, at most ``TEXT_LIMIT`` characters.
        instance: The instance that spoke, where the platform names one.
        alert_id: The alert's own id, equal for its opening and its closing.
        fields: Small facts beside the text (HTTP status, probe path); untrusted as well.
    """

    key: str
    run: str = LIVE
    source: Source
    service: str = Field(min_length=1, max_length=253)
    platform: str
    revision: str | None = None
    instance: str | None = None
    at: AwareDatetime
    severity: str = "DEFAULT"
    text: str = Field(max_length=TEXT_LIMIT)
    alert_id: str | None = None
    alert_state: AlertState | None = None
    fields: dict[str, str] = Field(default_factory=dict)


def log_key(run: str, *, log_name: str, insert_id: str, timestamp: str) -> str:
    """Return the dedup key of a log entry; message ids differ between two exports of one entry."""
    return digest(["log", run, log_name, insert_id, timestamp])


def alert_key(run: str, *, alert_id: str, state: str, started_at: str = "") -> str:
    """Return the dedup key of an alert's state; ``started_at`` tells two firings of one fingerprint apart."""
    return digest(["alert", run, alert_id, state, started_at])


def in_order(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """Return the signals by their own time, so that the order of arrival decides nothing."""
    return tuple(sorted(signals, key=lambda s: (s.at, s.key)))


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two times, either of which may be missing."""
    return max((t for t in (one, other) if t is not None), default=None)
