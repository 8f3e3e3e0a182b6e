"""The part of a kubelet that serves logs, for a control plane without one: the API server asks it for ``pods/log``.

It speaks ``GET /containerLogs/NAMESPACE/POD/CONTAINER`` over TLS with the parameters previous, timestamps,
tailLines, limitBytes, sinceTime and follow, as pkg/kubelet/server of Kubernetes 1.20 does. What it serves is given to
it: no real kubelet is behind it.
"""

import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

BEGAN = timedelta(minutes=10)


class LiveLog:
    """The log of a container that runs: it grows, ends with its container, and its readers can be cut off."""

    def __init__(self) -> None:
        self._lines: list[tuple[datetime, str]] = []
        self._changed = threading.Condition()
        self._cuts = 0
        self._ended = False
        self.readers = 0

    def say(self, *lines: str, at: datetime | None = None) -> None:
        """Print lines now, or at another moment."""
        with self._changed:
            now = at or datetime.now(UTC)  # noqa: TID251 - it is a server of its own
            self._lines += [(now + timedelta(microseconds=n), line) for n, line in enumerate(lines)]
            self._changed.notify_all()

    def cut(self) -> None:
        """Break every connection that reads it."""
        with self._changed:
            self._cuts += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Let the container end: who follows comes to the end of the log."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def so_far(self) -> str:
        """Return what was printed."""
        with self._changed:
            return "\n".join(line for _, line in self._lines)

    def follow(self, since: str) -> Iterator[bytes]:
        """Yield stamped lines from a second on, as they are printed, until the container ends.

        Raises:
            ConnectionAbortedError: It was cut.
        """
        with self._changed:
            done, cuts, self.readers = 0, self._cuts, self.readers + 1
        try:
            while True:
                with self._changed:
                    while len(self._lines) == done and not self._ended and cuts == self._cuts:
                        self._changed.wait()
                    new, done, ended = self._lines[done:], len(self._lines), self._ended
                    if cuts != self._cuts:
                        raise ConnectionAbortedError
                yield b"".join(f"{_stamp(at)} {line}\n".encode() for at, line in new if _stamp(at)[:19] >= since[:19])
                if ended:
                    return
        finally:
            with self._changed:
                self.readers -= 1


LogOf = Callable[[str, str, str, bool], str | LiveLog | None]
"""Returns the log of namespace, pod, container and whether the start before is meant; None where there is none."""


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


class KubeletLogs:
    """Serves logs on a port of this machine.

    Args:
        certificate: With its key beside it, ``.key``; the API server does not check it.
        log_of: Where the text comes from.
        began_at: The time of a log's first line; None is ten minutes ago.
        step: Between two lines.
    """

    def __init__(
        self,
        certificate: Path,
        log_of: LogOf,
        *,
        began_at: datetime | None = None,
        step: timedelta = timedelta(milliseconds=1),
    ) -> None:
        outer, self.asked = self, list[str]()
        self._began_at, self._step = began_at, step

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked.append(self.path)
                live, query = outer.live(self.path, log_of)
                if live is not None:
                    self._follow(live, query)
                    return
                status, body = outer.answer(self.path, log_of)
                self.send_response(status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _follow(self, live: LiveLog, query: dict[str, str]) -> None:
                """Send pieces as they come; a connection that is cut has no last piece."""
                self.close_connection = True
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for piece in live.follow(query.get("sinceTime", "")):
                        if piece:
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    return  # cut, or nobody reads any more

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Give the port back."""
        self._server.shutdown()
        self._server.server_close()

    def on_node(self, api: Any, node: str) -> None:
        """Tell the API server that this is the kubelet of a node.

        Args:
            api: Something with ``patch(path, steps)``.
            node: The node.
        """
        at = [{"type": "InternalIP", "address": "127.0.0.1"}]
        port = {"kubeletEndpoint": {"Port": self.port}}
        steps = [
            {"op": "add", "path": "/status/addresses", "value": at},
            {"op": "add", "path": "/status/daemonEndpoints", "value": port},
        ]
        api.patch(f"/api/v1/nodes/{node}/status", steps)

    def live(self, path: str, log_of: LogOf) -> tuple[LiveLog | None, dict[str, str]]:
        """Return the log that a request wants to follow, None where it wants none or the log does not grow."""
        words, query = _words(path)
        found = log_of(words[1], words[2], words[3], False) if len(words) == 4 and "follow" in query else None
        return (found if isinstance(found, LiveLog) else None), query

    def answer(self, path: str, log_of: LogOf) -> tuple[int, bytes]:
        """Return status and body for a request."""
        words, query = _words(path)
        if len(words) != 4 or words[0] != "containerLogs":
            return 404, b"404 page not found\n"
        previous = query.get("previous") == "true"
        text = log_of(words[1], words[2], words[3], previous)
        if isinstance(text, LiveLog):
            text = text.so_far()
        if text is None:
            what = "previous terminated container" if previous else "container"
            return 400, f'{what} "{words[3]}" in pod "{words[2]}" not found'.encode()
        lines = text.splitlines()
        if query.get("timestamps") == "true":
            began = self._began_at or datetime.now(UTC) - BEGAN  # noqa: TID251 - it is a server of its own
            stamped = ((began + n * self._step).strftime("%Y-%m-%dT%H:%M:%S.%f000Z") for n in range(len(lines)))
            lines = [f"{at} {line}" for at, line in zip(stamped, lines, strict=True)]
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :]
        body = "".join(f"{line}\n" for line in lines).encode()
        return 200, body[: int(query.get("limitBytes", len(body)))]


def _words(path: str) -> tuple[list[str], dict[str, str]]:
    parts = urlsplit(path)
    return parts.path.strip("/").split("/"), {key: values[0] for key, values in parse_qs(parts.query).items()}
