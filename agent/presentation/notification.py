"""What people are told of an incident away from our own pages: a title, a severity, a few lines and a link."""

from collections.abc import Callable
from typing import Final

from agent.core.incident.impact import Severity, severity_of
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.core.text.safe_text import chat
from agent.core.value import Value
from agent.presentation.impact_text import impact_text
from agent.presentation.incident_title import incident_title
from agent.presentation.plan_title import as_sentence, plan_title
from agent.presentation.request_text import request_reason
from agent.presentation.standing import standing

TITLE_CHARS: Final = 140  # a lock screen shows about as much
LINE_CHARS: Final = 600
TEST_TITLE: Final = "Test message of sre-agent"


class Line(Value):
    """One line of a notification: what it is, and what it says."""

    label: str
    text: str


class Notification(Value):
    """What people are told; safe for any chat that reads Markdown.

    Attributes:
        title: One line, readable on a lock screen.
        lines: The facts, the most useful first.
        url: The incident in the console.
    """

    title: str
    severity: Severity
    lines: tuple[Line, ...]
    url: str

    @property
    def text(self) -> str:
        """The lines and the link, without markup."""
        return "\n".join([*(f"{line.label}: {line.text}" for line in self.lines), self.url])


def notification(
    incident: Incident, *, redact: Callable[[str], str], console_url: str, owner: str = ""
) -> Notification:
    """Return what people are told of an incident as it is now.

    Args:
        incident: Its present state; all text in it is untrusted.
        redact: Takes secrets out of a text.
        console_url: Where the console stands.
        owner: Who is to care for the service, from services.toml.
    """

    def safe(text: str, limit: int = LINE_CHARS) -> str:
        return chat(redact(text), limit=limit)

    replay = "" if incident.run == LIVE else "Replay: "
    return Notification(
        title=safe(f"{replay}{incident_title(incident, incident.phase_at)}", TITLE_CHARS),
        severity=urgency(incident),
        lines=tuple(Line(label=label, text=safe(text)) for label, text in _facts(incident, owner) if text),
        url=incident_url(incident, console_url),
    )


def test_notification(console_url: str) -> Notification:
    """Return the message of a test."""
    line = Line(label="Status", text="Nothing is wrong, and nothing needs to be done.")
    return Notification(title=TEST_TITLE, severity=Severity.INFO, lines=(line,), url=console_url)


def incident_url(incident: Incident, console_url: str) -> str:
    """Return where an incident stands in the console."""
    return f"{console_url.rstrip('/')}/incidents/{incident.id}"


def urgency(incident: Incident) -> Severity:
    """Return how much people are to hurry: a replay never, and once a person must take over it is critical."""
    if incident.run != LIVE:
        return Severity.INFO
    return Severity.CRITICAL if incident.phase is Phase.ESCALATED else severity_of(incident)


def _facts(incident: Incident, owner: str) -> list[tuple[str, str]]:
    diagnosis, plan = incident.diagnosis, incident.plan
    facts = [("Impact", impact_text(incident)), ("Status", standing(incident, incident.phase_at).says)]
    if incident.request is not None:
        facts.append(("Request", request_reason(incident.request)))
    elif diagnosis is not None:
        line = diagnosis.decisive.line if diagnosis.decisive is not None else ""
        facts += [("Cause", as_sentence(diagnosis.root_cause)), ("Log", line)]
    if plan is not None and incident.phase is Phase.ASKED:
        facts += [("Plan", plan_title(plan)), ("Trade-off", plan.takes_away)]
        facts.append(("Answer until", f"{plan.expires_at:%Y-%m-%d %H:%M} UTC"))
    return [*facts, ("Reason", incident.ended_why), ("Owner", owner.removeprefix("slack:"))]
