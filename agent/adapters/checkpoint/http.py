"""A checkpoint behind HTTPS: ranges only, redirects by our own rules, the token for its own host alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit

from agent.adapters.checkpoint.read import plain
from agent.adapters.http.client import HttpClient
from agent.adapters.http.failure import HttpFailed
from agent.adapters.http.target import PlainHttp, TargetRefused, parse_target
from agent.errors import DependencyFailed, InputRejected
from agent.ports.checkpoint import CheckpointFileMissing, Piece

if TYPE_CHECKING:
    from agent.adapters.http.wire import Response

MAX_REDIRECTS: Final = 5
READ_S: Final = 30.0
_AHEAD: Final = 1_048_576  # bytes of headers, and of what a server sends before we hang up
_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


class HttpCheckpoint:
    """Reads ranges of the files under one address.

    Only https is spoken, and http to this machine. A redirect may lead to another host (that is how the hub
    serves files) but never from https to http, and the token stays behind.

    Args:
        base: Address of the folder, without query or user.
        source: How to show it ("gs://bucket/x", "hf:owner/name"); the address itself when empty.
        token: Gives the caller's bearer token when asked, or None.
        read_s: Longest a single range may take, in seconds.
    """

    def __init__(
        self, base: str, *, source: str = "", token: Callable[[], str | None] | None = None, read_s: float = READ_S
    ) -> None:
        parts = urlsplit(base)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise _refused(parts.hostname or "", "an address with user, query or fragment may hold a secret")
        try:
            parse_target(base, PlainHttp.LOOPBACK)
        except TargetRefused as error:
            raise _refused(parts.hostname or base[:80], error.why) from error
        self._base = base.rstrip("/") + "/"
        self._source = source or self._base
        self._token = token
        self._read_s = read_s
        self._http = HttpClient(timeout_s=read_s, redirects=MAX_REDIRECTS, keep_alive=True)

    @property
    def source(self) -> str:
        """Where the files lie."""
        return self._source

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def read(self, name: str, *, start: int, length: int) -> Piece:
        """Read part of a file; see the port."""
        url = urljoin(self._base, quote(plain(name)))
        token = self._token() if self._token else None
        headers = {"Range": f"bytes={start}-{start + length - 1}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            with self._http.stream("GET", url, headers=headers, limit_bytes=start + length + _AHEAD) as response:
                return self._piece(response, name, start, length)
        except TargetRefused as error:
            raise _refused(urlsplit(url).hostname or "", error.why) from error
        except HttpFailed as error:
            raise _failed(self._source, name, error.why) from error

    def _piece(self, response: Response, name: str, start: int, length: int) -> Piece:
        status = response.status
        if status in {401, 403, 404, 410}:
            why = "there is no such file" if status in {404, 410} else "it is missing, or not open to this caller"
            hint = "check the name; a gated model needs your token (HF_TOKEN), a bucket your sign-in"
            raise CheckpointFileMissing(
                f"{name!r} of {self._source!r} was not read", why=f"{why} ({status})", hint=hint
            )
        if status == 416:
            return Piece(data=b"", file_bytes=None)
        if status not in {200, 206}:
            raise _failed(self._source, name, f"status {status}")
        skip, size = (start, response.headers.get("content-length", "")) if status == 200 else (0, "")
        if status == 206:
            match = _RANGE.fullmatch(response.headers.get("content-range", ""))
            if match is None or int(match[1]) != start:
                raise _refused(self._source, f"it answers another range of {name!r} than was asked")
            size = match[3]
        data = response.read(skip + length)[skip:]
        return Piece(data=data, file_bytes=int(size) if size.isdecimal() else None)


def _refused(where: str, why: str) -> InputRejected:
    return InputRejected(f"the checkpoint at {where!r} was not read", why=why, hint="give another address")


def _failed(source: str, name: str, why: str) -> DependencyFailed:
    return DependencyFailed(f"{name!r} of {source!r} was not read", why=why, hint="try again, or copy it to a folder")
