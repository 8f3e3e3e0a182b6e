"""A vLLM server's two paths on loopback: streamed completions and counters, with failures on demand.

The stream's shape follows vLLM's OpenAI-compatible server 0.32: chunks, a last one with ``usage``, then ``[DONE]``.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import Loopback, Reply, Request

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
    cuts: int = 0  # so many completions end after their first word, without an end of the stream


class VllmHttp:
    """The server; ``seen`` holds (method, path, headers, body) of every request."""

    def __init__(self) -> None:
        self.script = Script()
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.free = threading.Event()
        self._server = Loopback(self._answer, methods=["GET", "POST"], keep_alive=True, host=ADDRESS)
        self.url = self._server.url

    def stop(self) -> None:
        self.free.set()
        self._server.close()

    def _answer(self, request: Request) -> Reply | None:
        return self.get(request) if request.command == "GET" else self.post(request)

    def get(self, request: Request) -> Reply:
        self.seen.append(("GET", request.path, dict(request.headers), None))
        if request.path == "/health":
            return 200, b""
        if request.path == "/v1/models":
            return 200, {"data": [{"id": "gemma"}]}
        if self.script.counter is None or not request.path.endswith("/metrics"):
            return 404, b"{}"
        line = f'vllm:generation_tokens_total{{engine="0",model_name="gemma"}} {self.script.counter}\n'
        return 200, ("# TYPE vllm:generation_tokens_total counter\n" + line).encode()

    def post(self, request: Request) -> Reply | None:
        body = request.json()
        self.seen.append(("POST", request.path, dict(request.headers), body))
        script = self.script
        chat = request.path.endswith("/chat/completions")
        if script.hangs:
            self.free.wait(30)
            request.close_connection = True
            return None
        if script.no_chat_template and chat:
            says = "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template"
            return 400, {"error": {"message": says, "code": 400}}
        if script.status != 200:
            return script.status, script.body.encode()
        self._stream(request, chat=chat)
        return None

    def _stream(self, request: Request, *, chat: bool) -> None:
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

    def _say(self, request: Request, *, chat: bool) -> None:
        script = self.script
        if script.raw is not None:
            self._write(request, script.raw)
            self._write(request, b"")
            return
        for word in script.words:
            time.sleep(script.pause_s)
            self._event(request, {"choices": [{"delta": {"content": word}} if chat else {"text": word}]})
            if script.cuts > 0:
                script.cuts -= 1
                request.close_connection = True
                return
        if script.finish is not None:
            self._event(request, {"choices": [{"delta": {}, "finish_reason": script.finish}]})
        if script.counter is not None and script.counts:
            script.counter += len(script.words)
        self._event(request, {"choices": [], "usage": {"completion_tokens": len(script.words)}})
        self._write(request, b"data: [DONE]\n\n")
        self._write(request, b"")

    def _event(self, request: Request, data: dict[str, Any]) -> None:
        self._write(request, b"data: " + json.dumps(data).encode() + b"\n\n")

    def _write(self, request: Request, data: bytes) -> None:
        """One chunk; an empty one is the end."""
        request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if self.script.chunked else data)
        request.wfile.flush()
