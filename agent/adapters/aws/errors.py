"""Errors of the AWS SDK, its credentials and its connections as ours, in the service's words."""

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

_GRANT: Final = "grant it: docs/ec2.md has the policy; sre-agent doctor lists what is missing"
_QUOTA: Final = "ask for a higher vCPU quota of this instance family (service-quotas, code ec2)"

_CODES: Final[dict[str, tuple[type[SreError], str]]] = {
    "UnauthorizedOperation": (PolicyRefused, _GRANT),
    "AccessDeniedException": (PolicyRefused, _GRANT),
    "ExpiredToken": (CredentialsRefused, "sign in again: the credentials expired"),
    "ExpiredTokenException": (CredentialsRefused, "sign in again: the credentials expired"),
    "RequestExpired": (CredentialsRefused, "sign in again, and look at this machine's clock"),
    "AuthFailure": (CredentialsRefused, "look at the credentials: AWS does not know them"),
    "UnrecognizedClientException": (CredentialsRefused, "look at the credentials: AWS does not know them"),
    "InvalidClientTokenId": (CredentialsRefused, "look at the credentials: AWS does not know them"),
    "OptInRequired": (PolicyRefused, "enable the region for the account"),
    "InvalidInstanceID.NotFound": (InputRejected, "look at instance and location of the service in services.toml"),
    "InvalidInstanceID.Malformed": (InputRejected, "look at instance of the service in services.toml"),
    "InvalidInstanceId": (DependencyFailed, "is the SSM agent running, and does the instance's role let it register?"),
    "IncorrectInstanceState": (StateConflict, HINTS[StateConflict]),
    "IncorrectState": (StateConflict, HINTS[StateConflict]),
    "InsufficientInstanceCapacity": (
        DependencyFailed,
        "the zone has none of this type now: try later, in another zone, or another type (sre-agent advise)",
    ),
    "InsufficientHostCapacity": (DependencyFailed, "try later, or another type"),
    "VcpuLimitExceeded": (PolicyRefused, _QUOTA),
    "InstanceLimitExceeded": (PolicyRefused, _QUOTA),
    "MaxSpotInstanceCountExceeded": (PolicyRefused, "ask for a higher spot quota of this instance family"),
    "Unsupported": (InputRejected, "this zone or region does not have the instance type: choose another"),
    "UnsupportedOperation": (InputRejected, HINTS[InputRejected]),
    "InvalidInstanceType": (InputRejected, "this region does not have the instance type: choose another"),
    "DryRunOperation": (InputRejected, "no action needed: it was a rehearsal of the call"),
    "ResourceNotFoundException": (InputRejected, "look at log_group of the service in services.toml"),
    "InvocationDoesNotExist": (StateConflict, "no action needed: it is asked again"),
}
"""What the service's code means, and what the reader can do; a 4xx of another code is the caller's mistake."""

_THROTTLED: Final = ("Throttl", "RequestLimitExceeded", "TooManyRequests", "SlowDown", "TooManyUpdates")


def code_of(error: BaseException | None) -> str:
    """Return the service's own code of an error, empty where it has none."""
    answer: Any = getattr(error, "response", None)
    return str(answer.get("Error", {}).get("Code", "")) if isinstance(answer, dict) else ""


def translated(error: Exception, what: str) -> SreError:
    """Return our word for an error of the SDK.

    Args:
        error: What was raised.
        what: What did not happen, in one clause.
    """
    if isinstance(error, SreError):
        return error
    kind, hint = _kind(error)
    return kind(what, why=str(error)[:1000] or type(error).__name__, hint=hint)


def table() -> dict[type[Exception], type[SreError]]:
    """Return which of our errors stands for which class of theirs; subclasses follow the nearest one."""
    from botocore import exceptions as sdk

    return {
        sdk.BotoCoreError: InputRejected,  # also parameters, regions and services that cannot be
        sdk.UndefinedModelAttributeError: InputRejected,
        sdk.ClientError: DependencyFailed,  # by its code, where that says more
        sdk.HTTPClientError: DependencyFailed,
        sdk.ConnectionError: DependencyFailed,
        sdk.NoCredentialsError: CredentialsRefused,
        sdk.PartialCredentialsError: CredentialsRefused,
        sdk.CredentialRetrievalError: CredentialsRefused,
        sdk.TokenRetrievalError: CredentialsRefused,
        sdk.SSOError: CredentialsRefused,
        sdk.MetadataRetrievalError: DependencyFailed,
        OSError: DependencyFailed,
    }


def _kind(error: Exception) -> tuple[type[SreError], str]:
    code = code_of(error)
    if code in _CODES:
        return _CODES[code]
    if code.startswith(_THROTTLED):
        return DependencyFailed, "no action needed: AWS throttled the call, and it is tried again"
    status = _status(error)
    if code and 400 <= status < 500:
        return InputRejected, HINTS[InputRejected]
    kind = nearest(error, table())
    hint = {
        InputRejected: "look at location and instance of the service in services.toml",
        CredentialsRefused: "sign in: aws sso login, a profile in PLATFORM=ec2:PROFILE, or a role for this machine",
    }.get(kind, HINTS[DependencyFailed])
    return kind, hint


def _status(error: Exception) -> int:
    answer: Any = getattr(error, "response", None)
    found = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if isinstance(answer, dict) else 0
    return int(found)
