"""Cloud Logging as the Logs port: the instance's own log from its start, and filters for replays."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from agent.core.change.config_drift import AuditedChange
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError
from agent.ports.logs import InstanceLog, LogLine

READ_S: Final = 20.0  # of one call with its repetitions; a diagnosis does not wait longer
ATTEMPT_S: Final = 10.0
PAGE: Final = 1000  # entries of one call, the most that the API gives
BACK: Final = timedelta(hours=3)  # no instance that is still starting began earlier; an L4 start takes minutes
SILENT: Final = timedelta(minutes=10)  # lines that begin so much later than we looked were not cut off
AUDITED: Final = 100  # calls of the audit log that are looked through; a service is not changed more often in a day
BUDGET: Final = 20  # calls a minute; the project's quota is 60 for all of its readers


def cloud_run_revision(service: str, revision: str | None, instance: str | None) -> tuple[str, ...]:
    """Return the clauses that select the lines of a Cloud Run instance."""
    return (
        'resource.type="cloud_run_revision"',
        f"resource.labels.service_name={json.dumps(service)}",
        '(log_id("run.googleapis.com/stdout") OR log_id("run.googleapis.com/stderr"))',
        *([f"resource.labels.revision_name={json.dumps(revision)}"] if revision else []),
        *([f"labels.instanceId={json.dumps(instance)}"] if instance else []),
    )


def tpu_worker(service: str, revision: str | None, instance: str | None) -> tuple[str, ...]:  # noqa: ARG001 - a worker's lines name no revision
    """Return the clauses that select the lines of a TPU worker, whose instance is ``NODE/WORKER``."""
    worker = (instance or "").partition("/")[2]
    return (
        'resource.type="tpu_worker"',
        f"resource.labels.node_id={json.dumps(service)}",
        *([f"resource.labels.worker_id={json.dumps(worker)}"] if worker else []),
    )


class CloudLogs:
    """Reads logs of Cloud Run instances and TPU workers.

    Args:
        project: Where the logs are; None takes the project of the credentials.
        budget: Calls within any minute; more are refused, so that our reading never uses up the project's quota.
        client: A ``LoggingServiceV2Client``; made at the first call when None, because it is slow to import and no
            channel survives the fork of a web server.
        emulator: ``HOST:PORT`` of a stand-in, spoken to in the clear and without credentials; None is the real service.
        read_s: How long one call may take, repetitions included.
        now: Seconds of a clock that never steps.
        select: The clauses of service, revision and instance.
    """

    def __init__(
        self,
        project: str | None,
        *,
        budget: int = BUDGET,
        client: Any = None,
        emulator: str | None = None,
        read_s: float = READ_S,
        now: Callable[[], float] = time.monotonic,
        select: Callable[[str, str | None, str | None], tuple[str, ...]] = cloud_run_revision,
    ) -> None:
        self._project = project
        self._budget = budget
        self._client = client
        self._emulator = emulator
        self._read_s = read_s
        self._now = now
        self._select = select
        self._called: deque[float] = deque()
        self._lock = threading.Lock()

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the log of the instance from its start, or None where there is nothing to read.

        Of more than ``limit`` lines the first and the last half are kept: the start tells the phase, the end the
        cause. That costs two calls, however long the log is.

        Raises:
            DependencyFailed: It could not be read: no answer, no permission, or no call left in this minute.
        """
        if revision is None and instance is None:
            return None
        since = until - BACK
        clauses = [
            *self._select(service, revision, instance),
            f'timestamp>="{_stamp(since)}"',
            f'timestamp<="{_stamp(until)}"',
        ]
        try:
            first, last = self._both_ends("\n".join(clauses), limit)
        except PolicyRefused as error:
            raise DependencyFailed(error.what, why=error.why, hint=error.hint) from error
        lines = tuple(LogLine(at=_at(entry), text=_text(entry)) for entry in (*first, *last))
        if not lines:
            return None
        complete = instance is not None and lines[0].at - since > SILENT
        return InstanceLog(
            service=service,
            revision=revision,
            instance=instance,
            lines=lines,
            complete=complete,
            cut_after=len(first) if last else None,
        )

    def entries(self, log_filter: str, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield log entries as the API's JSON, oldest first; each page is a call of the budget, which waits here.

        Args:
            log_filter: In the Logging query language.
            limit: The most entries.

        Raises:
            InputRejected: The filter cannot be read.
            PolicyRefused: We may not read these logs.
            DependencyFailed: Cloud Logging did not answer.
        """
        left, token = limit, ""
        while left is None or left > 0:
            self._wait_for_a_call()
            page, token = self._page(log_filter, "asc", PAGE if left is None else min(left, PAGE), token)
            yield from page
            left = None if left is None else left - len(page)
            if not token:
                return

    def changes(self, service: str, *, since: datetime, until: datetime) -> tuple[AuditedChange, ...]:
        """Return the calls that changed a Cloud Run service, oldest first, from the Admin Activity audit log.

        Keeps the promises of :class:`agent.ports.audit_log.AuditLog`; one call of the budget.
        """
        clauses = [
            'resource.type="cloud_run_revision"',
            f"resource.labels.service_name={json.dumps(service)}",
            'log_id("cloudaudit.googleapis.com/activity")',
            f'timestamp>="{_stamp(since)}"',
            f'timestamp<="{_stamp(until)}"',
        ]
        self._take_a_call(f"audit of {service}")
        page, _ = self._page("\n".join(clauses), "asc", AUDITED)
        return tuple(made for entry in page if (made := _audited(entry)) is not None)

    def _both_ends(self, log_filter: str, limit: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        self._take_a_call(log_filter)
        first, more = self._page(log_filter, "asc", min(limit - limit // 2, PAGE))
        if not more:
            return first, []
        self._take_a_call(log_filter)
        last, _ = self._page(log_filter, "desc", min(limit // 2, PAGE))
        known = {_identity(entry) for entry in first}
        return first, [entry for entry in reversed(last) if _identity(entry) not in known]

    def _page(self, log_filter: str, order: str, size: int, token: str = "") -> tuple[list[dict[str, Any]], str]:
        from google.api_core import exceptions as api
        from google.api_core.retry import Retry, if_exception_type

        again = if_exception_type(api.ServiceUnavailable, api.InternalServerError, api.DeadlineExceeded)
        try:
            client = self._connected()
            request = {
                "resource_names": [f"projects/{self._project}"],
                "filter": log_filter,
                "order_by": f"timestamp {order}",
                "page_size": size,
                "page_token": token,
            }
            retry = Retry(predicate=again, initial=0.2, maximum=2.0, timeout=self._read_s)
            page = next(iter(client.list_log_entries(request=request, retry=retry, timeout=ATTEMPT_S).pages))
            return [_as_json(entry) for entry in page.entries], str(page.next_page_token)
        except Exception as error:
            raise translated(error) from error

    def _take_a_call(self, log_filter: str) -> None:
        if self._free_in_s() > 0:
            raise DependencyFailed(
                f"the log of {log_filter[:120]!r} was not read",
                why=f"{self._budget} calls were made within a minute",
                hint="no action needed: it is read at the next diagnosis of the incident",
            )

    def _wait_for_a_call(self) -> None:
        while (wait_s := self._free_in_s()) > 0:
            time.sleep(wait_s)

    def _free_in_s(self) -> float:
        """Take a call of the budget and return 0, or return after how many seconds one is free."""
        with self._lock:
            now = self._now()
            while self._called and self._called[0] <= now - 60:
                self._called.popleft()
            if len(self._called) >= self._budget:
                return self._called[0] + 60 - now
            self._called.append(now)
            return 0.0

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None and self._emulator is not None:
                self._client = _client_at(self._emulator)
            if self._client is None:
                import google.auth
                from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

                credentials, project = google.auth.default(scopes=["https://www.googleapis.com/auth/logging.read"])
                self._project = self._project or project
                self._client = LoggingServiceV2Client(credentials=credentials)
            return self._client


def _client_at(address: str) -> Any:
    import grpc
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import LoggingServiceV2GrpcTransport

    return LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=grpc.insecure_channel(address)))


def translated(error: Exception) -> SreError:
    """Return our word for an error of the client library."""
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    why = (str(error).split("\n", 1)[0] or type(error).__name__)[:500]
    if isinstance(error, SreError):
        return error
    if isinstance(error, api.InvalidArgument):
        return InputRejected("the log filter was not read", why=why, hint="try it in the Logs Explorer first")
    if isinstance(error, auth.DefaultCredentialsError | auth.RefreshError):
        return DependencyFailed(
            "the log was not read", why=why, hint="log in with: gcloud auth application-default login"
        )
    if isinstance(error, api.Forbidden | api.Unauthorized):
        return PolicyRefused(
            "the log was not read", why=why, hint="give this identity roles/logging.viewer, or log in again"
        )
    return DependencyFailed("the log was not read", why=why, hint="no action needed: it is tried again")


def _audited(entry: dict[str, Any]) -> AuditedChange | None:
    """Return who made a call that changed something; None for what failed, or where nobody is named."""
    said = entry.get("protoPayload")
    if not isinstance(said, dict) or said.get("status", {}).get("code"):
        return None
    who = said.get("authenticationInfo", {}).get("principalEmail")
    method = str(said.get("methodName", "")).rpartition(".")[2]
    changed = method.startswith(("Update", "Replace", "Create", "Delete"))
    return AuditedChange(at=_at(entry), by=str(who)) if changed and who else None


def _as_json(entry: Any) -> dict[str, Any]:
    """Return an entry as the REST API writes it; a payload of a type that nobody here knows becomes its name."""
    from google.cloud.audit import audit_log_pb2  # noqa: F401 - registers the type of audit entries
    from google.protobuf.json_format import MessageToDict

    wire = type(entry).pb(entry)
    try:
        found: dict[str, Any] = MessageToDict(wire)
    except TypeError:
        name = wire.proto_payload.type_url
        wire.ClearField("proto_payload")
        found = MessageToDict(wire) | {"protoPayload": {"@type": name}}
    return found


def _identity(entry: dict[str, Any]) -> tuple[object, ...]:
    return entry.get("logName"), entry.get("timestamp"), entry.get("insertId")


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _at(entry: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(str(entry["timestamp"]))


def _text(entry: dict[str, Any]) -> str:
    payload = entry.get("jsonPayload")
    if isinstance(payload, dict):
        return str(payload.get("message", json.dumps(payload)))
    return str(entry.get("textPayload", ""))
