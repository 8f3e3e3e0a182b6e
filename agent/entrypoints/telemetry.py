"""The agent's own log: one canonical event per stage run, for people or as Cloud Logging reads it."""

import logging
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from io import StringIO
from typing import Any, NamedTuple, TextIO

from agent.structured_log import structlog

SEVERITY = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "critical": "CRITICAL"}
LABELS = ("incident", "stage", "run", "service", "origin")
CLOUD_NAMES = {"trace": "trace", "span": "spanId", "sampled": "trace_sampled"}

_W3C = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_CLOUD = re.compile(r"([0-9a-f]{32})(?:/(\d{1,20}))?(?:;o=(\d))?")
_TRACE = re.compile(r"[0-9a-f]{32}")


class Trace(NamedTuple):
    """Where a request stands in a trace.

    Attributes:
        trace: 32 hex digits; empty where the request has none.
        span: 16 hex digits, or empty.
    """

    trace: str = ""
    span: str = ""
    sampled: bool = False


def trace_of(headers: Mapping[str, str]) -> Trace:
    """Return the trace of a request.

    ``traceparent`` (W3C Trace Context) counts before ``X-Cloud-Trace-Context`` (``TRACE/SPAN;o=1``, span in
    decimal); Cloud Run sends both (cloud.google.com/trace/docs/trace-context, read 2026-11-21). A broken header counts
    as none.
    """
    lower = {key.lower(): value for key, value in headers.items()}
    found = _W3C.fullmatch(lower.get("traceparent", "").strip())
    if found and int(found[1], 16):
        return Trace(found[1], found[2], sampled=bool(int(found[3], 16) & 1))
    found = _CLOUD.fullmatch(lower.get("x-cloud-trace-context", "").strip())
    if found is None:
        return Trace()
    span = f"{int(found[2]):016x}" if found[2] and 0 < int(found[2]) < 2**64 else ""
    return Trace(found[1], span, sampled=found[3] == "1")


@contextmanager
def traced(headers: Mapping[str, str], *, project: str | None) -> Iterator[None]:
    """Let everything that is logged in this thread carry the request's trace.

    Args:
        headers: Of the request.
        project: Whose traces they are; without it only the id is written.
    """
    here = trace_of(headers)
    structlog.contextvars.clear_contextvars()
    if here.trace:
        name = f"projects/{project}/traces/{here.trace}" if project else here.trace
        structlog.contextvars.bind_contextvars(trace=name, span=here.span, sampled=here.sampled)
        follow(here.trace)
    try:
        yield
    finally:
        structlog.contextvars.clear_contextvars()


def follow(origin: str) -> None:
    """Name the trace in which this story began; a message carries it to the next function."""
    if _TRACE.fullmatch(origin):
        structlog.contextvars.bind_contextvars(origin=origin)


def current_trace() -> str:
    """Return the trace in which the story at hand began, or an empty text."""
    return str(structlog.contextvars.get_contextvars().get("origin", ""))


def configure_log(*, as_json: bool, quiet: bool = False, renderer: structlog.typing.Processor | None = None) -> None:
    """Choose how the log is written: to stderr, a line for people, or JSON with severity, trace and labels.

    Args:
        as_json: True in the cloud.
        quiet: Only warnings and worse, for commands whose answer is what people want to see.
        renderer: A step before the lines for people, which may print events in its own way and drop them.
    """
    shared: list[Any] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    if as_json:
        last: list[Any] = [
            structlog.processors.format_exc_info,
            _for_cloud_logging,
            structlog.processors.JSONRenderer(),
        ]
    else:
        from agent.entrypoints.colour import wants_colour

        stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=True)
        lines = structlog.dev.ConsoleRenderer(colors=wants_colour(sys.stderr), exception_formatter=_traceback)
        last = [*([renderer] if renderer else []), stamp, _for_people, lines]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING if quiet else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _for_people(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Let no text of others move a cursor or begin a line of its own."""
    from agent.core.text.safe_text import inert

    return {key: inert(v).replace("\n", "\\n") if isinstance(v, str) else v for key, v in event.items()}


def _traceback(out: TextIO, error: Any) -> None:
    """Write a bug as files and lines: the usual form shows the values beside them, and keys are among those."""
    from agent.core.text.safe_text import inert

    written = StringIO()
    structlog.dev.plain_traceback(written, error)
    out.write(inert(written.getvalue(), limit=50_000))


def _for_cloud_logging(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name severity, trace and labels as Cloud Logging's agents read them (structured logging, read 2026-11-21)."""
    entry = dict(event)
    entry["severity"] = SEVERITY.get(str(entry.pop("level", "info")), "DEFAULT")
    entry["message"] = entry.pop("event", "")
    for name, key in CLOUD_NAMES.items():
        value = entry.pop(name, None)
        if value not in (None, ""):
            entry[f"logging.googleapis.com/{key}"] = value
    labels = {name: str(entry[name]) for name in LABELS if name in entry}
    if labels:
        entry["logging.googleapis.com/labels"] = labels
    return entry
