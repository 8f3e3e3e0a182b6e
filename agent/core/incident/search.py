"""Which incidents somebody looks for: by words, class and time; and which earlier ones resemble one."""

from collections.abc import Iterable, Iterator

from pydantic import AwareDatetime

from agent.core.incident.incident import Incident
from agent.core.value import Value


class IncidentSearch(Value):
    """What an incident must have; what is empty asks for nothing.

    Attributes:
        text: Words that must all occur, in any order and case, in what the incident says.
        class_: The failure class.
        since: Opened then or later, UTC.
        until: Opened before.
    """

    text: str = ""
    class_: str = ""
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None

    @property
    def narrow(self) -> bool:
        """Whether it asks for anything."""
        return bool(self.text.strip() or self.class_ or self.since or self.until)

    def matches(self, incident: Incident) -> bool:
        """Whether an incident has all of it."""
        if self.class_ and incident.cause != self.class_:
            return False
        if self.since is not None and incident.opened_at < self.since:
            return False
        if self.until is not None and incident.opened_at >= self.until:
            return False
        words = self.text.casefold().split()
        if not words:
            return True
        said = "\n".join(_said(incident)).casefold()
        return all(word in said for word in words)


def resembles(one: Incident, other: Incident) -> bool:
    """Whether an incident is about the same trouble as another; a requested change resembles nothing."""
    if one.id == other.id or one.request is not None or other.request is not None:
        return False
    return one.cause == other.cause != "unknown" and one.run == other.run


def most_alike(one: Incident, others: Iterable[Incident], limit: int) -> tuple[Incident, ...]:
    """Return the incidents that resemble one: those of its service and signature first, then the newest."""
    found = {other.id: other for other in others if resembles(one, other) and other.opened_at <= one.opened_at}

    def rank(other: Incident) -> tuple[bool, bool, float]:
        return other.service != one.service, _signature(other) != _signature(one), -other.opened_at.timestamp()

    return tuple(sorted(found.values(), key=rank)[:limit])


def _signature(incident: Incident) -> str | None:
    return incident.diagnosis.signature if incident.diagnosis is not None else None


def _said(incident: Incident) -> Iterator[str]:
    """Everything in an incident that somebody may remember of it."""
    yield from (incident.id, incident.service, incident.platform, incident.revision or "", incident.run)
    yield from (incident.cause.replace("_", " "), incident.cause, incident.ended_why)
    if incident.diagnosis is not None:
        yield from (incident.diagnosis.root_cause, incident.diagnosis.signature or "")
        yield from (item.line for item in incident.diagnosis.evidence)
    yield from (signal.line for signal in incident.correlated)
    if incident.plan is not None:
        yield incident.plan.why
        yield from (f"{row.path} {row.before or ''} {row.after or ''}" for row in incident.plan.difference)
    if incident.request is not None:
        yield from (incident.request.asker, incident.request.why)
