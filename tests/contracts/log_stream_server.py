"""A stand-in of Container Apps' developer API on loopback, with TLS under Azure's name: the log stream of a replica.

    stream = LogStream(arm)                      # its rights and its token are those of ARM's stand-in
    arm.replicas["gemma--sre-1"] = [stream.replica("gemma--sre-1-abc", at)]
    stream.lines = [(at, "hello")]
    stream.http()                                # the project's client, which trusts it and finds it here

The address is the one that ARM's answers show in public; parameters and lines are those of the ``az`` command. No live
replica was asked.
"""

import ipaddress
import json
import ssl
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from agent.adapters.http.client import HttpClient
from tests.certificates import own_certificate
from tests.contracts.arm_server import GROUP, SUBSCRIPTION, ArmServer, Json
from tests.loopback import Loopback, Reply, Request

HOST = "swedencentral.azurecontainerapps.dev"
RIGHT = "Microsoft.App/containerApps/logstream/action"


class LogStream:
    """What a container printed, for whoever brings the token and has the right.

    Attributes:
        lines: Time and text of each line.
        answer: Status, headers and body of every answer; None to answer as Azure does.
        asked: Path and parameters of each request.
        cut: Whether the connection ends in the middle of an answer.
    """

    def __init__(self, arm: ArmServer) -> None:
        self.arm = arm
        self.lines: list[tuple[datetime, str]] = []
        self.answer: tuple[int, dict[str, str], bytes] | None = None
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.cut = False
        self._certificate, context = own_certificate(HOST)
        self._server = Loopback(self._reply, methods=["GET"], tls=context)
        self.port, self.close = self._server.port, self._server.close

    def http(self) -> HttpClient:
        """Return the project's client, for which Azure's name leads here."""
        return HttpClient(
            timeout_s=5,
            limit_bytes=2**23,
            allowed=lambda _: True,
            resolve=lambda *_: (ipaddress.ip_address("127.0.0.1"),),
            tls=ssl.create_default_context(cadata=self._certificate),
        )

    def endpoint(self, replica: str, container: str = "vllm", door: str = "logstream") -> str:
        """Return the address of one container's stream."""
        app, suffix = replica.rsplit("-", 1)[0].split("--")
        path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/containerApps/{app}/revisions/{app}--{suffix}"
        return f"https://{HOST}:{self.port}{path}/replicas/{replica}/containers/{container}/{door}"

    def replica(self, name: str, at: datetime, containers: tuple[str, ...] = ("vllm",)) -> Json:
        """Return a replica as ARM lists it."""
        shown = [
            {
                "name": container,
                "runningState": "Running",
                "restartCount": 0,
                "logStreamEndpoint": self.endpoint(name, container),
                "execEndpoint": self.endpoint(name, container, "exec"),
            }
            for container in containers
        ]
        properties = {"createdTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "containers": shown}
        return {"name": name, "type": "Microsoft.App/containerApps/revisions/replicas", "properties": properties}

    def _reply(self, request: Request) -> Reply:
        status, headers, body = self.reply(request.path, request.headers.get("Authorization"))
        return status, body, headers | {"Content-Length": str(len(body) * (2 if self.cut else 1))}

    def reply(self, target: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(target)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append((url.path, asked))
        if self.answer is not None:
            return self.answer
        if authorization != f"Bearer {self.arm.token}":
            return 401, {}, b"Unauthorized"
        if self.arm.allowed is not None and RIGHT not in self.arm.allowed:
            return 403, {}, b"Forbidden"
        self.arm.used.add(RIGHT)
        count = int(asked["tailLines"])
        if not url.path.endswith("/logstream") or asked["follow"] != "false" or not 0 <= count <= 300:
            return 400, {}, b"Bad Request"
        now = datetime.now(UTC)
        status = [(now, "Connecting to the container 'vllm'..."), (now, "Successfully Connected to container: 'vllm'")]
        said = [(at, f"stdout F {text}") for at, text in self.lines[-count:]]
        rows = [json.dumps({"TimeStamp": at.isoformat(), "Log": text}) for at, text in [*status, *said]]
        return 200, {"Content-Type": "text/plain"}, "".join(f"{row}\n" for row in rows).encode()
