"""What an AI client may read by address: services, incidents, configurations, and the catalogues page by page."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from pydantic import BaseModel
from pydantic_core import to_json

from agent.entrypoints.mcp.tools.incident_tools import IncidentTools
from agent.entrypoints.mcp.tools.result import answered, page_of
from agent.entrypoints.mcp.tools.service_tools import ServiceTools
from agent.errors import InputRejected


def add_resources(
    server: MCPServer, services: ServiceTools, incidents: IncidentTools, *, redact: Callable[[str], str]
) -> None:
    """Add the resources to a server."""

    def read(work: Callable[[], BaseModel | dict[str, Any]]) -> str:
        try:
            return to_json(answered(work, redact=redact)).decode()
        except ToolError as error:
            raise ResourceError(str(error)) from None

    @server.resource("service://{name}", mime_type="application/json")
    def service(name: str) -> str:
        """Show a watched service as its platform shows it now."""
        return read(lambda: services.service_status(name))

    @server.resource("incident://{incident_id}", mime_type="application/json")
    def incident(incident_id: str) -> str:
        """Show one incident."""
        return read(lambda: incidents.show_incident(incident_id))

    @server.resource("config://{name}/deployment", mime_type="application/json")
    def config(name: str) -> str:
        """Show the exact configuration of a service."""
        return read(lambda: services.deployment_config(name))

    @server.resource("catalogue://{name}", mime_type="application/json")
    def catalogue(name: str) -> str:
        """Show a catalogue: failures, models, accelerators or prices; the first page."""
        return read(lambda: catalogue_page(name, 0))

    @server.resource("catalogue://{name}/{offset}", mime_type="application/json")
    def catalogue_from(name: str, offset: str) -> str:
        """Show a catalogue from an entry on, as ``next`` of the page before says."""
        return read(lambda: catalogue_page(name, int(offset) if offset.isdecimal() and len(offset) < 10 else -1))


def catalogue_page(name: str, offset: int) -> dict[str, Any]:
    """Return the entries of a catalogue that fit one page, and the address of the next one.

    Args:
        name: ``failures``, ``models``, ``accelerators`` or ``prices``.
        offset: The first entry, from 0.

    Raises:
        InputRejected: There is no such catalogue, or no such entry.
    """
    catalogues = _catalogues()
    if name not in catalogues or not 0 <= offset <= len(catalogues[name]):
        raise InputRejected(
            f"catalogue {name[:80]!r} was not shown" + (f" from {offset}" if offset >= 0 else ""),
            why=f"there are {', '.join(f'{known} ({len(rows)} entries)' for known, rows in catalogues.items())}",
            hint="read catalogue://NAME, then the address that it gives under 'next'",
        )
    rows, following = page_of(catalogues[name], offset=offset)
    address = f"catalogue://{name}/{following}" if following is not None else None
    return {"entries": rows, "total": len(catalogues[name]), "next": address}


@cache
def _catalogues() -> dict[str, Sequence[dict[str, Any]]]:
    from agent.app.catalogues import failures
    from agent.catalogue.load_fit import load_fit_catalogue
    from agent.catalogue.load_platforms import load_platform_catalogue

    known = load_fit_catalogue()
    accelerators = {facts.name: facts for facts in known.accelerators.values()}
    return {
        "failures": [
            {"signature": s.id, "class": str(s.failure_class), "title": s.title} for s in failures().signatures
        ],
        "models": [
            {"name": m.name, "size": m.size, "quantisation": m.quant.scheme, "checkpoint_bytes": m.checkpoint_bytes}
            for m in known.models.entries
        ],
        "accelerators": [
            {
                "name": a.name,
                "memory_bytes": a.total_bytes.best if a.total_bytes else None,
                "source": a.source,
                "date": a.date,
            }
            for a in accelerators.values()
        ],
        "prices": [
            {"name": s.name, "platform": s.platform, "accelerator": s.accelerator, "count": s.count}
            | {"usd_per_h": s.usd_per_h, "region": s.region, "as_of": s.as_of, "source": s.source}
            for s in load_platform_catalogue().shapes
        ],
    }
