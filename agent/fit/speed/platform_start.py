"""What a start of one server meets on a platform: how long it takes, who waits for it, and how big its image may be."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from agent.fit.bounds import Bounds
from agent.fit.speed.startup import ENGINE_READY_DEFAULT_S, START_MARGIN, ProbeLimits, ProbePlan, probe_budget


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformStart:
    """How a platform starts servers.

    Attributes:
        platform: As in the price table.
        probe: What it allows for a start-up probe; None where it ends no start itself.
        image_gb: The largest image that is supported, GB; None where no limit is published.
        image_note: What is said of that limit.
        source: Document.
        date: When it was read, ISO.
    """

    platform: str
    probe: ProbeLimits | None
    image_gb: float | None
    image_note: str
    source: str
    date: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StartThere:
    """One server's start on one platform.

    Attributes:
        limits: The platform's.
        start_s: Fast, usual and slow start, seconds; None if the size of the checkpoint is unknown.
        probe: The start-up probe that outlasts it; None without a probe, or where the start is unknown.
    """

    limits: PlatformStart
    start_s: Bounds | None
    probe: ProbePlan | None

    @property
    def longest_s(self) -> int | None:
        """The longest start that the platform can be told to wait for; None where it sets no limit."""
        return self.limits.probe.max_total_s if self.limits.probe is not None else None

    @property
    def enough(self) -> bool | None:
        """Whether it waits for the slow end; None if the start is unknown and there is a limit."""
        if self.longest_s is None:
            return True
        return None if self.probe is None else self.probe.enough

    @property
    def misses(self) -> str:
        """Why a server cannot be relied on to start there; empty where it can, or nobody knows."""
        if self.enough is not False or self.start_s is None:
            return ""
        return (
            f"a slow start takes {self.start_s.high:,} s, and {self.limits.platform} waits {self.longest_s:,} s at most"
        )

    @property
    def engine_ready_timeout_s(self) -> int | None:
        """What vLLM's own patience must be raised to; None if the start is unknown, or the default is enough."""
        if self.start_s is None:
            return None
        wanted = self.probe.engine_ready_timeout_s if self.probe else ceil(self.start_s.high * START_MARGIN)
        return wanted if wanted > ENGINE_READY_DEFAULT_S else None

    def to_json(self) -> dict[str, Any]:
        """As programs read it; None is unknown or no limit."""
        start, probe, waits = self.start_s, self.probe, self.limits.probe
        return {
            "platform": self.limits.platform,
            "start_s": None if start is None else [start.low, start.best, start.high],
            "waits_at_most_s": self.longest_s,
            "enough": self.enough,
            "startup_probe": None
            if probe is None
            else {
                "initial_delay_s": probe.initial_delay_s,
                "period_s": probe.period_s,
                "timeout_s": probe.timeout_s,
                "failure_threshold": probe.failure_threshold,
            },
            "engine_ready_timeout_s": self.engine_ready_timeout_s,
            "image_gb_at_most": self.limits.image_gb,
            "image_note": self.limits.image_note,
            "source": self.limits.source,
            "date": self.limits.date,
            "probe_source": "" if waits is None else waits.source,
            "probe_date": "" if waits is None else waits.date,
        }


def start_on(limits: PlatformStart, start_s: Bounds | None) -> StartThere:
    """Return what a start meets there.

    Args:
        limits: The platform's.
        start_s: The start, seconds, by the load rate of wherever its checkpoint is read from; None if unknown.
    """
    probe = None if start_s is None or limits.probe is None else probe_budget(start_s, limits.probe)
    return StartThere(limits=limits, start_s=start_s, probe=probe)
