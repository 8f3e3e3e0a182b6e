"""Connections that end by a time, however slowly the other side goes on speaking."""

import socket
import threading
from contextlib import suppress
from typing import TypeVar

from urllib3.connection import HTTPConnection

C = TypeVar("C", bound=HTTPConnection)


class _Cut:
    """Ends what a socket carries after some seconds; it holds a handle of its own, so that TLS may take the socket.

    Args:
        held: A socket that is connected.
        seconds: From now on.
    """

    def __init__(self, held: socket.socket, seconds: float) -> None:
        self._handle = held.dup()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def _end(self) -> None:
        with suppress(OSError):
            self._handle.shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """Let it be: the connection is closed."""
        self._timer.cancel()
        self._timer.join()
        self._handle.close()


def ending(base: type[C], seconds: float) -> type[C]:
    """Return a kind of connection that is cut ``seconds`` after it was made, or once its answer has begun.

    A time-out of a socket holds for each read, and a byte now and then is always in time. Not promised: an end of the
    answer's body; whoever reads one must count for itself.

    Args:
        base: Plain or TLS; the handshake counts.
        seconds: For everything that is said over it.
    """

    class Ending(base):  # type: ignore[valid-type, misc]
        _cut: _Cut | None = None

        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()
            self._cut = _Cut(made, seconds)
            return made

        def close(self) -> None:
            super().close()
            cut, self._cut = self._cut, None
            if cut is not None:
                cut.forget()

    return Ending
