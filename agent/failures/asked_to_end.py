"""The pods and units that the platform was asked to end."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from agent.failures.signature import FailureClass, Proof, Role, Sighting
from agent.failures.text.ends import container_that_ended
from agent.failures.text.phases import Timeline
from agent.failures.text.streams import pods_of
from agent.failures.text.subjects import unit_started_below, unit_told_to_stop

PASSING = frozenset({FailureClass.STARTUP_PROBE_FAILED, FailureClass.PORT_NOT_LISTENING, FailureClass.ENGINE_HANG})
"""Consequences that a start or a server may get over; the others tell of an end."""

AFTER_A_STOP = PASSING | {FailureClass.ENGINE_DEAD, FailureClass.QUEUE_SATURATION, FailureClass.HOST_OOM}
"""What a probe or the platform reports about a server that was asked to end; one that takes too long is killed."""

OF_A_UNIT = FailureClass.NO_GPU_VISIBLE
"""What a unit of the machine brings about, which systemd stops and starts: NVIDIA's fabric manager."""

_FABRIC = "fabricmanager"

_SHRINKS = "shrinking the capacity"
_INSTANCE = re.compile(r"\bi-[0-9a-f]{8,17}\b")
_OWN_CODE = re.compile(r"\b(?:code|status)[ =](?!(?:0|9|15|137|143)\b)\d|\((?!(?:0|137|143)\))\d{1,3}\)")
"""No success, and no signal by which a machine ends its programs."""

_OF_COMPOSE = re.compile(r"\bContainer (?P<name>\S{1,200})  (?:Stopp|Remov)")


class Asked:
    """The pods and units that the platform was asked to end: what it reports of that end afterwards is no failure."""

    def __init__(self, sightings: Sequence[Sighting], lines: Sequence[str], timeline: Timeline) -> None:
        self._lines, self._timeline = lines, timeline
        self._banners = sorted({s.index for s in sightings if s.signature.proof is Proof.NEW_START})
        self._orders: dict[object, list[int]] = defaultdict(list)
        for index in sorted({s.index for s in sightings if s.signature.proof is Proof.ASKED}):
            self._orders[pods_of(lines[index]), timeline.start(index)].append(index)

    def may_be_for(self, index: int) -> bool:
        """Whether any order may be for what a line says ended."""
        return any(self._is_for(order, index) for orders in self._orders.values() for order in orders)

    def covers(self, sighting: Sighting) -> bool:
        """Whether a probe's failure, or an end, follows the request to end the same before another start.

        What a unit of the machine brings about is over as well when it is started; that NVIDIA's fabric manager failed,
        when a server of its host comes up.
        """
        entry = sighting.signature
        if entry.role is Role.HINT:
            return unit_told_to_stop(self._lines, sighting.index)
        if entry.role is not Role.CONSEQUENCE or entry.failure_class not in AFTER_A_STOP | {OF_A_UNIT}:
            return False
        above = bisect_left(self._banners, sighting.index)
        if unit_told_to_stop(self._lines, sighting.index, banner=self._banners[above - 1] if above else -1):
            return True
        if entry.failure_class is OF_A_UNIT:
            is_fabric = _FABRIC in self._lines[sighting.index].casefold()
            return unit_started_below(self._lines, sighting.index) or (
                is_fabric and self._timeline.completes_below(sighting.index)
            )
        same = (pods_of(self._lines[sighting.index]), self._timeline.start(sighting.index))
        return any(order <= sighting.index and self._is_for(order, sighting.index) for order in self._orders[same])

    def _is_for(self, order: int, end: int) -> bool:
        """Whether the order may be what ended it, as far as either names what it is about.

        It is not where docker compose stops another container, or had started the same one again, nor where a group
        of instances that shrinks takes another instance away, or a program ended with a code of its own.
        """
        if _SHRINKS in self._lines[order]:
            taken, ended = (set(_INSTANCE.findall(self._lines[at])) for at in (order, end))
            return not taken.isdisjoint(ended) if taken and ended else not _OWN_CODE.search(self._lines[end])
        stopped, name = _OF_COMPOSE.search(self._lines[order]), container_that_ended(self._lines[end])
        if stopped is None or not name:
            return True
        return stopped["name"] == name and not any(
            f"Container {name}  Start" in line for line in self._lines[order + 1 : end]
        )
