"""An OpenAI-compatible server with a known knee: so many requests are answered at once, the others wait.

The stream's shape follows vLLM's server 0.32, which real drivers read: chunks of text, a last one with ``usage``, then
``[DONE]``. Faults are chosen by ``fault``.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

STATUS = {"401": 401, "404": 404, "429": 429, "500": 500}


class LoadServer:
    """Answers ``slots`` requests at once, one token each ``step_s`` seconds.

    Attributes:
        fault: Of every answer: a status, ``garbage``, ``hang``, or empty; ``every`` limits it to each n-th request.
        bodies: The requests that came.
        most_at_once: The most requests that were answered at the same moment.
    """

    def __init__(self, *, slots: int, step_s: float, fault: str = "", every: int = 1, key: str = "") -> None:
        self.fault, self.every, self.key, self.step_s = fault, every, key, step_s
        self.bodies: list[dict[str, Any]] = []
        self.most_at_once = 0
        self._now = 0
        self._slots, self._lock, self.free = threading.Semaphore(slots), threading.Lock(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                allowed = not outer.key or self.headers.get("Authorization") == f"Bearer {outer.key}"
                models = b'{"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 4096}]}'
                _answer(self, 200 if allowed else 401, models if allowed else b"{}")

            def do_POST(self) -> None:
                outer.post(self)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that hangs up is no error of the server

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def post(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self._lock:
            self.bodies.append(body)
            fault = self.fault if len(self.bodies) % self.every == 0 else ""
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            fault = "401"
        if fault == "hang":
            self.free.wait(60)
            request.close_connection = True
        elif fault == "garbage":
            _answer(request, 200, b"<html>it works</html>")
        elif fault in STATUS:
            _answer(request, STATUS[fault], b'{"error": {"message": "no"}}')
        else:
            self._stream(request, int(body["max_tokens"]), len(str(body["prompt"])) // 4)

    def _stream(self, request: BaseHTTPRequestHandler, tokens: int, prompt: int) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        with self._slots:
            with self._lock:
                self._now += 1
                self.most_at_once = max(self.most_at_once, self._now)
            try:
                for number in range(1, tokens + 1):
                    time.sleep(self.step_s)  # the time that a token takes is what this server is made of
                    done = "length" if number == tokens else None
                    _event(request, {"choices": [{"index": 0, "text": " one", "finish_reason": done}]})
            finally:
                with self._lock:
                    self._now -= 1
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        _event(request, {"choices": [], "usage": usage})
        _write(request, b"data: [DONE]\n\n")
        _write(request, b"")


def _event(request: BaseHTTPRequestHandler, data: dict[str, Any]) -> None:
    _write(request, b"data: " + json.dumps(data).encode() + b"\n\n")


def _write(request: BaseHTTPRequestHandler, data: bytes) -> None:
    """One chunk; an empty one is the end."""
    request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    request.wfile.flush()


def _answer(request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
