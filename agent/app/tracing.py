"""Whether and where traces are sent: the settings choose the tracer of a process."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from agent.app.redaction import redact
from agent.errors import DISTRIBUTION, SettingsRejected
from agent.ports.model import Model
from agent.ports.tracing import NoTracer, Tracer
from agent.settings import Settings
from agent.structured_log import structlog

if TYPE_CHECKING:
    from agent.adapters.tracing.otel import OtelTracer

SERVICE_NAME: Final = "sre-agent"
HTTP: Final = "http/protobuf"
_CONTENT: Final = frozenset({"span_only", "span_and_event", "true"})  # of the setting that lets prompts into spans

log = structlog.get_logger(__name__)


def open_tracer(settings: Settings, role: str) -> "OtelTracer | None":
    """Return the tracer of a process; None where no collector is named, or OTEL_TRACES_EXPORTER says none.

    Raises:
        ExtraMissing: The exporter is not installed.
        SettingsRejected: The settings want a way that is not built in.
    """
    if not settings.otlp_endpoint or settings.traces_exporter == "none":
        return None
    for name, value, known in (
        ("OTEL_TRACES_EXPORTER", settings.traces_exporter, "otlp"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", settings.otlp_protocol, HTTP),
    ):
        if value != known:
            raise SettingsRejected(
                "no traces can be sent",
                why=f"{name} is {value!r}, and {known!r} alone is built in",
                hint=f"set {name}={known} (an OTLP collector takes it on port 4318)",
            )
    if not settings.otlp_endpoint.startswith(("http://", "https://")):
        raise SettingsRejected(
            "no traces can be sent",
            why="OTEL_EXPORTER_OTLP_ENDPOINT is no http:// or https:// address",
            hint="set it to that of a collector, such as http://127.0.0.1:4318",
        )
    from agent.adapters.tracing.otlp import open_otlp

    return open_otlp(SERVICE_NAME, _version(), role, redact=redact)


def tracer_of(settings: Settings, role: str) -> Tracer:
    """Return the tracer of a process that works without traces where they cannot be sent, and says so in its log."""
    try:
        return open_tracer(settings, role) or NoTracer()
    except SettingsRejected as error:
        log.warning("traces.off", error=str(error))
        return NoTracer()


def traced_model(model: Model, tracer: Tracer, settings: Settings) -> Model:
    """Return the model whose questions are spans; itself where nothing is traced."""
    if isinstance(tracer, NoTracer):
        return model
    from agent.adapters.model.traced import TracedModel

    return TracedModel(model, tracer, content=settings.genai_content.lower() in _CONTENT, redact=redact)


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a function's archive is no installed package
        return "unreleased"
