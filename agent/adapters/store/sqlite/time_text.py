"""Times in SQLite are whole microseconds since 1970 UTC, so that they sort and compare exactly."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Return microseconds since 1970 UTC of an aware time."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Return the aware UTC time of ``us`` microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)
