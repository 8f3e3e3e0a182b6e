"""What a pod waited for and has by now: a node, its volumes, a container that was started."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice, takewhile

from agent.failures.text.phases import Timeline
from agent.failures.text.starts import any_between
from agent.failures.text.streams import pods_of

BEFORE_A_NODE = ("FailedScheduling", "TriggerScaleUp", "TriggeredScaleUp", " nodes are available: ")
BEFORE_A_START = (
    "FailedAttachVolume",
    "FailedMount",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
    "Multi-Attach error",
)
"""Events of what a whole pod waits for: a node, then its volumes and its sandbox, before any container starts."""

GIVEN_A_NODE = "Successfully assigned "
_CREATED = "Created pod: "

_IMAGE = re.compile(r"(?:ull(?:ing|ed)?|ulling) image[: ]{1,2}\"(?P<name>[^\"]{1,300})\"")
_PULLED = "Successfully pulled image"
_NAMELESS = "ImagePull"
_READY = re.compile(r"\s{0,8}(?:ContainersReady|Ready)\s{1,40}(?P<is>True|False)\s*$")
"""A condition of the pod, as ``kubectl describe`` shows it above the events."""

_REVISION_READY = re.compile(r"RevisionReady: Successfully provisioned revision '?([a-z][\w-]{1,100})")
_COLUMN = re.compile(
    r"(?:RevisionName(?:_s)?: (?P<revision>[a-z][\w-]{1,100})|(?:\w{1,60}_[sdgbt]|TimeStamp|Type|ContainerAppName): )"
)
"""How Container Apps says that a revision is up, and names that of an event: in a column, below the event's words.

Log Analytics gives columns a suffix, its own stream none.
"""

_TRIED = re.compile(
    r"STARTUP (?P<kind>\w{1,10}) probe failed (?P<times>\d{1,6}) times? consecutively"
    r" for container \"(?P<name>[^\"]{1,300})\""
)
_PASSED = re.compile(
    r"STARTUP (?P<kind>\w{1,10}) probe succeeded after (?P<times>\d{1,6}) attempts?"
    r" for container \"(?P<name>[^\"]{1,300})\""
)
"""How Cloud Run counts the tries of one instance; that it gave up, it says in the same line."""
_GAVE_UP = "was not started"

_NOT_OPEN_YET = ("Readiness probe failed", "connection refused")
_SEVERAL_TIMES = re.compile(r"\(x\d")
_SEEN_AGAIN_S = 1200
"""A kubelet whose probe goes on failing says so again within five minutes: its client sends 25 events of a pod at once,
then one in 300 s (Kubernetes client-go tools/record/events_cache.go); four such times."""

_AGE = r"(?:\d{1,6}[ywdhms]){1,3}"
_LAST_SEEN = re.compile(
    rf"(?:^|\s)(?P<listed>{_AGE})(?: \(x\d{{1,9}} over {_AGE}\))?\s{{1,20}}(?:Normal|Warning)\s"
    rf"|(?:\b(?:Normal|Warning)\s{{1,20}}|^)\w{{1,60}}\s{{1,20}}(?P<described>{_AGE})[\s(]"
)
"""``kubectl get events`` writes the age first, ``kubectl describe`` behind the reason; that shows one object alone.

