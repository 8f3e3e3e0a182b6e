"""Runs on the instance, in front of the script: a bare Docker container as its engine tells it.

It speaks the Docker Engine API on the engine's own socket: a container is made anew from the JSON that the engine tells
of it, so that no option is lost on the way through a command line (https://docs.docker.com/reference/api/engine, read
2026-11-22).
"""

from __future__ import annotations

import calendar
import http.client
import json
import re
import socket
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

from agent.adapters.platform.ec2.instance.effect_ledger import Json, Refused
from agent.adapters.platform.ec2.instance.unit_files import is_hidden, sha

EFFECT, IMAGE, OF = "sre-agent-effect", "sre-agent-image", "sre-agent-container"  # labels of what we made
NEVER = "0001-01-01T00:00:00Z"  # when a container that was only created was started
STOP_S = 20
SHELLS = re.compile(r"(^|/)(ba|da|z|k)?sh$")


class Engine(http.client.HTTPConnection):
    """The engine's own socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("docker", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def engine(asked: Json, method: str, path: str, body: Json | None = None) -> tuple[int, bytes]:
    """Send one request to the engine and return status and body.

    Raises:
        Refused: It does not answer.
    """
    connection = Engine(asked["socket"], STOP_S + 20)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json"} if sent else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError as error:
        raise Refused("failed", f"the Docker engine did not answer at {asked['socket']}: {error}") from error
    finally:
        connection.close()


def tell(asked: Json, method: str, path: str, body: Json | None = None) -> Json:
    """Send a request that must succeed; errors are the engine's own words.

    Raises:
        Refused: It did not.
    """
    status, said = engine(asked, method, path, body)
    if status >= 400:
        raise Refused("failed", f"{method} {path.partition('?')[0]}: {message(said)}")
    found: Json = json.loads(said) if said.strip() else {}  # not strict: the engine's own
    return found


def message(said: bytes) -> str:
    """Return the engine's words of a refusal."""
    try:
        return str(json.loads(said)["message"])[:500]  # not strict: the engine's own
    except (ValueError, KeyError, TypeError):
        return said.decode("utf-8", "replace")[:500]


def inspect(asked: Json, name: str) -> Json | None:
    """Return what the engine tells of a container; None where there is none."""
    status, said = engine(asked, "GET", f"/containers/{urllib.parse.quote(name)}/json")
    if status == 404:
        return None
    if status >= 400:
        raise Refused("failed", f"the container was not read: {message(said)}")
    found: Json = json.loads(said)  # not strict: the engine's own
    return found


