"""A stand-in of Azure Resource Manager for container apps on loopback, in time that a test moves.

    arm = ArmServer(now=watch.now, fate=lambda template: Fate(up=True, after_s=300))
    arm.put("gemma", body)                  # an app whose first revision serves
    client = sdk_client(arm.url)            # azure-mgmt-appcontainers
    arm.close()

Shapes, states and limits follow the library's models (5.1.0, API 2026-07-01), published specifications and issues; no
live subscription was seen. Not known and assumed: that a stopped app takes a PATCH, and how long operations take.
"""

import copy
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from tests.loopback import Loopback, Reply, Request

Json = dict[str, Any]
SUBSCRIPTION = "00000000-1111-2222-3333-444444444444"
GROUP = "llm"
ENVIRONMENT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.App/managedEnvironments/gpus"
WORKSPACE = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
LIMITS = {"failureThreshold": (1, 30), "initialDelaySeconds": (0, 60), "periodSeconds": (1, 240)}
ACTIONS = {  # what each request needs, by method and last part of its path: the operations of Microsoft.App
    ("GET", "containerapps"): "Microsoft.App/containerApps/read",
    ("PATCH", "containerapps"): "Microsoft.App/containerApps/write",
    ("PUT", "containerapps"): "Microsoft.App/containerApps/write",
    ("DELETE", "containerapps"): "Microsoft.App/containerApps/delete",
    ("POST", "stop"): "Microsoft.App/containerApps/stop/action",
    ("POST", "start"): "Microsoft.App/containerApps/start/action",
    ("GET", "revisions"): "Microsoft.App/containerApps/revisions/read",
    ("GET", "replicas"): "Microsoft.App/containerApps/revisions/replicas/read",
    ("POST", "getauthtoken"): "Microsoft.App/containerApps/getAuthToken/action",
    ("GET", "managedenvironments"): "Microsoft.App/managedEnvironments/read",
    ("GET", "containerappoperationresults"): "Microsoft.App/locations/containerappOperationResults/read",
    ("GET", "containerappoperationstatuses"): "Microsoft.App/locations/containerappOperationStatuses/read",
}


@dataclass(frozen=True)
class Fate:
    """What becomes of a revision: whether it comes up, after which time, and what Azure says where it does not."""

    up: bool = True
    after_s: float = 300
    error: str = "ContainerCrashing"
    assigns: bool = True  # False: no replica is ever assigned


