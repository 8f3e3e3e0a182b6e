"""The caller's own token for Cloud Storage, where there is one."""

from __future__ import annotations

import logging

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"


def google_token() -> str | None:
    """A read-only access token of the application default credentials.

    Returns:
        None if this machine has no credentials or they do not answer: public buckets are read without.
    """
    import google.auth
    import google.auth.exceptions
    import google.auth.transport.requests

    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        credentials.refresh(google.auth.transport.requests.Request())  # type: ignore[no-untyped-call]
    except google.auth.exceptions.GoogleAuthError as error:
        logging.getLogger(__name__).debug("no credentials: %s", type(error).__name__)
        return None
    token = credentials.token
    return token if isinstance(token, str) else None
