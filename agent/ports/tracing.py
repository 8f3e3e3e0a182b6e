"""Tracing: what one incident was worked on, as one trace; nothing that an incident needs depends on it."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Final, Protocol

Attributes = Mapping[str, str | int | float | bool | tuple[str, ...]]
INCIDENT: Final = "sre_agent.incident"  # the attribute that says which incident a span is about


class RedactedJson(str):
    """JSON whose texts were redacted before it was made of them; another redaction could only break its form."""

    __slots__ = ()


class Kind(StrEnum):
    """How a piece of work stands to others, in OpenTelemetry's words."""

    INTERNAL = "internal"
    CLIENT = "client"  # asks another server and waits
    CONSUMER = "consumer"  # handles a message


class Span(Protocol):
    """One piece of work that goes on."""

    def name(self, name: str) -> None:
        """Name it by what is known now."""
        ...

    def note(self, attributes: Attributes) -> None:
        """Add what is known by now; texts are redacted, but ``RedactedJson``, and cut."""
        ...

    def drop(self) -> None:
        """Nothing was done: it is not sent, unless something hangs below it."""
        ...


class Tracer(Protocol):
    """Where spans go. No method raises, and none waits for a collector but ``flush``, within its bound.

    Attributes:
        target: Where that is, for people; empty where nothing is sent.
    """

    target: str

    def arrival(
        self, name: str, *, kind: Kind, caller: str = "", attributes: Attributes
    ) -> AbstractContextManager[None]:
        """Stand around the handling of a message or request; sent only when a span below it is.

        Args:
            name: What arrived, of few values.
            kind: How it stands to the sender.
            caller: The ``traceparent`` that came along; untrusted. It is the parent where it belongs to the trace of
                the incident at hand, and a link elsewhere; a malformed one counts as none.
            attributes: What is known of it.
        """
        ...

    def span(
        self, name: str, *, incident: str | None = None, kind: Kind = Kind.INTERNAL, attributes: Attributes
    ) -> AbstractContextManager[Span]:
        """Measure a piece of work of this thread.

        Args:
            name: What is done, of few values.
            incident: The ``traceparent`` that the incident carries; empty begins its trace, unless this thread began
                it already, as the attribute ``INCIDENT`` says. None is below whatever this thread works on.
            kind: How it stands to others.
            attributes: What is known of it.
        """
        ...

    def traceparent(self) -> str:
        """Return the span at hand as W3C Trace Context says it, for whoever goes on elsewhere; or an empty text."""
        ...

    def keep(self) -> None:
        """Say that ``traceparent`` was handed out for good: the span at hand, and those above it, are sent."""
        ...

    def flush(self) -> None:
        """Send what is finished, within a short bound: a process may be put to sleep after its answer."""
        ...


class NoSpan:
    """A piece of work that nobody measures."""

    def name(self, name: str) -> None:
        """Nothing."""

    def note(self, attributes: Attributes) -> None:
        """Nothing."""

    def drop(self) -> None:
        """Nothing."""


class NoTracer:
    """Traces nothing: no collector was named."""

    target = ""

    @contextmanager
    def arrival(self, name: str, *, kind: Kind, caller: str = "", attributes: Attributes) -> Iterator[None]:  # noqa: ARG002
        """Measure nothing."""
        yield

    @contextmanager
    def span(
        self,
        name: str,  # noqa: ARG002
        *,
        incident: str | None = None,  # noqa: ARG002
        kind: Kind = Kind.INTERNAL,  # noqa: ARG002
        attributes: Attributes,  # noqa: ARG002
    ) -> Iterator[Span]:
        """Measure nothing."""
        yield NoSpan()

    def traceparent(self) -> str:
        """There is none."""
        return ""

    def keep(self) -> None:
        """Nothing."""

    def flush(self) -> None:
        """There is nothing to send."""
