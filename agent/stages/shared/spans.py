"""The spans of an incident: what they are about, in the same words everywhere (docs/telemetry.md lists them)."""

from contextlib import AbstractContextManager

from agent.core.incident.incident import Incident
from agent.ports.bus import Message
from agent.ports.stage_context import StageContext
from agent.ports.tracing import INCIDENT, Kind, Span


def incident_span(
    context: StageContext, name: str, incident: Incident, *, kind: Kind = Kind.INTERNAL, **more: str
) -> AbstractContextManager[Span]:
    """Measure work on an incident, in its trace.

    Args:
        context: The ports.
        name: What is done, of few values.
        incident: As it was loaded; one that is in no trace yet begins one, and ``save`` keeps which.
        kind: How it stands to others.
        more: Attributes of ours besides those of the incident, without their prefix.
    """
    about = {
        INCIDENT: incident.id,
        "sre_agent.run": incident.run,
        "sre_agent.service": incident.service,
        "sre_agent.platform": incident.platform,
        "sre_agent.phase": incident.phase.value,
    }
    own = {f"sre_agent.{name}": value for name, value in more.items()}
    return context.tracer.span(name, incident=incident.traceparent, kind=kind, attributes=about | own)


def stamped(context: StageContext, incident: Incident, message: Message) -> Message:
    """Return the message with the span that sends it, as W3C Trace Context, for whoever goes on with it."""
    here = context.tracer.traceparent() or incident.traceparent
    return message.with_(attributes=message.attributes | {"traceparent": here}) if here else message
