"""The report of an incident as a file: Markdown, JSON or one HTML page, without secrets."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from agent.app.catalogues import hide
from agent.catalogue.load_follow_ups import load_follow_ups
from agent.core.change.config_drift import ServiceRecord
from agent.core.incident.incident import Event, Incident
from agent.presentation.report.from_record import Record, postmortem
from agent.presentation.report.html_page import html_page
from agent.presentation.report.markdown import markdown
from agent.presentation.report.postmortem import Hardware, Postmortem
from agent.presentation.report.postmortem_document import postmortem_document


class ReportFormat(StrEnum):
    """What a report is written as; the value is the file's suffix."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"


def incident_report(
    incident: Incident, timeline: Sequence[Event], *, seen: ServiceRecord | None, console_url: str, now: datetime
) -> Postmortem:
    """Return the draft of a postmortem; secrets are taken out of every text of it.

    Args:
        incident: Its present state.
        timeline: Its whole timeline.
        seen: What was seen of the service's configuration; None where nothing was.
        console_url: Where people reach the console.
        now: The time, UTC.
    """
    record = Record(
        incident=incident,
        timeline=timeline,
        now=now,
        follow_ups=load_follow_ups(),
        hardware=_hardware(seen),
        console_url=console_url,
    )
    return Postmortem.model_validate_json(hide(postmortem(record).model_dump_json()))


def written(draft: Postmortem, form: ReportFormat) -> str:
    """Return the draft as a file of that form."""
    if form is ReportFormat.JSON:
        return draft.model_dump_json(indent=2) + "\n"
    document = postmortem_document(draft)
    return markdown(document) if form is ReportFormat.MARKDOWN else html_page(document)


def _hardware(seen: ServiceRecord | None) -> Hardware | None:
    """Read the accelerators of one instance from what was seen; None of a service without one."""
    state = seen.state if seen is not None else {}
    name, count = state.get("accelerator"), state.get("accelerator_count") or "1"
    return Hardware(accelerator=name, count=int(count)) if name and count.isdecimal() else None
