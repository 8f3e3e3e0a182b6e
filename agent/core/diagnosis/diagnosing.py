"""Makes a diagnosis: the rules over all signals and the log, with first causes before consequences."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from agent.core.diagnosis.diagnosis import Diagnosis, Evidence
from agent.core.intake.signal import End, Signal, Source, in_order
from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from agent.failures.signature import FailureClass

UNKNOWN_LOG = "the server's log from its start was not read"


@dataclass(frozen=True, kw_only=True)
class LogText:
    """An instance's own log, redacted.

    Attributes:
        lines: Time and text of each line.
        complete: Whether it begins at the start.
        instance: Whose it is.
        cut_after: How many of ``lines`` stand before the part that was left out; None where nothing was.
        cut_lines: How many lines were left out there; None where nobody counted them.
        numbers: Of each line its place in the log itself, 0 where nobody knows it; empty where their order tells it.
    """

    lines: tuple[tuple[datetime, str], ...]
    complete: bool
    instance: str | None = None
    cut_after: int | None = None
    cut_lines: int | None = None
    numbers: tuple[int, ...] = ()

    def ref(self, number: int) -> str:
        """Name a line by its place in the log itself, where that is known; otherwise counted from its end.

        Args:
            number: Its place among ``lines``, from 1.

        Returns:
            ``log:N`` for the log's line N, ``log:-N`` for the one that has N - 1 lines after it, ``log`` for one whose
            place nobody knows.
        """
        if self.numbers:
            return f"log:{self.numbers[number - 1]}" if self.numbers[number - 1] else "log"
        if self.cut_after is None or number <= self.cut_after:
            return f"log:{number}"
        if self.cut_lines is None:
            return f"log:-{len(self.lines) - number + 1}"
        return f"log:{number + self.cut_lines}"


@dataclass(frozen=True, kw_only=True, order=True)
class StoryLine:
    """One line of the whole story, by time; ``ref`` names the signal or the line of the log it stands in.

    ``server`` is the instance that said it, empty where nobody is named.
    """

    at: datetime
    place: int
    ref: str
    line: str
    server: str = ""


def diagnose(
    signals: tuple[Signal, ...],
    log: LogText | None,
    *,
    platform: str,
    matcher: Matcher,
    titles: dict[str, str],
    now: datetime,
) -> Diagnosis:
    """Return the deterministic diagnosis; it depends on the set of signals and the log alone, not on their order.

    Args:
        signals: All signals of the incident, in any order.
        log: The instance's own log, or None where it was not read.
        platform: Where the service runs.
        matcher: The compiled catalogue.
        titles: A line for people by signature.
        now: The time to date the diagnosis with.
    """
    ordered = in_order(signals)
    story_lines = story(ordered, log)
    complete = log is not None and log.complete
    finding = matcher.classify(
        "\n".join(t.line for t in story_lines), whole_log=complete, platform=platform, servers=_servers(story_lines)
    )
    unknown = () if complete else (UNKNOWN_LOG,)
    unasked = (_UnaskedEnd(n, s, s.end) for n, s in enumerate(ordered, start=1) if s.ends_unasked and s.end is not None)
    end = next(unasked, None)
    ended = _end_finding(end.end, matcher, platform) if end is not None else None
    if end is not None and ended is not None and _explains_more(ended, finding):
        evidence: tuple[Evidence, ...] = (_end_evidence(end),)
        finding = ended
    elif finding.benign or finding.signature is None:
        return _unexplained(ordered, end=end, log_read=log is not None, unknown=unknown, now=now)
    else:
        evidence = tuple(
            Evidence(signal=story_lines[line.index].ref, line=line.text, decisive=number == 0)
            for number, line in enumerate(finding.evidence)
        )
    return Diagnosis(
        class_=finding.class_,
        signature=finding.signature,
        root_cause=_title(finding, titles),
        confidence=finding.confidence,
        certain=finding.certain and complete,
        provisional=not complete,
        log_read=log is not None,
        evidence=evidence,
        fields=dict(finding.fields),
        field_signals={name: story_lines[index].ref for name, index in finding.field_lines.items()},
        fix_actions=finding.fix_actions,
        unknown=unknown,
        unasked_end=end is not None,
        made_at=now,
    )


class _UnaskedEnd(NamedTuple):
    """The first signal, by its number, of an end that nobody asked for."""

    number: int
    signal: Signal
    end: End


def _end_finding(end: End, matcher: Matcher, platform: str) -> Finding | None:
    """What an end says by its code, its signal or its mark; None where those explain nothing."""
    finding = matcher.classify(end.catalogue_text, whole_log=False, platform=platform)
    return None if finding.benign or finding.signature is None or finding.hint else finding


def _explains_more(ended: Finding, finding: Finding) -> bool:
    """Whether the end tells more than the lines beside it: those are harmless, unknown, or only say that it ended."""
    if finding.benign or finding.signature is None:
        return True
    weaker = ended.precedence > finding.precedence
    return (finding.consequence or finding.hint) and weaker and ended.class_ != finding.class_


def _end_evidence(unasked: _UnaskedEnd) -> Evidence:
    """The end as it is shown: the platform's line, or (for a whole log in one signal) what was read in it."""
    whole_log = unasked.signal.source is Source.APP_LOG
    line = f"the server ended {unasked.end.sentence}" if whole_log else unasked.signal.text[:500]
    return Evidence(signal=f"s{unasked.number}", line=line, decisive=True)