The first line of what was copied may be cut within its reason.
"""
_PART = re.compile(r"(\d+)([ywdhms])")
_SECONDS = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_NO_AGE = -1
_OLDEST = 10**12


NODE_LOST = "NodeNotReady"
EVICTION = "Evict"
_NODE = re.compile(r"\bNode (?P<name>\S{1,253}) status is now: (?P<is>\w{1,40})")


def is_waiting(line: str) -> bool:
    """Whether an event says what a whole pod waits for."""
    return any(word in line for word in (*BEFORE_A_NODE, *BEFORE_A_START))


class PodStarts:
    """The pods that were given a node, or whose containers were started.

    Args:
        at: Positions of the events that say so, in order.
        lines: The text.
        timeline: Which server wrote a line.
    """

    def __init__(self, at: Sequence[int], lines: Sequence[str], timeline: Timeline) -> None:
        self._lines, self._timeline = lines, timeline
        self._heads = [index for index, line in enumerate(lines) if "Events:" in line] if at else []
        found: dict[tuple[str, str | int, bool], list[tuple[int, int]]] = defaultdict(list)
        self._named: dict[tuple[str, int], set[str]] = defaultdict(set)
        for index in at:
            line, server, block = lines[index], timeline.server(index), self._block(index)
            pods, (age, described) = pods_of(line), _age_of(line)
            self._named[server, block] |= pods
            keys: list[str | int] = [*pods, block] if described or not pods else [*pods]
            for key in keys:
                found[server, key, GIVEN_A_NODE in line].append((index, _NO_AGE if age is None else age))
        self._found: Mapping[tuple[str, str | int, bool], tuple[list[int], list[int]]] = {
            key: ([index for index, _ in events], _least_below([age for _, age in events]))
            for key, events in found.items()
        }

    def covers(self, index: int) -> bool:
        """Whether an event says what a pod waited for, and the pod has it below, and not since before.

        Events are not always sorted by time: where both have an age it says which was first. An event that names no pod
        is of no pod that others name, but of the one that ``kubectl describe`` shows, or the only one that was created.
        """
        line = self._lines[index]
        if not is_waiting(line):
            return False
        server, block = self._timeline.server(index), self._block(index)
        age, described = _age_of(line)
        pods: frozenset[str | int] = frozenset(pods_of(line))
        if not pods and len(self._named[server, block]) <= described:
            pods = frozenset({block})
        elif not pods and self._named[server, block] == self._created:
            pods = self._created
        kinds = {False, any(word in line for word in BEFORE_A_NODE)}
        return any(self._has((server, pod, kind), index, age) for pod in pods for kind in kinds)

    @cached_property
    def _created(self) -> frozenset[str]:
        """The pod that the events say was created; nothing where they say so of several, or of none."""
        found = {line.rpartition(_CREATED)[2].strip() for line in self._lines if _CREATED in line}
        return frozenset(found) if len(found) == 1 else frozenset()

    def pulled(self, index: int) -> bool:
        """Whether the image that an event could not pull was pulled below it, and not since before.

        An event that names none, as ``Error: ImagePullBackOff``, is of the one that the event above it names.
        """
        line = self._lines[index]
        wanted = _IMAGE.search(line) or (_IMAGE.search(self._lines[index - 1]) if index and _NAMELESS in line else None)
        age = _age_of(line)[0]
        if wanted is None:
            return False
        image = f'"{wanted["name"]}"'
        below = (event for event in self._lines[index + 1 :] if _PULLED in event and image in event)
        return any((_age_of(event)[0] or 0) <= (_OLDEST if age is None else age) for event in below)

    def node_is_back(self, index: int) -> bool:
        """Whether an event says that a node is not ready, and one below that the same is, with no eviction between."""
        lost, age = _NODE.search(self._lines[index]), _age_of(self._lines[index])[0]
        if lost is None or lost["is"] != NODE_LOST:
            return False
        at, least = self._nodes_back.get(lost["name"], ([], []))
        below = bisect_right(at, index)
        back = below < len(at) and least[below] <= (_OLDEST if age is None else age)
        return back and not any_between(self._evicted, index, at[below])

    @cached_property
    def _nodes_back(self) -> Mapping[str, tuple[list[int], list[int]]]:
        """Where each node says that it is ready, and the least age of the event and those below."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for index, line in enumerate(self._lines):
            said = _NODE.search(line) if "NodeReady" in line else None
            if said is not None and said["is"] == "NodeReady":
                found[said["name"]].append((index, _age_of(line)[0] or 0))
        return {
            name: ([index for index, _ in events], _least_below([age for _, age in events]))
            for name, events in found.items()
        }

    @cached_property
    def _evicted(self) -> list[int]:
        return [index for index, line in enumerate(self._lines) if EVICTION in line]

    def answered(self, index: int) -> bool:
        """Whether what a probe asked in vain answers by now, or does below, as the platform or its own log says."""
        if self.all_ready or self._timeline.came_up(pods_of(self._lines[index]), index):
            return True
        if self._probe_passed(index) or self._was_refused_once(index):
            return True
        columns = takewhile(bool, (_COLUMN.match(line) for line in islice(self._lines, index + 1, None)))
        return any(self._revisions_ready.get(column["revision"], -1) > index for column in columns if column)

    def _was_refused_once(self, index: int) -> bool:
        """Whether a readiness probe was refused once, long ago, and no condition says that a pod is not ready."""
        line = self._lines[index]
        if not all(word in line for word in _NOT_OPEN_YET) or _SEVERAL_TIMES.search(line):
            return False
        age = _age_of(line)[0]
        return age is not None and age >= _SEEN_AGAIN_S and "False" not in self._conditions

    def _probe_passed(self, index: int) -> bool:
        """Whether a start-up probe that failed some times succeeded below, after more tries than those."""
        tried = _TRIED.search(self._lines[index]) or (_TRIED.search(self._lines[index - 1]) if index else None)
        if tried is None or _GAVE_UP in tried.string:
            return False
        passed = self._passed.get((tried["kind"], tried["name"]), [])
        return any(at > index and times > int(tried["times"]) for at, times in passed)

    @cached_property
    def _passed(self) -> Mapping[tuple[str, str], list[tuple[int, int]]]:
        """Where the start-up probe of each container succeeded, and after how many tries."""
        found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for index, line in enumerate(self._lines):
            if "probe succeeded after" in line and (passed := _PASSED.search(line)):
                found[passed["kind"], passed["name"]].append((index, int(passed["times"])))
        return found

    @cached_property
    def _revisions_ready(self) -> Mapping[str, int]:
        """Where the platform last calls each revision ready."""
        found = ((at, _REVISION_READY.search(line)) for at, line in enumerate(self._lines) if "RevisionReady" in line)
        return {ready[1]: at for at, ready in found if ready}

    @cached_property
    def all_ready(self) -> bool:
        """Whether ``kubectl describe`` shows pods, each of them ready now: whatever their probes said is over."""
        return self._conditions == {"True"}

    @cached_property
    def _conditions(self) -> frozenset[str]:
        """What ``kubectl describe`` says of pods: True of those that are ready, False of those that are not."""
        return frozenset(found["is"] for line in self._lines if (found := _READY.match(line)))

    def _has(self, key: tuple[str, str | int, bool], index: int, age: int | None) -> bool:
        at, least = self._found.get(key, ([], []))
        below = bisect_right(at, index)
        if age is not None and any(self._age(above) < age for above in at[:below]):
            return True
        return below < len(at) and least[below] <= (_OLDEST if age is None else age)

    def _age(self, index: int) -> int:
        """How long ago an event was seen last; without an age nobody knows that it came later than another."""
        age = _age_of(self._lines[index])[0]
        return _OLDEST if age is None else age

    def _block(self, index: int) -> int:
        """How many lists of events begin above the line: each that ``kubectl describe`` shows is of another pod."""
        return bisect_left(self._heads, index)


def _least_below(ages: Sequence[int]) -> list[int]:
    """For each event the least age of it and all below."""
    return list(accumulate(reversed(ages), min))[::-1]


def _age_of(line: str) -> tuple[int | None, bool]:
    """How many seconds ago an event was seen last, and whether ``kubectl describe`` writes so; None without an age."""
    found = _LAST_SEEN.search(line, 0, 600)
    if found is None:
        return None, False
    text = found["listed"] or found["described"]
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), found["listed"] is None
