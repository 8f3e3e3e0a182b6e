"""What Azure's client raises, as our errors: who must act, and what to do."""

import re
from typing import Final

from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.platform import HINTS, NotDeployed

RIGHTS: Final = (
    "give this identity the role of deploy/azure/role.json on the resource group, see docs/container-apps.md"
)
SIGN_IN: Final = "sign in again (az login), or see who the agent is on Azure: docs/container-apps.md"

_TAKEN = re.compile(r"revision with suffix .{0,80}already exists", re.IGNORECASE)
_BUSY = re.compile(r"OperationInProgress|active provisioning op|operation (?:is )?in progress", re.IGNORECASE)
_QUOTA = re.compile(r"quota|MaximumAllowedCores|CapacityHeavyUsage|insufficient capacity", re.IGNORECASE)
_GONE = frozenset({"ResourceNotFound", "ContainerAppNotFound", "NotFound"})


def translated(error: Exception, what: str) -> SreError:
    """Return our word for an error of the client library, of its credentials, or of its transport.

    Args:
        error: What was raised.
        what: What did not happen, in one clause.
    """
    if isinstance(error, SreError):
        return error
    status, code, why = getattr(error, "status_code", None), code_of(error), error_text(error)
    if status == 404 and code in _GONE:
        return NotDeployed(what, why=why, hint="look for its name and resource_group in services.toml")
    kind = _kind(error, status, f"{code} {why}")
    return kind(what, why=why, hint=_hint(kind, error, why))


def code_of(error: Exception) -> str:
    """Return Azure's code of an error; empty where it has none."""
    return str(getattr(getattr(error, "error", None), "code", "") or "")


def error_text(error: Exception) -> str:
    """Return what an error says, short enough to keep."""
    message, code = getattr(getattr(error, "error", None), "message", None), code_of(error)
    text = f"{code}: {message}" if message else getattr(error, "message", None)
    return str(text or error or type(error).__name__)[:1000]


def _kind(error: Exception, status: int | None, text: str) -> type[SreError]:
    from azure.core.exceptions import ClientAuthenticationError

    if status == 403:
        return PolicyRefused
    if isinstance(error, ClientAuthenticationError) or status == 401:
        return CredentialsRefused
    if status in {409, 412}:
        return DependencyFailed if _BUSY.search(text) else StateConflict
    if status is not None and 400 <= status < 500 and status not in {408, 429}:
        if _TAKEN.search(text):
            return StateConflict
        return PolicyRefused if _QUOTA.search(text) else InputRejected
    return DependencyFailed


def _hint(kind: type[SreError], error: Exception, why: str) -> str:
    if kind is PolicyRefused and _QUOTA.search(why):
        return "ask Azure for quota of this workload profile in this region, or choose another profile"
    if kind is DependencyFailed:
        response = getattr(error, "response", None)
        wait = response.headers.get("Retry-After") if response is not None else None
        return HINTS[DependencyFailed] + (f" (Azure asks for {wait} s)" if wait else "")
    return {**HINTS, PolicyRefused: RIGHTS, CredentialsRefused: SIGN_IN}[kind]
