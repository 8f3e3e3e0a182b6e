"""Firestore's errors in our words: who must act, and how."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from agent.errors import DependencyFailed, InputRejected, SreError


class FirestoreTimeout(DependencyFailed):
    """It did not answer in time, or asked us to slow down; says nothing about what was to be written."""


class Rival(Exception):
    """A precondition of a write did not hold; never shown: the caller looks who wrote, and says so."""


_HINT: Final[dict[str, str]] = {
    "PermissionDenied": "give this function's account the role of its database: ./deploy.sh apply",
    "Forbidden": "give this function's account the role of its database: ./deploy.sh apply",
    "Unauthenticated": "look at the account that this function runs as",
    "Unauthorized": "look at the account that this function runs as",
    "FailedPrecondition": "make the indexes: ./deploy.sh apply",
    "NotFound": "make the database: ./deploy.sh apply",
}


@cache
def rivals() -> tuple[type[BaseException], ...]:
    """What Firestore raises where a precondition of a write did not hold."""
    from google.api_core import exceptions as api

    return (api.Aborted, api.AlreadyExists, api.FailedPrecondition, api.NotFound)


@cache
def client_errors() -> tuple[type[BaseException], ...]:
    """What the client raises, its own classes and those of the layers below it."""
    import grpc
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    return (GoogleAPIError, GoogleAuthError, grpc.RpcError, UnicodeEncodeError)


@contextmanager
def translating(database: str) -> Iterator[None]:
    """Raise what the client raises as one of our errors."""
    try:
        yield
    except client_errors() as error:
        raise translated(error, database) from error


def translated(error: BaseException, database: str) -> SreError:
    """Return our error for one of the client's.

    Args:
        error: What the client raised.
        database: As shown to people.

    Returns:
        InputRejected for a value that no try can store; DependencyFailed for all the rest, where another try can help
        or a person sees the reason.
    """
    from google.api_core import exceptions as api

    name = type(error).__name__
    said = error.reason if isinstance(error, UnicodeEncodeError) else str(getattr(error, "message", "") or error)
    why = f"{name}: {said[:300]}"
    if isinstance(error, (UnicodeEncodeError, api.InvalidArgument, api.OutOfRange)):
        return InputRejected(
            f"a value was not stored in Firestore {database!r}",
            why=why,
            hint="send less, or other characters; it is not tried again",
        )
    late = (api.DeadlineExceeded, api.GatewayTimeout, api.RetryError, api.TooManyRequests, api.ServiceUnavailable)
    kind = FirestoreTimeout if isinstance(error, late) else DependencyFailed
    hint = next((_HINT[c.__name__] for c in type(error).__mro__ if c.__name__ in _HINT), "it is tried again")
    return kind(f"Firestore {database!r} did not answer", why=why, hint=hint)
