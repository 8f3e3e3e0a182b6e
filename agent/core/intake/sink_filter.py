"""The log sink's filter, from what the failure catalogue needs and what is watched: text decides, not severity."""

import heapq
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby, takewhile
from types import MappingProxyType

from agent.core.intake.ends import SIGTERM_TEXTS, UNIT_TEXTS
from agent.core.intake.origin import CANARY_LOG, OWN_PREFIX
from agent.core.service.services import Service, Services
from agent.errors import SettingsRejected
from agent.failures.signature import WILDCARD, Role, Signature

LIMIT = 20_000  # characters of a query, cloud.google.com/logging/docs/view/logging-query-language, read 2026-11-21
NEEDED = frozenset({Role.CAUSE, Role.CONSEQUENCE})
HARMLESS = frozenset({Role.BENIGN, Role.PHASE})
MAX_WORDS = 6
LONG_WORD = 11  # characters of a single word, and of several, that say enough by themselves
TWO_WORDS = 9

# Words of what went wrong. A line with one of them passes, unless it is a line of HARMLESS_LINES.
ALARMS = (
    "error", "exception", "fail", "cannot", "could not", "couldn't", "unable to", "not supported", "unsupported",
    "invalid", "out of memory", "exceeded", "denied", "forbidden", "unauthorized", "not found", "no such", "killed",
    "terminated", "timed out", "timeout", "refused", "unavailable", "exhausted", "too many", "too large", "too small",
    "insufficient", "not enough", "missing", "unrecognized", "corrupt", "mismatch", "does not", "doesn't", "must be",
    "unhealthy", "crash", "panic", "abort", "back-off", "illegal", "not allowed", "can't", "quota", "no space",
    "deadlock", "reset by", "unreachable", "incompatible", "died", "called exit", "not available",
)  # fmt: skip

# What vLLM and its surroundings write in health although an alarm word stands in it: its own INFO level, the frames of
# a traceback (its last line is not indented).
HARMLESS_LINES = (
    "(^|[) ])(INFO|DEBUG) +[0-9][0-9]-[0-9][0-9] ", "^INFO: ", "[.]py:[0-9]+[]]  ",
    "^ +(File .|[~^]|raise |return |await )", "Triton not available",
    "WARNING.*(is not found in LD_PRELOAD|ulimit)",
)  # fmt: skip

# A refused or failed call on the platform, whatever it says; Kubernetes events of type Warning.
_FAILED_CALL = 'protoPayload.status.code>0\nOR jsonPayload.type="Warning"'

# A character that the query language or a regular expression reads as its own stands as any character.
_SPECIAL = '\\.^$|?*+()[]{}"'
_PLAIN: Mapping[str, str] = MappingProxyType(dict.fromkeys(_SPECIAL, "."))
_TRIMMED = f"{_SPECIAL} "


