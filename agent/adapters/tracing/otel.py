"""Spans by OpenTelemetry's SDK, one trace for each incident.

A span is begun when it is known to which incident it belongs, and sent only where something was done: a storm of
harmless log lines, or a poll that found nothing new, sends nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace as api
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agent.errors import StateConflict
from agent.ports.tracing import INCIDENT, Attributes, Kind, RedactedJson, Span
from agent.structured_log import structlog

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import SpanContext

SCOPE: Final = "vllm-sre-agent"
FLUSH_S: Final = 0.5  # who waits for an answer of a function waits so long for its collector at most
CLOSE_S: Final = 1.0  # as long waits the end of a process
RESTS_S: Final = 60.0  # for so long after that nobody waits for it at all

_KINDS: Final = {
    Kind.INTERNAL: api.SpanKind.INTERNAL,
    Kind.CLIENT: api.SpanKind.CLIENT,
    Kind.CONSUMER: api.SpanKind.CONSUMER,
}
_W3C: Final = TraceContextTextMapPropagator()
_here: ContextVar[_Frame | None] = ContextVar("span", default=None)


class _Frame:
    """A piece of work of this thread; an arrival has no span until its incident is known.

    Attributes:
        sent: Whether it will be sent: something below it was, or it was handed out.
        open: How many pieces of work below it go on.
        about: Which incident it is about, where that is known.
    """

    def __init__(self, above: _Frame | None) -> None:
        self.above = above
        self.span: api.Span | None = None
        self.sent = False
        self.open = 0
        self.about: object = None

    @property
    def context(self) -> SpanContext | None:
        """Where it stands in a trace."""
        return self.span.get_span_context() if self.span is not None else None

    def lineage(self) -> Iterator[_Frame]:
        """Return it and those above it."""
        frame: _Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.above

    def keep(self) -> None:
        """It and those above it are sent; not an arrival whose incident is not known, which has nothing to send."""
        for frame in self.lineage():
            frame.sent = frame.span is not None


class _Arrival(_Frame):
    def __init__(self, name: str, kind: Kind, caller: SpanContext | None, attributes: Attributes) -> None:
        super().__init__(None)
        self.name, self.kind, self.caller, self.attributes = name, kind, caller, attributes
        self.began = time.time_ns()
        self.bound: list[Mapping[str, Token[Any]]] = []  # to its log lines


class OtelTracer:
    """Measures by the spans of a provider of its own. For many threads; each works on one event.

    The provider is not the process's global one: whatever else speaks OpenTelemetry here sends nothing through it.

    Args:
        provider: Of the SDK.
        processor: Sends what the provider finishes; asked to hurry at the end of a function's work.
        redact: Takes secrets out of a text.
        target: Where the spans go, for people.
    """

    def __init__(
        self,
        provider: TracerProvider,
        processor: SpanProcessor,
        *,
        redact: Callable[[str], str],
        target: str,
    ) -> None:
        self._tracer = provider.get_tracer(SCOPE)
        self._processor = processor
        self._redact = redact
        self._unsent = threading.Event()
        self._rests_until = 0.0
        self.target = target

    @contextmanager
    def arrival(self, name: str, *, kind: Kind, caller: str = "", attributes: Attributes) -> Iterator[None]:
        """Stand around what arrived; see :class:`agent.ports.tracing.Tracer`."""
        frame = _Arrival(name, kind, _parsed(caller), attributes)
        token = _here.set(frame)
        try:
            yield
        finally:
            _here.reset(token)
            for bound in reversed(frame.bound):
                structlog.contextvars.reset_contextvars(**bound)
            if frame.sent and frame.span is not None:
                self._end(frame, frame.span)

    @contextmanager
    def span(
        self, name: str, *, incident: str | None = None, kind: Kind = Kind.INTERNAL, attributes: Attributes
    ) -> Iterator[Span]:
        """Measure a piece of work; see :class:`agent.ports.tracing.Tracer`."""
        above = _here.get()
        frame = _Frame(above)
        frame.about = attributes.get(INCIDENT)
        parent, link = self._place(above, incident, frame.about)
        frame.span = span = self._begin(name, kind, parent, link, attributes)
        if above is not None:
            above.open += 1
        token, bound = _here.set(frame), structlog.contextvars.bind_contextvars(**_ids(frame))
        seen = _SpanOf(span, self._clean)
        try:
            yield seen
        except BaseException as error:
            seen.failed(error)
            raise
        finally:
            structlog.contextvars.reset_contextvars(**bound)
            _here.reset(token)
            if above is not None:
                above.open -= 1
            if frame.sent or not seen.dropped:
                self._end(frame, span)

    def traceparent(self) -> str:
        """Return the span at hand as W3C Trace Context says it."""
        context = _nearest(_here.get())
        if context is None:
            return ""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, api.set_span_in_context(api.NonRecordingSpan(context)))
        return carrier.get("traceparent", "")

    def keep(self) -> None:
        """Send the span at hand and those above it, whatever becomes of them."""
        frame = _here.get()
        if frame is not None:
            frame.keep()

    def flush(self) -> None:
        """Send what is finished within ``FLUSH_S``; a collector that is slower is not waited for in ``RESTS_S``."""
        if not self._unsent.is_set() or time.monotonic() < self._rests_until:
            return
        self._unsent.clear()
        sending = threading.Thread(target=self._processor.force_flush, name="spans", daemon=True)
        sending.start()
        sending.join(FLUSH_S)
        if sending.is_alive():
            self._rests_until = time.monotonic() + RESTS_S

    def close(self) -> None:
        """Send what is left within ``CLOSE_S``, in a thread that ends with the process: a collector may hang."""
        closing = threading.Thread(target=self._processor.shutdown, name="spans-close", daemon=True)
        try:
            closing.start()
        except RuntimeError:  # Python 3.12.0 and 3.12.1 begin no thread when a process ends: the last spans are lost
            return
        closing.join(CLOSE_S)

    def _place(
        self, above: _Frame | None, incident: str | None, about: object
    ) -> tuple[SpanContext | None, SpanContext | None]:
        """Return below which span a piece of work stands, and which one it is linked to."""
        if incident is None:
            return _nearest(above), None
        story = _parsed(incident)
        frames = tuple(above.lineage()) if above is not None else ()
        for frame in frames:
            if frame.context is not None and _is_of(frame, frame.context, story, about):
                return frame.context, None
        arrival = frames[-1] if frames else None
        if isinstance(arrival, _Arrival) and not arrival.sent and not arrival.open:
            return self._entered(arrival, story, about), None
        return story, _nearest(above)

    def _entered(self, arrival: _Arrival, story: SpanContext | None, about: object) -> SpanContext | None:
        """Begin the span of an arrival in the trace of its incident, from when it arrived."""
        caller = arrival.caller
        parent, link = story, caller
        if caller is not None and story is not None and caller.trace_id == story.trace_id:
            parent, link = _sampled_as(story, caller), None
        arrival.about = about
        arrival.span = self._begin(arrival.name, arrival.kind, parent, link, arrival.attributes, began=arrival.began)
        arrival.bound.append(structlog.contextvars.bind_contextvars(**_ids(arrival)))
        return arrival.context

    def _begin(
        self,
        name: str,
        kind: Kind,
        parent: SpanContext | None,
        link: SpanContext | None,
        attributes: Attributes,
        *,
        began: int | None = None,
    ) -> api.Span:
        from opentelemetry.context import Context

        context = Context()
        if parent is not None:
            context = api.set_span_in_context(api.NonRecordingSpan(parent), context)
        links = [api.Link(link)] if link is not None else None
        return self._tracer.start_span(
            name, context, _KINDS[kind], self._clean(attributes), links, began, record_exception=False
        )

    def _end(self, frame: _Frame, span: api.Span) -> None:
        span.end()
        self._unsent.set()
        frame.keep()

    def _clean(self, attributes: Attributes) -> dict[str, Any]:
        return {key: self._without_secrets(value) for key, value in attributes.items()}

    def _without_secrets(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._without_secrets(one) for one in value)
        if isinstance(value, RedactedJson):
            return str(value)
        return self._redact(value) if isinstance(value, str) else value


class _SpanOf:
    """A span, as whoever works in it sees it."""

    def __init__(self, span: api.Span, clean: Callable[[Attributes], dict[str, Any]]) -> None:
        self._span = span
        self._clean = clean
        self.dropped = False

    def name(self, name: str) -> None:
        """Name it by what is known now."""
        self._span.update_name(name)

    def note(self, attributes: Attributes) -> None:
        """Add what is known by now."""
        self._span.set_attributes(self._clean(attributes))

    def drop(self) -> None:
        """Do not send it."""
        self.dropped = True

    def failed(self, error: BaseException) -> None:
        """Say by the error's class how it ended; its text may quote what others wrote. A lost race did nothing."""
        self.dropped = isinstance(error, StateConflict)
        self._span.set_attribute("error.type", type(error).__name__)
        self._span.set_status(api.StatusCode.ERROR)


