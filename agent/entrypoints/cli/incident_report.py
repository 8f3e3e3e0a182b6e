"""Writes the report of an incident: to standard output, or into a file that is never left half written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import DependencyFailed, SreError

if TYPE_CHECKING:
    from agent.core.change.config_drift import ServiceRecord
    from agent.entrypoints.operator_client.protocol import OperatorClient

FORMATS = ("md", "json", "html")


def report(client: "OperatorClient", incident_id: str, *, form: str, out: Path | None) -> int:
    """Print or write the draft of a postmortem.

    Args:
        client: Where the incident is read.
        incident_id: Which one.
        form: One of ``FORMATS``.
        out: The file; standard output where None.

    Raises:
        DependencyFailed: The file cannot be written.
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.app.incident_reports import ReportFormat, incident_report, written
    from agent.entrypoints.operator_client.protocol import now
    from agent.settings import read_settings

    incident = client.incident(incident_id)
    draft = incident_report(
        incident,
        client.timeline(incident_id),
        seen=_seen(client, incident.service),
        console_url=read_settings().public_url,
        now=max(now(), incident.phase_at),
    )
    text = written(draft, ReportFormat(form))
    if out is None:
        sys.stdout.write(text)
        return 0
    _write(out, text)
    print(f"report of {incident.id} written to {out}", file=sys.stderr)
    return 0


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
