"""Writes the report of an incident: to standard output, or into a file that is never left half written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import DependencyFailed, InputRejected, ModelMisbehaved, SreError
from agent.ports.model import NoAnswer

if TYPE_CHECKING:
    from agent.core.change.config_drift import ServiceRecord
    from agent.entrypoints.operator_client.protocol import OperatorClient
    from agent.presentation.report.postmortem import Postmortem

FORMATS = ("md", "json", "html")


def report(client: "OperatorClient", incident_id: str, *, form: str, out: Path | None, reword: bool = False) -> int:
    """Print or write the draft of a postmortem.

    Args:
        client: Where the incident is read.
        incident_id: Which one.
        form: One of ``FORMATS``.
        out: The file; standard output where None.
        reword: Whether the configured model words the summary anew; where it cannot, the record's own stands.

    Raises:
        InputRejected: No model is configured that could word anything.
        DependencyFailed: The file cannot be written.
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.app.console_address import console_url
    from agent.app.incident_reports import ReportFormat, incident_report, written
    from agent.entrypoints.operator_client.protocol import now
    from agent.settings import read_settings

    incident = client.incident(incident_id)
    draft = incident_report(
        incident,
        client.timeline(incident_id),
        seen=_seen(client, incident.service),
        console_url=console_url(read_settings()),
        now=max(now(), incident.phase_at),
    )
    if reword:
        draft = _reworded(draft)
    text = written(draft, ReportFormat(form))
    if out is None:
        sys.stdout.write(text)
        return 0
    _write(out, text)
    print(f"report of {incident.id} written to {out}", file=sys.stderr)
    return 0


def _reworded(draft: "Postmortem") -> "Postmortem":
    """Let the model word the summary; what comes of it is said beside the report, which is written in any case."""
    from agent.app.incident_reports import with_reworded_summary
    from agent.app.models import model_of
    from agent.core.diagnosis.model_request import When
    from agent.settings import read_settings

    settings = read_settings()
    model = model_of(settings)
    if model is None or not settings.model_endpoints:
        raise InputRejected(
            "the summary was not worded anew",
            why="no model is configured",
            hint="name an endpoint in MODEL_ENDPOINTS (docs/model.md), or remove --reword",
        )
    try:
        return with_reworded_summary(draft, model, may_wake=settings.model_wake_when != When.NEVER)
    except (NoAnswer, ModelMisbehaved) as error:
        print(f"{error.what}: {error.why}. The report has the summary of the record.", file=sys.stderr)
        return draft


def _seen(client: "OperatorClient", service: str) -> "ServiceRecord | None":
    """What was seen of the service; a report without its accelerators is better than none."""
    try:
        return client.service_record(service)
    except SreError:
        return None


def _write(out: Path, text: str) -> None:
    beside = out.with_name(f".{out.name}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(out)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise DependencyFailed(
            f"the report was not written to {str(out)!r}",
            why=(error.strerror or str(error)).lower(),
            hint="name a file in a folder that exists and that you may write to",
        ) from error