def sink_filters(services: Services, signatures: Iterable[Signature], healthy: Iterable[str]) -> dict[str, str]:
    """Return the filters of the sinks that feed ``sre-log-events``, one sink for each kind of payload.

    Args:
        services: What is watched; services of platforms whose logs Cloud Logging does not hold are left out.
        signatures: The failure catalogue.
        healthy: Lines that healthy servers write.

    Returns:
        Queries of the Logging query language by the name of the sink: our own services excluded, the watched ones
        named, one of the texts that the catalogue knows, an alarm word, an end with any exit code, or a stop that was
        asked for (whether an end was asked for is decided when it has arrived); the first also passes the canary's log.

    Raises:
        SettingsRejected: Nothing is watched there, or a query is longer than the language allows.
    """
    sources = _sources(services)
    if not sources:
        raise SettingsRejected(
            "no sink filter was made",
            why="no watched service runs on cloud_run, kubernetes, tpu_vm or host, so a sink would select nothing",
            hint="add a [[service]] of one of those to services.toml, or deploy without the log sink",
        )
    head = [
        'NOT labels."goog-managed-by"="cloudfunctions"',
        f'AND NOT resource.labels.service_name=~"^{OWN_PREFIX}"',
        *(f"AND NOT resource.labels.service_name={_one_of(services.own)}" for _ in services.own[:1]),
        "AND (\n  " + "\n  OR ".join(sources) + "\n)",
    ]
    stops = (*SIGTERM_TEXTS, *(UNIT_TEXTS if any(s.platform == "host" for s in services.services) else ()))
    watched = {s.platform for s in services.services}
    there = [s for s in signatures if not s.platforms or watched.intersection(s.platforms)]
    known = "(?i)" + _any_of(sorted({_pattern(text) for text in (*anchors_of(there, healthy), *stops)}))
    queries = {
        "text": f'log_id("{CANARY_LOG}") OR (\n' + "\n".join([*head, "AND " + _says("textPayload", known)]) + "\n)\n",
        "json": "\n".join([*head, f"AND (\n{_says('jsonPayload.message', known)}\nOR {_FAILED_CALL}\n)"]) + "\n",
    }
    for name, query in queries.items():
        if len(query) > LIMIT:
            raise SettingsRejected(
                f"the filter of sink {name!r} has {len(query)} characters",
                why=f"the Logging query language takes {LIMIT}",
                hint="watch fewer services with one installation, or give them shorter names",
            )
    return queries


def _says(field: str, known: str) -> str:
    """The clause on the text: a known one, or an alarm word on a line that is not known to be harmless."""
    alarms = "(?i)" + "|".join(map(_pattern, ALARMS))
    harmless = "|".join(HARMLESS_LINES)
    return f'(\n  {field}=~"{known}"\n  OR (\n    {field}=~"{alarms}"\n    AND NOT {field}=~"{harmless}"\n  )\n)'


