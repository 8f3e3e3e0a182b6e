"""A small web server that slow or crowding clients cannot hold: threads work only for requests that were read whole."""

import contextlib
import errno
import io
import os
import queue
import resource
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from wsgiref.handlers import SimpleHandler

from agent.entrypoints.console.request_parser import RequestParser, RequestRefused
from agent.entrypoints.http.slack_request import BODY_LIMIT
from agent.structured_log import structlog

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

BACKLOG = 1024
READ_S = 10.0  # for a whole request; whoever needs longer is answered 408
WRITE_S = 20.0
TURN_S = 0.1  # so long may it take to notice that the server is to end, or that a request is overdue
LINGER_S = 1.0  # after a refusal, so that the client can read it before the connection is reset
HELD_LIMIT = 33_554_432  # bytes of unfinished requests of all connections
CONNECTIONS = 1500
SPARE_FILES = 10  # of the process's limit, for databases and clients of the workers
DECIDERS, READERS = 4, 8
QUEUE = 256  # requests of each pool that wait for a thread; more are answered 503

log = structlog.get_logger(__name__)


class _Client:
    """One connection: what it sends, until when it may, and what it is sent."""

    def __init__(self, sock: socket.socket, peer: tuple[str, int], limit: int) -> None:
        self.sock, self.peer = sock, peer
        self.request = RequestParser(limit=limit)
        self.until = time.monotonic() + READ_S
        self.out: deque[memoryview] = deque()
        self.state = "reads"
        self.held = 0


