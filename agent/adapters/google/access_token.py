"""An access token of whoever runs this command, for Google's own APIs alone."""

import logging
from typing import Final

READ_STORAGE: Final = "https://www.googleapis.com/auth/devstorage.read_only"
CLOUD: Final = "https://www.googleapis.com/auth/cloud-platform"
"""Cloud Quotas and Cloud TPU know no narrower one for reading (their REST references, 2026-11-22)."""


def access_token(scope: str) -> str | None:
    """Return an access token of the application default credentials.

    Args:
        scope: What it is for, where the kind of credentials lets us choose.

    Returns:
        None if this machine has no credentials or they do not answer: what is public is read without.
    """
    import google.auth
    import google.auth.exceptions
    import google.auth.transport.requests

    try:
        credentials, _ = google.auth.default(scopes=[scope])
        credentials.refresh(google.auth.transport.requests.Request())  # type: ignore[no-untyped-call]
    except google.auth.exceptions.GoogleAuthError as error:
        logging.getLogger(__name__).debug("no credentials: %s", type(error).__name__)
        return None
    token = credentials.token
    return token if isinstance(token, str) else None
