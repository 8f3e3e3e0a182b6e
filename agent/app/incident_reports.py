"""The report of an incident as a file: Markdown, JSON or one HTML page, without secrets."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from agent.app.redaction import hide
from agent.catalogue.load_bundled import load_follow_ups, load_prompt
from agent.core.change.config_drift import ServiceRecord
from agent.core.diagnosis.evidence_pack import fence_mark
from agent.core.incident.incident import Event, Incident
from agent.core.text.rewording import REWORDING_SCHEMA, read_rewording
from agent.core.text.safe_text import plain
from agent.errors import ModelMisbehaved
from agent.ports.model import Model, Question
from agent.presentation.report.from_record import Record, postmortem
from agent.presentation.report.html_page import html_page
from agent.presentation.report.markdown import markdown
from agent.presentation.report.postmortem import Hardware, Postmortem, SummaryBy
from agent.presentation.report.postmortem_document import postmortem_document

PROMPT_VERSION: Final = 1


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


def with_reworded_summary(draft: Postmortem, model: Model, *, may_wake: bool) -> Postmortem:
    """Return the draft with its summary worded anew by a model, and marked; every other sentence stays the record's.

    Args:
        draft: The draft that the record gives.
        model: Who is asked, once.
        may_wake: Whether a sleeping endpoint may be woken for it.

    Raises:
        NoAnswer: Nobody answered in time.
        ModelMisbehaved: The answer states what the record's summary does not, or is no answer by the schema.
    """
    original = " ".join(draft.summary)
    prompt = load_prompt("reword", version=PROMPT_VERSION)
    system, user = prompt.fill(summary=original, fence=fence_mark(original))
    question = Question(
        system=system,
        user=user,
        answer_schema=REWORDING_SCHEMA,
        prompt=prompt.label,
        patient=draft.service,
        may_wake=may_wake,
    )
    reply = model.ask(question)
    try:
        is_over = draft.times.over_at is not None
        said = read_rewording(reply.text, finished=reply.finished, original=original, is_over=is_over)
    except ModelMisbehaved:
        model.judged(reply, usable=False)
        raise
    model.judged(reply, usable=True)
    return draft.with_(
        summary=(hide(said),),
        summary_by=SummaryBy.MODEL,
        summary_model=f"{plain(reply.model, limit=120)}, prompt {prompt.label}",
        record_summary=draft.summary,
    )


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
