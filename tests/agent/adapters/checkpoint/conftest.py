"""Tiny real checkpoints, and an HTTP server on loopback that serves, misserves and counts."""

import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

CONFIG = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "model_type": "gemma4",
    "text_config": {
        "hidden_size": 64, "vocab_size": 1000, "num_hidden_layers": 1, "num_attention_heads": 4, "head_dim": 16,
        "intermediate_size": 256, "max_position_embeddings": 4096,
    },
}  # fmt: skip
SIZES = {"BF16": 2, "I32": 4}


def shard_bytes(tensors):
    """A safetensors file: 8 bytes, header, data."""
    entries, end = {}, 0
    for name, dtype, shape in tensors:
        size = SIZES[dtype]
        for dimension in shape:
            size *= dimension
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + b"\xab" * end


def checkpoint_files(shards=2):
    """File name -> bytes of a whole small checkpoint."""
    names = [f"model-{n:05}-of-{shards:05}.safetensors" for n in range(1, shards + 1)]
    files, weights = {"config.json": json.dumps(CONFIG).encode()}, {}
    for number, file in enumerate(names):
        tensors = [(f"model.layers.0.mlp.part{number}.weight", "BF16", [64, 1000])]
        if number == 0:
            tensors.append(("model.embed_tokens.weight", "BF16", [1000, 64]))
        files[file] = shard_bytes(tensors)
        weights |= dict.fromkeys([name for name, _, _ in tensors], file)
    if shards == 1:
        files["model.safetensors"] = files.pop(names[0])
    else:
        files["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": weights}).encode()
    return files


class Site:
    """What the server serves, how it misbehaves, and what it saw."""

    def __init__(self):
        self.files = {}
        self.mode = "ranges"
        self.needs_token = None
        self.redirect_to = None
        self.seen = []
        self.sent_bytes = 0
        self.url = ""


@pytest.fixture
def make_files():
    return checkpoint_files


@pytest.fixture
def make_shard():
    return shard_bytes


@pytest.fixture
def folder(tmp_path):
    for name, body in checkpoint_files().items():
        (tmp_path / name).write_bytes(body)
    return tmp_path


def _serve(site):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            site.seen.append((self.path, dict(self.headers)))
            if site.redirect_to:
                return self._empty(302, {"Location": site.redirect_to + self.path})
            if site.needs_token and self.headers.get("Authorization") != f"Bearer {site.needs_token}":
                return self._empty(403)
            body = site.files.get(self.path.lstrip("/").split("?")[0])
            if body is None:
                return self._empty(404)
            return self._body(body)

        def _empty(self, status, headers=()):
            self.send_response(status)
            for key, value in dict(headers).items():
                self.send_header(key, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _body(self, body):
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            if site.mode == "ignores ranges":
                return self._send(200, body, {})
            if int(first) >= len(body):
                return self._empty(416)
            part = body[int(first) : int(last) + 1]
            start = int(first) + (1 if site.mode == "other range" else 0)
            headers = {"Content-Range": f"bytes {start}-{int(first) + len(part) - 1}/{len(body)}"}
            if site.mode == "compressed":
                headers["Content-Encoding"] = "gzip"
            if site.mode == "hangs up":
                headers["Content-Length"] = str(len(part))
                part = part[: len(part) // 2]
                self.close_connection = True
            if site.mode == "status 500":
                return self._empty(500)
            if site.mode == "drips":
                return self._drip(len(part), headers)
            return self._send(206, part, headers)

        def _send(self, status, part, headers):
            self.send_response(status)
            self.send_header("Content-Length", headers.pop("Content-Length", str(len(part))))
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            for at in range(0, len(part), 65536):
                try:
                    self.wfile.write(part[at : at + 65536])
                except OSError:
                    return
                site.sent_bytes += len(part[at : at + 65536])

        def _drip(self, length, headers):
            self.send_response(206)
            self.send_header("Content-Length", str(length))
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            for _ in range(length):
                if site.stop.wait(0.02):
                    return
                try:
                    self.wfile.write(b"{")
                except OSError:
                    return

    return Handler


def start(site):
    site.stop = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _serve(site))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"

    def stop():
        site.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()

    return stop


@pytest.fixture
def site():
    served = Site()
    stop = start(served)
    yield served
    stop()


@pytest.fixture
def other_site():
    served = Site()
    stop = start(served)
    yield served
    stop()