class Container:
    """A container as the engine tells it."""

    def __init__(self, said: Json, asked: Json) -> None:
        self.said, self.hidden = said, tuple(asked["hidden"])
        config = said["Config"]
        self.cmd: list[str] = list(config.get("Cmd") or [])
        self.entrypoint: list[str] = list(config.get("Entrypoint") or [])
        self.words = self.entrypoint + self.cmd
        image = tell(asked, "GET", f"/images/{urllib.parse.quote(said['Image'], safe=':')}/json")
        self.of_image: list[str] = list((image.get("Config") or {}).get("Env") or [])
        self.env = [row.split("=", 1) if "=" in row else [row, ""] for row in config.get("Env") or []]
        self.labels: dict[str, str] = dict(config.get("Labels") or {})
        self.image = self.labels.get(IMAGE) or config["Image"]
        self.host, self.port = self._address(asked)

    @property
    def own_env(self) -> list[list[str]]:
        """Variables that are not the image's."""
        return [row for row in self.env if "=".join(row) not in self.of_image]

    @property
    def text(self) -> str:
        """What a change can change, as JSON; the values of secrets stay here."""
        shown = [[n, None if is_hidden(n, self.hidden) else v] for n, v in self.own_env]
        return written(self.cmd, shown)

    @property
    def others(self) -> str:
        """Digest of everything else: image, mounts, devices, ports, limits, labels of others, and the secrets."""
        config = {
            k: v for k, v in self.said["Config"].items() if k not in {"Cmd", "Env", "Image", "Hostname", "Labels"}
        }
        labels = {k: v for k, v in self.labels.items() if k not in {EFFECT, IMAGE, OF}}
        host = {k: v for k, v in self.said["HostConfig"].items() if k not in {"Binds", "RestartPolicy"}}
        secret = [row for row in self.own_env if is_hidden(row[0], self.hidden)]
        held = [self.said["Image"], config, labels, host, sorted(self.binds), secret]
        return sha(json.dumps(held, sort_keys=True))

    @property
    def binds(self) -> list[str]:
        """Its mounts, with volumes that have no name of their own by the one that the engine gave them."""
        given = list(self.said["HostConfig"].get("Binds") or [])
        named = {bind.split(":")[1] for bind in given if ":" in bind}
        named |= {m["Target"] for m in self.said["HostConfig"].get("Mounts") or []}
        found = [
            m for m in self.said.get("Mounts") or [] if m.get("Type") == "volume" and m["Destination"] not in named
        ]
        return given + [f"{m['Name']}:{m['Destination']}" for m in found]

    @property
    def unread(self) -> str:
        """Why its startup command cannot be read, or nothing."""
        shell = next((w for w in self.words[:-1] if SHELLS.search(w)), None)
        held = next((n for n, v in (w.split("=", 1) for w in self.words if "=" in w and not w.startswith("-"))
                     if v and is_hidden(n, self.hidden)), None)  # fmt: skip
        if shell is not None and any(re.fullmatch(r"-\w*c", w) for w in self.words):
            return f"a shell ({shell}) starts the server"
        return f"its startup command holds the value of {held}: set it as an environment variable" if held else ""

    @property
    def policy(self) -> Json:
        """Its restart policy."""
        return dict(self.said["HostConfig"].get("RestartPolicy") or {"Name": "no"})

    def secret(self, name: str) -> str:
        """Return a variable's value for use on this machine alone."""
        return next((value for own, value in self.env if own == name), "")

    def _address(self, asked: Json) -> tuple[str, int | None]:
        """Where it is asked from here: as services.toml says, its published port, or its own address."""
        if asked.get("port"):
            return "127.0.0.1", int(asked["port"])
        own = next((self.words[i + 1] for i, w in enumerate(self.words[:-1]) if w == "--port"), "")
        own = own or next((w.partition("=")[2] for w in self.words if w.startswith("--port=")), "8000")
        settings = self.said.get("NetworkSettings") or {}
        published = (settings.get("Ports") or {}).get(f"{own}/tcp") or []
        if published:
            return "127.0.0.1", int(published[0]["HostPort"])
        addresses = [n.get("IPAddress") for n in (settings.get("Networks") or {}).values()]
        inside = next((a for a in addresses if a), "") if self.mode != "host" else ""
        return inside or "127.0.0.1", int(own) if own.isdigit() else None

    @property
    def mode(self) -> str:
        """Its network."""
        return str(self.said["HostConfig"].get("NetworkMode") or "default")

    def body(self, cmd: list[str], env: list[list[str]], labels: dict[str, str]) -> Json:
        """Return what makes such a container anew, with other arguments.

        Raises:
            Refused: It could not be made as it is.
        """
        networks = (self.said.get("NetworkSettings") or {}).get("Networks") or {}
        if self.said["HostConfig"].get("AutoRemove"):
            raise Refused("invalid", "it was started with --rm, so a stop would delete it: start it without --rm")
        if len(networks) > 1:
            raise Refused("invalid", f"it is in {len(networks)} networks, and only one is joined when it is made anew")
        config = {k: v for k, v in self.said["Config"].items() if k != "MacAddress"}
        short = self.said["Id"][:12]
        if config.get("Hostname") == short or self.mode == "host" or self.mode.startswith("container:"):
            config.pop("Hostname", None)
        made: Json = {
            **config, "Image": self.said["Image"], "Cmd": cmd, "Env": ["=".join(row) for row in env],
            "Labels": {**self.labels, **labels}, "HostConfig": {**self.said["HostConfig"], "Binds": self.binds},
        }  # fmt: skip
        for name, joined in networks.items():
            if self.mode not in {"default", "bridge", "host", "none"} and not self.mode.startswith("container:"):
                kept = {k: joined[k] for k in ("IPAMConfig", "Links", "DriverOpts") if joined.get(k)}
                aliases = [a for a in joined.get("Aliases") or [] if a != short]
                made["NetworkingConfig"] = {"EndpointsConfig": {name: {**kept, "Aliases": aliases}}}
        return made


def written(cmd: list[str], env: list[list[str | None]]) -> str:
    """Return arguments and variables as one text that two sides compare byte by byte."""
    return json.dumps({"cmd": cmd, "env": env}, sort_keys=True, separators=(",", ":"))


def found_container(asked: Json) -> Container:
    """Return the container of a service.

    Raises:
        Refused: There is none of that name.
    """
    said = inspect(asked, asked["container"])
    if said is None:
        raise Refused("no_unit", f"the Docker engine has no container {asked['container']!r}")
    return Container(said, asked)


def container_rows(asked: Json, seen: Container) -> list[list[Any]]:
    """Return time (microseconds), start and text of what the container printed last.

    Raises:
        Refused: Its logging driver keeps nothing that can be read here.
    """
    until = f"&until={int(asked['until'])}" if asked.get("until") else ""
    path = f"/containers/{seen.said['Id']}/logs?stdout=1&stderr=1&timestamps=1&tail={int(asked['lines'])}{until}"
    status, said = engine(asked, "GET", path)
    if status >= 400:
        raise Refused("failed", f"its log was not read: {message(said)}; where it goes to CloudWatch, name log_group")
    raw = said if seen.said["Config"].get("Tty") else b"".join(frames(said))
    began = seen.said["State"].get("StartedAt", NEVER)
    rows = []
    for line in raw.decode("utf-8", "replace").splitlines():
        stamp, _, text = line.partition(" ")
        at = microseconds(stamp)
        rows.append([at, began if at >= microseconds(began) else "an earlier start", text[:4000]])
    return rows


def frames(said: bytes) -> Iterator[bytes]:
    """Yield what was printed, without the engine's header of eight bytes for each piece."""
    at = 0
    while at + 8 <= len(said):
        size = int.from_bytes(said[at + 4 : at + 8], "big")
        yield said[at + 8 : at + 8 + size]
        at += 8 + size


def microseconds(stamp: str) -> int:
    """Return a time of the engine, which has nanoseconds, since the epoch; 0 for what is none."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", stamp)
    if found is None or stamp == NEVER:
        return 0
    seconds = calendar.timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S"))
    return seconds * 1_000_000 + int((found[2] or "0").ljust(9, "0")) // 1000
