"""The notifier: how people see an incident; telling fails open, an incident never waits for it."""

from typing import Protocol

from agent.core.incident.incident import Event, Incident


class Notifier(Protocol):
    """Shows the present state of an incident to people, in place where it was shown before."""

    def tell(self, incident: Incident, timeline: tuple[Event, ...], *, reference: str | None) -> str | None:
        """Show the incident as it is now.

        Args:
            incident: Its present state; all text in it is untrusted.
            timeline: Its timeline so far.
            reference: What an earlier call returned for this incident (where the message stands).

        Returns:
            Where the message stands now, to be given to the next call.

        Raises:
            DependencyFailed: Nobody was told; it is tried again.
        """
        ...
