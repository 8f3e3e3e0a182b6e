"""The clock: time as the stages see it."""

from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable

from agent.errors import DependencyFailed

BEHIND_S: Final = 30.0  # less is no news: clocks of machines differ by seconds


class Clock(Protocol):
    """Tells the time; may step, so that every stage takes the later of it and the time already stored."""

    def now(self) -> datetime:
        """Return the time, UTC and aware."""
        ...


@runtime_checkable
class ComparedClock(Clock, Protocol):
    """A clock that knows how far the machine's own one is off."""

    def behind_s(self) -> float:
        """Return by how many seconds the machine's clock lags behind the time that is given out; 0 where it does not.

        Raises:
            DependencyFailed: As for ``now``.
        """
        ...


def machine_time(clock: Clock) -> datetime:
    """Return the time of the machine, which nobody who writes a store can move forward.

    What becomes allowed as time goes on, such as a change after a freeze window, is asked of this time too.

    Raises:
        DependencyFailed: As for ``Clock.now``.
    """
    behind_s = clock.behind_s() if isinstance(clock, ComparedClock) else 0.0
    return clock.now() - timedelta(seconds=behind_s)


def clock_note(clock: Clock) -> str:
    """Return one sentence for people where the machine's clock is known to have been set back, or nothing."""
    try:
        behind_s = clock.behind_s() if isinstance(clock, ComparedClock) else 0.0
    except DependencyFailed:  # what the page is about says that the store does not answer
        return ""
    if behind_s < BEHIND_S:
        return ""
    by = f"{behind_s / 60:.0f} min" if behind_s >= 90 else f"{behind_s:.0f} s"
    return f"The clock of this machine is {by} behind the stored time; the times shown here go on from the stored time."
