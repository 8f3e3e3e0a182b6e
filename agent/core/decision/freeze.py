"""A freeze window says when changes stop: weekly or dated ranges of a time zone's own clock, with reason and owner."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, NamedTuple, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AwareDatetime, Field, NaiveDatetime, field_validator, model_validator

from agent.core.decision.selector import NO_SELECTOR, Patterns, selects
from agent.core.value import Value

WEEK: Final = timedelta(days=7)
LOOK_AHEAD: Final = timedelta(days=3650)
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_POINT = r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([01]\d|2[0-3]):([0-5]\d)"
_RANGE = re.compile(rf"{_POINT} - {_POINT}")


class Stops(StrEnum):
    """What a freeze window stops."""

    AUTOMATIC = "automatic"  # nothing happens without a person; who approves is not held up
    NON_EMERGENCY = "non_emergency"  # changes that somebody asked for; the plan of an incident goes on
    APPROVALS = "approvals"  # every change


class FrozenSpan(Value):
    """One occurrence of a freeze window, from the first second that is frozen to the first that is not.

    Attributes:
        name: Of the freeze window.
        zone: The time zone in which its owner set it.
        break_glass: The group whose members may approve all the same; empty where nobody may.
    """

    name: str
    starts: AwareDatetime
    ends: AwareDatetime
    zone: str
    stops: Stops
    reason: str
    owner: str
    break_glass: str = ""

    def holds_at(self, at: datetime) -> bool:
        """Whether a moment lies in it."""
        return self.starts <= at < self.ends

    def stops_change(self, *, asked_for: bool) -> bool:
        """Whether a person's approval is stopped too.

        Args:
            asked_for: Whether somebody asked for the change; a plan that fixes an incident is an emergency.
        """
        return self.stops is Stops.APPROVALS or (self.stops is Stops.NON_EMERGENCY and asked_for)


class Freeze(Value):
    """A freeze window of the policy.

    Attributes:
        services: Patterns; None is every service.
        weekly: Such as ``Fri 18:00 - Mon 08:00``, by the clock of the zone.
        starts: Of a dated range, by the clock of the zone; with ``ends``.
        zone: An IANA name, such as ``Europe/Berlin``.
        owner: Whom to ask about it.
        break_glass: The group whose members may approve all the same, each with a reason.
    """

    name: str = Field(min_length=1, max_length=60)
    services: Patterns | None = None
    weekly: tuple[str, ...] = ()
    starts: NaiveDatetime | None = None
    ends: NaiveDatetime | None = None
    zone: str
    stops: Stops
    reason: str = Field(min_length=1, max_length=200)
    owner: str = Field(min_length=1, max_length=80)
    break_glass: str = ""

    @field_validator("services")
    @classmethod
    def _select_something(cls, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """A window that selects nothing would stop nothing; every service is said by leaving the key out."""
        if patterns == ():
            raise ValueError(f"{NO_SELECTOR}; leave services out to freeze every service")
        return patterns

    @field_validator("weekly")
    @classmethod
    def _ranges(cls, ranges: tuple[str, ...]) -> tuple[str, ...]:
        for text in ranges:
            found = _weekly(text)
            if found is None:
                raise ValueError(f"{text!r} is no weekly range, want such as 'Fri 18:00 - Mon 08:00'")
            if found.length <= timedelta(0):
                raise ValueError(f"{text!r} ends before it begins; write two ranges for a whole week")
        return ranges

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError) as error:  # no such name, no name at all, a folder
            raise ValueError(_unknown_zone(zone)) from error
        return zone

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if bool(self.weekly) == (self.starts is not None or self.ends is not None):
            raise ValueError("want either weekly ranges, or starts and ends")
        if not self.weekly and (self.starts is None or self.ends is None or self.ends <= self.starts):
            raise ValueError("want starts before ends")
        return self

    def spans(self, since: datetime, until: datetime) -> tuple[FrozenSpan, ...]:
        """Return the occurrences that overlap a time, oldest first; the end of the time does not belong to it."""
        found = sorted((s, e) for s, e in self._ranges_between(since, until) if s < until and e > since and s < e)
        return tuple(
            FrozenSpan(
                name=self.name,
                starts=starts,
                ends=ends,
                zone=self.zone,
                stops=self.stops,
                reason=self.reason,
                owner=self.owner,
                break_glass=self.break_glass,
            )
            for starts, ends in found
        )

    def present_and_next(self, at: datetime) -> tuple[FrozenSpan | None, FrozenSpan | None]:
        """Return the occurrence in which a moment lies and the first one after it, each None where there is none."""
        found = self.spans(at, at + (2 * WEEK if self.weekly else LOOK_AHEAD))
        present = next((span for span in found if span.holds_at(at)), None)
        return present, next((span for span in found if span.starts > at), None)

    def covers(self, service: str) -> bool:
        """Whether it is about a service."""
        return self.services is None or selects(self.services, service)

    def _ranges_between(self, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        zone = ZoneInfo(self.zone)
        if self.starts is not None and self.ends is not None:
            yield instant(self.starts, zone), instant(self.ends, zone, last=True)
        day = since.astimezone(zone).date() - WEEK - timedelta(days=1)
        weekly = [found for text in self.weekly if (found := _weekly(text)) is not None]
        while weekly and day <= until.astimezone(zone).date() + timedelta(days=1):
            for each in weekly:
                if day.weekday() == each.weekday:
                    begins = datetime.combine(day, each.at)
                    yield instant(begins, zone), instant(begins + each.length, zone, last=True)
            day += timedelta(days=1)


def instant(wall: datetime, zone: ZoneInfo, *, last: bool = False) -> datetime:
    """Return the moment, UTC, at which the clocks of a zone show a time.

    Args:
        wall: What the clocks show, without a zone.
        zone: Whose clocks.
        last: Of a time that comes twice, as clocks are set back, the second; otherwise the first.

    Returns:
        For a time that clocks skip as they are set forward, the moment at which they do.
    """
    early, late = sorted(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early.astimezone(zone).replace(tzinfo=None) == wall:
        return late if last else early
    before = early.astimezone(zone).utcoffset()
    while (gap_s := int((late - early).total_seconds())) > 1:
        middle = early + timedelta(seconds=gap_s // 2)
        early, late = (middle, late) if middle.astimezone(zone).utcoffset() == before else (early, middle)
    return late


class _Weekly(NamedTuple):
    """A weekly range by the clock; its length is negative where it ends earlier on the day on which it begins."""

    weekday: int
    at: time
    length: timedelta


def _weekly(text: str) -> _Weekly | None:
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    first, last = WEEKDAYS.index(found[1]), WEEKDAYS.index(found[4])
    begin, end = (timedelta(hours=int(found[n]), minutes=int(found[n + 1])) for n in (2, 5))
    length = timedelta(days=(last - first) % 7) + end - begin
    return _Weekly(weekday=first, at=time(int(found[2]), int(found[3])), length=length)


def _unknown_zone(zone: str) -> str:
    known = available_timezones()
    if not known:
        return f"{zone!r} cannot be looked up, because this machine has no time zones: pip install tzdata"
    near = get_close_matches(zone, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{zone!r} is no time zone, want an IANA name such as 'Europe/Berlin'{hint}"
