"""A small program that behaves like `vllm serve` as seen from outside: its lines, its endpoints, and its ways to fail.

Two processes as in vLLM: the API server answers HTTP, the engine makes the tokens. What differs from run to run comes from
the environment: FAKE_START_S, FAKE_FITS_LEN, FAKE_STUBBORN, FAKE_KV_LOG (a recorded log to print and die with),
FAKE_LINES_PER_S and FAKE_LINE (log pressure), FAKE_READABLE (a file that must be readable), FAKE_FITS_SHARE (the largest
share of memory), FAKE_KNOWS_ALL (any flag is known), FAKE_COUNTS_NONE (its token counter stands still).
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KNOWN = {
    "--max-model-len", "--gpu-memory-utilization", "--port", "--host", "--served-model-name", "--dtype", "--max-num-seqs",
    "--enforce-eager", "--load-format",
}  # fmt: skip
TRACE = "(EngineCore pid={pid}) ERROR 11-21 03:34:34 [core.py:1510] "


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    words = sys.argv[1:]
    flags = {
        w.split("=")[0]: (w.split("=")[1] if "=" in w else v) for w, v in zip(words, [*words[1:], ""], strict=True)
    }
    unknown = [w for w in words if w.startswith("--") and w.split("=")[0] not in KNOWN]
    if unknown and not os.environ.get("FAKE_KNOWS_ALL"):
        print(f"vllm: error: unrecognized arguments: {' '.join(unknown)}", file=sys.stderr, flush=True)
        return 2
    port = int(flags.get("--port", "8000"))
    say(f"(APIServer pid={os.getpid()}) INFO 11-21 03:34:23 [utils.py:306] version 0.32.0")
    time.sleep(float(os.environ.get("FAKE_START_S", "0")))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        say(f"(APIServer pid={os.getpid()}) OSError: [Errno 98] Address already in use")
        return 1
    readable = os.environ.get("FAKE_READABLE")
    if readable and not Path(readable).exists():
        say(f"(EngineCore pid={os.getpid()}) ERROR PermissionError: [Errno 13] Permission denied: '{readable}'")
        say("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
        return 1
    if float(flags.get("--gpu-memory-utilization", "0")) > float(os.environ.get("FAKE_FITS_SHARE", "1")):
        say("RuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer")
        return 1
    if not fits(int(flags.get("--max-model-len", "2048"))):
        return 1
    server = Server(listener, flags.get("--served-model-name", "tiny"))
    say(f"(APIServer pid={os.getpid()}) INFO:     Application startup complete.")
    return server.run()


def fits(length: int) -> bool:
    longest = int(os.environ.get("FAKE_FITS_LEN", "32640"))
    if length <= longest:
        return True
    recorded = os.environ.get("FAKE_KV_LOG")
    if recorded:
        sys.stdout.write(Path(recorded).read_text())
    else:
        head = TRACE.format(pid=os.getpid())
        say(f"{head}EngineCore failed to start.")
        say(
            f"{head}ValueError: To serve at least one request with the model's max seq len ({length}), (4.0 GiB KV cache is "
            f"needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available memory, the "
            f"estimated maximum model length is {longest}."
        )
        say("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    sys.stdout.flush()
    return False


class Server:
    """The API server and its engine."""

    def __init__(self, listener: socket.socket, name: str) -> None:
        self.name, self.listener = name, listener
        self.ours, theirs = socket.socketpair()
        self.engine = os.fork()
        if self.engine == 0:
            self.ours.close()
            listener.close()
            engine(theirs)
        theirs.close()
        self.lock = threading.Lock()
        self.tokens = self.running = 0
        self.dead = self.asked = False

    def run(self) -> int:
        outer = Serving(("127.0.0.1", 0), Handler, bind_and_activate=False)
        outer.socket.close()
        outer.socket = self.listener
        outer.app = self
        outer.daemon_threads = True
        self.listener.listen(64)
        threading.Thread(target=outer.serve_forever, args=(0.02,), daemon=True).start()
        if os.environ.get("FAKE_STUBBORN"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            signal.signal(signal.SIGTERM, self.end)
        pressure = float(os.environ.get("FAKE_LINES_PER_S", "0"))
        if pressure:
            threading.Thread(
                target=talk, args=(pressure, os.environ.get("FAKE_LINE", "INFO: line")), daemon=True
            ).start()
        while not self.asked:
            time.sleep(0.02)
            pid, _ = os.waitpid(self.engine, os.WNOHANG)
            if pid:
                return self.mourn()
        os.kill(self.engine, signal.SIGTERM)
        os.kill(self.engine, signal.SIGCONT)
        os.waitpid(self.engine, 0)
        return 0

    def end(self, *_: object) -> None:
        """Note that the end is asked for; a lock, which an event has, could be held by the loop that is interrupted."""
        self.asked = True

    def mourn(self) -> int:
        """As vLLM does: 503 at once, the reason in the log, and then the end with code 0."""
        self.dead = True
        say(
            f"(EngineCore pid={self.engine}) ERROR 11-21 03:50:33 [multiproc_executor.py:315] Worker proc VllmWorker-0 died "
            "unexpectedly (exit code: None), shutting down executor."
        )
        say(f"(EngineCore pid={self.engine}) ERROR 11-21 03:50:33 [core.py:1512] EngineCore encountered a fatal error.")
        say(
            f"(APIServer pid={os.getpid()}) ERROR 11-21 03:50:33 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: "
            "EngineCore encountered an issue. See stack trace (above) for the root cause."
        )
        time.sleep(0.1)
        say("INFO:     Application shutdown complete.")
        return 0

    def make(self, count: int) -> bool:
        with self.lock:
            self.running += 1
        try:
            with self.lock:
                self.ours.sendall(bytes([count]))
                if not self.ours.recv(1):
                    return False
                self.tokens += count
        finally:
            self.running -= 1
        return True


def engine(pipe: socket.socket) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while count := pipe.recv(1):
        pipe.sendall(count)
    os._exit(0)


def talk(per_s: float, line: str) -> None:
    block = (line + "\n") * max(1, int(per_s / 50))
    while True:
        sys.stdout.write(block)
        sys.stdout.flush()
        time.sleep(0.02)


class Serving(ThreadingHTTPServer):
    """The web server of one fake, which its handlers ask."""

    app: Server

    def handle_error(self, request: object, client_address: object) -> None:
        """Print no line for a client that was killed in the middle of a request: uvicorn, vLLM's web server, has none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: Serving

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        app = self.server.app
        if self.path == "/health":
            self.reply(503 if app.dead else 200, b"")
        elif self.path == "/v1/models":
            self.reply(200, json.dumps({"data": [{"id": app.name}]}).encode())
        elif self.path == "/metrics":
            labels = f'{{engine="0",model_name="{app.name}"}}'
            counted = 0 if os.environ.get("FAKE_COUNTS_NONE") else app.tokens
            rows = {"num_requests_running": app.running, "num_requests_waiting": 0, "kv_cache_usage_perc": 0.1,
                    "num_preemptions_total": 0, "generation_tokens_total": counted, "prompt_tokens_total": 1}  # fmt: skip
            self.reply(200, "".join(f"vllm:{k}{labels} {float(v)}\n" for k, v in rows.items()).encode())
        else:
            self.reply(404, b"{}")

    def do_POST(self) -> None:
        app = self.server.app
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if len(sent) < int(self.headers["Content-Length"]):
            raise ConnectionAbortedError("the client went away in the middle of its request")
        body = json.loads(sent)
        if not app.make(min(int(body.get("max_tokens", 16)), 200)):
            self.reply(500, b'{"error": "the engine is dead"}')
        elif body.get("stream"):
            self.stream(int(body["max_tokens"]), chat="messages" in body)
        else:
            choice = {"index": 0, "text": "one, two", "finish_reason": "length"}
            self.reply(
                200, json.dumps({"choices": [choice], "usage": {"completion_tokens": body["max_tokens"]}}).encode()
            )

    def stream(self, tokens: int, *, chat: bool) -> None:
        said = [("one, ", None), ("two, three", "length")]
        events = [
            {"choices": [{"index": 0, **({"delta": {"content": t}} if chat else {"text": t}), "finish_reason": f}]}
            for t, f in said
        ]
        events.append(
            {"choices": [], "usage": {"completion_tokens": tokens, "prompt_tokens": 1, "total_tokens": tokens + 1}}
        )
        lines = [f"data: {json.dumps(e)}\n\n" for e in events] + ["data: [DONE]\n\n"]
        self.reply(200, "".join(lines).encode(), kind="text/event-stream")

    def reply(self, status: int, body: bytes, *, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    sys.exit(main())
