"""Servers on loopback that speak the OpenAI API well, badly, or as they were recorded."""

import contextlib
import json
import socket
import struct
import threading

MODEL = "stand-in"
LISTING = {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": 32768}]}


def reply(status, body, *, kind="application/json", more=""):
    """One whole HTTP answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n{more}Connection: close\r\n\r\n"
    )
    return head.encode() + raw


def chunk(text, *, finish=None, usage=None):
    """One event of a streamed answer."""
    row = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    row["choices"] = [{"index": 0, "delta": {"content": text}, "finish_reason": finish}] if usage is None else []
    if usage is not None:
        row["usage"] = usage
    return b"data: " + json.dumps(row).encode() + b"\n\n"


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def streamed(text, *, finish="stop", tokens=(100, 20), done=True):
    """A whole streamed answer, in three pieces."""
    third = max(1, len(text) // 3)
    pieces = [text[n : n + third] for n in range(0, len(text), third)]
    usage = (
        {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)} if tokens else None
    )
    body = b"".join(chunk(piece) for piece in pieces) + chunk("", finish=finish)
    body += chunk("", usage=usage) if usage else b""
    return STREAM_HEAD + body + (b"data: [DONE]\n\n" if done else b"")


def drip(connection, data, stop, *, every_s=0.02):
    """Send byte by byte, slower than anybody can wait."""
    for position in range(len(data)):
        if stop.wait(every_s):
            return
        connection.sendall(data[position : position + 1])


class Server:
    """A server on a loopback port; ``act(request)`` returns bytes to send, or a function that takes the connection.

    A request is (method, path, body); every one is kept in ``requests``.
    """

    def __init__(self, act):
        self._act = act
        self.requests = []
        self.stop = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(5)

    @property
    def questions(self):
        return [body for method, path, body in self.requests if path.endswith("/chat/completions")]

    def _accept(self):
        while not self.stop.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            request = _read(connection)
            if request is None:
                return
            self.requests.append(request)
            answer = self._act(request)
            if callable(answer):
                answer(connection, self.stop)
            else:
                connection.sendall(answer)


def _read(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ", 2)
    length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return method, path, json.loads(body) if body else None


def answering(say):
    """A good server: lists its model, and says ``say(question body)``; bytes are sent as they are."""

    def act(request):
        _, path, body = request
        if path.endswith("/models"):
            return reply(200, LISTING)
        if path.endswith("/chat/completions"):
            said = say(body)
            return said if isinstance(said, bytes) or callable(said) else streamed(said)
        return reply(404, {"error": {"message": "no such path"}})

    return act


def _reset(connection, _stop=None):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _reset_midway(connection, _stop):
    connection.sendall(STREAM_HEAD + chunk('{"root'))
    _reset(connection)


def _silent(connection, stop):
    connection.settimeout(30)
    connection.recv(1)  # until the other side gives up
    stop.is_set()


def _slow_to_close(connection, stop):
    connection.sendall(streamed(GOOD, done=False))
    _silent(connection, stop)


def _endless(connection, stop):
    connection.sendall(STREAM_HEAD)
    while not stop.is_set():
        connection.sendall(chunk("and so on " * 100))


def _comments(connection, stop):
    connection.sendall(STREAM_HEAD)
    while not stop.wait(0.01):
        connection.sendall(b": keep waiting\n\n")


GOOD = json.dumps({"root_cause": "It was so.", "class": "unknown", "cited": [], "unknown": ["why"], "more": []})
BOMB = b"\x1f\x8b" + b"\x00" * 100

FAULTS = {
    "silent": lambda _: _silent,
    "reset": lambda _: _reset,
    "reset in the middle": lambda _: _reset_midway,
    "headers that drip": lambda _: lambda c, stop: drip(c, STREAM_HEAD + b"X-A: b\r\n" * 10_000, stop),
    "a body that drips": lambda _: lambda c, stop: (c.sendall(STREAM_HEAD), drip(c, streamed(GOOD * 9), stop)),
    "endless stream": lambda _: _endless,
    "endless comments": lambda _: _comments,
    "HTML": lambda _: reply(200, b"<!doctype html><h1>Sign in</h1>", kind="text/html"),
    "nothing": lambda _: reply(200, b""),
    "another API": lambda _: STREAM_HEAD + b'data: {"choices": 5}\n\ndata: {"choices": [[]]}\n\ndata: [DONE]\n\n',
    "broken events": lambda _: STREAM_HEAD + b'data: {"choices": [{"del\n\ndata: [DONE]\n\n',
    "an error in the stream": lambda _: STREAM_HEAD + b'data: {"error": {"message": "engine died"}}\n\n',
    "deep events": lambda _: STREAM_HEAD + b"data: " + b"[" * 100_000 + b"\n\n",
    "half JSON": lambda _: streamed(GOOD[: len(GOOD) // 2]),
    "cut off": lambda _: streamed(GOOD[:-20], finish="length"),
    "wrong schema": lambda _: streamed(json.dumps({"verdict": "fine", "confidence": 1})),
    "prose": lambda _: streamed("Sure! I think the GPU is out of memory."),
    "fenced JSON": lambda _: streamed(f"```json\n{GOOD}\n```"),
    "ten megabytes": lambda _: STREAM_HEAD + b"data: " + b"x" * 10_000_000 + b"\n\n",
    "compressed": lambda _: reply(200, BOMB, kind="text/event-stream", more="Content-Encoding: gzip\r\n"),
    "a redirect": lambda _: reply(307, b"", more="Location: http://127.0.0.1:1/v1/chat/completions\r\n"),
    **{f"HTTP {status}": lambda _, status=status: reply(status, {"error": "no"}) for status in (400, 401, 403, 404, 429, 500, 502, 503)},
}  # fmt: skip
"""Every way in which a server that lists its model can fail to answer a question usefully."""

LATE_BUT_GOOD = {"slow to close": lambda _: _slow_to_close}
