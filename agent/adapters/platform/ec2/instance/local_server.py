"""Runs on the instance, in front of the script: asks the model server on this machine, and its GPUs."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, Protocol

from agent.adapters.platform.ec2.instance.effect_ledger import Json, Refused, run


class Server(Protocol):
    """What starts the server: a unit's files or a container."""

    host: str
    port: int | None
    words: list[str]

    def secret(self, name: str) -> str:
        """Return a variable's value for use on this machine alone."""
        ...


def healthy(server: Server, asked: Json) -> bool:
    """Ask /health once."""
    return bool(exchange(server, asked, ("GET", "/health", None), 2.0)["status"] == 200)


def port_of(words: list[str], asked: Json) -> int:
    """Return where the server is asked here: as services.toml says, else its own flag, else vLLM's default."""
    if asked.get("port"):
        return int(asked["port"])
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--port":
            found = value if equals else (words[index + 1] if index + 1 < len(words) else "")
            return int(found) if found.isdigit() else 8000
    return 8000


def exchange(server: Server, asked: Json, what: tuple[str, str, str | None], timeout_s: float) -> Json:
    """Send one request to the server on this machine; the pieces of its answer with the time of each, seconds."""
    method, path, body = what
    key = server.secret("VLLM_API_KEY") or flag_value(server.words, "--api-key")
    key = server.secret(key.strip("${}")) if key.startswith("$") else key
    headers = {"Connection": "close", "Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    began = time.monotonic()
    connection = HTTPConnection(server.host, server.port or port_of(server.words, asked), timeout=timeout_s)
    try:
        connection.request(method, path, body.encode() if body else None, headers)
        answer = connection.getresponse()
        if answer.status >= 300:
            said = answer.read(4000).decode("utf-8", "replace").replace(key or "\0", "")
            return {"status": answer.status, "pieces": [[0.0, said]]}
        return {"status": answer.status, "pieces": list(pieces(answer, began, timeout_s))}
    except Exception as error:  # noqa: BLE001 - whatever the server does is its answer
        late = "timed out" in str(error)
        return {
            "status": 0,
            "pieces": [],
            "late": late,
            "why": f"{type(error).__name__}: {error}".replace(key or "\0", "")[:500],
        }
    finally:
        connection.close()


def pieces(answer: Any, began: float, timeout_s: float) -> Iterator[list[Any]]:
    """Yield what comes, with its time."""
    while time.monotonic() - began < timeout_s:
        text = answer.read1(65_536)
        if not text:
            return
        yield [round(time.monotonic() - began, 4), text.decode("utf-8", "replace")]
    raise TimeoutError("timed out: the answer did not end in time")


def flag_value(words: list[str], flag: str) -> str:
    """Return the value of a flag, or nothing."""
    for index, word in enumerate(words):
        if word == flag and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return ""


def gpus() -> list[list[Any]]:
    """Return name and memory (MiB) of the machine's NVIDIA cards; nothing where nvidia-smi is missing or fails."""
    with contextlib.suppress(OSError, subprocess.SubprocessError, Refused):
        asked = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
        rows = (line.rpartition(",") for line in run(*asked, timeout_s=10).splitlines())
        return [[name.strip(), int(mib)] for name, _, mib in rows if name and mib.strip().isdigit()]
    return []
