"""The way to a collector: OTLP over HTTP, by the SDK's own OTEL_* settings; a dead collector costs nobody a wait."""

import atexit
import logging
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from agent.adapters.http.wire import proxy_for
from agent.adapters.tracing.otel import OtelTracer
from agent.errors import ExtraMissing, SettingsRejected
from agent.structured_log import structlog

SAY_AGAIN_S: Final = 300.0
MOST_CHARS: Final = 65_536  # of one text, where OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT says nothing; a question fits

log = structlog.get_logger(__name__)


def open_otlp(name: str, version: str, role: str, *, redact: Callable[[str], str]) -> OtelTracer:
    """Return a tracer whose spans go to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names.

    Args:
        name: Of the service, where neither OTEL_SERVICE_NAME nor OTEL_RESOURCE_ATTRIBUTES says one.
        version: Of the program.
        role: Which function it is, or ``up``.
        redact: Takes secrets out of a text.

    Raises:
        ExtraMissing: The exporter is not installed.
        SettingsRejected: The SDK does not take one of its settings.
    """
    try:
        return _opened(name, version, role, redact)
    except ImportError as error:
        raise ExtraMissing(
            "no traces can be sent", extra="otel", package="opentelemetry-exporter-otlp-proto-http"
        ) from error
    except (ValueError, OverflowError) as error:
        raise SettingsRejected(
            "no traces can be sent",
            why=f"OpenTelemetry's SDK refuses its settings: {redact(str(error))[:300]}",
            hint="correct or unset what it speaks of: the address, OTEL_BSP_* or OTEL_*_LIMIT",
        ) from error


def _opened(name: str, version: str, role: str, redact: Callable[[str], str]) -> OtelTracer:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from requests import Session

    _tell_by(redact)
    resource = Resource.create({"service.version": version, "sre_agent.role": role})
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": name}))
    limits = SpanLimits()
    if limits.max_attribute_length is None:
        limits = SpanLimits(max_attribute_length=MOST_CHARS)
    provider = TracerProvider(resource=resource, span_limits=limits, shutdown_on_exit=False)
    session = Session()
    session.trust_env = False  # neither .netrc nor proxies of the environment, but by the rule of all that we send
    exporter = OTLPSpanExporter(session=session)
    address = str(getattr(exporter, "_endpoint", ""))
    parts = urlsplit(address)
    if proxy := proxy_for(parts.scheme, parts.hostname or ""):
        session.proxies["https"] = proxy
    processor = BatchSpanProcessor(exporter)
    provider.add_span_processor(processor)
    said = f"{_address(address)} (OTLP), as {resource.attributes['service.name']!r}"
    off = getattr(provider, "_disabled", False)  # by OTEL_SDK_DISABLED
    tracer = OtelTracer(provider, processor, redact=redact, target="" if off else said)
    atexit.register(tracer.close)
    return tracer


def _address(url: str) -> str:
    """Return an address without what stands before an @ or behind a question mark: either may be a secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _tell_by(redact: Callable[[str], str]) -> None:
    """Let the SDK complain through our own log, and not at every batch."""
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _Complaints) for handler in logger.handlers):
        logger.addHandler(_Complaints(redact))
        logger.propagate = False


class _Complaints(logging.Handler):
    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._redact = redact
        self._again_at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one complaint in a while."""
        now = time.monotonic()
        if now >= self._again_at:
            self._again_at = now + SAY_AGAIN_S
            log.warning("traces.not_sent", why=self._redact(record.getMessage())[:300])
