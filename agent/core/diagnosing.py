"""How a diagnosis comes to be: the rules over everything that was heard, first causes over consequences."""

from datetime import datetime

from agent.core.diagnosis import Diagnosis, Evidence
from agent.core.signal import Signal, Source, in_order
from agent.failures.finding import Finding
from agent.failures.match import Matcher
from agent.failures.signature import FailureClass

UNKNOWN_LOG = "the instance's own log from its start was not read"


def diagnose(
    signals: tuple[Signal, ...],
    log_lines: tuple[str, ...] | None,
    *,
    log_complete: bool,
    platform: str,
    matcher: Matcher,
    titles: dict[str, str],
    now: datetime,
) -> Diagnosis:
    """Return the deterministic diagnosis.

    Args:
        signals: Everything the incident heard, in any order.
        log_lines: The instance's own log, or None where it was not read.
        log_complete: Whether that log begins at the instance's start.
        platform: Where the service runs.
        matcher: The compiled catalogue.
        titles: A line for people by signature.
        now: The time to date the diagnosis with.
    """
    ordered = in_order(signals)
    texts = [signal.text for signal in ordered]
    heard = matcher.classify("\n".join(texts), whole_log=False, platform=platform)
    read = None
    if log_lines is not None:
        read = matcher.classify("\n".join(log_lines), whole_log=log_complete, platform=platform)
    finding = _stronger(heard, read)
    log_read = read is not None
    unknown = () if log_read else (UNKNOWN_LOG,)
    if finding.benign or finding.signature is None:
        return _unexplained(ordered, log_read=log_read, unknown=unknown, now=now)
    evidence = _from_log(finding) if finding is read else _from_signals(finding, ordered)
    return Diagnosis(
        class_=finding.class_,
        signature=finding.signature,
        root_cause=_sentence(finding, titles),
        confidence=finding.confidence if log_read else min(finding.confidence, 0.8),
        certain=finding.certain and log_read,
        provisional=not log_read,
        log_read=log_read,
        evidence=evidence,
        fields=dict(finding.fields),
        fix_actions=finding.fix_actions,
        unknown=unknown,
        made_at=now,
    )


def _stronger(heard: Finding, read: Finding | None) -> Finding:
    """The instance's own log decides unless it shows nothing, or only what followed from something else."""
    if read is None:
        return heard
    rank = [(_rank(read), 1, read), (_rank(heard), 0, heard)]
    return max(rank, key=lambda entry: entry[:2])[2]


def _rank(finding: Finding) -> int:
    if finding.signature is None or finding.benign:
        return 0
    return 1 if finding.consequence else 2


def _sentence(finding: Finding, titles: dict[str, str]) -> str:
    """The catalogue's title with the numbers that the log gave."""
    title = titles.get(finding.signature or "", f"{finding.class_} ({finding.signature})").rstrip(".")
    numbers = [f"{name.replace('_', ' ')} {_plain(value)}" for name, value in finding.fields.items()]
    return f"{title} ({', '.join(numbers[:5])})." if numbers else f"{title}."


def _plain(value: object) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _from_log(finding: Finding) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(signal=f"log:{line.index + 1}", line=line.text, decisive=number == 0)
        for number, line in enumerate(finding.evidence)
    )


def _from_signals(finding: Finding, ordered: tuple[Signal, ...]) -> tuple[Evidence, ...]:
    starts: list[int] = []
    lines = 0
    for signal in ordered:
        starts.append(lines)
        lines += signal.text.count("\n") + 1
    return tuple(
        Evidence(
            signal=f"s{max(n for n, start in enumerate(starts, start=1) if start <= line.index)}",
            line=line.text,
            decisive=number == 0,
        )
        for number, line in enumerate(finding.evidence)
    )


def _unexplained(ordered: tuple[Signal, ...], *, log_read: bool, unknown: tuple[str, ...], now: datetime) -> Diagnosis:
    telling = sorted(enumerate(ordered, start=1), key=lambda p: (p[1].source is Source.APP_LOG, p[0]))[:5]
    return Diagnosis(
        class_=FailureClass("unknown"),
        signature=None,
        root_cause="No rule recognises this; the lines that say most are below.",
        confidence=0.1,
        certain=False,
        provisional=not log_read,
        log_read=log_read,
        evidence=tuple(
            Evidence(signal=f"s{n}", line=s.text[:500], decisive=i == 0) for i, (n, s) in enumerate(telling)
        ),
        fix_actions=("collect_container_logs",),
        unknown=(*unknown, "the cause"),
        made_at=now,
    )
