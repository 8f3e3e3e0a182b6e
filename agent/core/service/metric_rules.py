"""What the numbers of a vLLM server say: full, queueing, preempting, or standing still while requests run."""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from pydantic import AwareDatetime

from agent.core.value import Value

KV_FULL = 0.85  # share of the KV cache in use; above it vLLM soon preempts
WAITING_S = 30.0  # requests that wait so long do not wait for a short burst
PREEMPTING_S = 30.0
STALLED_S = 30.0  # a step of the largest model takes well under a second, a long prefill some seconds
KEPT_S = 120.0

# Name since 0.32 first, then older names: gpu_cache_usage_perc was renamed with the V1 engine, counters got ``_total``
# from the Prometheus client (read from vLLM 0.32.0's own /metrics and from 0.6's documentation, 2026-11-21).
ALIASES: dict[str, tuple[str, ...]] = {
    "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "running": ("vllm:num_requests_running",),
    "waiting": ("vllm:num_requests_waiting",),
    "preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
    "generated": ("vllm:generation_tokens_total", "vllm:generation_tokens"),
    "prompted": ("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
}


class Sample(Value):
    """The numbers at one moment; None where the server does not say.

    Attributes:
        kv_usage: Share of the KV cache in use, 0..1, the highest of all engines.
        running: Requests in work, all engines together; the counters likewise.
    """

    at: AwareDatetime
    kv_usage: float | None = None
    running: float | None = None
    waiting: float | None = None
    preemptions: float | None = None
    generated: float | None = None
    prompted: float | None = None

    @property
    def progress(self) -> float | None:
        """Tokens read and written since the server started."""
        known = [n for n in (self.generated, self.prompted) if n is not None]
        return sum(known) if known else None


class Rule(StrEnum):
    """What can be wrong by the numbers."""

    KV_FULL = "kv_cache_usage"
    WAITING = "requests_waiting"
    PREEMPTING = "preemptions"
    STALLED = "no_progress"


class Breach(Value):
    """One rule that the numbers break.

    Attributes:
        trouble: Whether it needs somebody by itself; a full cache with nobody waiting is work well done.
        since: When it began, as far as the samples tell.
        says: In words of the failure catalogue.
    """

    rule: Rule
    trouble: bool
    since: AwareDatetime
    says: str


def read_sample(text: str, *, at: datetime) -> Sample:
    """Return the numbers of one exposition in Prometheus text format.

    Args:
        text: The body of /metrics; lines that are no sample of ours are passed over.
        at: When it was read.
    """
    return Sample(at=at, **metric_values(text))


def metric_values(text: str) -> dict[str, float]:
    """Return the numbers of one exposition by the fields of ``ALIASES``; those that it does not say are not there."""
    wanted = {name: field for field, names in ALIASES.items() for name in names}
    found: dict[str, dict[str, list[float]]] = {}
    for name, value in read_samples(text):
        if name in wanted:
            found.setdefault(wanted[name], {}).setdefault(name, []).append(value)
    numbers: dict[str, float] = {}
    for field, by_name in found.items():
        values = next(by_name[name] for name in ALIASES[field] if name in by_name)
        numbers[field] = max(values) if field == "kv_usage" else sum(values)
    return {field: number for field, number in numbers.items() if math.isfinite(number)}  # a sum may be none


def recent_samples(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the samples that the rules look at: of the newest life of the server, and not too old."""
    if not samples:
        return ()
    newest = samples[-1]
    first = 0
    for index in range(1, len(samples)):
        before, now = samples[index - 1].progress, samples[index].progress
        if before is not None and now is not None and now < before:
            first = index  # a counter that went down belongs to another process
    return tuple(s for s in samples[first:] if (newest.at - s.at).total_seconds() <= KEPT_S)


def breaches(samples: Sequence[Sample]) -> tuple[Breach, ...]:
    """Return what the newest samples break, in the order of the rules.

    Args:
        samples: In the order of time, all of one server; see ``recent_samples``.
    """
    if not samples:
        return ()
    found = (_full(samples), _waiting(samples), _preempting(samples), _stalled(samples))
    return tuple(breach for breach in found if breach is not None)


def _since(samples: Sequence[Sample], broken: Sequence[bool]) -> datetime | None:
    """Return when the run of broken samples that reaches the newest one began; None where the newest is well."""
    since = None
    for sample, bad in zip(reversed(samples), reversed(broken), strict=True):
        if not bad:
            break
        since = sample.at
    return since


def _full(samples: Sequence[Sample]) -> Breach | None:
    since = _since(samples, [s.kv_usage is not None and s.kv_usage > KV_FULL for s in samples])
    if since is None:
        return None
    says = f"KV cache usage is {samples[-1].kv_usage or 0:.1%}, above {KV_FULL:.0%}"
    return Breach(rule=Rule.KV_FULL, trouble=False, since=since, says=says)


def _waiting(samples: Sequence[Sample]) -> Breach | None:
    newest = samples[-1]
    since = _since(samples, [bool(s.waiting) for s in samples])
    if since is None or (newest.at - since).total_seconds() < WAITING_S:
        return None
    kv = "" if newest.kv_usage is None else f", GPU KV cache usage: {newest.kv_usage * 100:.1f}%"
    says = (
        f"Requests are queueing for {(newest.at - since).total_seconds():.0f} s: "
        f"Running: {newest.running or 0:.0f} reqs, Waiting: {newest.waiting or 0:.0f} reqs{kv}"
    )
    return Breach(rule=Rule.WAITING, trouble=True, since=since, says=says)


def _preempting(samples: Sequence[Sample]) -> Breach | None:
    counts = [(s.at, s.preemptions) for s in samples if s.preemptions is not None]
    rises = [at for (_, a), (at, b) in pairwise(counts) if b > a]
    if len(rises) < 2 or (rises[-1] - rises[0]).total_seconds() < PREEMPTING_S or rises[-1] != samples[-1].at:
        return None
    more = counts[-1][1] - counts[0][1]
    says = f"{more:.0f} requests preempted due to KV cache space within {(counts[-1][0] - counts[0][0]).seconds} s"
    return Breach(rule=Rule.PREEMPTING, trouble=True, since=rises[0], says=says)


def _stalled(samples: Sequence[Sample]) -> Breach | None:
    """No token while requests run. Samples that no longer come are not this rule's business: nobody was asked."""
    newest = samples[-1]
    if newest.progress is None or not newest.running:
        return None
    same = [bool(s.running) and s.progress == newest.progress for s in samples]
    since = _since(samples, same)
    if since is None or (newest.at - since).total_seconds() < STALLED_S:
        return None
    took = (newest.at - since).total_seconds()
    says = (
        f"Engine is hanging: no token for {took:.0f} s while requests run; "
        f"Running: {newest.running:.0f} reqs, Waiting: {newest.waiting or 0:.0f} reqs"
    )
    return Breach(rule=Rule.STALLED, trouble=True, since=since, says=says)


# Labels hold quoted text, and that holds anything: braces, blanks, escaped quotes. Possessive, so that time is linear.
_SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]*+(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\})?+[ \t]*+([0-9.eE+-]++)(?=[ \t\r]|$)'
)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*+)="((?:[^"\\]|\\.)*+)"')
"""https://prometheus.io/docs/instrumenting/exposition_formats (2026-11-21)"""


def read_samples(text: str) -> Iterator[tuple[str, float]]:
    """Return the samples whose value is a finite number, in order; lines that are none are passed over."""
    return ((name, value) for name, _, value in read_labelled_samples(text))


def read_labelled_samples(text: str) -> Iterator[tuple[str, str, float]]:
    """Return the same with the text of the labels, for :func:`labels_of`."""
    for line in text.split("\n"):  # splitlines also splits at signs that a label may hold
        match = _SAMPLE.match(line)
        try:
            value = float(match[3]) if match else math.nan
        except ValueError:
            continue
        if match and math.isfinite(value):
            yield match[1], match[2] or "", value


def labels_of(text: str) -> dict[str, str]:
    """Return labels by name; what is escaped in a value stays escaped."""
    return dict(_LABEL.findall(text))
