"""The notifier: how people see an incident; telling fails open, an incident never waits for it."""

from typing import Protocol, runtime_checkable

from agent.core.incident.incident import Event, Incident
from agent.core.sweep.sweep import Sweep


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

    def send_test(self) -> None:
        """Send one message that says that it is a test and asks nothing of anybody.

        Raises:
            DependencyFailed: It was not taken.
        """
        ...


@runtime_checkable
class RemembersShown(Protocol):
    """A notifier that knows what it has shown, so that nobody claims the right to say nothing."""

    def shows(self, incident: Incident, *, reference: str) -> bool:
        """Return whether it has shown exactly this version there; False where it does not know."""
        ...


@runtime_checkable
class SweepNotifier(Protocol):
    """Shows people a load measurement that waits for their answer, and then how it was answered."""

    def tell_sweep(self, sweep: Sweep, *, answered: str, reference: str | None) -> str:
        """Show it, with a way to answer while it waits.

        Args:
            sweep: What was asked for; names in it are untrusted text.
            answered: How it was answered, a sentence; empty while it waits.
            reference: What an earlier call returned for it; None for the first one.

        Returns:
            Where it stands now.

        Raises:
            DependencyFailed: Nobody was told; it is not tried again.
        """
        ...
