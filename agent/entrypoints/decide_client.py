"""How the console and the command line of the cloud speak to the deciding function: over HTTPS, once, never again."""

import json
from collections.abc import Mapping
from typing import Any, Final

from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.strict_json import read_json

TIMEOUT_S: Final = 30.0
LIMIT: Final = 33_554_432  # bytes; Cloud Run sends no more

_KINDS: Final[Mapping[int, type[SreError]]] = {
    400: InputRejected,
    401: PolicyRefused,
    403: PolicyRefused,
    404: InputRejected,
    409: StateConflict,
    503: DependencyFailed,
}


class Unheard(DependencyFailed):
    """The request went out and no answer came: nobody knows what became of it."""


class DecideClient:
    """Asks the deciding function.

    Args:
        url: Its address, without a slash at the end.
        timeout_s: How long a connection or a silence may last, seconds.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._timeout_s = url, timeout_s

    def get(self, path: str, *, headers: Mapping[str, str], query: Mapping[str, str] | None = None) -> Any:
        """Return what stands at a place.

        Raises:
            SreError: What the function said against it, as it said it; DependencyFailed where it said nothing.
        """
        return self._ask("GET", path, headers=headers, params=dict(query or {}))

    def post(self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> Any:
        """Send something once and return the answer.

        Raises:
            SreError: What the function said against it, as it said it.
            Unheard: No answer came: nobody knows whether it was taken, and it is not sent again.
        """
        sent = {"content-type": "application/json", **(headers or {})}
        return self._ask("POST", path, headers=sent, data=json.dumps(body).encode())

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        import requests
        from urllib3.exceptions import HTTPError

        try:
            with requests.Session() as session:
                session.trust_env = self._url.startswith("https:")  # no proxy stands before this very machine
                with session.request(
                    method, self._url + path, timeout=self._timeout_s, stream=True, allow_redirects=False, **more
                ) as answer:
                    raw = answer.raw.read(LIMIT + 1, decode_content=True) or b""
                    return self._understood(answer.status_code, raw)
        except (requests.RequestException, HTTPError, OSError) as error:
            if isinstance(error, requests.ConnectTimeout) or _never_connected(error):
                raise self._failed("nothing was sent", f"{self._url} cannot be reached") from error
            raise Unheard(
                "`decide` did not answer",
                why=f"{self._url}: {type(error).__name__} after it was asked",
                mend="it may have done what it was asked for; look before you ask again",
            ) from error

    def _understood(self, status: int, raw: bytes) -> Any:
        try:
            told = read_json(raw, what="answer", limit=LIMIT)
        except InputRejected as error:
            raise self._strange(status) from error
        if status == 200:
            return told
        kind = _KINDS.get(status)
        words = [told.get(name) for name in ("what", "why", "mend")] if isinstance(told, dict) else []
        if kind is None or not words or not all(isinstance(word, str) and word for word in words):
            raise self._strange(status)
        what, why, mend = words
        raise kind(str(what), why=str(why), mend=str(mend))

    def _strange(self, status: int) -> DependencyFailed:
        return self._failed("`decide` did not answer as it does", f"{self._url} said HTTP {status}")

    def _failed(self, what: str, why: str) -> DependencyFailed:
        return DependencyFailed(what, why=why, mend="is DECIDE_URL the address of `decide`, of this version?")


def _never_connected(error: Exception) -> bool:
    from urllib3.exceptions import NewConnectionError

    first = error.args[0] if error.args else None
    return isinstance(getattr(first, "reason", None), NewConnectionError)