@dataclass
class Fault:
    """What happens to the next request of a method and a part of its path."""

    method: str
    part: str
    status: int = 0  # 0: the connection ends without an answer
    code: str = ""
    message: str = ""
    applied: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class ArmServer:
    """Container apps with revisions, traffic, long-running operations and conflicts.

    Attributes:
        allowed: Actions that the caller has; None is all of them.
        used: Actions that were needed.
        writes: Method, path and body of each request that changed something.
        replicas: Replicas by the name of their revision.
        token: For an app's developer APIs.
    """

    def __init__(
        self, *, now: Callable[[], datetime], fate: Callable[[Json], Fate], fqdn: str = "gemma.example"
    ) -> None:
        self.now, self.fate, self.fqdn = now, fate, fqdn
        self.apps: dict[str, Json] = {}
        self.profiles = [
            {"name": "gpu", "workloadProfileType": "Consumption-GPU-NC24-A100"},
            {"name": "small", "workloadProfileType": "Consumption-GPU-NC8as-T4"},
            {"name": "Consumption", "workloadProfileType": "Consumption"},
        ]
        self.allowed: set[str] | None = None
        self.used: set[str] = set()
        self.writes: list[tuple[str, str, Json]] = []
        self.replicas: dict[str, list[Json]] = {}
        self.token: Any = "developer-token"
        self.faults: list[Fault] = []
        self.expired = False  # operations are known no more
        self.switch_s = 0.0  # how long a start or a stop takes, and a change of a stopped app
        self._operations: dict[str, tuple[str, datetime, str]] = {}
        self._revisions: dict[str, list[Json]] = {}
        self._deleted: dict[str, datetime] = {}
        self._switching: dict[str, tuple[datetime, bool | None]] = {}
        self._lock = threading.RLock()
        self._server = Loopback(self._reply, keep_alive=True)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()

    def _reply(self, request: Request) -> Reply | None:
        found = self.answer(request.command, request.path, request.json())
        if found is None:
            request.close_connection = True
            request.connection.close()
            return None
        status, shown, headers = found
        return status, b"" if shown is None else shown, headers

    def put(self, name: str, body: Json, *, up: bool = True) -> None:
        """Keep an app whose only revision has come up, or has failed."""
        self._create(self._id(name), name, body)
        (only,) = self._revisions[self._id(name)]
        only["at"], only["fate"] = self.now() - timedelta(hours=1), Fate(up=up, after_s=0)

    def rename_first(self, name: str, revision: str) -> None:
        """Call an app's only revision otherwise, as recorded rows do."""
        (only,) = self._revisions[self._id(name)]
        only["name"] = revision

    def edit(self, name: str, patch: Json, *, suffix: str = "by-hand") -> None:
        """Do what somebody else does: a PATCH with a revision suffix of their own where the template changes."""
        with self._lock:
            template = patch.get("properties", {}).get("template")
            if template is not None:
                template.setdefault("revisionSuffix", suffix)
            self._patch(self._id(name), copy.deepcopy(patch), by="somebody@example.com")

    def app(self, name: str) -> Json:
        """Return an app as it is shown now."""
        with self._lock:
            self._settle(self._id(name))
            return self._shown(self._id(name))

    def switch(self, name: str, *, stopped: bool) -> None:
        """Do what somebody else does: stop or start an app, at once."""
        with self._lock:
            self._settle(self._id(name))
            self._switch(self._id(name), self.now(), stopped=stopped)

    def deactivate_newest(self, name: str) -> None:
        """Do what somebody else does about a revision that gets no replica: its operation ends as failed."""
        self._revisions[self._id(name)][-1]["fate"] = Fate(up=False, after_s=0, error="Deactivated")

    def revisions(self, name: str) -> list[str]:
        """Return the names of an app's revisions, oldest first."""
        return [r["name"] for r in self._revisions.get(self._id(name), [])]

    def answer(self, method: str, path: str, body: Json) -> tuple[int, Json | None, dict[str, str]] | None:
        """Status, body and headers for one request; None to end the connection without any."""
        with self._lock:
            fault = next((f for f in self.faults if f.method == method and f.part in path), None)
            if fault is None:
                return self._answer(method, path, body)
            self.faults.remove(fault)
            if fault.applied:
                self._answer(method, path, body)
            if not fault.status:
                return None
            status, shown, _ = _error(fault.status, fault.code, fault.message)
            return status, shown, dict(fault.headers)

    def _answer(self, method: str, path: str, body: Json) -> tuple[int, Json | None, dict[str, str]]:
        parts = urlsplit(path).path.rstrip("/").lower().split("/")[1:]
        kind = next((p for p in (parts[-1], parts[-2]) if (method, p) in ACTIONS), "containerapps")
        action = ACTIONS.get((method, kind))
        if action is None or parts[1] != SUBSCRIPTION:
            return _error(404, "InvalidResourceType", path)
        if self.allowed is not None and action not in self.allowed:
            text = f"The client 'agent' does not have authorization to perform action '{action}' over scope '{path}'"
            return _error(403, "AuthorizationFailed", text)
        joins = "Microsoft.App/managedEnvironments/join/action"
        if method == "PUT" and self.allowed is not None and joins not in self.allowed:
            return _error(403, "LinkedAuthorizationFailed", f"The client 'agent' may not perform action '{joins}'")
        self.used |= {action, joins} if method == "PUT" else {action}
        if "operation" in kind:
            return self._poll(parts[-1])
        if parts[3] != GROUP:
            return _error(404, "ResourceGroupNotFound", f"Resource group '{parts[3]}' could not be found.")
        if kind == "managedenvironments":
            return 200, self._environment(), {}
        return self._on_app(method, parts, body)

    def _on_app(self, method: str, parts: list[str], body: Json) -> tuple[int, Json | None, dict[str, str]]:
        name, app_id = parts[7], self._id(parts[7])
        self._settle(app_id)
        if method == "PUT":
            refused = _refusal(body)
            if refused:
                return refused
            self.writes.append((method, name, body))
            self._create(app_id, name, body)
            return 201, self._shown(app_id), self._operation(app_id, "containerappOperationStatuses")
        if app_id not in self.apps:
            text = f"The Resource 'Microsoft.App/containerApps/{name}' under resource group '{GROUP}' was not found."
            return _error(404, "ResourceNotFound", text)
        if parts[-1] == "getauthtoken":
            return 200, {"name": name, "location": "Sweden Central", "properties": {"token": self.token}}, {}
        if parts[-1] == "replicas":
            return self._replicas_of(app_id, parts[-2])
        if method == "GET":
            return 200, self._shown(app_id) if len(parts) == 8 else {"value": self._listed(app_id)}, {}
        if self._busy(app_id):
            text = (
                f"Cannot modify a container app '{name}' because there is an active provisioning operation in progress."
            )
            return _error(409, "ContainerAppOperationInProgress", text)
        refused = _refusal(body) or self._suffix_taken(app_id, body) if method == "PATCH" else None
        if refused:
            return refused
        self.writes.append((method if method != "POST" else parts[-1], name, copy.deepcopy(body)))
        if method == "PATCH":
            self._patch(app_id, body, by="agent")
            if self.switch_s and self.apps[app_id].get("stopped"):
                self._switching[app_id] = (self.now() + timedelta(seconds=self.switch_s), None)
        elif method == "DELETE":
            self._deleted[app_id] = self.now() + timedelta(seconds=10)
        else:
            self._switching[app_id] = (self.now() + timedelta(seconds=self.switch_s), parts[-1] == "stop")
            self._settle(app_id)
        return 202, None, self._operation(app_id, "containerappOperationResults")

    def _replicas_of(self, app_id: str, revision: str) -> tuple[int, Json | None, dict[str, str]]:
        if not any(r["name"] == revision for r in self._revisions[app_id]):
            return _error(404, "ResourceNotFound", f"The revision '{revision}' was not found.")
        return 200, {"value": self.replicas.get(revision, [])}, {}

    def _create(self, app_id: str, name: str, body: Json) -> None:
        made = copy.deepcopy(body) | {"id": app_id.replace("containerapps", "containerApps"), "name": name}
        made |= {"type": "Microsoft.App/containerApps", "systemData": {"createdAt": self._stamp(), "createdBy": "ada"}}
        made["properties"].setdefault("managedEnvironmentId", made["properties"].get("environmentId"))
        self.apps[app_id], self._revisions[app_id] = made, []
        ingress = made["properties"].setdefault("configuration", {}).setdefault("ingress", {})
        ingress["fqdn"] = self.fqdn
        self._new_revision(app_id)

    def _patch(self, app_id: str, patch: Json, *, by: str) -> None:
        app = self.apps[app_id]
        before = copy.deepcopy(app["properties"].get("template"))
        tags = patch.pop("tags", None)
        _merge(app, patch)
        if tags is not None:
            app["tags"] = {k: v for k, v in tags.items() if v is not None}
        app["systemData"] |= {"lastModifiedAt": self._stamp(), "lastModifiedBy": by}
        if app["properties"]["template"] != before:
            self._new_revision(app_id)

    def _new_revision(self, app_id: str) -> None:
        app, listed = self.apps[app_id], self._revisions[app_id]
        template = copy.deepcopy(app["properties"]["template"])
        suffix = template.get("revisionSuffix") or f"{len(listed) + 1:07d}"
        name = f"{app['name']}--{suffix}"
        if any(r["name"] == name for r in listed):
            return  # Azure says that it is done, and does nothing (azure-container-apps#650)
        last = listed[-1]["at"] if listed else self.now() - timedelta(days=1)
        at = max(self.now(), last + timedelta(seconds=1))
        listed.append({"name": name, "at": at, "template": template, "fate": self.fate(template)})

    def _switch(self, app_id: str, at: datetime, *, stopped: bool) -> None:
        app = self.apps[app_id]
        app["stopped"] = stopped
        if not stopped:
            for revision in self._revisions[app_id]:
                revision["at"] = max(revision["at"], at)

    def _settle(self, app_id: str) -> None:
        if app_id in self._deleted and self.now() >= self._deleted[app_id]:
            del self.apps[app_id], self._deleted[app_id], self._revisions[app_id]
        until, stopped = self._switching.get(app_id, (None, None))
        if until is not None and self.now() >= until:
            del self._switching[app_id]
        if until is not None and self.now() >= until and stopped is not None:
            self._switch(app_id, until, stopped=stopped)

    def _ended(self, revision: Json) -> bool:
        return revision["fate"].assigns and self.now() >= revision["at"] + timedelta(seconds=revision["fate"].after_s)

    def _is_up(self, revision: Json) -> bool:
        return self._ended(revision) and revision["fate"].up

    def _busy(self, app_id: str) -> bool:
        if app_id in self._deleted or app_id in self._switching:
            return True
        return not self.apps[app_id].get("stopped") and not self._ended(self._revisions[app_id][-1])

    def _shown(self, app_id: str) -> Json:
        app = copy.deepcopy({k: v for k, v in self.apps[app_id].items() if k != "stopped"})
        listed, properties = self._revisions[app_id], app["properties"]
        ready = [r for r in listed if self._is_up(r)]
        state = "Deleting" if app_id in self._deleted else "InProgress" if self._busy(app_id) else "Succeeded"
        properties |= {
            "latestRevisionName": listed[-1]["name"],
            "latestReadyRevisionName": ready[-1]["name"] if ready else "",
            "runningStatus": "Stopped" if self.apps[app_id].get("stopped") else "Running",
            "provisioningState": state,
            "outboundIpAddresses": None,
        }
        for secret in properties["configuration"].get("secrets") or []:
            secret.pop("value", None)
        return app

    def _listed(self, app_id: str) -> list[Json]:
        listed, multiple = self._revisions[app_id], self._is_multiple(app_id)
        newest_up = next((r for r in reversed(listed) if self._is_up(r)), None)
        return [
            {
                "id": f"{app_id}/revisions/{r['name']}",
                "name": r["name"],
                "properties": {
                    "active": multiple or r is newest_up or r is listed[-1],
                    "createdTime": _time(r["at"]),
                    "fqdn": self.fqdn,
                    "template": copy.deepcopy(r["template"]),
                    **self._state(r, stopped=bool(self.apps[app_id].get("stopped"))),
                },
            }
            for r in listed
        ]

    def _state(self, revision: Json, *, stopped: bool) -> Json:
        if stopped:
            return {"provisioningState": "Provisioned", "runningState": "Stopped", "healthState": "None", "replicas": 0}
        if not self._ended(revision):
            waits = {"provisioningState": "Provisioning", "runningState": "Processing", "healthState": "None"}
            return waits | {"replicas": int(revision["fate"].assigns)}
        if self._is_up(revision):
            up = {"provisioningState": "Provisioned", "runningState": "Running", "healthState": "Healthy"}
            return up | {"replicas": 1}
        failed = {"provisioningState": "Failed", "runningState": "Failed", "healthState": "Unhealthy"}
        return failed | {"replicas": 0, "provisioningError": revision["fate"].error}

    def _is_multiple(self, app_id: str) -> bool:
        return self.apps[app_id]["properties"]["configuration"].get("activeRevisionsMode") == "Multiple"

    def _suffix_taken(self, app_id: str, body: Json) -> tuple[int, Json | None, dict[str, str]] | None:
        suffix = body.get("properties", {}).get("template", {}).get("revisionSuffix")
        taken = {r["name"] for r in self._revisions[app_id][-1:]}
        if suffix and f"{self.apps[app_id]['name']}--{suffix}" in taken:
            said = f"Field 'template.revisionsuffix' is invalid with details: 'Invalid value: \"{suffix}\": Revision with suffix"
            return _error(400, "InvalidParameterValueInContainerTemplate", f"{said} {suffix} already exists.'")
        return None

    def _operation(self, app_id: str, kind: str) -> dict[str, str]:
        number = f"op-{len(self._operations) + 1}"
        self._operations[number] = (app_id, self.now(), kind)
        path = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.App/locations/swedencentral/{kind}/{number}"
        header = "Azure-AsyncOperation" if "Statuses" in kind else "Location"
        return {header: f"{self.url}{path}?api-version=2026-07-01", "Retry-After": "0"}

    def _poll(self, number: str) -> tuple[int, Json | None, dict[str, str]]:
        found = self._operations.get(number)
        if found is None or self.expired:
            return _error(404, "OperationNotFound", number)
        app_id, _, kind = found
        self._settle(app_id)
        if app_id not in self.apps:
            return 204, None, {}
        if "Statuses" in kind:
            return 200, {"name": number, "status": "InProgress" if self._busy(app_id) else "Succeeded"}, {}
        return (202, None, {}) if self._busy(app_id) else (200, self._shown(app_id), {})

    def _environment(self) -> Json:
        logs = {"destination": "log-analytics", "logAnalyticsConfiguration": {"customerId": WORKSPACE}}
        properties = {"workloadProfiles": self.profiles, "appLogsConfiguration": logs}
        return {"id": ENVIRONMENT, "name": "gpus", "location": "swedencentral", "properties": properties}

    def _id(self, name: str) -> str:
        return f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}/providers/microsoft.app/containerapps/{name}"

    def _stamp(self) -> str:
        return _time(self.now())


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S+00:00")


