"""A freeze window begins and ends to the second by the clock of its zone, also where that clock is set."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from agent.core.decision.freeze import Freeze, Stops, instant

BERLIN = ZoneInfo("Europe/Berlin")
SECOND = timedelta(seconds=1)


def freeze(**fields):
    whole = {"name": "w", "zone": "Europe/Berlin", "stops": "approvals", "reason": "r", "owner": "o"}
    return Freeze(**(whole | fields))


def at(text):
    """A moment, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def edges(window, around):
    """The first and the last frozen second of the occurrence at a moment, found second by second."""
    (span,) = window.spans(around, around + SECOND)
    for moment, frozen in (
        (span.starts - SECOND, False),
        (span.starts, True),
        (span.ends - SECOND, True),
        (span.ends, False),
    ):
        covering = [s for s in window.spans(moment, moment + SECOND) if s.holds_at(moment)]
        assert bool(covering) is frozen, (moment, covering)
    return span.starts, span.ends


# The clocks of Europe/Berlin are set forward on 2026-03-29 at 01:00 UTC, and back on 2026-10-25 at 01:00 UTC.
@pytest.mark.parametrize(
    ("weekly", "around", "starts", "ends"),
    [
        ("Fri 18:00 - Mon 08:00", "2026-11-21 12:00", "2026-11-20 17:00", "2026-11-23 07:00"),
        ("Fri 18:00 - Mon 08:00", "2026-07-04 12:00", "2026-07-03 16:00", "2026-07-06 06:00"),
        ("Fri 18:00 - Mon 08:00", "2026-03-28 12:00", "2026-03-27 17:00", "2026-03-30 06:00"),
        ("Fri 18:00 - Mon 08:00", "2026-10-24 12:00", "2026-10-23 16:00", "2026-10-26 07:00"),
        ("Sun 01:30 - Sun 03:30", "2026-03-29 00:45", "2026-03-29 00:30", "2026-03-29 01:30"),
        ("Sun 02:30 - Sun 04:00", "2026-03-29 01:30", "2026-03-29 01:00", "2026-03-29 02:00"),
        ("Sun 01:00 - Sun 02:30", "2026-03-29 00:30", "2026-03-29 00:00", "2026-03-29 01:00"),
        ("Sun 02:30 - Sun 03:30", "2026-10-25 00:45", "2026-10-25 00:30", "2026-10-25 02:30"),
        ("Sun 01:00 - Sun 02:30", "2026-10-25 00:00", "2026-10-24 23:00", "2026-10-25 01:30"),
        ("Sun 02:15 - Sun 02:45", "2026-10-25 01:00", "2026-10-25 00:15", "2026-10-25 01:45"),
    ],
    ids=[
        "winter",
        "summer",
        "over the clock set forward",
        "over the clock set back",
        "an hour shorter",
        "begins in the hour that is skipped",
        "ends in the hour that is skipped",
        "begins in the hour that comes twice",
        "ends in the hour that comes twice",
        "lies in the hour that comes twice",
    ],
)
def test_a_weekly_window_keeps_to_the_clock_of_its_zone(weekly, around, starts, ends):
    """From the first time the clock shows its beginning to the last time that it shows its end, without a gap."""
    assert edges(freeze(weekly=(weekly,)), at(around)) == (at(starts), at(ends))


def test_a_window_that_lies_in_the_hour_that_is_skipped_freezes_nothing_that_night():
    window = freeze(weekly=("Sun 02:15 - Sun 02:45",))
    assert window.spans(at("2026-03-29 00:00"), at("2026-03-29 06:00")) == ()
    assert edges(window, at("2026-04-05 00:30"))


@pytest.mark.parametrize(
    ("zone", "starts", "ends"),
    [
        ("UTC", "2026-11-26 00:00", "2026-12-01 00:00"),
        ("America/New_York", "2026-11-26 05:00", "2026-12-01 05:00"),
        ("Asia/Kolkata", "2026-11-25 18:30", "2026-11-30 18:30"),
    ],
)
def test_a_dated_window_is_by_the_clock_of_its_zone_too(zone, starts, ends):
    window = freeze(zone=zone, starts=datetime(2026, 11, 26), ends=datetime(2026, 12, 1))  # noqa: DTZ001
    assert edges(window, at("2026-11-28 00:00")) == (at(starts), at(ends))


def test_clocks_that_are_set_are_read_to_the_second():
    """Skipped times are the moment of the jump; of times that come twice there is a first and a last."""
    skipped = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001
    assert instant(skipped, BERLIN) == instant(skipped, BERLIN, last=True) == at("2026-03-29 01:00")
    twice = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001
    assert (instant(twice, BERLIN), instant(twice, BERLIN, last=True)) == (
        at("2026-10-25 00:30"),
        at("2026-10-25 01:30"),
    )
    half = datetime(2026, 10, 4, 2, 15)  # noqa: DTZ001 - half an hour is skipped
    assert instant(half, ZoneInfo("Australia/Lord_Howe")) == at("2026-10-03 15:30")


