"""TPU queued resources over Cloud TPU's REST API, read only."""

from collections.abc import Mapping
from typing import Any

from agent.adapters.google.rest import GoogleRest
from agent.core.intake.json_fields import part
from agent.ports.queued_resources import QueuedResource


class CloudTpuQueue:
    """Reads queued resources; see the port. Not yet run against a live account."""

    def __init__(self, rest: GoogleRest) -> None:
        self._rest = rest

    def zones(self, project: str) -> tuple[str, ...]:
        """Return the zones that have TPUs; see the port."""
        rows = self._rest.rows("tpu", f"/v2/projects/{project}/locations", "locations")
        return tuple(sorted({str(row["locationId"]) for row in rows if row.get("locationId")}))

    def read(self, project: str, zone: str) -> tuple[QueuedResource, ...]:
        """Return the queued resources of a zone; see the port."""
        rows = self._rest.rows("tpu", f"/v2/projects/{project}/locations/{zone}/queuedResources", "queuedResources")
        return tuple(_read(row, zone) for row in rows)


def _read(row: Mapping[str, Any], zone: str) -> QueuedResource:
    """Source of the fields: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources."""
    specs = part(row, "tpu").get("nodeSpec")
    nodes = [spec for spec in specs if isinstance(spec, Mapping)] if isinstance(specs, list) else []
    kinds = {str(part(spec, "node").get("acceleratorType", "")) for spec in nodes}
    return QueuedResource(
        name=str(row.get("name", "")).rpartition("/")[2],
        zone=zone,
        state=str(part(row, "state").get("state", "unknown")),
        accelerator_type=", ".join(sorted(kinds - {""})),
        nodes=tuple(str(spec["nodeId"]) for spec in nodes if spec.get("nodeId")),
        spot="spot" in row,
        made_at=str(row.get("createTime", "")),
    )