class _Handler(SimpleHandler):
    """Runs the application for one request and keeps its answer."""

    server_software = "sre-agent"
    http_version = "1.1"
    wsgi_run_once = False
    os_environ: dict[str, str] = {}  # noqa: RUF012 - the process's own variables are no part of a request

    def log_exception(self, exc_info: Any) -> None:
        """Say it in the log of the service, not to the client."""
        log.error("console.failed", exc_info=exc_info)

    def error_output(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:  # noqa: ARG002
        """Answer for an application that raised."""
        start_response("500 Internal Server Error", [("Content-Type", "text/plain")], sys.exc_info())
        return [b"failed; the log says why\n"]

    def cleanup_headers(self) -> None:
        """One request for each connection."""
        super().cleanup_headers()
        self.headers: Any  # the typing of the library leaves it out
        self.headers["Connection"] = "close"


class _Pool:
    """A few threads and a bounded queue."""

    def __init__(self, name: str, count: int, work: Callable[[_Client], None]) -> None:
        self._queue: queue.Queue[_Client | None] = queue.Queue(QUEUE)
        self._work, self._count, self._name = work, count, name

    def start(self) -> None:
        for number in range(self._count):
            threading.Thread(target=self._run, name=f"{self._name}-{number}", daemon=True).start()

    def take(self, client: _Client) -> bool:
        """Queue a request; False where too many wait."""
        try:
            self._queue.put_nowait(client)
        except queue.Full:
            return False
        return True

    def _run(self) -> None:
        while (client := self._queue.get()) is not None:
            self._work(client)

    def end(self) -> None:
        """Let the threads go once the queue is empty."""
        for _ in range(self._count):
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                return


class ConsoleServer:
    """An HTTP server that reads every request whole before a thread works for it.

    One thread reads and writes all connections without waiting for any, so a client that is slow with its head, its
    body or the answer holds nothing but its own connection, for `READ_S` or `WRITE_S` seconds. Whatever is posted (a
    decision is) has threads and a queue of its own beside those of the pages. Where connections or file descriptors run
    out, the oldest unfinished request is dropped for the newest.

    Args:
        app: The web application; may be replaced before ``serve_forever``.
        listener: A listening socket; closed with the server.
        limit: Most bytes of a body.
        connections: Most connections at once; None takes what the limit of open files leaves, `CONNECTIONS` at most.
    """

    def __init__(
        self, app: Wsgi, *, listener: socket.socket, limit: int = BODY_LIMIT, connections: int | None = None
    ) -> None:
        self.app = app
        self.server_address: tuple[str, int] = listener.getsockname()
        self.server_port = self.server_address[1]
        self._listener, self._limit = listener, limit
        self._most = connections
        self._clients: dict[socket.socket, _Client] = {}
        self._ready: queue.SimpleQueue[_Client] = queue.SimpleQueue()
        self._deciders = _Pool("console-decides", DECIDERS, self._answer)
        self._readers = _Pool("console-reads", READERS, self._answer)
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._held = 0  # bytes of unfinished requests
        self._looked_at = self._listens_again = 0.0

    def serve_forever(self) -> None:
        """Serve until :meth:`shutdown`."""
        self._selector = selectors.DefaultSelector()
        self._waker, self._wakened = socket.socketpair()
        self._listener.setblocking(False)
        self._waker.setblocking(False)
        self._wakened.setblocking(False)
        if self._most is None:
            self._most = _connections()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wakened, selectors.EVENT_READ)
        self._deciders.start()
        self._readers.start()
        try:
            while not self._stopping.is_set():
                self._turn()
        finally:
            self._close()

    def shutdown(self) -> None:
        """End :meth:`serve_forever` and wait for it; a request that is being worked on gets no answer any more."""
        self._stopping.set()
        self._stopped.wait(10)

    def close(self) -> None:
        """Give the port back; done already where the server ran to its end."""
        self._listener.close()

    def _turn(self) -> None:
        for key, _ in self._selector.select(TURN_S):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._wakened:
                self._drain()
            elif (client := self._clients.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                self._serve(client)
        now = time.monotonic()
        if now - self._looked_at >= 0.25:
            self._looked_at = now
            for client in [client for client in self._clients.values() if client.until < now]:
                self._overdue(client)
        if self._listens_again and now >= self._listens_again:
            self._listens_again = 0.0
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _accept(self) -> None:
        """Take what is in the listen queue, a little at a time; the oldest unfinished request makes room for it."""
        for _ in range(64):
            if len(self._clients) >= (self._most or CONNECTIONS) and not self._drop_oldest():
                self._rest()
                return
            try:
                sock, peer = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    if not self._drop_oldest():
                        self._rest()
                    return
                continue  # the client went away while it was waiting
            sock.setblocking(False)
            self._clients[sock] = _Client(sock, peer, self._limit)
            self._selector.register(sock, selectors.EVENT_READ)

    def _rest(self) -> None:
        """Let the listen queue wait a moment, for nothing can be taken and looking again at once would spin."""
        self._selector.unregister(self._listener)
        self._listens_again = time.monotonic() + 0.1

    def _drop_oldest(self) -> bool:
        """Close the connection that has been unfinished for longest; False where all are being worked on."""
        client = next((c for c in self._clients.values() if c.state in {"reads", "lingers"}), None)
        if client is not None:
            self._forget(client)
        return client is not None

    def _serve(self, client: _Client) -> None:
        try:
            if client.state == "writes":
                self._write(client)
            elif client.state == "lingers":
                if not client.sock.recv(65_536):
                    self._forget(client)
            else:
                self._read(client)
        except BlockingIOError:
            return
        except OSError:
            self._forget(client)

    def _read(self, client: _Client) -> None:
        data = client.sock.recv(65_536)
        if not data:
            self._forget(client)
            return
        try:
            client.request.feed(data)
        except RequestRefused as refused:
            self._refuse(client, refused.status, refused.why)
            return
        self._held += client.request.held - client.held
        client.held = client.request.held
        if client.request.expects:
            client.request.expects = False
            client.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if client.request.complete:
            self._pass_on(client)
        elif self._held > HELD_LIMIT:
            self._drop_oldest()

    def _pass_on(self, client: _Client) -> None:
        pool = self._readers if client.request.method in {"GET", "HEAD"} else self._deciders
        self._count_out(client)
        client.state = "waits"
        client.until = float("inf")
        self._selector.unregister(client.sock)
        if not pool.take(client):
            self._refuse(client, 503, "too many requests wait", registered=False)

    def _answer(self, client: _Client) -> None:
        """Work for one request; runs in a thread of a pool."""
        request = client.request
        out = io.BytesIO()
        try:
            environ = request.environ() | {"REMOTE_ADDR": client.peer[0], "REMOTE_PORT": str(client.peer[1])}
            environ |= {
                "SERVER_NAME": self.server_address[0],
                "SERVER_PORT": str(self.server_port),
                "wsgi.input_terminated": True,
            }
            handler = _Handler(io.BytesIO(request.body), out, sys.stderr, environ, multithread=True, multiprocess=False)
            handler.run(self.app)
            said = out.getvalue()
        except RequestRefused as refused:
            said = _refusal(refused.status, refused.why)
        except Exception:
            log.exception("console.failed")
            said = _refusal(500, "failed; the log says why")
        client.request = RequestParser(limit=self._limit)
        client.out.append(memoryview(said))
        self._ready.put(client)
        self._wake()

    def _drain(self) -> None:
        """Begin to send what the threads have ready."""
        with contextlib.suppress(BlockingIOError):
            while self._wakened.recv(4096):
                continue
        while not self._ready.empty():
            client = self._ready.get()
            if client.sock in self._clients:
                self._begin_writing(client, registered=False)

    def _begin_writing(self, client: _Client, *, registered: bool) -> None:
        client.state = "writes"
        client.until = time.monotonic() + WRITE_S
        change = self._selector.modify if registered else self._selector.register
        change(client.sock, selectors.EVENT_WRITE)

    def _write(self, client: _Client) -> None:
        while client.out:
            piece = client.out[0]
            sent = client.sock.send(piece)
            if sent < len(piece):
                client.out[0] = piece[sent:]
                return
            client.out.popleft()
        client.sock.shutdown(socket.SHUT_WR)
        client.state = "lingers"
        client.until = time.monotonic() + LINGER_S
        self._selector.modify(client.sock, selectors.EVENT_READ)

    def _count_out(self, client: _Client) -> None:
        self._held -= client.held
        client.held = 0

    def _refuse(self, client: _Client, status: int, why: str, *, registered: bool = True) -> None:
        self._count_out(client)
        client.request = RequestParser(limit=self._limit)
        client.out.append(memoryview(_refusal(status, why)))
        self._begin_writing(client, registered=registered)

    def _overdue(self, client: _Client) -> None:
        if client.state == "reads":
            self._refuse(client, 408, "the request took too long")
        else:
            self._forget(client)

    def _forget(self, client: _Client) -> None:
        if self._clients.pop(client.sock, None) is not None:
            self._count_out(client)
            with contextlib.suppress(KeyError):
                self._selector.unregister(client.sock)
            client.sock.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is awake already; closed: nobody sleeps
            self._waker.send(b"x")

    def _close(self) -> None:
        self._deciders.end()
        self._readers.end()
        for client in list(self._clients.values()):
            self._forget(client)
        self._selector.close()
        for sock in (self._listener, self._waker, self._wakened):
            sock.close()
        self._stopped.set()


def _connections() -> int:
    """Return how many connections the limit of open files leaves."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"  # noqa: PTH112 - a count, no path of ours
    used = len(os.listdir(folder)) if os.path.isdir(folder) else SPARE_FILES  # noqa: PTH208, PTH112
    return max(2, min(CONNECTIONS, soft - used - SPARE_FILES))


def _refusal(status: int, why: str) -> bytes:
    said = f"{why}\n".encode()
    retry = "Retry-After: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\n"
        f"X-Content-Type-Options: nosniff\r\n{retry}Content-Length: {len(said)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + said
