"""An access token of the operator who runs this command, for Google's own APIs alone."""

import logging
from typing import Final

from agent.errors import DependencyFailed

READ_STORAGE: Final = "https://www.googleapis.com/auth/devstorage.read_only"
CLOUD: Final = "https://www.googleapis.com/auth/cloud-platform"
"""Cloud Quotas and Cloud TPU know no narrower one for reading (their REST references, 2026-11-22)."""


def require_access_token(scope: str) -> str:
    """Return an access token of the application default credentials.

    Args:
        scope: What it is for, where the kind of credentials lets us choose.

    Raises:
        DependencyFailed: This machine has no credentials, or they do not answer.
    """
    import google.auth
    import google.auth.exceptions
    import google.auth.transport.requests

    try:
        credentials, _ = google.auth.default(scopes=[scope])
        credentials.refresh(google.auth.transport.requests.Request())  # type: ignore[no-untyped-call]
        if not isinstance(credentials.token, str):
            raise google.auth.exceptions.RefreshError("the credentials have no token")  # type: ignore[no-untyped-call]
    except google.auth.exceptions.GoogleAuthError as error:
        raise DependencyFailed(
            "no access token for Google Cloud was made",
            why=str(error)[:200],
            hint="run: gcloud auth application-default login",
        ) from error
    return credentials.token


def access_token(scope: str) -> str | None:
    """Return the same, or None where there is none: what is public is read without."""
    try:
        return require_access_token(scope)
    except DependencyFailed as error:
        logging.getLogger(__name__).debug("no credentials: %s", type(error.__cause__).__name__)
        return None
