"""Google's APIs over REST, read only: JSON with the caller's own token, page by page."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from agent.adapters.http.client import HttpClient
from agent.adapters.http.failure import HttpFailed
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError
from agent.strict_json import read_object

TIMEOUT_S: Final = 20.0
LIMIT: Final = 16 * 2**20
MOST_PAGES: Final = 50

_KINDS: Final[Mapping[int, type[SreError]]] = {
    400: InputRejected,
    401: PolicyRefused,
    403: PolicyRefused,
    404: InputRejected,
}


class GoogleRest:
    """Sends GET requests, and no others.

    Args:
        token: Gives an access token, or None where there is none; asked once, at the first request.
        at: Returns the address to use in place of a service's own, for a stand-in; the real ones when None.
    """

    def __init__(self, token: Callable[[], str | None], *, at: Callable[[str], str] | None = None) -> None:
        self._token, self._at = token, at
        self._headers: dict[str, str] | None = None
        self._http = HttpClient(timeout_s=TIMEOUT_S, limit_bytes=LIMIT)

    def get(self, service: str, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return one answer.

        Args:
            service: Such as ``tpu`` of tpu.googleapis.com.
            path: With its slash in front.
            query: Parameters.

        Raises:
            PolicyRefused: These credentials may not, or there are none.
            InputRejected: There is no such thing.
            DependencyFailed: It does not answer, or not with JSON.
        """
        base = self._at(service) if self._at is not None else f"https://{service}.googleapis.com"
        url = f"{base}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            answer = self._http.request("GET", url, headers=self._authorized())
        except HttpFailed as error:
            raise _unread(DependencyFailed, service, error.why) from error
        try:
            body = read_object(answer.body, what="answer", limit=LIMIT)
        except InputRejected as error:
            raise _unread(DependencyFailed, service, f"HTTP {answer.status} without JSON") from error
        if answer.status != 200:
            kind = _KINDS.get(answer.status, DependencyFailed)
            raise _unread(kind, service, f"HTTP {answer.status}: {_says(body)}")
        return body

    def rows(
        self, service: str, path: str, key: str, query: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, of all pages; errors as in :meth:`pages`."""
        for body in self.pages(service, path, query):
            rows = body.get(key)
            yield from (row for row in (rows if isinstance(rows, list) else []) if isinstance(row, dict))

    def pages(self, service: str, path: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield a list's answers, page by page; errors as in :meth:`get`.

        Raises:
            DependencyFailed: Too many pages; nothing is left out silently.
        """
        asked = dict(query or {})
        for _ in range(MOST_PAGES):
            body = self.get(service, path, asked)
            yield body
            following = body.get("nextPageToken")
            if not isinstance(following, str) or not following:
                return
            asked["pageToken"] = following
        raise _unread(DependencyFailed, service, f"its list has more than {MOST_PAGES} pages")

    def _authorized(self) -> dict[str, str]:
        if self._headers is None:
            token = self._token()
            self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self._headers


def _unread(kind: type[SreError], service: str, why: str) -> SreError:
    return kind(
        f"{service}.googleapis.com was not read",
        why=why,
        hint="sign in as somebody who may: gcloud auth application-default login",
    )


def _says(body: Mapping[str, Any]) -> str:
    error = body.get("error")
    says = error.get("message") if isinstance(error, dict) else None
    return str(says)[:300] if says else "no reason given"
