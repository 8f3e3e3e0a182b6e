"""A tracer of the product over the SDK's own in-memory exporter."""

from collections.abc import Callable

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.adapters.tracing.otel import OtelTracer


def tracer_into(sent: InMemorySpanExporter, redact: Callable[[str], str] = str) -> OtelTracer:
    """Return a tracer that sends its spans there."""
    provider = TracerProvider(shutdown_on_exit=False)
    processor = SimpleSpanProcessor(sent)
    provider.add_span_processor(processor)
    return OtelTracer(provider, processor, redact=redact, target="")
