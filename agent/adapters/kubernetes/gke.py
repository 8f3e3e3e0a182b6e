"""A GKE cluster without a kubeconfig: address and certificate from the container API, a Google token as bearer."""

import base64
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent.adapters.http.client import HttpClient
from agent.core.intake.json_fields import part
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SettingsRejected
from agent.ports.platform import HINTS
from agent.strict_json import read_object

PREFIX: Final = "gke:"
CONTAINER_API: Final = "https://container.googleapis.com"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
READ_S: Final = 20.0
_NAME = re.compile(r"[a-z0-9][a-z0-9:.-]{3,99}/[a-z0-9-]{1,63}/[a-z0-9-]{1,63}")
_CANNOT = "no GKE cluster can be reached"

Token = Callable[[], str]


def gke_configuration(context: str, *, token: Token | None = None, container_api: str = CONTAINER_API) -> Any:
    """Return the official client's configuration for a cluster.

    The cluster's DNS endpoint is taken where it lets traffic from outside in (its certificate is a public one),
    otherwise its address with the certificate authority of the cluster. Not run against a live cluster yet.

    Args:
        context: ``gke:PROJECT/LOCATION/CLUSTER``.
        token: Gives a fresh access token; that of the application default credentials when None.
        container_api: Where the container API is.

    Raises:
        SettingsRejected: That names no cluster.
        PolicyRefused: The account may not look at it.
        DependencyFailed: The container API, or whoever makes tokens, did not answer as it should.
    """
    from kubernetes import client

    token = token or GoogleTokens().token
    body = _cluster(context.removeprefix(PREFIX), token(), container_api)
    host, authority = _endpoint(body)
    found: Any = client.Configuration(host=f"https://{host}", ca_cert_data=authority)

    def fresh(configuration: Any) -> None:
        configuration.api_key["BearerToken"] = f"Bearer {token()}"

    found.refresh_api_key_hook = fresh
    fresh(found)
    return found


def _cluster(name: str, token: str, container_api: str) -> Mapping[str, Any]:
    if not _NAME.fullmatch(name):
        raise SettingsRejected(
            _CANNOT,
            why=f"{name[:200]!r} names none",
            hint="write gke:PROJECT/LOCATION/CLUSTER, such as gke:my-project/us-central1/llm",
        )
    project, location, cluster = name.split("/")
    url = f"{container_api}/v1/projects/{project}/locations/{location}/clusters/{cluster}"
    client = HttpClient(timeout_s=READ_S)
    try:
        answer = client.request("GET", url, headers={"Authorization": f"Bearer {token}"})
    finally:
        client.close()
    try:
        body = read_object(answer.body, what="answer of the container API", limit=None)
    except InputRejected as error:
        raise DependencyFailed(_CANNOT, why=error.why, hint=HINTS[DependencyFailed]) from error
    if answer.status == 200:
        return body
    says = str(part(body, "error").get("message") or f"HTTP {answer.status}")[:500]
    if answer.status in {401, 403}:
        raise PolicyRefused(_CANNOT, why=says, hint="give the account roles/container.clusterViewer in that project")
    if answer.status in {400, 404}:
        raise SettingsRejected(
            _CANNOT, why=says, hint="look at project, location and name: gcloud container clusters list"
        )
    raise DependencyFailed(_CANNOT, why=says, hint=HINTS[DependencyFailed])


def _endpoint(body: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the host, and the certificate authority where it is not a public one."""
    dns = part(body, "controlPlaneEndpointsConfig", "dnsEndpointConfig")
    if dns.get("allowExternalTraffic") is True and isinstance(dns.get("endpoint"), str) and dns["endpoint"]:
        return str(dns["endpoint"]), None
    host, packed = body.get("endpoint"), part(body, "masterAuth").get("clusterCaCertificate")
    if not isinstance(host, str) or not host or not isinstance(packed, str) or not packed:
        raise DependencyFailed(
            _CANNOT, why="it has no endpoint, or no certificate, yet", hint="wait until the cluster is RUNNING"
        )
    try:
        return host, base64.b64decode(packed, validate=True).decode("ascii")
    except ValueError as error:
        raise DependencyFailed(
            _CANNOT, why="its certificate is no base64 of PEM", hint=HINTS[DependencyFailed]
        ) from error


class GoogleTokens:
    """Access tokens of the identity that this process has on Google Cloud; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._credentials: Any = None

    def token(self) -> str:
        """Return a token that is good for some minutes yet.

        Raises:
            DependencyFailed: There is no such identity, or nobody makes tokens for it now.
        """
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests

        try:
            with self._lock:
                if self._credentials is None:
                    self._credentials, _ = google.auth.default(scopes=[SCOPE])
                if not self._credentials.valid:
                    self._credentials.refresh(google.auth.transport.requests.Request())
                return str(self._credentials.token)
        except google.auth.exceptions.GoogleAuthError as error:
            raise DependencyFailed(
                "no access token was made",
                why=f"{type(error).__name__}: {str(error)[:200]}",
                hint="run as a service account, or: gcloud auth application-default login",
            ) from error
