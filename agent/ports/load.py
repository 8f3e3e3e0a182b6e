"""What a sweep needs: a load generator that runs one cell, and a place that keeps what was measured."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import AwareDatetime, Field

from agent.core.sweep.cell import Cell, PlannedCell, RequestRow
from agent.core.sweep.provenance import Driver
from agent.core.value import Value


class LoadOrder(Value):
    """One cell to run; of a run of request rates the first step, and the generator runs all of them.

    Attributes:
        url: Of the server, without ``/v1``.
        served_model: The name in the requests.
        tokenizer: A folder or a Hugging Face id; prompts are cut to length with it.
        api_key: The server's own key, empty where it wants none; goes to the generator by environment or a file that
            only this user reads, never as an argument.
        limit_s: After so many seconds of load no further request is sent.
        stop_over_saturated: Whether it ends where both the queue and the time to the first token keep growing.
    """

    cell: PlannedCell
    url: str
    served_model: str
    tokenizer: str
    api_key: str = Field(default="", repr=False)
    seed: int = 0
    ignore_eos: bool = True
    stop_over_saturated: bool = False
    limit_s: float = Field(gt=0)


class LoadResult(Value):
    """What the generator measured.

    Attributes:
        rows: One for each request that ended, warm-up included, in the order in which they were sent.
        unfinished: Requests that were cut off.
        over_saturated: Whether the generator ended it because the server was over-saturated.
        began_at: When the first request was sent.
        rate: Requests per second that were sent at a constant rate; None of every other strategy.
        following: Of a run of request rates what came of the steps after the first; shorter where the generator ended
            it because the server was over-saturated.
    """

    rows: tuple[RequestRow, ...]
    unfinished: int = 0
    over_saturated: bool = False
    began_at: AwareDatetime
    rate: float | None = Field(default=None, gt=0)
    following: "tuple[LoadResult, ...]" = ()


class LoadRun(Protocol):
    """A generator at work."""

    def result(self) -> LoadResult | None:
        """Return what was measured, or None while it still runs; never waits.

        Raises:
            DependencyFailed: It crashed, or its output cannot be read; ends with the last lines it printed.
        """
        ...

    def stop(self) -> None:
        """End it and all its processes at once; no request is sent afterwards. May be called again."""
        ...


class LoadDriver(Protocol):
    """Runs a load generator as a process of its own."""

    @property
    def name(self) -> Driver:
        """Which one."""
        ...

    def version(self) -> str:
        """Return its version.

        Raises:
            DependencyFailed: It does not run here.
        """
        ...

    def start(self, order: LoadOrder) -> LoadRun:
        """Begin one cell.

        Raises:
            InputRejected: It is a step of a run of request rates, and the generator has none.
            DependencyFailed: It cannot be started.
        """
        ...


class CellStore(Protocol):
    """Keeps cells; one that was stored survives a crash."""

    def cells(self) -> tuple[Cell, ...]:
        """Return what is stored, in order; of two of one id the later counts.

        Raises:
            InputRejected: What is stored is damaged.
        """
        ...

    def store(self, cell: Cell, rows: Sequence[RequestRow] = ()) -> Cell:
        """Store a cell with its raw rows, whole or not at all; return it as stored.

        Raises:
            DependencyFailed: There is no room, or the place cannot be written.
        """
        ...

    def reserved_s(self) -> Mapping[str, float]:
        """Return the seconds that are charged to a cell in advance, by its id; empty once what it took is stored.

        Raises:
            InputRejected: What is stored is damaged.
        """
        ...

    def reserve(self, seconds: Mapping[str, float]) -> None:
        """Note the seconds charged in advance, in place of those noted before: they count if this process is killed.

        Raises:
            DependencyFailed: There is no room, or the place cannot be written.
        """
        ...
