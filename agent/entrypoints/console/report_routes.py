"""The report of an incident as a file to download."""

from flask import Flask, Response

from agent.app.incident_reports import ReportFormat, incident_report, written
from agent.entrypoints.console import answer_result
from agent.entrypoints.console.page_context import PageContext, answer_page, load_or_none, who_asks

_TYPES = {
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.JSON: "application/json",
    ReportFormat.HTML: "text/html; charset=utf-8",
}


def add_report(app: Flask, console: PageContext) -> None:
    """Add the route; always a download, so that nothing of a report runs under the console's address."""

    @app.get("/incidents/<incident_id>/report.<any(md, json, html):form>")
    def report(incident_id: str, form: str) -> Response:
        """Download the report of an incident."""
        person = who_asks(console)
        found = load_or_none(console, incident_id)
        if found is None:
            return answer_page(console, person, answer_result.missing("incident"))
        records, kind = console.world.service_records, ReportFormat(form)
        draft = incident_report(
            found,
            console.world.store.timeline(found.id),
            seen=records.service_record(found.service) if records is not None else None,
            console_url=console.settings.public_url,
            now=max(console.world.clock.now(), found.phase_at),
        )
        response = Response(written(draft, kind), content_type=_TYPES[kind])
        response.headers["Content-Disposition"] = f'attachment; filename="incident-{found.id}.{form}"'
        return response
