"""A signal is one observation of one service: a log entry, an alert, a metric breach, a probe result, an end."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from pydantic import AwareDatetime, Field

from agent.core.value import Value, digest

LIVE = "live"
TEXT_LIMIT = 65_536  # characters kept of one observation; a LogEntry holds at most 256 KB
SIGNAL_NAMES: Mapping[int, str] = MappingProxyType(
    {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
     9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
     24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS"}
)  # fmt: skip
"""What ends a process on Linux (man 7 signal, x86 and arm numbers); real-time signals have no name of their own."""
LAST_SIGNAL = 64


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


class AskedBy(StrEnum):
    """Who asked a server to end. An end that nobody asked for is an incident, whatever its exit code."""

    OUR_EFFECT = "our_effect"  # a change of ours took its place
    SCALE_IN = "scale_in"
    ROLLOUT = "rollout"  # another revision took its place
    SCALE_IN_OR_ROLLOUT = "scale_in_or_rollout"  # the platform sent SIGTERM and does not say for which of the two
    DRAIN = "drain"
    DELETION = "deletion"  # a deletionTimestamp, or the instance was terminated by a call
    OPERATOR = "operator"


class Waiting(StrEnum):
    """What a server that has not come up yet waits for, as its platform says; over once its revision is ready."""

    FOR_A_PLACE = "place"  # a node, an image, a volume, the end of its rollout
    FOR_ITS_PORT = "port"  # a probe found the port closed, as in every start; who gives up on it ends the server


class End(Value):
    """The end of a process, container, instance or pod, as its platform tells it.

    Attributes:
        exit_code: 0..255; None where a signal ended it or nobody knows.
        signal_number: The signal that ended it, 1..64; None where it exited by itself or nobody knows.
        oom: Whether the platform or the kernel marks it as killed for memory.
        reason: The platform's own word, such as ``OOMKilled`` or ``ProcessExited``; untrusted text.
        asked_by: Who asked for it; None where nobody did, as far as is known.
    """

    exit_code: int | None = Field(default=None, ge=0, le=255)
    signal_number: int | None = Field(default=None, ge=1, le=LAST_SIGNAL)
    oom: bool = False
    reason: str = Field(default="", max_length=256)
    asked_by: AskedBy | None = None

    @property
    def ended_by(self) -> int | None:
        """The signal's number, also where a shell or a container runtime tells it as 128 + number."""
        if self.signal_number is not None:
            return self.signal_number
        number = (self.exit_code or 0) - 128
        return number if 1 <= number <= LAST_SIGNAL else None

    @property
    def catalogue_text(self) -> str:
        """The end in the one spelling that the failure catalogue is asked with, whatever the platform's was."""
        if self.oom:
            return "OOMKilled"
        number = self.ended_by
        code = self.exit_code if number is None else 128 + number
        return "" if code is None else f"exit code {code}"

    @property
    def sentence(self) -> str:
        """The end for people, such as ``signal 9 (SIGKILL)``; no outside text is in it."""
        number = self.ended_by
        said = "in a way that nobody saw" if self.exit_code is None else f"with exit code {self.exit_code}"
        if number is not None:
            said = f"by signal {number} ({SIGNAL_NAMES.get(number, 'unnamed')})"
        return f"{said}, killed for memory" if self.oom else said


class Stop(Value):
    """Somebody asks a server to end, or (``over``) what was asked for is done: later ends are asked by nobody.

    Attributes:
        over: The stop is complete, or the server was started again.
    """

    by: AskedBy
    over: bool = False


class Signal(Value):
    """One observation.

    Attributes:
        key: Two deliveries of one observation have the same key; made with :func:`log_key` or :func:`alert_key`.
        run: ``live``, or the id of a replay; runs never join.
        at: When it happened at its source, UTC.
        text: What was said; untrusted, redacted before it is stored, at most ``TEXT_LIMIT`` characters.
        instance: The instance that spoke, where the platform names one.
        alert_id: The alert's own id, equal for its opening and its closing.
        end: The end that was observed, where it is one; ``text`` beside it is evidence and decides nothing about it.
        stop: That somebody asks for an end of the instance (without one: of the revision), where it says so.
        waiting: What a server that has not come up yet waits for, where the platform says so.
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
    end: End | None = None
    stop: Stop | None = None
    waiting: Waiting | None = None

    @property
    def ends_unasked(self) -> bool:
        """Whether it is the end of something that nobody asked to end."""
        return self.end is not None and self.end.asked_by is None


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
