"""The load that a price is asked for: how much of the time, how many requests, how many instances at least."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import InputRejected

DAY_S = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """How a service is used.

    Attributes:
        busy: Share of the time in which it generates, 0 to 1.
        requests: Requests at once while it is busy.
        min_instances: Instances that are kept running, busy or not.
        wakes_per_day: How often a day it is woken from zero; each time it is started, and kept idle for a while.
    """

    busy: float = 0.3
    requests: int = 1
    min_instances: int = 0
    wakes_per_day: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no load.

        Raises:
            InputRejected: A share outside of 0 to 1, or a count below its least.
        """
        checks = (
            ("busy", self.busy, 0.0, 1.0, "it is a share of the time, from 0 to 1"),
            ("requests", self.requests, 1, 1_000_000, "a busy server has at least one request"),
            ("min_instances", self.min_instances, 0, 1_000, "it must be 0 or more"),
            ("wakes_per_day", self.wakes_per_day, 0, DAY_S, "it must be 0 or more"),
        )
        for name, value, least, most, why in checks:
            if not least <= value <= most:
                raise InputRejected(f"{name} {value!r} was refused", why=why, hint=f"give {least:g} to {most:g}")

    def billed_share(self, *, sleeps: bool, wake_s: float) -> float:
        """Return the instance hours that are billed per hour.

        Args:
            sleeps: Whether nothing is billed while no instance runs.
            wake_s: Billed seconds of one wake-up: the start, and the idle time before the instance is ended.
        """
        kept = float(self.min_instances) if sleeps else float(max(1, self.min_instances))
        if kept >= 1:
            return kept
        return min(1.0, self.busy + self.wakes_per_day * wake_s / DAY_S)
