"""Errors of the official Kubernetes client, its credentials and its connections as ours, in the server's words."""

from typing import Any, Final

from agent.errors import (
    CredentialsRefused,
    DependencyFailed,
    InputRejected,
    PolicyRefused,
    SreError,
    StateConflict,
    nearest,
)
from agent.ports.platform import HINTS
from agent.strict_json import read_object

_PATCH_FAILED: Final = "the server rejected our request due to an error in our request"
"""All that the API server says where a JSON patch cannot be applied, such as for a ``test`` that fails."""

_STATUS: dict[int, type[SreError]] = {
    400: InputRejected,
    401: CredentialsRefused,
    403: PolicyRefused,
    404: InputRejected,
    405: InputRejected,
    406: InputRejected,
    409: StateConflict,
    410: StateConflict,
    412: StateConflict,
    413: InputRejected,
    415: InputRejected,
    422: InputRejected,
}
"""What an HTTP status means; any other is the server's trouble, and another try may help."""


def translated(error: Exception, what: str) -> SreError:
    """Return our word for an error of the client library.

    Args:
        error: What was raised.
        what: What did not happen, in one clause.
    """
    if isinstance(error, SreError):
        return error
    kind, says = _kind(error), error_text(error)
    return kind(what, why=says, hint=_hint(kind, error, says))


def patch_failed(error: BaseException | None) -> bool:
    """Whether the API server could not apply a JSON patch to the object as it is; what it refuses, it names."""
    return isinstance(error, Exception) and getattr(error, "status", None) == 422 and error_text(error) == _PATCH_FAILED


def error_text(error: Exception) -> str:
    """Return what the API server said, with its causes; untrusted text, short enough to keep."""
    try:
        status = read_object(_body(error), what="status", limit=None)
    except InputRejected:
        return (str(getattr(error, "reason", "") or "") or str(error) or type(error).__name__)[:1000]
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    rows = [str(c.get("message", "")) for c in causes if isinstance(c, dict)] if isinstance(causes, list) else []
    message = str(status.get("message", ""))
    return "; ".join([message, *(row for row in rows if row and row not in message)])[:1000] or type(error).__name__


def _body(error: Exception) -> bytes:
    body: Any = getattr(error, "body", None) or b""
    return body.encode("utf-8", "replace") if isinstance(body, str) else bytes(body)


def table() -> dict[type[Exception], type[SreError]]:
    """Return which of our errors stands for which class of theirs; subclasses follow the nearest one."""
    from kubernetes.client import exceptions as api
    from kubernetes.config import ConfigException
    from urllib3 import exceptions as wire

    return {
        api.OpenApiException: InputRejected,  # also wrong types, values, attributes and keys of a call
        api.ApiException: DependencyFailed,  # by its status, where it has one that says more
        ConfigException: CredentialsRefused,  # credentials that are missing or expired, such as those of an exec plugin
        wire.HTTPError: DependencyFailed,
        wire.ProxySchemeUnsupported: InputRejected,
        OSError: DependencyFailed,
    }


def _kind(error: Exception) -> type[SreError]:
    status = getattr(error, "status", None)
    if isinstance(status, int) and status in _STATUS:
        return _STATUS[status]
    return nearest(error, table())


def _hint(kind: type[SreError], error: Exception, says: str) -> str:
    if getattr(error, "status", None) == 404:
        return "look for its namespace, workload and context in services.toml"
    if kind is PolicyRefused and "exceeded quota" in says:
        return "raise the ResourceQuota of the namespace, or ask for less"
    if kind is PolicyRefused and "admission webhook" in says:
        return "ask the owner of that admission webhook; nothing was changed"
    return {
        **HINTS,
        CredentialsRefused: "log in to the cluster again: the credentials expired, or are those of another cluster",
        PolicyRefused: "sre-agent doctor lists the rights that are missing; deploy/kubernetes/ grants them",
    }[kind]
