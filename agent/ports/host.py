"""What the monitor of a server on this machine needs: what is on record of it, its log, and a check of it."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import AwareDatetime, Field

from agent.core.service.metric_rules import Breach, Sample
from agent.core.service.request_counts import RequestCounts
from agent.core.service.serving import Live, ServingConfig
from agent.core.value import Value, digest

KEPT_STARTS = 20


class Stage(StrEnum):
    """How far a start is; the comment says what is true on the machine."""

    WAITING = "waiting"  # intended; the server before it may still have to end
    STARTING = "starting"  # its supervisor was called; it does not serve yet
    READY = "ready"  # it served at least once, and its processes live
    ENDED = "ended"  # its server has ended; nothing of it is left, or is being ended


class Start(Value):
    """One start of the server.

    Attributes:
        effect_key: The stamp of a change of ours; None where a person started it.
        ended_by: The stamp of the change of ours that ends it; empty where none does.
        mark: Stands in the environment of every process of this start.
        template: The configuration it was started with, canonical JSON.
        asked_at: When it was first asked to end, None while nobody has.
        sick: Why it counts as not serving though it runs; empty while it is well.
        exit_code: As the supervisor noted it, negative for a signal; None while it runs or where nobody knows.
        says: How it ended, or why it was never begun; nothing of its log stands in it.
        last_line: The last line of its log, for people; untrusted text.
    """

    revision: str
    effect_key: str | None = None
    ended_by: str = ""
    mark: str
    template: str
    stage: Stage = Stage.WAITING
    began_at: AwareDatetime
    ready_at: AwareDatetime | None = None
    asked_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    exit_code: int | None = None
    says: str = ""
    last_line: str = ""
    sick: str = ""

    @property
    def ending(self) -> str:
        """How it ended, with the last line of its log, for people."""
        return f"{self.says} (last line: {self.last_line})" if self.last_line else self.says

    @property
    def on_purpose(self) -> bool:
        """Whether it ended, or is to end, because we said so."""
        return self.asked_at is not None or bool(self.ended_by)


class State(Value):
    """Everything on record of one server.

    Attributes:
        writes: Counts the changes of the specification, by us and by people.
        template: What the newest start was or will be made from.
        good_template: What last served; kept for a person, a roll-back has its own.
        by_hand: What a person last asked for, so that the same words find the running server again.
        starts: The newest last.
        deleted: Whether the service was deleted; it is gone once the newest start has ended.
    """

    service: str
    uid: str
    generation: int = 0
    writes: int = 0
    template: str
    latest_ready: str | None = None
    good_template: str | None = None
    by_hand: str = ""
    starts: tuple[Start, ...] = Field(default=())
    deleted: bool = False

    @property
    def newest(self) -> Start | None:
        """The start that counts."""
        return self.starts[-1] if self.starts else None

    @property
    def gone(self) -> bool:
        """Whether the service was deleted and nothing of it runs any more."""
        return self.deleted and (self.newest is None or self.newest.stage is Stage.ENDED)

    @property
    def etag(self) -> str:
        """Changes with every change of the specification, and with nothing else."""
        return f'"{digest([self.uid, self.writes])[:16]}"'

    def start(self, revision: str) -> Start | None:
        """Return the start of that name."""
        return next((s for s in reversed(self.starts) if s.revision == revision), None)

    def effect(self, key: str) -> Start | None:
        """Return the start that an effect made, or ended."""
        return next((s for s in reversed(self.starts) if key in {s.effect_key, s.ended_by}), None)

    def put(self, start: Start) -> "State":
        """Return the state with a start replaced, or added behind the others."""
        if any(s.mark == start.mark for s in self.starts):
            return self.with_(starts=tuple(start if s.mark == start.mark else s for s in self.starts))
        return self.with_(starts=(*self.starts, start)[-KEPT_STARTS:])


class CheckResult(Value):
    """What one check found.

    Attributes:
        sick: Why the server counts as not serving, in words of the failure catalogue; empty while it is well.
        health: What /health said, or why nobody asked.
        missed: Whether /health did not answer well this time; once is no sickness yet.
        answer: What the completion said; None where tokens were coming and nobody asked for one.
        requests: What others asked of it since the check before, by its own counters; nothing where it has none.
    """

    revision: str
    mark: str
    sick: str = ""
    health: str = ""
    missed: bool = False
    answer: str | None = None
    sample: Sample | None = None
    breaches: tuple[Breach, ...] = ()
    requests: RequestCounts = RequestCounts()


class HostServers(Protocol):
    """The servers of this machine; every method raises DependencyFailed where a record cannot be read or written."""

    def settled(self, service: str) -> State:
        """Return what is on record, after what has become of the processes was noted in it."""
        ...

    def describe(self, service: str) -> Live:
        """Return the server's live configuration."""
        ...

    def open(self, service: str, config: ServingConfig, *, running: bool = False, changing: bool = False) -> bool:
        """Start the server, or take it over and return True.

        Args:
            service: Its name.
            config: What to run.
            running: Whether it was started by somebody else already.
            changing: Whether an approved change of it is under way, which then starts a server that has ended.
        """
        ...

    def again(self, service: str) -> None:
        """Start a server that has ended again, as it was."""
        ...

    def stop(self, service: str) -> None:
        """Ask the server to end; returns before it has."""
        ...

    def log_path(self, service: str, start: Start) -> Path:
        """Return where a start writes its log."""
        ...

    def first_byte(self, service: str, start: Start) -> int:
        """Return where the log of a start begins in that file."""
        ...


class LogFollower(Protocol):
    """Reads what is added to a log."""

    @property
    def offset(self) -> int:
        """Everything before this byte was handed out."""
        ...

    def pieces(self, *, ended: bool = False) -> Iterator[list[str]]:
        """Yield the new lines in bounded stretches; the last one, without an end of line, once the server has ended."""
        ...


class HostCheck(Protocol):
    """Checks one running server."""

    def check(self, service: str, state: State) -> CheckResult | None:
        """Check the newest start and note the outcome on record; None while it does not serve yet or any more."""
        ...
