"""Tools about room for accelerators in Google Cloud: quotas, and TPU queued resources."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final

from mcp.server.mcpserver import Context
from pydantic import Field

from agent.entrypoints.mcp.tools.progress import Progress
from agent.entrypoints.mcp.tools.result import Result, one_line, page_of
from agent.errors import SreError
from agent.ports.queued_resources import QueuedResource, QueuedResources
from agent.ports.quotas import Quota, QuotaOf, Quotas

Project = Annotated[
    str | None,
    Field(
        max_length=63,
        pattern=r"^[a-z][a-z0-9.:-]{4,61}[a-z0-9]$",
        description="project ID; of the settings if left out",
    ),
]
Location = Annotated[
    str, Field(max_length=40, pattern=r"^[a-z0-9-]*$", description="a region or zone, or how its name begins")
]
Offset = Annotated[int, Field(ge=0, description="next_offset of the page before")]

_QUOTA_NAMES: Final = {"nvidia-a100-40gb": "nvidiaa100gpu", "nvidia-h100-80gb": "nvidiah100gpu"}
"""Where a quota's name leaves the memory out: https://cloud.google.com/compute/resource-usage (2026-11-22)."""


class QuotaRow(Result):
    """One limit in one place; ``used`` and ``free`` null mean that they cannot be read."""

    platform: str
    quota: str
    location: str
    limit: float | None
    used: float | None
    free: float | None


class QuotaList(Result):
    """Quotas with the most room first; ``unknown`` says what could not be read and why."""

    project: str
    quotas: list[QuotaRow]
    unknown: dict[str, str]
    next_offset: int | None
    note: str = "a quota is a permission, not a promise: a zone with quota can be out of stock"


class QueuedRow(Result):
    """One queued resource; ``holds_quota`` means that it counts against the quota and serves nothing."""

    name: str
    zone: str
    state: str
    accelerator_type: str
    nodes: list[str]
    spot: bool
    made_at: str
    holds_quota: bool


class CapacityShown(Result):
    """TPU queued resources; ``summary`` says how many only hold quota, and ``unknown`` which zones were not read."""

    project: str
    resources: list[QueuedRow]
    summary: str
    unknown: dict[str, str]
    next_offset: int | None
    note: str = "nothing here deletes a queued resource: a person does, after looking at what runs on it"


class CapacityTools:
    """The tools about capacity.

    Args:
        quotas: Opens what reads quotas, with the credentials of whoever runs this.
        queue: Opens what reads queued resources.
        project: Returns the project for the one that was named, or None.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self,
        quotas: Callable[[], Quotas],
        queue: Callable[[], QueuedResources],
        *,
        project: Callable[[str | None], str],
        redact: Callable[[str], str],
    ) -> None:
        self._quotas, self._queue, self._project, self._redact = quotas, queue, project, redact

    def check_quota(
        self,
        context: Context,
        *,
        accelerator: Annotated[str | None, Field(max_length=40, description="such as nvidia-l4 or tpu-v6e")] = None,
        location: Location = "",
        project: Project = None,
        offset: Offset = 0,
    ) -> QuotaList:
        """Show accelerator quotas of Cloud Run, Compute Engine and Cloud TPU: limit, used and free, most room first."""
        name, reader = self._project(project), self._quotas()
        found: list[Quota] = []
        unknown: dict[str, str] = {}
        for of in Progress(context).over(tuple(QuotaOf), len(QuotaOf), "quotas, part"):
            try:
                found += reader.read(of, name)
            except SreError as error:
                unknown[of.value] = one_line(str(error), redact=self._redact, most=500)
        wanted = [q for q in found if _is_of(q, accelerator) and q.location.startswith(location)]
        wanted.sort(key=lambda q: (-(q.free if q.free is not None else -1), -(q.limit or 0), q.location, q.quota))
        rows = [
            QuotaRow(platform=q.of, quota=q.quota, location=q.location, limit=q.limit, used=q.used, free=q.free)
            for q in wanted
        ]
        page, following = page_of(rows, offset=offset, beside=unknown)
        return QuotaList(project=name, quotas=page, unknown=unknown, next_offset=following)

    def describe_capacity(
        self, context: Context, *, location: Location = "", project: Project = None, offset: Offset = 0
    ) -> CapacityShown:
        """List TPU queued resources by zone with their state, and say which suspended or failed ones hold quota."""
        name, reader, progress = self._project(project), self._queue(), Progress(context)
        zones = [zone for zone in reader.zones(name) if zone.startswith(location)]
        found: list[QueuedResource] = []
        unknown: dict[str, str] = {}
        for zone in progress.over(zones, len(zones), "zone"):
            try:
                found += reader.read(name, zone)
            except SreError as error:
                unknown[zone] = one_line(str(error), redact=self._redact, most=150)
        found.sort(key=lambda r: (not r.holds_quota, r.zone, r.name))
        rows = [
            QueuedRow(
                name=r.name,
                zone=r.zone,
                state=r.state,
                accelerator_type=r.accelerator_type,
                nodes=list(r.nodes),
                spot=r.spot,
                made_at=r.made_at,
                holds_quota=r.holds_quota,
            )
            for r in found
        ]
        page, following = page_of(rows, offset=offset, beside=unknown)
        return CapacityShown(
            project=name, resources=page, summary=_summary(found, zones), unknown=unknown, next_offset=following
        )


def _is_of(quota: Quota, accelerator: str | None) -> bool:
    if accelerator is None:
        return True
    plain = re.sub(r"[^a-z0-9]", "", quota.quota.lower())
    name = accelerator.lower()
    return _QUOTA_NAMES.get(name, re.sub(r"[^a-z0-9]", "", name)) in plain


def _summary(found: Sequence[QueuedResource], zones: Sequence[str]) -> str:
    idle = [r for r in found if r.holds_quota]
    first = f"{len(found)} queued resources in {len(zones)} zones"
    if not idle:
        return f"{first}; none is suspended or failed"
    names = ", ".join(f"{r.name} ({r.zone}, {r.state})" for r in idle[:10])
    return f"{first}; {len(idle)} suspended or failed ones hold quota and serve nothing: {names}"
