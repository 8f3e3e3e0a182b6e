"""Impact, severity and durations in words: what every page, message and report says of them."""

from agent.core.incident.durations import Durations
from agent.core.incident.impact import Impact, Severity, impact_of
from agent.core.incident.incident import Incident
from agent.core.value import Value

SEVERITY_WORDS: dict[Severity, str] = {
    Severity.CRITICAL: "Critical",
    Severity.ERROR: "Error",
    Severity.WARNING: "Warning",
    Severity.INFO: "Info",
}
_IMPACTS: dict[Impact, str] = {
    Impact.NOTHING_SERVES: "no instance is serving",
    Impact.OLDER_REVISION_SERVES: "an older revision serves",
    Impact.DEGRADED: "it serves, and some requests fail or are slow",
    Impact.NOT_KNOWN: "not known whether anything serves",
    Impact.NONE: "a requested change; nothing is broken",
}
_IMPACTS_THEN: dict[Impact, str] = {
    Impact.NOTHING_SERVES: "no instance was serving",
    Impact.OLDER_REVISION_SERVES: "an older revision served",
    Impact.DEGRADED: "it served, and some requests failed or were slow",
    Impact.NOT_KNOWN: "not known whether anything served",
    Impact.NONE: "a requested change; nothing was broken",
}


def impact_text(incident: Incident) -> str:
    """Return what still answers, without a full stop; in the past of what has ended, or was changed since it was seen.

    Such as ``an older revision serves (gemma-00004)``.
    """
    impact, seen = impact_of(incident), incident.serves
    words = _IMPACTS_THEN if incident.ended or incident.execution is not None else _IMPACTS
    older = f" ({seen.older})" if impact is Impact.OLDER_REVISION_SERVES and seen is not None else ""
    return words[impact] + older


def span(seconds: float) -> str:
    """Return a length of time in at most two units; from 10 min on without seconds."""
    whole = int(seconds)
    for unit_s, unit, below_s, below in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit_s:
            rest = (whole % unit_s) // below_s if below != "s" or whole < 600 else 0
            return f"{whole // unit_s} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{max(whole, 1)} s"


class DurationLine(Value):
    """One duration for people."""

    label: str
    says: str


def duration_lines(durations: Durations) -> tuple[DurationLine, ...]:
    """Return the parts of an incident's life that have come to pass, each with how long it took."""
    parts = (
        ("Time to detect", durations.detect_s),
        ("Time to diagnose", durations.diagnose_s),
        ("Time to decide", durations.decide_s),
        ("Time to recover", durations.recover_s),
    )
    return tuple(DurationLine(label=label, says=span(took)) for label, took in parts if took is not None)
