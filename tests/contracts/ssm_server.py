"""Systems Manager on its own wire (JSON 1.1), on loopback, that really runs the shell script: moto's runs nothing.

DescribeInstanceInformation, SendCommand, GetCommandInvocation, ListCommandInvocations. An output is cut at 24,000
characters, as there. Not there: IAM, S3, other documents.
"""

import json
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
STDOUT_LIMIT, STDERR_LIMIT = 24_000, 8_000


class SsmServer:
    """Serves on loopback for a whole process; every command is in ``sent``.

    Attributes:
        pings: By instance, how it is seen now, such as ``Online``; empty where it is not known.
        envs: By instance, of its scripts.
    """

    def __init__(self) -> None:
        self.pings: dict[str, Callable[[], str]] = {}
        self.envs: dict[str, Mapping[str, str]] = {}
        self.reset()
        self._told: dict[tuple[str, str], Json] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._answer))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def reset(self) -> None:
        """Forget what a test made it do."""
        self.sent: list[Json] = []
        self.refuses: list[tuple[int, str, str]] = []  # status, code and words of the next answers
        self.stalls = threading.Event()  # while it is set, commands stay Pending
        self.unknown = 0  # so many looks at a command find none
        self.cuts: int | None = None  # a shorter limit of an output

    def told(self, instance: str) -> list[Json]:
        """Return every command of an instance as it stands."""
        return [v for (_, i), v in list(self._told.items()) if i == instance]

    def ping(self, instance: str) -> str:
        return self.pings.get(instance, str)()

    def _answer(self, operation: str, body: Json) -> tuple[int, Json]:
        if self.refuses:
            status, code, words = self.refuses.pop(0)
            return status, {"__type": code, "message": words}
        return {
            "DescribeInstanceInformation": self._describe,
            "SendCommand": self._send,
            "GetCommandInvocation": self._get,
            "ListCommandInvocations": self._list,
        }[operation](body)

    def _describe(self, body: Json) -> tuple[int, Json]:
        wanted = [v for f in body["Filters"] if f["Key"] == "InstanceIds" for v in f["Values"]]
        rows = [{"InstanceId": i, "PingStatus": self.ping(i)} for i in wanted if self.ping(i)]
        return 200, {"InstanceInformationList": rows}

    def _send(self, body: Json) -> tuple[int, Json]:
        if body["DocumentName"] != "AWS-RunShellScript" or body["TimeoutSeconds"] < 30:
            return 400, {"__type": "InvalidDocument", "message": body["DocumentName"]}
        (instance,) = body["InstanceIds"]
        if self.ping(instance) != "Online":
            return 400, {"__type": "InvalidInstanceId", "message": "Instances not in a valid state for account"}
        self.sent.append(body)
        command = str(uuid.uuid4())
        self._told[command, instance] = {
            "CommandId": command, "InstanceId": instance, "Comment": body.get("Comment", ""), "Status": "Pending",
            "StatusDetails": "Pending", "RequestedDateTime": time.time(), "StandardOutputContent": "",
            "StandardErrorContent": "",
        }  # fmt: skip
        threading.Thread(target=self._run, args=((command, instance), body["Parameters"]), daemon=True).start()
        return 200, {"Command": {"CommandId": command, "Status": "Pending", "RequestedDateTime": time.time()}}

    def _run(self, key: tuple[str, str], parameters: Json) -> None:
        while self.stalls.is_set():
            time.sleep(0.01)
        process = subprocess.Popen(
            ["/bin/bash", "-c", "\n".join(parameters["commands"])], env=dict(self.envs[key[1]]), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=float(parameters["executionTimeout"][0]))
            status = "Success" if process.returncode == 0 else "Failed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            (out, err), status = process.communicate(), "TimedOut"
        limit = self.cuts or STDOUT_LIMIT
        told = {"StandardOutputContent": out[:limit], "StandardErrorContent": err[:STDERR_LIMIT]}
        self._told[key] |= {
            **told,
            "Status": status,
            "StatusDetails": "ExecutionTimedOut" if status == "TimedOut" else status,
        }

    def _get(self, body: Json) -> tuple[int, Json]:
        found = self._told.get((body["CommandId"], body["InstanceId"]))
        if found is None or self.unknown > 0:
            self.unknown -= 1
            return 400, {"__type": "InvocationDoesNotExist", "message": ""}
        return 200, {k: v for k, v in found.items() if k != "RequestedDateTime"}

    def _list(self, body: Json) -> tuple[int, Json]:
        short = ("CommandId", "InstanceId", "Comment", "Status", "RequestedDateTime")
        rows = [{k: v[k] for k in short} for (_, i), v in self._told.items() if i == body["InstanceId"]]
        return 200, {"CommandInvocations": rows[::-1][:50]}


def _handler(answer: Callable[[str, Json], tuple[int, Json]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            code, shown = answer(self.headers["X-Amz-Target"].rpartition(".")[2], body)
            data = json.dumps(shown).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            if code >= 400:
                self.send_header("x-amz-retry-after", "20")  # milliseconds
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