def test_windows_to_come_are_found_in_order():
    window = freeze(weekly=("Mon 12:00 - Mon 13:00", "Wed 12:00 - Wed 13:00"), zone="UTC")
    found = [span.starts for span in window.spans(at("2026-11-21 00:00"), at("2026-12-01 00:00"))]
    days = ("2026-11-23", "2026-11-25", "2026-11-30")
    assert found == [at(f"{day} 12:00") for day in days]


@pytest.mark.parametrize(
    ("stops", "mended", "asked_for"),
    [(Stops.AUTOMATIC, False, False), (Stops.NON_EMERGENCY, False, True), (Stops.APPROVALS, True, True)],
)
def test_what_a_window_stops(stops, mended, asked_for):
    (span,) = freeze(weekly=("Mon 00:00 - Sun 23:59",), stops=stops).spans(
        at("2026-11-18 00:00"), at("2026-11-18 01:00")
    )
    assert span.stops_change(asked_for=False) is mended
    assert span.stops_change(asked_for=True) is asked_for


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "zone": "Europe/Berln"}, "did you mean 'Europe/Berlin'"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "zone": "../../etc/passwd"}, "is no time zone"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "zone": "Europe"}, "is no time zone"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "zone": ""}, "is no time zone"),
        ({"weekly": ("Friday 18:00 - Mon 08:00",)}, "is no weekly range"),
        ({"weekly": ("Fri 24:00 - Mon 08:00",)}, "is no weekly range"),
        ({"weekly": ("Fri 18:00 - Fri 08:00",)}, "ends before it begins"),
        ({"weekly": ("Fri 18:00 - Fri 18:00",)}, "ends before it begins"),
        ({}, "either weekly ranges"),
        ({"starts": datetime(2026, 1, 2)}, "want starts before ends"),  # noqa: DTZ001
        ({"starts": datetime(2026, 1, 2), "ends": datetime(2026, 1, 1)}, "want starts before ends"),  # noqa: DTZ001
        ({"starts": datetime(2026, 1, 1, tzinfo=UTC), "ends": datetime(2026, 1, 2, tzinfo=UTC)}, "timezone"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "ends": datetime(2026, 1, 1)}, "either weekly ranges"),  # noqa: DTZ001
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "services": ()}, "leave services out"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "services": ("*",)}, "select nothing"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "reason": ""}, "at least 1 character"),
        ({"weekly": ("Fri 18:00 - Mon 08:00",), "stops": "everything"}, "stops"),
    ],
)
def test_a_window_in_doubt_is_none(fields, says):
    with pytest.raises(ValidationError, match=says.replace("(", r"\(")):
        freeze(**fields)


def test_the_present_and_the_next_occurrence_are_told_apart():
    weekly = freeze(weekly=("Fri 18:00 - Mon 08:00",))
    during, after = at("2026-11-21 12:00"), at("2026-11-23 07:00")
    present, coming = weekly.present_and_next(during)
    assert (present.ends, coming.starts) == (after, at("2026-11-27 17:00"))
    present, coming = weekly.present_and_next(after)
    assert (present, coming.starts) == (None, at("2026-11-27 17:00"))
    dated = freeze(starts=datetime.fromisoformat("2027-12-01"), ends=datetime.fromisoformat("2027-12-02"))
    present, coming = dated.present_and_next(during)
    assert (present, coming.starts) == (None, at("2027-11-30 23:00"))
    assert dated.present_and_next(at("2028-01-01 00:00")) == (None, None)


ZONE = """
import sys
{hide}
from agent.core.decision.policy import parse_policy
window = dict(name="w", weekly=["Fri 18:00 - Mon 08:00"], zone="Europe/Berlin", stops="approvals", reason="r", owner="o")
rows = ["[[freezes]]", *(f"{{key}} = {{value!r}}" for key, value in window.items())]
parse_policy(chr(10).join(rows))
"""


@pytest.mark.parametrize("hide", ["", 'sys.modules["tzdata"] = None'], ids=["tzdata", "nothing"])
def test_an_image_without_time_zones_has_them_from_a_package_or_is_told_what_to_install(hide):
    """A slim image has no /usr/share/zoneinfo; then nobody says that Europe/Berlin is no time zone."""
    environment = os.environ | {"PYTHONTZPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", ZONE.format(hide=hide)], env=environment, capture_output=True, text=True, check=False
    )
    if not hide:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert "'Europe/Berlin' cannot be looked up, because this machine has no time zones: pip install tzdata" in said
    assert "SettingsRejected" in said
