"""The agent's own log: one canonical event per stage run, for people or as Cloud Logging reads it."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

SEVERITY = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "critical": "CRITICAL"}
LABELS = ("incident", "stage", "run", "service")


def configure_log(*, as_json: bool, quiet: bool = False) -> None:
    """Choose how the log is written: to stderr, a line for people, or JSON with severity, trace and labels.

    Args:
        as_json: True in the cloud.
        quiet: Only warnings and worse, for commands whose answer is what people want to see.
    """
    shared: list[Any] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    if as_json:
        last: list[Any] = [
            structlog.processors.format_exc_info,
            _for_cloud_logging,
            structlog.processors.JSONRenderer(),
        ]
    else:
        stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=True)
        last = [stamp, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING if quiet else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _for_cloud_logging(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name severity, trace and labels as Cloud Logging's agents read them (structured logging, read 2026-11-21)."""
    told = dict(event)
    told["severity"] = SEVERITY.get(str(told.pop("level", "info")), "DEFAULT")
    told["message"] = told.pop("event", "")
    trace = told.pop("trace", None)
    if trace:
        told["logging.googleapis.com/trace"] = trace
    labels = {name: str(told[name]) for name in LABELS if name in told}
    if labels:
        told["logging.googleapis.com/labels"] = labels
    return told