def _merge(old: Json, new: Json) -> None:
    """JSON merge (RFC 7396): objects are merged, null removes, arrays are replaced whole."""
    for key, value in new.items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, dict) and isinstance(old.get(key), dict):
            _merge(old[key], value)
        else:
            old[key] = copy.deepcopy(value)


def _refusal(body: Json) -> tuple[int, Json | None, dict[str, str]] | None:
    template = body.get("properties", {}).get("template", {})
    suffix = template.get("revisionSuffix") or "a"
    if not re.fullmatch(r"[a-z](?:-?[a-z0-9])*", suffix):
        return _error(400, "ContainerAppInvalidRevisionName", f"Revision name has an invalid value {suffix!r}.")
    for container in template.get("containers") or []:
        for probe in container.get("probes") or []:
            for name, (least, most) in LIMITS.items():
                value = probe.get(name)
                if value is not None and not least <= value <= most:
                    code = f"ContainerAppProbe{name[0].upper()}{name[1:]}OutOfRange"
                    return _error(400, code, f"The {name} must be in the range of ['{least}','{most}'].")
    return None


def _error(status: int, code: str, message: str) -> tuple[int, Json | None, dict[str, str]]:
    return status, {"error": {"code": code, "message": message}}, {}


class Token:
    """A credential whose token says nothing."""

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken("t", int(time.time()) + 3600)

    def get_token_info(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessTokenInfo

        return AccessTokenInfo("t", int(time.time()) + 3600)


def sdk_client(url: str) -> Any:
    """Return the real client of the library; over plain http it refuses to send a token, so that policy is replaced."""
    from azure.core.pipeline.policies import SansIOHTTPPolicy
    from azure.mgmt.appcontainers import ContainerAppsAPIClient

    policy: Any = SansIOHTTPPolicy()
    return ContainerAppsAPIClient(Token(), SUBSCRIPTION, base_url=url, authentication_policy=policy)
