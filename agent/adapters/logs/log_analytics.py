"""The log of a container app's replica from Log Analytics, by one fixed query with names as its only parameters."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from agent.adapters.azure.errors import translated
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.ports.logs import InstanceLog, LogLine
from agent.ports.platform import NotDeployed

READ_S: Final = 30
SPAN: Final = timedelta(days=1)
"""How long before the trouble its start is looked for."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,259}")

# Tables and columns: with the destination "log-analytics" they end in _CL and _s, with "azure-monitor" they do not;
# learn.microsoft.com/azure/container-apps/log-monitoring, read 2026-11-22. Of strings, coalesce skips empty ones.
QUERY: Final = """let app = "{app}"; let revision = "{revision}"; let replica = "{replica}";
union isfuzzy=true ContainerAppConsoleLogs_CL, ContainerAppConsoleLogs
| extend OfApp = coalesce(column_ifexists("ContainerAppName_s", ""), column_ifexists("ContainerAppName", "")),
  OfRevision = coalesce(column_ifexists("RevisionName_s", ""), column_ifexists("RevisionName", "")),
  OfReplica = coalesce(column_ifexists("ReplicaName_s", ""), column_ifexists("ContainerGroupName_s", ""),
    column_ifexists("ReplicaName", ""), column_ifexists("ContainerGroupName", "")),
  Line = coalesce(column_ifexists("Log_s", ""), column_ifexists("Log", ""))
| where OfApp == app and (revision == "" or OfRevision == revision) and (replica == "" or OfReplica == replica)
| project TimeGenerated, Line
| top {rows} by TimeGenerated {order}"""


class LogAnalyticsLogs:
    """Reads replicas' logs; rows arrive there some minutes after they were printed.

    Args:
        connect: Makes the official ``LogsQueryClient``, at the first call, because it is slow to import.
        workspace: Id of the workspace that holds a service's logs; None where they go elsewhere.
        native: The platform's own name of a revision, of service and revision.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        workspace: Callable[[str], str | None],
        native: Callable[[str, str], str] = lambda _, revision: revision,
    ) -> None:
        self._connect = connect
        self._client: Any = None
        self._workspace = workspace
        self._native = native

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the log of a replica of the day before ``until``; see the port.

        A name that is none of Azure's has no log here, and never becomes part of a query.
        """
        names = (service, self._native(service, revision) if revision else "", instance or "")
        if not (revision or instance) or not all(name == "" or _NAME.fullmatch(name) for name in names):
            return None
        try:
            workspace = self._workspace(service)
            if workspace is None:
                return None
            first = self._rows(workspace, names, until, rows=limit + 1, order="asc")
            if not first:
                return None
            cut = len(first) > limit
            last = self._rows(workspace, names, until, rows=limit // 2, order="desc")[::-1] if cut else None
        except NotDeployed:
            return None
        except SreError as error:
            raise DependencyFailed(f"the log of {service!r} was not read", why=error.why, hint=error.hint) from error
        log = InstanceLog(service=service, revision=revision, instance=instance, lines=(), complete=True)
        return log.with_ends(first, last, limit=limit)

    def _rows(
        self, workspace: str, names: tuple[str, str, str], until: datetime, *, rows: int, order: str
    ) -> list[LogLine]:
        app, revision, replica = names
        query = QUERY.format(app=app, revision=revision, replica=replica, rows=rows, order=order)
        span = (until - SPAN, until + timedelta(milliseconds=1))
        try:
            if self._client is None:
                self._client = self._connect()
            answer = self._client.query_workspace(
                workspace, query, timespan=span, server_timeout=READ_S, retry_total=0, read_timeout=READ_S + 5
            )
        except Exception as error:
            raise translated(error, "Log Analytics was not asked") from error
        tables = getattr(answer, "tables", None)
        if tables is None:  # a part of the answer: the rest is missing, and nobody knows which
            raise InputRejected(
                "Log Analytics gave a part of the answer",
                why=str(getattr(answer, "partial_error", ""))[:500],
                hint="no action needed: it is tried again",
            )
        found = [LogLine(at=row[0], text=str(row[1])) for table in tables for row in table.rows]
        return [line for line in found if line.at <= until]