def anchors_of(signatures: Iterable[Signature], healthy: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that must be named because no alarm word stands in their phrase; see :func:`anchors`.

    A phrase that stands whole in a line of healthy servers, such as the statistics that vLLM writes every ten seconds,
    is left out: what its numbers say reaches us through the metric alerts.
    """
    every = tuple(signatures)
    needed = [p for s in every if s.role in NEEDED for p in s.phrases]
    lines = "\n".join(healthy).lower()
    alarm = re.compile("|".join(map(re.escape, ALARMS)))
    unmatched = [p for p in needed if not alarm.search(p.lower()) and p.lower() not in lines]
    harmless = [p for s in every if s.role in HARMLESS for p in s.phrases]
    return anchors(unmatched, (lines, *harmless))


def anchors(needed: Iterable[str], never: Iterable[str]) -> tuple[str, ...]:
    """Return a short list of texts of which at least one stands in every needed phrase and none in what is harmless.

    Greedy set cover by phrases per character, and of that what the later choices made spare left out: the same input
    gives the same list, in any order of the input.

    Args:
        needed: Phrases, in which ``<*>`` is anything.
        never: Harmless texts. A needed phrase that stands in one of them whole is its own anchor all the same: too
            many entries are better than a missed failure.
    """
    phrases = sorted({p.lower() for p in needed})
    harmless = "\n".join(sorted(n.lower() for n in never))
    holds = _candidates(phrases, harmless)
    queue = [(-_worth(text, held), text) for text, held in holds.items()]
    heapq.heapify(queue)
    left, chosen = set(phrases), []
    while left and queue:
        _, text = heapq.heappop(queue)
        won = holds[text] & left
        worth = -_worth(text, won)
        if won and queue and worth > queue[0][0]:
            heapq.heappush(queue, (worth, text))
        elif won:
            chosen.append(text)
            left -= won
    return tuple(sorted(_without_spare({*chosen, *left}, phrases)))


def _without_spare(chosen: Iterable[str], phrases: Iterable[str]) -> set[str]:
    """The chosen texts but for those, the longest first, that stand only in phrases with another that stays."""
    kept = sorted(chosen, key=lambda text: (-len(text), text))
    every = "\n".join(phrases)
    starts = [0, *(found.end() for found in re.finditer("\n", every))]
    within = {
        text: {bisect_right(starts, found.start()) for found in re.finditer(re.escape(text), every)} for text in kept
    }
    times = Counter(phrase for held in within.values() for phrase in held)
    spare: set[str] = set()
    for text in kept:
        if all(times[phrase] > 1 for phrase in within[text]):
            spare.add(text)
            times.subtract(within[text])
    return {*kept} - spare


def _worth(text: str, held: Collection[str]) -> float:
    return len(held) / (len(text) + 1)


def _candidates(phrases: list[str], harmless: str) -> dict[str, set[str]]:
    """Runs of words that are harmless nowhere, and the phrases in which each stands."""
    holds: dict[str, set[str]] = {}
    for phrase in phrases:
        for part in _parts(phrase):
            for run in _runs(part):
                holds.setdefault(run, set()).add(phrase)
    return {text: held for text, held in holds.items() if text not in harmless}


def _runs(part: str) -> Iterator[str]:
    """Runs of whole words that are telling enough to stand alone, and the part itself."""
    words = part.split(" ")
    for first in range(len(words)):
        for last in range(first + 1, min(first + MAX_WORDS, len(words)) + 1):
            run = " ".join(words[first:last]).strip(_TRIMMED)
            if len(run) >= (LONG_WORD if last - first == 1 else TWO_WORDS):
                yield run
    if len(part.strip(_TRIMMED)) >= TWO_WORDS:
        yield part


def _parts(phrase: str) -> list[str]:
    return [part for part in phrase.split(WILDCARD) if part.strip()] or [phrase]


def _pattern(text: str) -> str:
    return ".*".join("".join(_PLAIN.get(c, c) for c in part) for part in text.split(WILDCARD))


def _any_of(patterns: list[str]) -> str:
    """One alternation of sorted patterns, in which words that several begin with are written once."""
    said = []
    for _, same in groupby(patterns, key=lambda pattern: pattern.partition(" ")[0]):
        group = list(same)
        ends = zip(group[0].split(" "), group[-1].split(" "), strict=False)
        shared = " ".join(word for word, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
        if shared in group:
            said.append(shared)
        else:
            said.append(f"{shared} ({_any_of([pattern[len(shared) + 1 :] for pattern in group])})")
    return "|".join(said)


def _sources(services: Services) -> list[str]:
    """One clause for each platform whose logs Cloud Logging holds."""
    by_platform: dict[str, list[Service]] = {}
    for service in services.services:
        by_platform.setdefault(service.platform, []).append(service)
    sources = []
    if run := by_platform.get("cloud_run"):
        names = _one_of(s.name for s in run)
        sources.append(f'(resource.type="cloud_run_revision" AND resource.labels.service_name={names})')
    if pods := by_platform.get("kubernetes"):
        sources.append(_pods(pods))
    if nodes := by_platform.get("tpu_vm"):
        names = _one_of(s.labels.get("node_id", s.name) for s in nodes)
        sources.append(f'(resource.type="tpu_worker" AND resource.labels.node_id={names})')
    if hosts := by_platform.get("host"):
        names = _one_of(s.name for s in hosts)
        called = f'resource.labels.instance_id={names} OR labels."compute.googleapis.com/resource_name"={names}'
        sources.append(f'(resource.type="gce_instance" AND ({called}))')
    return sources


def _pods(services: list[Service]) -> str:
    names = [s.name for s in services]
    starts = "|".join(map(_pattern, names))
    clauses = [f'{name}=~"^({starts})-"' for name in ("resource.labels.pod_name", "jsonPayload.involvedObject.name")]
    clauses += [f"resource.labels.container_name={_one_of(names)}"]
    clauses += [f'labels."k8s-pod/{key}"="{value}"' for s in services for key, value in sorted(s.labels.items())]
    clauses.append(f'labels."k8s-pod/app"={_one_of(names)}')
    return f'(resource.type=("k8s_container" OR "k8s_pod") AND ({" OR ".join(clauses)}))'


def _one_of(names: Iterable[str]) -> str:
    return "(" + " OR ".join(f'"{name}"' for name in names) + ")"
