"""Errors of Google's client libraries as ours: which class is meant, what it says, and what to do."""

import re
from dataclasses import dataclass

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

_QUOTA = re.compile(
    r"quota violated|quota exceeded|allowable count of|insufficient .{0,40}quota|requested: \d+ allowed:", re.IGNORECASE
)
_RATE = re.compile(r"per[ _]minute|per[ _]second|rate[ _]?limit|RATE_LIMIT|too many requests", re.IGNORECASE)
_MOVED_ON = re.compile(r"\betag\b|conflict for resource|\bversion .{0,60}was specified", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What to do about the errors of one API.

    Attributes:
        refused: A right is missing; names the rights that the adapter's calls need.
        not_found: There is no such resource.
        quota: There is no quota for it.
    """

    refused: str
    not_found: str
    quota: str


def translated(error: Exception, what: str, hints: Hints) -> SreError:
    """Return our word for an error of a client library, of its credentials, or of gRPC itself.

    Args:
        error: What was raised.
        what: What did not happen, in one clause.
        hints: What to do about it, by kind.
    """
    if isinstance(error, SreError):
        return error
    why = error_text(error)
    kind = nearest(error, table())
    if kind in {InputRejected, DependencyFailed, PolicyRefused} and _QUOTA.search(why) and not _RATE.search(why):
        return PolicyRefused(what, why=why, hint=hints.quota)
    if kind is InputRejected and _MOVED_ON.search(why):
        kind = StateConflict
    return kind(what, why=why, hint=_hint(kind, error, hints))


def error_text(error: Exception) -> str:
    """Return what an error says, short enough to keep."""
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text)[:1000]


def table() -> dict[type[Exception], type[SreError]]:
    """Return which of our errors stands for which class of theirs; subclasses follow the nearest one."""
    import grpc
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    return {
        api.NotFound: InputRejected,
        api.BadRequest: InputRejected,  # also InvalidArgument, FailedPrecondition, OutOfRange
        api.LengthRequired: InputRejected,
        api.RequestRangeNotSatisfiable: InputRejected,
        api.MethodNotAllowed: InputRejected,
        api.MethodNotImplemented: InputRejected,
        api.DuplicateCredentialArgs: InputRejected,
        api.AsyncRestUnsupportedParameterError: InputRejected,
        api.Conflict: StateConflict,  # also Aborted, AlreadyExists
        api.PreconditionFailed: StateConflict,
        api.Forbidden: PolicyRefused,  # also PermissionDenied
        api.Unauthorized: CredentialsRefused,  # also Unauthenticated
        api.TooManyRequests: DependencyFailed,  # also ResourceExhausted; of quota, PolicyRefused
        api.Cancelled: DependencyFailed,
        api.Redirection: DependencyFailed,
        api.ServerError: DependencyFailed,  # also Unavailable, DeadlineExceeded, Internal, Unknown, DataLoss
        api.ResumableTransferError: DependencyFailed,
        api.RetryError: DependencyFailed,
        api.ClientError: DependencyFailed,
        api.GoogleAPICallError: DependencyFailed,
        api.GoogleAPIError: DependencyFailed,
        auth.TransportError: DependencyFailed,
        auth.TimeoutError: DependencyFailed,
        auth.ResponseError: DependencyFailed,
        auth.GoogleAuthError: CredentialsRefused,  # credentials that are missing, malformed or expired
        grpc.RpcError: DependencyFailed,
    }


def _hint(kind: type[SreError], error: Exception, hints: Hints) -> str:
    if type(error).__name__ == "NotFound":
        return hints.not_found
    return hints.refused if issubclass(kind, PolicyRefused) else HINTS[kind]
