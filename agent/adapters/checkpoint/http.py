"""A checkpoint behind HTTPS: ranges only, redirects by our own rules, the token for its own host alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import requests
import urllib3

from agent.adapters.checkpoint.names import plain
from agent.errors import DependencyFailed, InputRejected
from agent.ports.checkpoint import CheckpointFileMissing, Piece

MAX_REDIRECTS: Final = 5
CONNECT_S: Final = 10.0
READ_S: Final = 30.0
_CHUNK: Final = 64 * 1024
_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class HttpCheckpoint:
    """Reads ranges of the files under one address.

    Only https is spoken, and http to this machine. A redirect may lead to another host (that is how the hub
    serves files) but never from https to http, and the token stays behind. Cookies and .netrc are not used.

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
        _check_scheme(base)
        self._base = base.rstrip("/") + "/"
        self._source = source or self._base
        self._token = token
        self._read_s = read_s
        self._session = requests.Session()

    @property
    def source(self) -> str:
        """Where the files lie."""
        return self._source

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def read(self, name: str, *, start: int, length: int) -> Piece:
        """Read part of a file; see the port."""
        url = urljoin(self._base, quote(plain(name)))
        deadline = time.monotonic() + self._read_s
        token = self._token() if self._token else None
        headers = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
        try:
            response = self._get(url, headers, token)
            with response:
                return self._piece(response, name, start, length, deadline)
        except requests.RequestException as error:
            raise _failed(self._source, name, type(error).__name__) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:  # requests wraps neither while a raw body is read
            raise _failed(self._source, name, type(error).__name__) from error

    def _get(self, url: str, headers: Mapping[str, str], token: str | None) -> requests.Response:
        home = urlsplit(url)
        for _ in range(MAX_REDIRECTS + 1):
            at_home = (urlsplit(url).scheme, urlsplit(url).netloc) == (home.scheme, home.netloc)
            sent = {**headers, "Authorization": f"Bearer {token}"} if token and at_home else dict(headers)
            response = self._session.get(
                url, headers=sent, stream=True, allow_redirects=False, timeout=(CONNECT_S, self._read_s), auth=_no_netrc
            )
            self._session.cookies.clear()
            if not response.is_redirect:
                return response
            target = urljoin(url, response.headers["location"])
            response.close()
            _check_scheme(target, before=url)
            url = target
        raise _refused(home.hostname or "", f"it redirects more than {MAX_REDIRECTS} times")

    def _piece(self, response: requests.Response, name: str, start: int, length: int, deadline: float) -> Piece:
        status = response.status_code
        if status in {401, 403, 404, 410}:
            why = "there is no such file" if status in {404, 410} else "it is missing, or not open to this caller"
            mend = "check the name; a gated model needs your token (HF_TOKEN), a bucket your sign-in"
            raise CheckpointFileMissing(
                f"{name!r} of {self._source!r} was not read", why=f"{why} ({status})", mend=mend
            )
        if status == 416:
            return Piece(data=b"", file_bytes=None)
        if status not in {200, 206}:
            raise _failed(self._source, name, f"status {status}")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise _refused(self._source, f"it answers {name!r} compressed, which hides the range")
        skip, size = (start, response.headers.get("Content-Length", "")) if status == 200 else (0, "")
        if status == 206:
            match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if match is None or int(match[1]) != start:
                raise _refused(self._source, f"it answers another range of {name!r} than was asked")
            size = match[3]
        data = self._body(response, skip + length, name, deadline)[skip:]
        return Piece(data=data, file_bytes=int(size) if size.isdecimal() else None)

    def _body(self, response: requests.Response, most: int, name: str, deadline: float) -> bytes:
        """At most ``most`` bytes: a server that ignores ranges is hung up on, not listened to."""
        held = bytearray()
        while len(held) < most:
            chunk = response.raw.read1(min(_CHUNK, most - len(held)), decode_content=False)
            if not chunk:
                break
            held += chunk
            if time.monotonic() > deadline:
                raise _failed(self._source, name, f"it took more than {self._read_s:g} s")
        return bytes(held)


def _no_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _check_scheme(url: str, before: str = "") -> None:
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    came_from_outside = bool(before) and urlsplit(before).hostname not in _LOOPBACK
    if (parts.scheme == "https" and parts.hostname) or (local and not came_from_outside):
        return
    raise _refused(parts.hostname or url[:80], f"{parts.scheme or 'no scheme'!r} is not spoken, want https")


def _refused(where: str, why: str) -> InputRejected:
    return InputRejected(f"the checkpoint at {where!r} was not read", why=why, mend="give another address")


def _failed(source: str, name: str, why: str) -> DependencyFailed:
    return DependencyFailed(f"{name!r} of {source!r} was not read", why=why, mend="try again, or copy it to a folder")
