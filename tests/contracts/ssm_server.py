"""Systems Manager on its own wire (JSON 1.1), on loopback, that really runs the shell script: moto's runs nothing.

DescribeInstanceInformation, SendCommand, GetCommandInvocation, ListCommandInvocations. An output is cut at 24,000
characters, as there. Not there: IAM, S3, other documents.
"""

import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from tests.loopback import Loopback, Request

Json = dict[str, Any]
STDOUT_LIMIT, STDERR_LIMIT = 24_000, 8_000
ANSWERS_WITHIN_S = 0.25
"""A look at a running command is answered so late at most: each look costs more than the command."""


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
        self._ended: dict[tuple[str, str], threading.Event] = {}
        self._server = Loopback(self._reply, keep_alive=True, methods=["POST"])
        self.url = self._server.url

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

    def _reply(self, request: Request) -> tuple[int, Json, Mapping[str, str]]:
        code, shown = self._answer(request.headers["X-Amz-Target"].rpartition(".")[2], request.json())
        wait = {"x-amz-retry-after": "20"} if code >= 400 else {}  # milliseconds
        return code, shown, {"Content-Type": "application/x-amz-json-1.1"} | wait

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
        self._ended[command, instance] = threading.Event()
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
        self._ended[key].set()

    def _get(self, body: Json) -> tuple[int, Json]:
        found = self._told.get((body["CommandId"], body["InstanceId"]))
        if found is None or self.unknown > 0:
            self.unknown -= 1
            return 400, {"__type": "InvocationDoesNotExist", "message": ""}
        if not self.stalls.is_set():
            self._ended[body["CommandId"], body["InstanceId"]].wait(ANSWERS_WITHIN_S)
        return 200, {k: v for k, v in found.items() if k != "RequestedDateTime"}

    def _list(self, body: Json) -> tuple[int, Json]:
        short = ("CommandId", "InstanceId", "Comment", "Status", "RequestedDateTime")
        rows = [{k: v[k] for k in short} for (_, i), v in self._told.items() if i == body["InstanceId"]]
        return 200, {"CommandInvocations": rows[::-1][:50]}
