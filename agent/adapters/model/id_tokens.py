"""ID tokens for private Cloud Run services: made for one audience, kept until shortly before they run out."""

import base64
import threading
from collections.abc import Callable

from agent.errors import DependencyFailed, InputRejected
from agent.strict_json import read_object

REFRESH_S = 300  # a token that runs out within this is made anew
_UNREAD_LIVES_S = 60  # for how long a token is kept whose end cannot be read


class IdTokens:
    """Keeps a token for each audience. For many threads.

    Args:
        fetch: Makes a token for an audience; :func:`google_id_token` in earnest.
        now: Seconds since 1970.
    """

    def __init__(self, fetch: Callable[[str], str], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[str, float]] = {}

    def token(self, audience: str) -> str:
        """Return a token that is good for some minutes yet.

        Raises:
            DependencyFailed: None can be made here.
        """
        with self._lock:
            token, until = self._kept.get(audience, ("", 0.0))
            now = self._now()
            if now >= until - REFRESH_S:
                token = self._fetch(audience)
                self._kept[audience] = (token, _runs_out(token) or now + _UNREAD_LIVES_S + REFRESH_S)
            return token


def google_id_token(audience: str) -> str:
    """Make an ID token as the identity that this process has on Google Cloud.

    Raises:
        DependencyFailed: There is no such identity, or it may not.
    """
    import google.auth.exceptions
    import google.auth.transport.requests
    import google.oauth2.id_token

    try:
        request = google.auth.transport.requests.Request()
        token = google.oauth2.id_token.fetch_id_token(request, audience)  # type: ignore[no-untyped-call]
    except google.auth.exceptions.GoogleAuthError as error:
        raise DependencyFailed(
            f"no ID token was made for {audience!r}",
            why=f"{type(error).__name__}: {str(error)[:200]}",
            hint="run as a service account that may invoke that service",
        ) from error
    return str(token)


def _runs_out(token: str) -> float | None:
    """Return when a token runs out, seconds since 1970; its signature is the server's business."""
    try:
        body = token.split(".")[1]
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        return float(read_object(raw, what="token", limit=None)["exp"])
    except (InputRejected, IndexError, KeyError, TypeError, ValueError):
        return None
