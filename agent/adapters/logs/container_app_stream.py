"""The log stream of a container app's replica: read once and never followed, until Log Analytics has its first row."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

from agent.adapters.azure.errors import RIGHTS
from agent.adapters.http.client import HttpClient
from agent.core.intake.json_fields import time_of
from agent.errors import DependencyFailed, SreError
from agent.ports.logs import InstanceLog, LogLine, Logs
from agent.ports.platform import NotDeployed
from agent.strict_json import read_object

TAIL: Final = 300
"""The most lines that Azure gives of the past: ``az containerapp logs show --tail`` takes 0 to 300."""
READ_S: Final = 20.0
READ_BYTES: Final = 4 * 2**20
LINE_CHARS: Final = 65_536
ROLE: Final = (
    "give this identity the role of deploy/azure/role-log-stream.json on the resource group, or switch "
    "CONTAINER_APPS_LOG_STREAM off, see docs/container-apps.md"
)

_AGAIN: Final = "no action needed: it is tried again"
_HOST: Final = re.compile(r"([a-z0-9-]{1,63}\.){1,4}azurecontainerapps\.dev")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,259}")
_FRAME: Final = re.compile(r"\A(?:(?:stdout|stderr) )?[FP] ")  # a whole line or a part of one, as containerd writes it
_STATUS: Final = re.compile(
    r"connecting to the container '|successfully connected to container: '|no logs since last \d+ seconds",
    re.IGNORECASE,
)
"""What the stream says of itself, at the time of the request; the server printed none of it."""


class ReplicaStreams(NamedTuple):
    """Where the streams of a revision's replicas are.

    Attributes:
        container: The one that serves the model.
        replicas: As ARM lists them.
        token: Gets the token that opens the stream. It opens a shell too, so it is asked for last and kept nowhere.
    """

    container: str
    replicas: tuple[Mapping[str, Any], ...]
    token: Callable[[], SecretStr]


class ContainerAppStream:
    """Reads what a replica that still exists printed last.

    Args:
        streams: Returns where the streams of a service's revision are; None where it is no container app.
        http: The client; it follows no redirect, because the token would go along.
    """

    def __init__(self, streams: Callable[[str, str], ReplicaStreams | None], http: HttpClient | None = None) -> None:
        self._streams = streams
        self._http = http or HttpClient(timeout_s=READ_S, limit_bytes=2 * READ_BYTES)

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the last lines of a replica up to ``until``; see the port.

        None where the replica is gone, or printed nothing. Where none is named, the newest one is meant.
        """
        if revision is None or not all(_NAME.fullmatch(name) for name in (service, revision, instance or revision)):
            return None
        try:
            where = self._streams(service, revision)
            found = None if where is None else _container(where, instance)
            if where is None or found is None:
                return None
            replica, endpoint = found
            raw = self._read(_address(endpoint, min(limit, TAIL)), where.token())
        except NotDeployed:
            return None
        except SreError as error:
            hint = ROLE if error.hint == RIGHTS else error.hint
            raise DependencyFailed(f"the log stream of {service!r} was not read", why=error.cause, hint=hint) from error
        if raw is None:
            return None
        printed = _lines(raw.rpartition(b"\n")[0] if len(raw) >= READ_BYTES else raw)
        lines = tuple(line for line in printed if line.at <= until)
        if not lines:
            return None
        complete = len(printed) < min(limit, TAIL) and len(raw) < READ_BYTES
        return InstanceLog(service=service, revision=revision, instance=replica, lines=lines, complete=complete)

    def _read(self, url: str, token: SecretStr) -> bytes | None:
        """Return what the stream has now; None where the replica is gone."""
        asked = {"Authorization": f"Bearer {token.get_secret_value()}"}
        with self._http.stream("GET", url, headers=asked) as response:
            if response.status == HTTPStatus.OK:
                return response.read(READ_BYTES)
            if response.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
                return None
            refused = response.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
            raise DependencyFailed(
                "Azure did not open the stream",
                why=f"it answered {response.status}",  # no more of the answer: it may repeat what we sent
                hint=ROLE if refused else _AGAIN,
            )


class LogsWithStream:
    """Reads what is kept; where nothing is kept yet, what a replica streams.

    Args:
        kept: Log Analytics; rows arrive there some minutes after they were printed.
        stream: The replicas' own streams.
    """

    def __init__(self, kept: Logs, stream: Logs) -> None:
        self._kept, self._stream = kept, stream

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the log of a replica; see the port. A log that could not be read is no reason to stream."""
        kept = self._kept.instance_log(service, revision=revision, instance=instance, until=until, limit=limit)
        if kept is not None:
            return kept
        return self._stream.instance_log(service, revision=revision, instance=instance, until=until, limit=limit)


def _container(where: ReplicaStreams, instance: str | None) -> tuple[str, str] | None:
    """Return the name of the replica, the newest where none is named, and its container's endpoint."""
    listed = [r for r in where.replicas if instance is None or r.get("name") == instance]
    newest = max(listed, key=lambda r: str((r.get("properties") or {}).get("createdTime") or ""), default=None)
    if newest is None:
        return None
    containers = (newest.get("properties") or {}).get("containers") or ()
    ours: Mapping[str, Any] = next((c for c in containers if c.get("name") == where.container), {})
    endpoint = ours.get("logStreamEndpoint")
    return (str(newest.get("name")), str(endpoint)) if endpoint else None


def _address(endpoint: str, lines: int) -> str:
    """Return what to ask; only Azure's own host is given the token, and no other door there is opened with it.

    Raises:
        DependencyFailed: The endpoint is none of a log stream.
    """
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    whole = bool(_HOST.fullmatch(host)) and parts.scheme == "https" and parts.username is None
    if not whole or not parts.path.endswith("/logstream"):
        raise DependencyFailed(
            f"nothing was sent to {host!r}",
            why="the endpoint that Azure names is no https://...azurecontainerapps.dev/.../logstream",
            hint="read the log by: az containerapp logs show",
        )
    place = host if port is None else f"{host}:{port}"
    return f"https://{place}{parts.path}?follow=false&tailLines={lines}&output=json"


def _lines(raw: bytes) -> list[LogLine]:
    """Read lines with their times; one without a time belongs to the line before.

    Raises:
        DependencyFailed: Nothing of it is a log.
    """
    found: list[LogLine] = []
    for line in raw.decode("utf-8", "replace").split("\n"):
        at, text = _timed(line)
        at = at or (found[-1].at if found else None)
        if at is not None and line.strip():
            found.append(LogLine(at=at, text=text[:LINE_CHARS]))
    if not found and raw.strip():
        raise DependencyFailed(
            "the log stream was not read", why="no line of it has a time", hint="run: az containerapp logs show"
        )
    return [line for line in found if not _STATUS.match(line.text)]


def _timed(line: str) -> tuple[datetime | None, str]:
    """Return time and text of a line: of a JSON object (``TimeStamp``, ``Log``), or of text that begins with a time."""
    try:
        said = read_object(line.encode(), what="line of a log stream", limit=READ_BYTES) if line[:1] == "{" else {}
    except SreError:
        said = {}
    if isinstance(said.get("Log"), str) and time_of(said.get("TimeStamp")):
        stamp, text = said["TimeStamp"], str(said["Log"]).rstrip("\n")
    else:
        stamp, _, text = line.partition(" ")
    at = time_of(stamp)
    return (None, line) if at is None else (at, _FRAME.sub("", text, count=1))
