"""Cloud Logging as the Logs port: the instance's own log from its start, and filters for replays."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError
from agent.ports.logs import InstanceLog, LogLine

READ_S = 20.0  # of one call; a diagnosis does not wait longer
BACK = timedelta(hours=3)  # no instance that is still starting began earlier; an L4 start takes minutes


class CloudLogs:
    """Reads logs of Cloud Run instances.

    Args:
        project: Where the logs are; None takes the project of the credentials.
        budget: Calls of this process until it answers no more; protects the read quota (60 calls a minute).
        client: A ``google.cloud.logging.Client``; made at the first call when None, because it is slow to import.
    """

    def __init__(self, project: str | None, *, budget: int = 300, client: Any = None) -> None:
        self._project = project
        self._left = budget
        self._client = client

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the log of the instance from its start, at most ``limit`` lines."""
        if revision is None and instance is None:
            return None
        clauses = [
            'resource.type="cloud_run_revision"',
            f"resource.labels.service_name={json.dumps(service)}",
            '(log_id("run.googleapis.com/stdout") OR log_id("run.googleapis.com/stderr"))',
            f'timestamp>="{_stamp(until - BACK)}"',
            f'timestamp<="{_stamp(until)}"',
        ]
        clauses += [f"resource.labels.revision_name={json.dumps(revision)}"] if revision else []
        clauses += [f"labels.instanceId={json.dumps(instance)}"] if instance else []
        found = tuple(self.entries("\n".join(clauses), limit=limit))
        lines = tuple(LogLine(at=_at(entry), text=_text(entry)) for entry in found)
        complete = instance is not None and len(lines) < limit
        return InstanceLog(service=service, revision=revision, instance=instance, lines=lines, complete=complete)

    def entries(self, log_filter: str, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield log entries as the API's JSON, oldest first.

        Args:
            log_filter: In the Logging query language.
            limit: The most entries; ``max_results`` is the cap, the page size is not.

        Raises:
            InputRejected: The filter cannot be read.
            PolicyRefused: We may not read these logs.
            DependencyFailed: Cloud Logging did not answer, or the budget is used up.
        """
        if self._left <= 0:
            raise DependencyFailed(
                "the log was not read", why="this process has used up its calls", mend="wait for the next instance"
            )
        self._left -= 1
        try:
            listed = self._connected().list_entries(filter_=log_filter, order_by="timestamp asc", max_results=limit)
            for entry in listed:
                yield entry.to_api_repr()
        except Exception as error:
            raise translated(error) from error

    def _connected(self) -> Any:
        if self._client is None:
            from google.cloud import logging as cloud_logging

            self._client = cloud_logging.Client(project=self._project)  # type: ignore[no-untyped-call]
        return self._client


def translated(error: Exception) -> SreError:
    """Return our word for an error of the client library."""
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    why = str(error).split("\n", 1)[0][:500]
    if isinstance(error, SreError):
        return error
    if isinstance(error, api.InvalidArgument):
        return InputRejected("the log filter was not read", why=why, mend="try it in the Logs Explorer first")
    if isinstance(error, api.PermissionDenied | api.Unauthenticated | auth.DefaultCredentialsError):
        return PolicyRefused(
            "the log was not read", why=why, mend="give this identity roles/logging.viewer, or log in again"
        )
    return DependencyFailed("the log was not read", why=why, mend="nothing to do: it is tried again")


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _at(entry: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(str(entry["timestamp"]))


def _text(entry: dict[str, Any]) -> str:
    payload = entry.get("jsonPayload")
    if isinstance(payload, dict):
        return str(payload.get("message", json.dumps(payload)))
    return str(entry.get("textPayload", ""))
