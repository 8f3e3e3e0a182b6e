"""A vLLM server's two paths on loopback: streamed completions and counters, with failures on demand.

The stream's shape follows vLLM's OpenAI-compatible server 0.32: chunks, a last one with ``usage``, then ``[DONE]``.
"""

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "127.0.0.1"


@dataclass
class Script:
    """What the server does; tests set it."""

    words: list[str] = field(default_factory=lambda: ["one,", " two,", " three"])
    finish: str | None = "length"
    status: int = 200
    body: str = ""
    counter: float | None = 0.0
    no_chat_template: bool = False
    hangs: bool = False
    pause_s: float = 0.001
    raw: bytes | None = None
    counts: bool = True  # False: another instance tells its counter
    chunked: bool = True  # as uvicorn sends it


class Server(ThreadingHTTPServer):
    """A client that hangs up is no error of the server."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class VllmHttp:
    """The server; ``seen`` holds (method, path, headers, body) of every request."""

    def __init__(self) -> None:
        self.script = Script()
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.free = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                outer.get(self)

            def do_POST(self) -> None:
                outer.post(self)

        self._server = Server((ADDRESS, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def stop(self) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def get(self, request: BaseHTTPRequestHandler) -> None:
        self.seen.append(("GET", request.path, dict(request.headers), None))
        if request.path == "/health":
            _answer(request, 200, b"")
            return
        if request.path == "/v1/models":
            _answer(request, 200, b'{"data": [{"id": "gemma"}]}')
            return
        if self.script.counter is None or not request.path.endswith("/metrics"):
            _answer(request, 404, b"{}")
            return
        line = f'vllm:generation_tokens_total{{engine="0",model_name="gemma"}} {self.script.counter}\n'
        _answer(request, 200, ("# TYPE vllm:generation_tokens_total counter\n" + line).encode())

    def post(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.seen.append(("POST", request.path, dict(request.headers), body))
        script = self.script
        chat = request.path.endswith("/chat/completions")
        if script.hangs:
            self.free.wait(30)
            request.close_connection = True
            return
        if script.no_chat_template and chat:
            says = "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template"
            _answer(request, 400, json.dumps({"error": {"message": says, "code": 400}}).encode())
        elif script.status != 200:
            _answer(request, script.status, script.body.encode())
        else:
            self._stream(request, chat=chat)

    def _stream(self, request: BaseHTTPRequestHandler, *, chat: bool) -> None:
        script = self.script
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        if script.chunked:
            request.send_header("Transfer-Encoding", "chunked")
        else:
            request.send_header("Connection", "close")
        request.end_headers()
        try:
            self._say(request, chat=chat)
        except ConnectionError:
            request.close_connection = True

    def _say(self, request: BaseHTTPRequestHandler, *, chat: bool) -> None:
        script = self.script
        if script.raw is not None:
            self._write(request, script.raw)
            self._write(request, b"")
            return
        for word in script.words:
            time.sleep(script.pause_s)
            self._event(request, {"choices": [{"delta": {"content": word}} if chat else {"text": word}]})
        if script.finish is not None:
            self._event(request, {"choices": [{"delta": {}, "finish_reason": script.finish}]})
        if script.counter is not None and script.counts:
            script.counter += len(script.words)
        self._event(request, {"choices": [], "usage": {"completion_tokens": len(script.words)}})
        self._write(request, b"data: [DONE]\n\n")
        self._write(request, b"")

    def _event(self, request: BaseHTTPRequestHandler, data: dict[str, Any]) -> None:
        self._write(request, b"data: " + json.dumps(data).encode() + b"\n\n")

    def _write(self, request: BaseHTTPRequestHandler, data: bytes) -> None:
        """One chunk; an empty one is the end."""
        request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if self.script.chunked else data)
        request.wfile.flush()


def _answer(request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