def _nearest(frame: _Frame | None) -> SpanContext | None:
    """Return the innermost span that has begun."""
    frames = frame.lineage() if frame is not None else ()
    return next((one.context for one in frames if one.context is not None and one.context.is_valid), None)


def _is_of(frame: _Frame, context: SpanContext, story: SpanContext | None, about: object) -> bool:
    """Whether a span stands in the trace of an incident; one that was stored without a trace is known by its id."""
    if story is not None:
        return context.trace_id == story.trace_id
    return about is not None and frame.about == about


def _sampled_as(story: SpanContext, caller: SpanContext) -> SpanContext:
    """Return the caller's place in our trace; whether that is sent was decided when it began, by nobody else."""
    return api.SpanContext(caller.trace_id, caller.span_id, is_remote=True, trace_flags=story.trace_flags)


def _ids(frame: _Frame) -> dict[str, str]:
    context = _nearest(frame)
    if context is None:
        return {}
    return {"trace_id": api.format_trace_id(context.trace_id), "span_id": api.format_span_id(context.span_id)}


def _parsed(traceparent: str) -> SpanContext | None:
    """Read W3C Trace Context; whatever is malformed counts as none."""
    context = api.get_current_span(_W3C.extract({"traceparent": traceparent})).get_span_context()
    return context if context.is_valid else None
