"""What a project of Google Cloud may have, and what it waits for: quotas, and queued resources of Cloud TPU."""

import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from agent.adapters.google.rest import GoogleRest
from agent.core.intake.json_fields import part
from agent.errors import SreError
from agent.ports.clock import Clock
from agent.ports.queued_resources import QueuedResource
from agent.ports.quotas import Quota, QuotaOf

_USED_WITHIN: Final = timedelta(hours=24)
"""Long enough for quotas that are sampled once a day: https://cloud.google.com/monitoring/alerts/using-quota-metrics."""

_SERVICES: Final = {QuotaOf.CLOUD_RUN: "run.googleapis.com", QuotaOf.TPU: "tpu.googleapis.com"}


class GoogleQuotas:
    """Reads quotas; see the port.

    Compute Engine tells limit and use of a region in one answer. The others' limits come from Cloud Quotas, and their
    use from Cloud Monitoring; where that cannot be read, the use is not known.
    """

    def __init__(self, rest: GoogleRest, clock: Clock) -> None:
        self._rest, self._clock = rest, clock

    def read(self, of: QuotaOf, project: str) -> tuple[Quota, ...]:
        """Return every accelerator quota; see the port."""
        return tuple(self._compute(project) if of is QuotaOf.COMPUTE else self._others(of, project))

    def _compute(self, project: str) -> Iterator[Quota]:
        whole = self._rest.get("compute", f"/compute/v1/projects/{project}")
        regions = self._rest.rows("compute", f"/compute/v1/projects/{project}/regions", "items")
        for place, body in (("global", whole), *((str(region.get("name", "")), region) for region in regions)):
            for row in _rows(body, "quotas"):
                name, limit = str(row.get("metric", "")), _number(row.get("limit"))
                if "GPUS" in name:
                    used = _number(row.get("usage"))
                    yield Quota(of=QuotaOf.COMPUTE, quota=name, location=place, limit=limit, used=used)

    def _others(self, of: QuotaOf, project: str) -> Iterator[Quota]:
        service = _SERVICES[of]
        path = f"/v1/projects/{project}/locations/global/services/{service}/quotaInfos"
        infos = [info for info in self._rest.rows("cloudquotas", path, "quotaInfos") if _of_accelerators(of, info)]
        used = self._used(project, service) if infos else {}
        for info in infos:
            name, metric = str(info.get("quotaId", "")), str(info.get("metric", ""))
            for each in _rows(info, "dimensionsInfos"):
                details = each.get("details")
                limit = _number(details.get("value")) if isinstance(details, Mapping) else None
                places = each.get("applicableLocations")
                for place in places if isinstance(places, list) else []:
                    known = used.get((metric, str(place)))
                    yield Quota(of=of, quota=name, location=str(place), limit=limit, used=known)

    def _used(self, project: str, service: str) -> dict[tuple[str, str], float]:
        """What is used by metric and location; what has no series, or may not be read, is not known."""
        now = self._clock.now()
        query = {
            "filter": 'metric.type="serviceruntime.googleapis.com/quota/allocation/usage" '
            f'AND resource.labels.service="{service}"',
            "interval.startTime": (now - _USED_WITHIN).isoformat(),
            "interval.endTime": now.isoformat(),
        }
        found: dict[tuple[str, str], float] = {}
        try:
            for series in self._rest.rows("monitoring", f"/v3/projects/{project}/timeSeries", "timeSeries", query):
                metric, place = _label(series, "metric", "quota_metric"), _label(series, "resource", "location")
                points = _rows(series, "points")
                value = points[0].get("value") if points else None
                used = _number(value.get("int64Value")) if isinstance(value, Mapping) else None
                if used is not None:
                    found.setdefault((metric, place), used)
        except SreError as error:
            logging.getLogger(__name__).debug("the use of quotas was not read: %s", error)
        return found


def _of_accelerators(of: QuotaOf, info: Mapping[str, Any]) -> bool:
    return info.get("refreshInterval") is None and (of is QuotaOf.TPU or "gpu" in str(info.get("quotaId", "")).lower())


def _rows(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = body.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _label(series: Mapping[str, Any], part: str, name: str) -> str:
    labels = series.get(part, {}).get("labels", {}) if isinstance(series.get(part), Mapping) else {}
    return str(labels.get(name, "")) if isinstance(labels, Mapping) else ""


def _number(value: Any) -> float | None:
    """Numbers of 64 bits travel as text in Google's JSON."""
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except ValueError:
        return None


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
