"""An OpenAI-compatible server with a known knee: so many requests are answered at once, the others wait.

The stream's shape follows vLLM's server 0.32, which real drivers read: chunks of text, a last one with ``usage``, then
``[DONE]``. Faults are chosen by ``fault``.
"""

import json
import threading
import time
from typing import Any, Self

from tests.loopback import Loopback, Reply, Request

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
        self._server = Loopback(self._answer, methods=["GET", "POST"], keep_alive=True)
        self.url = self._server.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free.set()
        self._server.close()

    def _answer(self, request: Request) -> Reply | None:
        if request.command == "POST":
            return self.post(request)
        allowed = not self.key or request.headers.get("Authorization") == f"Bearer {self.key}"
        models = {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 4096}]}
        return (200, models) if allowed else (401, {})

    def post(self, request: Request) -> Reply | None:
        body = request.json()
        with self._lock:
            self.bodies.append(body)
            fault = self.fault if len(self.bodies) % self.every == 0 else ""
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            fault = "401"
        if fault == "hang":
            self.free.wait(60)
            request.close_connection = True
            return None
        if fault == "garbage":
            return 200, b"<html>it works</html>"
        if fault in STATUS:
            return STATUS[fault], {"error": {"message": "no"}}
        self._stream(request, int(body["max_tokens"]), len(str(body["prompt"])) // 4)
        return None

    def _stream(self, request: Request, tokens: int, prompt: int) -> None:
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


def _event(request: Request, data: dict[str, Any]) -> None:
    _write(request, b"data: " + json.dumps(data).encode() + b"\n\n")


def _write(request: Request, data: bytes) -> None:
    """One chunk; an empty one is the end."""
    request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    request.wfile.flush()
