"""An HTTP/1.1 request that arrives in pieces: bounded in head, body and form, and refused by name where it is wrong."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import unquote_to_bytes

HEAD_LIMIT = 32_768
"""Bytes of request line and headers; an assertion of Identity-Aware Proxy has about two thousand."""

HEADERS_LIMIT = 100
CHUNK_LINE_LIMIT = 128
TRAILER_LIMIT = 4_096

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]{1,8192}) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_LENGTH = re.compile(rb"[0-9]{1,12}")


class Part(Enum):
    """Which line of a chunked body comes next."""

    SIZE = 1
    END = 2
    TRAILER = 3


class RequestRefused(Exception):
    """A request that is answered before its end: with which status, and why. It never leaves the server."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(kw_only=True)
class RequestParser:
    """One request of one connection; RFC 9112 as far as a console needs it, and strict where it leaves a choice.

    Attributes:
        limit: Most bytes of the body.
        head: What was read of the head; complete once `method` is set.
        body: What was read of the body, out of its chunks.
        method: Empty until the head is complete.
        expects: Whether the client waits for ``100 Continue`` before it sends the body.
    """

    limit: int
    head: bytearray = field(default_factory=bytearray)
    body: bytearray = field(default_factory=bytearray)
    method: str = ""
    target: bytes = b""
    version: str = "1.1"
    headers: list[tuple[str, str]] = field(default_factory=list)
    expects: bool = False
    complete: bool = False
    _left: int = 0
    _chunked: bool = False
    _expects: Part = Part.SIZE
    _trailer: int = 0
    _pending: bytearray = field(default_factory=bytearray)

    @property
    def held(self) -> int:
        """Bytes that are kept for this request."""
        return len(self.head) + len(self.body) + len(self._pending)

    def feed(self, data: bytes) -> None:
        """Take what arrived; sets `complete` with the last byte.

        Raises:
            RequestRefused: It is no request of HTTP/1.1, or too large; nothing more of it is read.
        """
        if not self.method:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                if len(self.head) > HEAD_LIMIT:
                    raise RequestRefused(431, "the head is too large")
                return
            if end > HEAD_LIMIT:
                raise RequestRefused(431, "the head is too large")
            data = bytes(self.head[end + 4 :])
            del self.head[end:]
            self._read_head()
        if self._chunked:
            self._pending += data
            self._unchunk()
        elif len(self.body) + len(data) > self._left:
            self.body += data[: self._left - len(self.body)]  # what follows is no part of this request
        else:
            self.body += data
        self.complete = self.complete or (not self._chunked and len(self.body) == self._left)

    def _read_head(self) -> None:
        lines = bytes(self.head).split(b"\r\n")
        first = _REQUEST_LINE.fullmatch(lines[0])
        if first is None:
            raise RequestRefused(400, "the first line is no request")
        if len(lines) > HEADERS_LIMIT:
            raise RequestRefused(431, "too many headers")
        for line in lines[1:]:
            header = _HEADER.fullmatch(line)
            if header is None:
                raise RequestRefused(400, "a header is not well-formed")
            self.headers.append((header[1].decode("ascii"), header[2].rstrip(b" \t").decode("latin-1")))
        self.target, self.version = first[2], f"1.{first[3].decode()}"
        self._frame()
        self.method = first[1].decode("ascii")

    def _frame(self) -> None:
        """Find how long the body is; two answers are none (RFC 9112, 6.3)."""
        lengths = [value for name, value in self.headers if name.lower() == "content-length"]
        codings = [value.lower() for name, value in self.headers if name.lower() == "transfer-encoding"]
        if len(lengths) > 1 or (lengths and codings):
            raise RequestRefused(400, "the length of the body is said twice")
        if codings:
            if codings != ["chunked"]:
                raise RequestRefused(501, "a transfer coding that is not 'chunked'")
            self._chunked = True
        elif lengths:
            if _LENGTH.fullmatch(lengths[0].encode("latin-1")) is None:
                raise RequestRefused(400, "the length of the body is no number")
            self._left = int(lengths[0])
            if self._left > self.limit:
                raise RequestRefused(413, f"the body has {self._left} bytes, at most {self.limit} are taken")
        waits = any(name.lower() == "expect" and value.lower() == "100-continue" for name, value in self.headers)
        self.expects = waits and (self._chunked or self._left > 0)

    def _unchunk(self) -> None:
        """Take whole pieces of chunks out of what is pending; `_left` bytes of the present chunk are missing."""
        while not self.complete:
            if self._left > 0:
                piece = self._pending[: self._left]
                if not piece:
                    return
                self.body += piece
                del self._pending[: len(piece)]
                self._left -= len(piece)
                if self._left == 0:
                    self._expects = Part.END
                continue
            end = self._pending.find(b"\r\n")
            if end < 0:
                if len(self._pending) > CHUNK_LINE_LIMIT + TRAILER_LIMIT:
                    raise RequestRefused(400, "a chunk is not well-formed")
                return
            line = bytes(self._pending[:end])
            del self._pending[: end + 2]
            self._chunk_line(line)

    def _chunk_line(self, line: bytes) -> None:
        if self._expects is Part.END:
            if line:
                raise RequestRefused(400, "a chunk is longer than it says")
            self._expects = Part.SIZE
        elif self._expects is Part.TRAILER:
            self._trailer += len(line)
            if self._trailer > TRAILER_LIMIT:
                raise RequestRefused(400, "the trailer is too large")
            self.complete = not line
        else:
            size = _CHUNK.fullmatch(line)
            if size is None or len(line) > CHUNK_LINE_LIMIT:
                raise RequestRefused(400, "the size of a chunk is no number")
            self._left = int(size[1], 16)
            if len(self.body) + self._left > self.limit:
                raise RequestRefused(413, f"the body has more than {self.limit} bytes")
            if self._left == 0:
                self._expects = Part.TRAILER

    def environ(self) -> dict[str, Any]:
        """Return the WSGI environment of the request (PEP 3333), without streams and addresses.

        Raises:
            RequestRefused: The target is neither a path nor an address with one.
        """
        target = self.target
        if not target.startswith(b"/"):
            scheme, sign, rest = target.partition(b"://")
            if not sign or scheme.lower() not in {b"http", b"https"}:
                raise RequestRefused(400, "the target is no path")
            target = b"/" + rest.partition(b"/")[2]
        path, _, query = target.partition(b"?")
        found: dict[str, Any] = {
            "REQUEST_METHOD": self.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query.decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{self.version}",
        }
        for name, value in self.headers:
            if "_" in name:  # indistinguishable from a hyphen in the environment
                continue
            key = name.upper().replace("-", "_")
            if key in {"TRANSFER_ENCODING", "CONTENT_LENGTH", "CONNECTION", "PROXY"}:
                continue
            key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
            found[key] = f"{found[key]},{value}" if key in found else value
        found["CONTENT_LENGTH"] = str(len(self.body))
        return found