def story(ordered: tuple[Signal, ...], log: LogText | None) -> list[StoryLine]:
    """All lines of the signals and the log, by time; a line that stands in both appears once."""
    story_lines = (
        [
            StoryLine(at=at, place=n, ref=log.ref(n), line=part, server=log.instance or "")
            for n, (at, line) in enumerate(log.lines, start=1)
            for part in line.splitlines() or [""]
        ]
        if log is not None
        else []
    )
    held = {t.line.strip() for t in story_lines}
    after = len(story_lines)
    for number, signal in enumerate(ordered, start=1):
        story_lines.extend(
            StoryLine(at=signal.at, place=after + number, ref=f"s{number}", line=part, server=signal.instance or "")
            for part in signal.text.splitlines() or [""]
            if signal.source is not Source.APP_LOG or part.strip() not in held
        )
    return sorted(story_lines, key=lambda t: (t.at, t.place))


def _servers(story_lines: list[StoryLine]) -> tuple[str, ...] | None:
    """Who said each line, where several instances did: that one came up says nothing of another."""
    several = len({t.server for t in story_lines if t.server}) > 1
    return tuple(t.server for t in story_lines) if several else None


def _title(finding: Finding, titles: dict[str, str]) -> str:
    """The catalogue's title; the figures that the log gave stand in ``fields``."""
    return titles.get(finding.signature or "", f"{finding.class_} ({finding.signature})").rstrip(".") + "."


def _unexplained(
    ordered: tuple[Signal, ...],
    *,
    end: _UnaskedEnd | None,
    log_read: bool,
    unknown: tuple[str, ...],
    now: datetime,
) -> Diagnosis:
    """No rule knows the cause. An end that nobody asked for is named; the lines that it printed last decide nothing."""
    root_cause = "No rule recognises this; the lines that say most are below."
    telling = sorted(enumerate(ordered, start=1), key=lambda p: (p[1].source is Source.APP_LOG, p[0]))[:5]
    evidence = tuple(Evidence(signal=f"s{n}", line=s.text[:500], decisive=i == 0) for i, (n, s) in enumerate(telling))
    if end is not None:
        root_cause = f"The server ended {end.end.sentence}, nobody is known to have asked for it; no rule says why."
        evidence = (_end_evidence(end), *(e.with_(decisive=False) for e in evidence if e.signal != f"s{end.number}"))
    return Diagnosis(
        class_=FailureClass("unknown"),
        signature=None,
        root_cause=root_cause,
        confidence=0.1,
        certain=False,
        provisional=bool(unknown),
        log_read=log_read,
        evidence=evidence,
        fix_actions=("collect_container_logs",),
        unknown=(*unknown, "the cause"),
        unasked_end=end is not None,
        made_at=now,
    )
