"""A Docker engine on its own wire (Engine API 1.47) at a Unix socket, whose containers are processes of this machine.

Create, inspect, start, stop, restart, rename, update and logs of containers, and inspect of one image. As there: a name is taken
once, an unknown field of a creation is kept and told again, a stopped container stays stopped, logs come in frames. Not there:
isolation, networks, pulls, anything of an image but its variables.
"""

import json
import os
import signal
import socketserver
import subprocess
import threading
import time
import uuid
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Json = dict[str, Any]
NEVER = "0001-01-01T00:00:00Z"
IMAGE = "sha256:" + "ab" * 32
IMAGE_ENV = ["PATH=/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all"]


class DockerEngine:
    """Serves a Unix socket; ``called`` has every request that changes something.

    Args:
        path: Of the socket.
        env: More of the environment of what containers run.
    """

    def __init__(self, path: Path, env: dict[str, str]) -> None:
        self.path, self.env = path, env
        self.containers: dict[str, Json] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.keepers: dict[str, threading.Thread] = {}
        self.called: list[str] = []
        self.images = {IMAGE}  # by their ids; a name is the first one
        self.refuses: dict[str, tuple[int, str]] = {}  # by the end of a path, what is answered instead
        self.holds = False  # while it is set, a started container runs, and its server does not yet
        self._server = _Server(str(path), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """End everything."""
        for name in list(self.processes):
            self._end(name)
        self._server.shutdown()
        self._server.server_close()

    def named(self, name: str) -> Json:
        """Return a container by name or id."""
        return next(c for c in self.containers.values() if c["Name"] == f"/{name}" or c["Id"].startswith(name))

    def release(self) -> None:
        """Let the servers of started containers begin."""
        for found in self.containers.values():
            if found["State"]["Running"] and found["Id"] not in self.processes:
                self._begin(found)

    def boot(self, *, up: bool) -> None:
        """Do what an engine does when its machine goes down or comes up: containers with a policy come back."""
        for found in self.containers.values():
            if not up and found["State"]["Running"]:
                self._stopped(found)
                found["was"] = True
            elif up and found.pop("was", False) and found["HostConfig"]["RestartPolicy"]["Name"] != "no":
                self._started(found)

    def answer(self, method: str, url: str, body: Json) -> tuple[int, bytes]:
        """Answer one request."""
        parts = urlsplit(url)
        words, asked = [unquote(w) for w in parts.path.strip("/").split("/")], parse_qs(parts.query)
        if method != "GET":
            self.called.append(f"{words[-1]} {(asked.get('name') or [words[1]])[0]}")
        refused = next((r for end, r in self.refuses.items() if parts.path.endswith(end)), None)
        if refused is not None:
            return refused[0], json.dumps({"message": refused[1]}).encode()
        if words[0] == "images":
            return 200, json.dumps({"Id": IMAGE, "Config": {"Env": IMAGE_ENV}}).encode()
        if words[1:] == ["create"]:
            return self._create(asked["name"][0], body)
        found = next((c for c in self.containers.values() if words[1] in {c["Name"][1:], c["Id"], c["Id"][:12]}), None)
        if found is None:
            return 404, json.dumps({"message": f"No such container: {words[1]}"}).encode()
        return getattr(self, f"_{words[2]}")(found, asked, body)

    def _create(self, name: str, body: Json) -> tuple[int, bytes]:
        if any(c["Name"] == f"/{name}" for c in self.containers.values()):
            said = f'Conflict. The container name "/{name}" is already in use'
            return 409, json.dumps({"message": said}).encode()
        if body["Image"] not in {*self.images, "vllm/vllm-openai:v0.32.0"}:
            return 404, json.dumps({"message": f"No such image: {body['Image']}"}).encode()
        own = uuid.uuid4().hex * 2
        host = {"RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}} | body.pop("HostConfig", {})
        body.pop("NetworkingConfig", None)
        self.containers[own] = {
            "Id": own, "Image": body["Image"] if body["Image"] in self.images else IMAGE, "Name": f"/{name}", "RestartCount": 0, "HostConfig": host,
            "Config": {"Hostname": own[:12]} | body | {"Env": body.get("Env") or []},
            "State": {"Running": False, "Status": "created", "ExitCode": 0, "OOMKilled": False, "Error": "",
                      "StartedAt": NEVER, "FinishedAt": NEVER},
            "NetworkSettings": {"Ports": {}, "Networks": {"bridge": {"IPAddress": ""}}}, "Mounts": [],
        }  # fmt: skip
        return 201, json.dumps({"Id": own, "Warnings": []}).encode()

    def _json(self, found: Json, _: Json, __: Json) -> tuple[int, bytes]:
        process = self.processes.get(found["Id"])
        if found["State"]["Running"] and process is not None and process.poll() is not None:
            found["State"] |= {"Running": False, "Status": "exited", "ExitCode": process.returncode & 255}
        return 200, json.dumps(found).encode()

    def _start(self, found: Json, _: Json, __: Json) -> tuple[int, bytes]:
        if found["State"]["Running"]:
            return 304, b""
        self._started(found)
        return 204, b""

    def _stop(self, found: Json, _: Json, __: Json) -> tuple[int, bytes]:
        self._stopped(found)
        return 204, b""

    def _restart(self, found: Json, _: Json, __: Json) -> tuple[int, bytes]:
        self._stopped(found)
        self._started(found)
        return 204, b""

    def _rename(self, found: Json, asked: Json, _: Json) -> tuple[int, bytes]:
        found["Name"] = f"/{asked['name'][0]}"
        return 204, b""

    def _update(self, found: Json, _: Json, body: Json) -> tuple[int, bytes]:
        found["HostConfig"] |= body
        return 200, b'{"Warnings": null}'

    def _logs(self, found: Json, asked: Json, _: Json) -> tuple[int, bytes]:
        path = self._log(found)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        rows = lines[-int(asked["tail"][0]) :]
        return 200, b"".join(b"\x01\0\0\0" + len(row).to_bytes(4, "big") + row for row in rows)

    def _started(self, found: Json) -> None:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        found["State"] |= {"Running": True, "Status": "running", "StartedAt": now, "ExitCode": 0}
        self.processes.pop(found["Id"], None)
        if not self.holds:
            self._begin(found)

    def _begin(self, found: Json) -> None:
        """Start the process; what it prints is stamped as the engine's log driver does it."""
        words = [*(found["Config"].get("Entrypoint") or []), *(found["Config"].get("Cmd") or [])]
        env = {**self.env, **dict(row.split("=", 1) for row in found["Config"]["Env"]), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.processes[found["Id"]] = process
        keeper = threading.Thread(target=self._keep, args=(found, process), daemon=True)
        self.keepers[found["Id"]] = keeper
        keeper.start()

    def _keep(self, found: Json, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        with process.stdout as printed, self._log(found).open("ab") as log:
            for line in printed:
                now = time.time_ns()
                stamp = datetime.fromtimestamp(now // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
                log.write(f"{stamp}.{now % 1_000_000_000:09d}Z ".encode() + line)
                log.flush()

    def _stopped(self, found: Json) -> None:
        self._end(found["Id"])
        found["State"] |= {"Running": False, "Status": "exited", "ExitCode": 143}

    def _end(self, own: str) -> None:
        process = self.processes.get(own)
        if process is not None and process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        if own in self.keepers:
            self.keepers.pop(own).join(5)

    def _log(self, found: Json) -> Path:
        return self.path.with_name(f"{found['Id'][:12]}.log")


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def _handler(engine: DockerEngine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            status, said = engine.answer(self.command, self.path, json.loads(self.rfile.read(size) or b"{}"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = _serve  # noqa: N815 - the names that the base class calls

        def address_string(self) -> str:
            return "socket"

        def log_message(self, *_: object) -> None:
            pass

    return Handler
