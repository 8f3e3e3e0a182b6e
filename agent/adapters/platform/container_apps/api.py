"""The calls to Azure Resource Manager, each with its deadline, none repeated behind our back, errors made ours."""

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from agent.adapters.azure.errors import translated
from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Json, Profile, Seen
from agent.core.value import Value
from agent.errors import DependencyFailed, InputRejected
from agent.ports.platform import HINTS
from agent.strict_json import read_object

READ_S: Final = 20.0
WRITE_S: Final = 60.0
ANSWER_BYTES: Final = 4 * 2**20


class Asynchronous(Value):
    """An operation of ARM.

    Attributes:
        state: Such as InProgress, Succeeded, Failed, Canceled.
        error: What it says of its failure; untrusted text.
    """

    state: str
    error: str = ""


class ContainerAppsApi:
    """Calls one subscription; every method raises our errors only.

    Args:
        connect: Makes the official ``ContainerAppsAPIClient``, at the first call, because it is slow to import.
        subscription: Its id.
    """

    def __init__(self, connect: Callable[[], Any], subscription: str) -> None:
        self._connect = connect
        self._client: Any = None
        self._subscription = subscription
        self._environments: dict[str, Environment] = {}

    def seen(self, ref: AppRef) -> Seen:
        """Return an app as it is now: the app, its revisions, and its environment, which is read once.

        Raises:
            NotDeployed: There is no such app.
        """
        body = self._call(f"{ref.name!r} was not read", lambda c: c.container_apps.get(ref.group, ref.name, **_READ))
        listed = self._call(
            f"the revisions of {ref.name!r} were not read",
            lambda c: list(c.container_apps_revisions.list_revisions(ref.group, ref.name, **_READ)),
        )
        found = _json(body)
        properties = found.get("properties") or {}
        where = properties.get("environmentId") or properties.get("managedEnvironmentId") or ""
        environment = self._environment(str(where), properties.get("workloadProfileName"))
        return Seen(ref=ref, body=found, revisions=tuple(map(_json, listed)), environment=environment)

    def environment(self, resource_id: str) -> Environment:
        """Return a managed environment.

        Raises:
            InputRejected: That is no id of one, or there is none.
        """
        parts = resource_id.strip("/").split("/")
        if len(parts) != 8 or parts[6].lower() != "managedenvironments":
            raise InputRejected(
                f"environment {resource_id!r} was not read",
                why="want /subscriptions/.../resourceGroups/.../providers/Microsoft.App/managedEnvironments/NAME",
                hint="correct it in services.toml",
            )
        found = _json(
            self._call(
                f"environment {parts[7]!r} was not read",
                lambda c: c.managed_environments.get(parts[3], parts[7], **_READ),
            )
        )
        properties = found.get("properties") or {}
        logs = properties.get("appLogsConfiguration") or {}
        made = Environment(
            id=resource_id,
            location=str(found.get("location") or ""),
            profiles=tuple(
                Profile(name=str(p["name"]), kind=str(p["workloadProfileType"]))
                for p in properties.get("workloadProfiles") or []
            ),
            workspace=(logs.get("logAnalyticsConfiguration") or {}).get("customerId"),
        )
        self._environments[resource_id.lower()] = made
        return made

    def _environment(self, resource_id: str, profile: str | None) -> Environment:
        """Read once; again only where the app's profile is none that was seen there."""
        known = self._environments.get(resource_id.lower())
        if known is None or (profile and profile not in {p.name for p in known.profiles}):
            return self.environment(resource_id) if resource_id else Environment(id="")
        return known

    def replicas(self, ref: AppRef, native: str) -> tuple[Json, ...]:
        """Return the replicas of a revision, by Azure's name of it.

        Raises:
            NotDeployed: There is no such revision.
        """

        def ask(client: Any) -> tuple[Json, ...]:
            listed = client.container_apps_revision_replicas.list_replicas(ref.group, ref.name, native, **_READ)
            return tuple(map(_json, listed.value or ()))

        found: tuple[Json, ...] = self._call(f"the replicas of {native!r} were not read", ask)
        return found

    def developer_token(self, ref: AppRef) -> SecretStr:
        """Return a token for an app's developer APIs: its log stream, and a shell in it."""
        what = f"no token was given for {ref.name!r}"

        def ask(client: Any) -> str | None:
            made = client.container_apps.get_auth_token(ref.group, ref.name, **_READ)
            return made.properties.token if made.properties else None

        token = self._call(what, ask)
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token or not token:
            raise DependencyFailed(what, why="Azure's answer has none", hint=HINTS[DependencyFailed])
        return SecretStr(token)

    def update(self, ref: AppRef, patch: Json, *, within_s: float) -> str:
        """Send a JSON merge patch once and return the path of its operation at once, empty where none was named."""

        def send(client: Any, hook: Any, more: Json) -> None:
            client.container_apps.begin_update(ref.group, ref.name, _bytes(patch), raw_response_hook=hook, **more)

        return self._started(f"{ref.name!r} was not changed", send, within_s)

    def create(self, ref: AppRef, body: Json, *, within_s: float) -> str:
        """Create an app once; see ``update``."""

        def send(client: Any, hook: Any, more: Json) -> None:
            client.container_apps.begin_create_or_update(
                ref.group, ref.name, _bytes(body), raw_response_hook=hook, **more
            )

        return self._started(f"{ref.name!r} was not created", send, within_s)

    def delete(self, ref: AppRef, *, within_s: float) -> str:
        """Delete an app once; see ``update``."""

        def send(client: Any, hook: Any, more: Json) -> None:
            client.container_apps.begin_delete(ref.group, ref.name, raw_response_hook=hook, **more)

        return self._started(f"{ref.name!r} was not deleted", send, within_s)

    def stop(self, ref: AppRef, *, within_s: float) -> str:
        """Stop an app once; see ``update``."""

        def send(client: Any, hook: Any, more: Json) -> None:
            client.container_apps.begin_stop(ref.group, ref.name, raw_response_hook=hook, **more)

        return self._started(f"{ref.name!r} was not stopped", send, within_s)

    def start(self, ref: AppRef, *, within_s: float) -> str:
        """Start a stopped app once; see ``update``."""

        def send(client: Any, hook: Any, more: Json) -> None:
            client.container_apps.begin_start(ref.group, ref.name, raw_response_hook=hook, **more)

        return self._started(f"{ref.name!r} was not started", send, within_s)

    def operation(self, path: str) -> Asynchronous | None:
        """Return how far an operation is; None where ARM knows it no more.

        The path comes from what was stored, so it is sent to ARM alone, and only where it is one of our subscription:
        a whole address there would carry our token to whoever wrote it.
        """
        from azure.core.exceptions import HttpResponseError
        from azure.core.rest import HttpRequest

        if not self._is_ours(path):
            return None

        def ask(client: Any) -> Asynchronous | None:
            answer = client.send_request(HttpRequest("GET", f"{{endpoint}}{path}"), **_READ)
            if answer.status_code in {404, 410}:
                return None
            if answer.status_code >= 400:
                raise HttpResponseError(response=answer)
            return _progress(answer.status_code, answer.content)

        found: Asynchronous | None = self._call("an operation was not read", ask)
        return found

    def _is_ours(self, path: str) -> bool:
        return path.lower().startswith(f"/subscriptions/{self._subscription}/providers/microsoft.app/".lower())

    def _started(self, what: str, send: Callable[[Any, Any, Json], None], within_s: float) -> str:
        headers: dict[str, str] = {}

        def hook(response: Any) -> None:
            headers.update(response.http_response.headers)

        self._call(what, lambda c: send(c, hook, _write(within_s)))
        lowered = {name.lower(): value for name, value in headers.items()}
        url = urlsplit(lowered.get("azure-asyncoperation") or lowered.get("location") or "")
        path = f"{url.path}?{url.query}" if url.query else url.path
        return path if self._is_ours(path) else ""

    def _call(self, what: str, call: Callable[[Any], Any]) -> Any:
        try:
            if self._client is None:
                self._client = self._connect()
            return call(self._client)
        except Exception as error:
            raise translated(error, what) from error


_READ: Final[Json] = {"retry_total": 0, "connection_timeout": 10.0, "read_timeout": READ_S}  # who asks decides whether
# to ask again


def _write(within_s: float) -> Json:
    whole = min(WRITE_S, within_s)
    connect = min(10.0, whole / 2)
    return {
        "retry_total": 0,
        "connection_timeout": connect,
        "read_timeout": whole - connect,
        "polling": False,
    }


def _json(model: Any) -> Json:
    found: Json = model.as_dict()
    return found


def _bytes(body: Json) -> bytes:
    return json.dumps(body).encode()


def _progress(status: int, content: bytes) -> Asynchronous:
    """Read a poll's answer: by its ``status``, otherwise by HTTP as ``Location`` is polled (202 until it ended)."""
    if status == 202 or not content:
        return Asynchronous(state="InProgress" if status == 202 else "Succeeded")
    answer = read_object(content, what="answer of ARM", limit=ANSWER_BYTES)
    error = answer.get("error") if isinstance(answer.get("error"), dict) else {}
    assert isinstance(error, dict)
    said = ": ".join(str(error[k]) for k in ("code", "message") if error.get(k))
    state = answer.get("status")
    return Asynchronous(state=state if isinstance(state, str) else "Succeeded", error=said)
