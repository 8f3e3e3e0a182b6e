"""Which signals belong together, and why: the first cause and what followed from it."""

from datetime import datetime, timedelta
from enum import StrEnum

from agent.core.incident.incident import KEPT_SIGNALS, CorrelatedSignal, Incident
from agent.core.incident.phase import ENDS
from agent.core.intake.signal import AlertState, Signal, Source, Waiting, in_order
from agent.failures.finding import Finding, LineMatch
from agent.failures.match.matcher import Matcher
from agent.failures.signature import TROUBLE, FailureClass, Role

LINE_LIMIT = 500
LOUD = frozenset({"ERROR", "CRITICAL", "ALERT", "EMERGENCY"})


class Meaning(StrEnum):
    """What one signal means by itself."""

    FAILURE = "failure"  # recognised, a cause or a consequence
    UNEXPLAINED = "unexplained"  # somebody says that something is wrong; no rule knows what
    HEALTH = "health"  # a sign that the service came up, or an alert that closed
    STOP = "stop"  # somebody asks for an end: evidence that what follows is no trouble
    NOTHING = "nothing"  # harmless, or no rule and nobody complains


def meaning(signal: Signal, finding: Finding) -> Meaning:  # noqa: PLR0911 - one answer for each kind of signal
    """Say what a signal means; only failures and the unexplained open an incident.

    An end that nobody asked for is a failure, whatever stands in its text; one that was asked for is none.

    Args:
        signal: The observation.
        finding: What the rules say about its text alone.
    """
    if signal.end is not None:
        return Meaning.FAILURE if signal.ends_unasked else Meaning.NOTHING
    if signal.stop is not None:
        return Meaning.STOP
    if signal.waiting is Waiting.FOR_ITS_PORT:
        return Meaning.NOTHING
    if signal.alert_state is AlertState.CLOSED:
        return Meaning.HEALTH
    if finding.benign:
        return Meaning.HEALTH if _says_ready(signal) else Meaning.NOTHING
    if finding.signature is not None and not finding.hint:
        return Meaning.FAILURE
    if signal.source in {Source.ALERT, Source.METRIC, Source.PROBE}:
        return Meaning.UNEXPLAINED
    if signal.source is not Source.APP_LOG and signal.severity in LOUD:
        return Meaning.UNEXPLAINED
    return Meaning.NOTHING


def _says_ready(signal: Signal) -> bool:
    return "Application startup complete" in signal.text or "probe succeeded" in signal.text


def first_line(text: str) -> str:
    """Return the first line that says something, cut to ``LINE_LIMIT`` characters."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return line[:LINE_LIMIT]


def correlate(signals: tuple[Signal, ...], matcher: Matcher, *, cause: str) -> tuple[CorrelatedSignal, ...]:
    """Return the telling signals by time, each with the reason why it is in the incident.

    The result depends on the set of signals alone, never on the order of their arrival. Of equal
    lines of one revision the first is named, the rest are counted.

    Args:
        signals: All stored signals of the incident.
        matcher: The compiled catalogue.
        cause: The failure class of the diagnosis.
    """
    seen: dict[tuple[str, str | None, str | None], CorrelatedSignal] = {}
    more: dict[tuple[str, str | None, str | None], int] = {}
    for number, signal in enumerate(in_order(signals), start=1):
        match = _match(signal, matcher)
        class_ = match.class_ if match else FailureClass("unknown")
        key = (class_ if match else first_line(signal.text), match.signature if match else None, signal.revision)
        more[key] = more.get(key, 0) + 1
        if key not in seen and len(seen) < KEPT_SIGNALS:
            role = match.role if match else None
            seen[key] = CorrelatedSignal(
                signal=f"s{number}",
                at=signal.at,
                class_=class_,
                signature=match.signature if match else None,
                revision=signal.revision,
                line=first_line(signal.text),
                reason=_reason(signal, class_, role, cause),
            )
    origin = next((j.signal for j in seen.values() if j.class_ == cause), None)
    return tuple(_final(j, origin, more[key]) for key, j in seen.items())


def _match(signal: Signal, matcher: Matcher) -> LineMatch | None:
    """What a signal is by its text; an unasked end is never harmless, so that its code says what the text does not."""
    match = matcher.line(signal.text) or _strongest(signal, matcher)
    harmless = match is None or match.role not in TROUBLE
    return matcher.line(signal.end.catalogue_text) if signal.end is not None and harmless else match


def _strongest(signal: Signal, matcher: Matcher) -> LineMatch | None:
    matches = [m for _, m in matcher.scan(signal.text.splitlines())]
    ranked = sorted(matches, key=lambda m: (m.role is Role.CAUSE, m.precedence), reverse=True)
    return ranked[0] if ranked else None


def _reason(signal: Signal, class_: str, role: Role | None, cause: str) -> str:
    if signal.stop is not None:
        return f"a stop was asked for: {signal.stop.by.replace('_', ' ')}"
    if signal.source is Source.ALERT:
        return f"alert {'closed' if signal.alert_state is AlertState.CLOSED else 'opened'} for this service"
    if class_ == cause:
        return "cause"
    if role is Role.CONSEQUENCE:
        return "consequence"
    if role is None:
        ended = f"it ended {signal.end.sentence}, and nobody is known to have asked for it" if signal.end else ""
        return ended or "same service and revision; not explained by a rule"
    return f"same service and revision; {class_} ranks after {cause}"


def _final(entry: CorrelatedSignal, origin: str | None, times: int) -> CorrelatedSignal:
    reason = entry.reason
    if reason == "cause" and entry.signal != origin:
        reason = f"the same cause as {origin}"
    elif reason == "cause":
        reason = "first signal of the cause"
    elif reason == "consequence":
        what = (entry.signature or "what followed").replace("_", " ").replace("-", " ")
        reason = f"consequence of {origin}: {what}" if origin else f"consequence without a cause yet: {what}"
    if times > 1:
        reason += f" ({times} times)"
    return entry.with_(reason=reason)


def accepts(incident: Incident, signal: Signal, *, cool_off_s: float) -> bool:
    """Whether a signal belongs to an incident that its head key found.

    An incident that goes on takes every signal of its service or revision. One that has ended takes what
    happened before its end, and what comes after an escalation within the cool-off: a person has it already, also
    while they ask for another plan. A change that was asked for takes nothing after its end: what its revision does
    then is a trouble of its own.
    """
    if incident.phase not in ENDS:
        return True
    if signal.at <= incident.phase_at:
        return not (signal.ends_unasked and incident.phase == "SELF_RECOVERED")
    if incident.request is not None:
        return False
    recent = signal.at <= incident.phase_at + timedelta(seconds=cool_off_s)
    return incident.phase == "ESCALATED" and recent and signal.revision in {None, incident.revision}


def is_linked(incident: Incident | None, at: datetime, *, cool_off_s: float) -> bool:
    """Whether a new incident is linked to an earlier one of its service."""
    return incident is not None and (not incident.ended or at <= incident.phase_at + timedelta(seconds=cool_off_s))
