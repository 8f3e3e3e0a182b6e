"""What is on record of a server here: one file, written whole under a lock, so that a successor can go on."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from pydantic import AwareDatetime, Field, ValidationError

from agent.core.value import Value, digest
from agent.errors import DependencyFailed

KEPT_STARTS = 20


class Stage(StrEnum):
    """How far a start is; the comment says what is true on the machine."""

    WAITING = "waiting"  # intended; the server before it may still have to end
    STARTING = "starting"  # its keeper was called; it does not serve yet
    READY = "ready"  # it served at least once, and its processes live
    ENDED = "ended"  # its server has ended; nothing of it is left, or is being ended


class Start(Value):
    """One start of the server.

    Attributes:
        effect_key: The stamp of a change of ours; None where a person started it.
        mark: Stands in the environment of every process of this start.
        template: The configuration it was started with, canonical JSON.
        asked_at: When it was first asked to end, None while nobody has.
        sick: Why it counts as not serving though it runs; empty while it is well.
        exit_code: As the keeper noted it, negative for a signal; None while it runs or where nobody knows.
        says: How it ended, or why it was never begun; nothing of its log stands in it.
        last_line: The last line of its log, for people; untrusted text.
    """

    revision: str
    effect_key: str | None = None
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
    def told(self) -> str:
        """How it ended, with the last line of its log, for people."""
        return f"{self.says} (last line: {self.last_line})" if self.last_line else self.says

    @property
    def on_purpose(self) -> bool:
        """Whether it ended, or is to end, because we said so."""
        return self.asked_at is not None


class Page(Value):
    """Everything on record of one server.

    Attributes:
        writes: Counts the changes of the specification, by us and by people.
        template: What the newest start was or will be made from.
        good_template: What last served; kept for a person, a roll-back has its own.
        by_hand: What a person last asked for, so that the same words find the running server again.
        starts: The newest last.
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

    @property
    def newest(self) -> Start | None:
        """The start that counts."""
        return self.starts[-1] if self.starts else None

    @property
    def etag(self) -> str:
        """Changes with every change of the specification, and with nothing else."""
        return f'"{digest([self.uid, self.writes])[:16]}"'

    def start(self, revision: str) -> Start | None:
        """Return the start of that name."""
        return next((s for s in reversed(self.starts) if s.revision == revision), None)

    def effect(self, key: str) -> Start | None:
        """Return the start that an effect made."""
        return next((s for s in reversed(self.starts) if s.effect_key == key), None)

    def put(self, start: Start) -> "Page":
        """Return the page with a start replaced, or added behind the others."""
        if any(s.mark == start.mark for s in self.starts):
            return self.with_(starts=tuple(start if s.mark == start.mark else s for s in self.starts))
        return self.with_(starts=(*self.starts, start)[-KEPT_STARTS:])


class Book:
    """The record of one server in a folder.

    Args:
        folder: Made where it is missing; only its owner can read it, because logs stand in it too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether anything was recorded."""
        return self._path.is_file()

    def read(self) -> Page | None:
        """Return the page as it stands, without waiting for a writer.

        Raises:
            DependencyFailed: It cannot be read.
        """
        try:
            return Page.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise DependencyFailed(
                f"the record of the server in {str(self.folder)!r} was not read",
                why=str(error).splitlines()[0],
                mend="look at the file; remove it only when no server of this name runs",
            ) from error

    @contextmanager
    def writing(self) -> Iterator["Hand"]:
        """Hold the lock over all processes; what the hand holds at the end is written where it differs."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            hand = Hand(self.read())
            before = hand.page
            yield hand
            if hand.page is not None and hand.page != before:
                self.write(hand.page)

    def write(self, page: Page) -> None:
        """Write the page at once and whole; hold the lock."""
        fresh = self._path.with_suffix(".tmp")
        with fresh.open("wb") as file:
            file.write(page.model_dump_json(indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._path)

    @property
    def _path(self) -> Path:
        return self.folder / "server.json"


class Hand:
    """The page while the lock is held; put the changed one back."""

    def __init__(self, page: Page | None) -> None:
        self.page = page
