"""How the console and the command line of the cloud speak to the deciding function: over HTTPS, once, never again."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from agent.adapters.http.client import HttpClient
from agent.adapters.http.failure import HttpFailed
from agent.errors import DependencyFailed, InputRejected, NotFound, PolicyRefused, SreError, StateConflict
from agent.ports.decide import NoResponse
from agent.strict_json import read_json

LIMIT: Final = 33_554_432  # bytes; Cloud Run sends no more

_KINDS: Final[Mapping[int, type[SreError]]] = {
    400: InputRejected,
    401: PolicyRefused,
    403: PolicyRefused,
    404: NotFound,
    409: StateConflict,
    503: DependencyFailed,
}


class DecideClient:
    """Asks the deciding function.

    Args:
        url: Its address, without a slash at the end.
        timeout_s: How long one request with its answer may take, seconds.
    """

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._url, self._http = url, HttpClient(timeout_s=timeout_s, limit_bytes=LIMIT)

    def get(self, path: str, *, headers: Mapping[str, str], query: Mapping[str, str] | None = None) -> Any:
        """Return what stands at a place.

        Raises:
            SreError: What the function said against it, as it said it; DependencyFailed where it said nothing.
        """
        return self._ask("GET", path + (f"?{urlencode(query)}" if query else ""), headers)

    def post(self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> Any:
        """Send something once and return the answer.

        Raises:
            SreError: What the function said against it, as it said it.
            NoResponse: No answer came: nobody knows whether it was taken, and it is not sent again.
        """
        sent = {"content-type": "application/json", **(headers or {})}
        return self._ask("POST", path, sent, json.dumps(body).encode())

    def _ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Any:
        try:
            answer = self._http.request(method, self._url + path, headers=headers, body=body)
        except HttpFailed as error:
            if not error.sent:
                raise self._failed("nothing was sent", f"{self._url} cannot be reached: {error.why}") from error
            raise NoResponse(
                "`decide` did not answer",
                why=f"{self._url}: {error.why}",
                hint="the request may have been carried out; check before you send it again",
            ) from error
        return self._understood(answer.status, answer.body)

    def _understood(self, status: int, raw: bytes) -> Any:
        try:
            answer = read_json(raw, what="answer", limit=LIMIT)
        except InputRejected as error:
            raise self._strange(status) from error
        if status == 200:
            return answer
        kind = _KINDS.get(status)
        words = [answer.get(name) for name in ("what", "why", "hint")] if isinstance(answer, dict) else []
        if kind is None or not words or not all(isinstance(word, str) and word for word in words):
            raise self._strange(status)
        what, why, hint = words
        raise kind(str(what), why=str(why), hint=str(hint))

    def _strange(self, status: int) -> DependencyFailed:
        return self._failed("the answer of `decide` was not understood", f"{self._url} said HTTP {status}")

    def _failed(self, what: str, why: str) -> DependencyFailed:
        return DependencyFailed(what, why=why, hint="check that DECIDE_URL is the address of `decide` in this version")
