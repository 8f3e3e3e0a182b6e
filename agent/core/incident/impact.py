"""Impact: what people still get from a service in trouble, and how severe that makes the incident."""

from enum import StrEnum

from agent.core.incident.incident import Incident
from agent.core.service.serving import Serves


class Impact(StrEnum):
    """What of the service still answers."""

    NOTHING_SERVES = "nothing_serves"
    OLDER_REVISION_SERVES = "older_revision_serves"  # the newest did not come up, and the one before it answers
    DEGRADED = "degraded"  # it answers, and not everybody gets what they ask for
    NOT_KNOWN = "not_known"  # nobody has described the service yet
    NONE = "none"  # a change that a person asked for: nothing is broken


class Severity(StrEnum):
    """How severe an incident is; the words are those of PagerDuty's Events API v2.

    Source: https://developer.pagerduty.com/docs/send-alert-event (2026-11-22).
    """

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


SEVERITIES: dict[Impact, Severity] = {
    Impact.NOTHING_SERVES: Severity.CRITICAL,
    Impact.DEGRADED: Severity.ERROR,
    Impact.NOT_KNOWN: Severity.ERROR,  # doubt is not harmless
    Impact.OLDER_REVISION_SERVES: Severity.WARNING,
    Impact.NONE: Severity.INFO,
}
"""One severity for each impact: who is served by an older revision notices nothing yet."""

_WHILE_SERVING = frozenset(
    {"context_length_exceeded", "queue_saturation", "tool_parser_error", "chat_template_error", "benign"}
)
"""Classes of a server that answers: requests fail, the server does not."""
_NO_ANSWERS = frozenset({"engine_dead", "engine_hang", "gpu_hardware_fault", "illegal_memory_access"})
"""Classes in which a server answers nothing, whatever its health check says."""
_ONE_SERVER = frozenset({"host", "ec2", "tpu_vm"})
"""Platforms on which a service is one server: nothing stands beside the one that is in trouble."""


def impact_of(incident: Incident) -> Impact:
    """Return what still answers, from what the platform said when it was asked last, else from the diagnosis alone."""
    if incident.request is not None:
        return Impact.NONE
    serves = _last_seen(incident)
    one_server = incident.platform in _ONE_SERVER  # its older revisions have ended
    if serves is not None and serves.older is not None and not one_server:
        return Impact.OLDER_REVISION_SERVES
    if serves is None or serves.ready is None:
        return _diagnosed(incident)
    if serves.ready:
        alone = serves.alone or one_server
        return Impact.NOTHING_SERVES if alone and _answers_nothing(incident) else Impact.DEGRADED
    return Impact.NOTHING_SERVES


def severity_of(incident: Incident) -> Severity:
    """Return how severe an incident is; of one that has ended, how severe it was when it was looked at last."""
    return SEVERITIES[impact_of(incident)]


def _last_seen(incident: Incident) -> Serves | None:
    """What the platform said; of incidents from before that was kept, what the last look before a change found."""
    execution = incident.execution
    if incident.serves is not None or execution is None or execution.prior_ready is None:
        return incident.serves
    return Serves(at=incident.phase_at, ready=execution.prior_ready, older=execution.served_by_older)


def _diagnosed(incident: Incident) -> Impact:
    if incident.diagnosis is None or incident.cause == "unknown":
        return Impact.NOT_KNOWN
    if incident.cause in _WHILE_SERVING:
        return Impact.DEGRADED
    return Impact.NOTHING_SERVES if incident.platform in _ONE_SERVER else Impact.NOT_KNOWN


def _answers_nothing(incident: Incident) -> bool:
    ended = incident.diagnosis is not None and incident.diagnosis.unasked_end
    return ended or incident.cause in _NO_ANSWERS
