"""One API server by the official client: JSON in and out unchanged, each call with its deadline, errors made ours."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from agent.adapters.kubernetes.errors import patch_failed, translated
from agent.adapters.kubernetes.gke import PREFIX, gke_configuration
from agent.errors import DependencyFailed, ExtraMissing, InputRejected, SettingsRejected, SreError, StateConflict
from agent.ports.platform import HINTS
from agent.strict_json import read_object

FIELD_MANAGER: Final = "sre-agent"
"""Whose fields ours are in ``metadata.managedFields``."""

READ_S: Final = 20.0
WRITE_S: Final = 60.0
LIMIT_BYTES: Final = 64 * 2**20
IN_CLUSTER_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

Json = dict[str, Any]
Connect = Callable[[], Any]


def connect(context: str | None = None, *, kubeconfig: str | None = None) -> Any:
    """Return an official ``ApiClient``.

    Args:
        context: A context of the kubeconfig, or ``gke:PROJECT/LOCATION/CLUSTER``, which needs none; None takes the
            current one of the kubeconfig.
        kubeconfig: Where it lies; None is where kubectl looks, KUBECONFIG or ``~/.kube/config``. Without a file there,
            and with a service account's token mounted, the cluster around us is meant.

    Raises:
        SettingsRejected: Nothing leads to an API server.
        PolicyRefused: The account may not look at that GKE cluster.
        DependencyFailed: Google did not say where it is.
    """
    try:
        from kubernetes import client, config
    except ImportError as error:
        raise ExtraMissing("no Kubernetes cluster can be reached", extra="kubernetes", package="kubernetes") from error
    found, load = client.Configuration(), cast("Any", config)  # untyped
    try:
        if context is not None and context.startswith(PREFIX):
            found = gke_configuration(context)
        elif kubeconfig is None and context is None and in_cluster():
            load.load_incluster_config(client_configuration=found)
        else:
            load.load_kube_config(config_file=kubeconfig, context=context, client_configuration=found)
    except SreError:
        raise
    except Exception as error:
        raise SettingsRejected(
            "no Kubernetes cluster can be reached",
            why=str(error)[:500] or type(error).__name__,
            hint="name a kubeconfig in KUBECONFIG and one of its contexts in PLATFORM=kubernetes:CONTEXT",
        ) from error
    found.retries = False  # who asks decides whether to ask again
    return client.ApiClient(found)


def in_cluster() -> bool:
    """Whether this process is a pod with a service account and has no kubeconfig of its own."""
    from kubernetes.config import kube_config

    paths = kube_config.KUBE_CONFIG_DEFAULT_LOCATION.split(kube_config.ENV_KUBECONFIG_PATH_SEPARATOR)
    return IN_CLUSTER_TOKEN.is_file() and not any(Path(p).expanduser().is_file() for p in paths if p)


class KubernetesApi:
    """Calls one API server; every method raises our errors only.

    Objects stay JSON as the server wrote them, so that fields that are newer than the client come back unchanged.

    Args:
        connect: Makes the official client, at the first call, because it is slow to import.
    """

    def __init__(self, connect: Connect = connect) -> None:
        self._connect = connect
        self._client: Any = None

    @property
    def client(self) -> Any:
        """The official ``ApiClient``, for what it alone can do: watches and port-forwards."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def get(self, path: str, *, query: Mapping[str, str] | None = None) -> Json:
        """Return an object.

        Args:
            path: Such as ``/apis/apps/v1/namespaces/NS/deployments/NAME``.
            query: Parameters of the request.
        """
        return self._json("GET", path, query=query, timeout_s=READ_S)

    def find(self, path: str) -> Json | None:
        """Return an object, or None where there is none of that name, or no such kind."""
        try:
            return self.get(path)
        except InputRejected as error:
            if getattr(error.__cause__, "status", None) == 404:
                return None
            raise

    def items(self, path: str, *, query: Mapping[str, str] | None = None) -> list[Json]:
        """Return the objects of a list; their ``kind`` stands in the list alone."""
        return list(self.get(path, query=query).get("items") or [])

    def patch(self, path: str, steps: list[Json], *, dry_run: bool = False, within_s: float = WRITE_S) -> Json:
        """Send a JSON patch once and return the object as it is then; a ``test`` that fails is a StateConflict.

        Args:
            path: The object.
            steps: RFC 6902.
            dry_run: Let the server admit, default and validate it without storing it.
            within_s: How long the answer may take, ``WRITE_S`` at most.
        """
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        kind = "application/json-patch+json"
        try:
            return self._json("PATCH", path, query=query, body=steps, kind=kind, timeout_s=min(WRITE_S, within_s))
        except InputRejected as error:
            if not patch_failed(error.__cause__):
                raise
            tested = ", ".join(f"{s['path']} {s['value']!r}" for s in steps if s["op"] == "test")
            why = f"it is not any more what the change was made for ({tested})"
            raise StateConflict(error.what, why=why, hint=HINTS[StateConflict]) from error

    def create(self, path: str, body: Json, *, dry_run: bool = False, within_s: float = WRITE_S) -> Json:
        """Create an object of a collection once; the answer may take ``within_s`` seconds, ``WRITE_S`` at most."""
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        return self._json("POST", path, query=query, body=body, timeout_s=min(WRITE_S, within_s))

    def delete(self, path: str, *, uid: str, dry_run: bool = False, within_s: float = WRITE_S) -> Json:
        """Delete an object and what it owns once, if it is still the one of that uid; see ``create``."""
        body: Json = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        body |= {"dryRun": ["All"]} if dry_run else {}
        return self._json("DELETE", path, body=body, timeout_s=min(WRITE_S, within_s))

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float = READ_S,
        any_status: bool = False,
    ) -> Iterator[Any]:
        """Send a request and yield the ``urllib3`` response unread.

        Args:
            method: Of HTTP.
            path: At the API server.
            query: Parameters.
            headers: Beside those of the credentials.
            body: What the client writes as JSON.
            timeout_s: Until the answer begins, and between two pieces of it.
            any_status: Whether an answer that is no 2xx is given too; otherwise it raises.
        """
        response = self._call(method, path, query=query, headers=headers, body=body, timeout_s=timeout_s)
        if not any_status:
            _raise_for_status(response, f"{method} {path} failed")
        try:
            yield response
        except SreError:
            raise
        except Exception as error:
            raise translated(error, f"{method} {path} broke off") from error
        finally:
            if not response.closed and not response.isclosed():
                response.close()  # left early: the connection is not used again
            response.release_conn()

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        kind: str = "application/json",
        timeout_s: float = WRITE_S,
    ) -> Json:
        headers = {"Content-Type": kind}
        with self.stream(method, path, query=query, headers=headers, body=body, timeout_s=timeout_s) as response:
            raw = response.read(LIMIT_BYTES + 1)
        try:
            return read_object(raw, what="answer of the API server", limit=LIMIT_BYTES)
        except InputRejected as error:
            raise DependencyFailed(
                error.what, why=error.why, hint="check proxies and firewalls on the way to the API server"
            ) from error

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        body: Any,
        timeout_s: float,
    ) -> Any:
        try:
            sent = {"Accept": "application/json"} | dict(headers or {})
            asked = self.client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params=sent,
                body=body,
                auth_settings=["BearerToken"],
            )
            return self.client.call_api(*asked, _request_timeout=timeout_s).response
        except Exception as error:
            raise translated(error, f"{method} {path} failed") from error


def _raise_for_status(response: Any, what: str) -> None:
    if 200 <= response.status < 300:
        return
    from kubernetes.client import ApiException

    try:
        said = response.read(LIMIT_BYTES).decode("utf-8", "replace")
    except Exception as error:
        raise translated(error, what) from error
    finally:
        response.close()
    refusal = ApiException(status=response.status, reason=response.reason, body=said)
    raise translated(refusal, what) from refusal
