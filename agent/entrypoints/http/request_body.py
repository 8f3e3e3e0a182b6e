"""The body of a deployed function's request: never more than its limit, never longer than its time, never a crash."""

import contextlib
import io
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from agent.errors import InputRejected

if TYPE_CHECKING:
    from flask import Request

READ_S = 3.0  # Slack's own patience; Cloud Run's front end sends a body as fast as it came
GRACE_S = 0.25  # nobody is dropped for somebody else before
FREE_SHARE = 4  # one thread of so many is never held by a body that is still coming


class BodyRefused(InputRejected):
    """A body that was not read to its end.

    Attributes:
        status: 413 too large, 408 too slow, 400 not well-formed.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__("the request was not read", why=why, hint="send it again, whole and within the limit")
        self.status = status


class BodyReader:
    """Reads bodies for the threads of one process.

    functions-framework reads what is left of a body after the function has answered, whatever its size, and a thread
    waits for a slow body as long as it takes. So a refused body is cut off at the connection, and a watchdog cuts off
    those whose time is over, or the slowest where too many threads read.

    Args:
        threads: Of the web server; at least one of `FREE_SHARE` is never held by a body that is still coming.
        read_s: The most seconds for a body.
    """

    def __init__(self, threads: int, *, read_s: float = READ_S) -> None:
        self._most = max(1, threads - max(1, threads // FREE_SHARE))
        self._read_s = read_s
        self._lock = threading.Condition()
        self._reading: dict[int, tuple[float, socket.socket | None]] = {}
        self._cut: set[int] = set()
        self._number = 0
        self._watching = False

    def read(self, request: "Request", limit: int) -> bytes:
        """Return the body.

        Args:
            request: Of functions-framework; nothing is left of its body afterwards.
            limit: Most bytes.

        Raises:
            BodyRefused: It is larger, too slow, or breaks off; the rest is never read.
        """
        length = request.content_length
        if length is not None and length > limit:
            self._end(request)
            raise BodyRefused(413, f"it has {length} bytes, at most {limit} are taken")
        number = self._begin(_socket_of(request))
        try:
            body = request.stream.read(limit + 1)
            wrong = "" if length is None or len(body) >= length else "it ended before its length"
        except Exception as error:  # noqa: BLE001 - each web server has errors of its own for a client's mistakes
            body, wrong = b"", f"it is not well-formed: {type(error).__name__}"
        finally:
            cut = self._finish(number)
        if cut:
            self._end(request)
            raise BodyRefused(408, f"it took more than {self._read_s:g} s, or others waited for its thread")
        if len(body) > limit:
            self._end(request)
            raise BodyRefused(413, f"it has more than {limit} bytes")
        if wrong:
            self._end(request)
            raise BodyRefused(400, wrong)
        _leave_nothing(request)
        return body

    def _begin(self, sock: socket.socket | None) -> int:
        with self._lock:
            self._number += 1
            self._reading[self._number] = (time.monotonic(), sock)
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="request-bodies", daemon=True).start()
            self._lock.notify()
            return self._number

    def _finish(self, number: int) -> bool:
        with self._lock:
            self._reading.pop(number, None)
            cut = number in self._cut
            self._cut.discard(number)
            return cut

    def _watch(self) -> None:
        """Cut off whoever is over its time; runs while the process does, and sleeps while nobody reads."""
        while True:
            with self._lock:
                while not self._reading:
                    self._lock.wait()
                self._cut_off(time.monotonic())
            time.sleep(GRACE_S / 2)

    def _cut_off(self, now: float) -> None:
        crowded = len(self._reading) - self._most
        for position, (number, (since, sock)) in enumerate(list(self._reading.items())):
            age_s = now - since
            if number not in self._cut and (age_s > self._read_s or (position < crowded and age_s > GRACE_S)):
                self._cut.add(number)
                _shut(sock)

    @staticmethod
    def _end(request: "Request") -> None:
        """Make the server see the end of the body, so that nobody reads the rest."""
        _leave_nothing(request)
        _shut(_socket_of(request))


def _leave_nothing(request: Any) -> None:
    request.stream = io.BytesIO()


def _socket_of(request: "Request") -> socket.socket | None:
    return request.environ.get("gunicorn.socket") or request.environ.get("werkzeug.socket")


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RD)
