"""The part of a kubelet that serves logs, for a control plane without one: the API server asks it for ``pods/log``.

It speaks ``GET /containerLogs/NAMESPACE/POD/CONTAINER`` over TLS with the parameters previous, timestamps,
tailLines and limitBytes, as pkg/kubelet/server of Kubernetes 1.20 does. What it serves is given to it: no real kubelet
is behind it.
"""

import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

LogOf = Callable[[str, str, str, bool], str | None]
"""Returns the log of namespace, pod, container and whether the start before is meant; None where there is none."""

BEGAN = timedelta(minutes=10)


class KubeletLogs:
    """Serves logs on a port of this machine.

    Args:
        certificate: With its key beside it, ``.key``; the API server does not check it.
        log_of: Where the text comes from.
    """

    def __init__(self, certificate: Path, log_of: LogOf) -> None:
        outer, self.asked = self, list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                status, body = outer.answer(self.path, log_of)
                self.send_response(status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

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

    def answer(self, path: str, log_of: LogOf) -> tuple[int, bytes]:
        """Return status and body for a request."""
        parts = urlsplit(path)
        words = parts.path.strip("/").split("/")
        if len(words) != 4 or words[0] != "containerLogs":
            return 404, b"404 page not found\n"
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        previous = query.get("previous") == "true"
        text = log_of(words[1], words[2], words[3], previous)
        if text is None:
            what = "previous terminated container" if previous else "container"
            return 400, f'{what} "{words[3]}" in pod "{words[2]}" not found'.encode()
        lines = text.splitlines()
        if query.get("timestamps") == "true":
            began = datetime.now(UTC) - BEGAN  # noqa: TID251 - it is a server of its own
            stamped = (
                (began + timedelta(milliseconds=n)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z") for n in range(len(lines))
            )
            lines = [f"{at} {line}" for at, line in zip(stamped, lines, strict=True)]
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :]
        body = "".join(f"{line}\n" for line in lines).encode()
        return 200, body[: int(query.get("limitBytes", len(body)))]
