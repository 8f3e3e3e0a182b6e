"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


class Watch:
    """Stands until it is moved."""

    def __init__(self, at: datetime = START) -> None:
        self.time = at

    def now(self) -> datetime:
        return self.time

    def go(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
