#!/usr/bin/env python3
# sre-agent node script, protocol 1
"""Runs on a TPU VM as its startup script: one container as the metadata says, and a report of what became of it.

Nothing but the standard library of Python 3.10, because a node has no more. What to run is JSON in the metadata
attribute ``vllm-server``; it becomes the words of ``docker run`` one by one, and no shell reads any of them. The
container is made anew when the revision in the JSON changes or the node was started again, and is never started again
by itself: a server that ended is reported. What became of it stands in the guest attribute ``sre-agent/status``.
"""

from __future__ import annotations

import base64
import calendar
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PROTOCOL = 1
NAME = "sre-agent-vllm"
REVISION, BOOT = "sre-agent-revision", "sre-agent-boot"
HOST = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
SECRETS = os.environ.get("SECRET_MANAGER", "https://secretmanager.googleapis.com")
DOCKER = ("docker",)
LONGEST_WAIT_S, STARTING_WAIT_S, REPORT_S = 30, 2, 60
START_S = 3600
DOCKER_S = 1800  # an image of vLLM is pulled in minutes
SHM = "16g"
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,400}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
PATH = re.compile(r"/[^:\0]{0,400}")
Json = dict[str, Any]


class Refused(Exception):
    """What the metadata asks for cannot be run."""


class Metadata:
    """The node's metadata server: attributes to read, guest attributes to write."""

    def __init__(self, host: str = HOST) -> None:
        self._base = f"http://{host}/computeMetadata/v1/instance/"
        self._etag = "0"

    def wanted(self, wait_s: int) -> str:
        """Return the attribute ``vllm-server``, at once when it changed, otherwise after some seconds."""
        query = f"?wait_for_change=true&timeout_sec={wait_s}&last_etag={self._etag}" if wait_s else ""
        try:
            text, headers = self._ask("GET", "attributes/vllm-server" + query, timeout_s=wait_s + 20)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            time.sleep(wait_s)
            return ""
        self._etag = str(headers.get("ETag", "0"))
        return text

    def preempted(self) -> bool:
        """Whether the node, a spot one, is being taken back."""
        try:
            return self._ask("GET", "preempted")[0].strip() == "TRUE"
        except urllib.error.HTTPError:
            return False

    def token(self) -> str:
        """Return an access token of the node's service account."""
        text = self._ask("GET", "service-accounts/default/token")[0]
        return str(json.loads(text)["access_token"])  # not strict: the node's own metadata server

    def project(self) -> str:
        """Return the node's project."""
        return self._ask("GET", "../project/project-id")[0].strip()

    def reported(self) -> Json:
        """Return the report that stands there, so that the last ready revision outlives this process."""
        try:
            text = self._ask("GET", "guest-attributes/sre-agent/status")[0]
            found = json.loads(text)  # not strict: what this script wrote
        except (urllib.error.HTTPError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def report(self, status: Json) -> None:
        """Write the report."""
        self._ask("PUT", "guest-attributes/sre-agent/status", json.dumps(status).encode())

    def _ask(self, method: str, path: str, body: bytes | None = None, timeout_s: int = 20) -> tuple[str, Any]:
        sent = urllib.request.Request(
            self._base + path, data=body, method=method, headers={"Metadata-Flavor": "Google"}
        )
        with urllib.request.urlopen(sent, timeout=timeout_s) as answer:
            return answer.read().decode("utf-8", "replace"), answer.headers


def docker(*words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run docker without a shell."""
    return subprocess.run(
        [*DOCKER, *words],
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=DOCKER_S,
        check=False,
    )


def parsed(text: str) -> Json:
    """Return what to run.

    Raises:
        Refused: It is no such JSON, or would give docker other options than those meant.
    """
    try:
        wanted = json.loads(text, object_pairs_hook=_once)  # not strict: a node has no package of ours; no key twice
        config = wanted["config"]
        revision, words = wanted["revision"], (*config.get("command", ()), *config.get("args", ()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"the metadata attribute vllm-server was not read: {type(error).__name__}") from error
    if not isinstance(revision, str) or not revision or not all(isinstance(word, str) for word in words):
        raise Refused("the revision and every word of vllm-server must be text")
    if not isinstance(config.get("image"), str) or not IMAGE.fullmatch(config["image"]):
        raise Refused("config.image of vllm-server names no image")
    return {"revision": revision, "config": config}


def _once(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def options(config: Json) -> list[str]:
    """Return the options of ``docker run`` for variables, volumes and memory; a secret's value is in none of them.

    Raises:
        Refused: A name or a path is none.
    """
    found: list[str] = []
    for one in config.get("env", ()):
        if not ENV_NAME.fullmatch(one["name"]):
            raise Refused("a variable of vllm-server has no proper name")
        found += ["--env", one["name"] if one.get("secret") else f"{one['name']}={one.get('value') or ''}"]
    for one in config.get("volumes", ()):
        if not PATH.fullmatch(one["name"]) or not PATH.fullmatch(one["mount_path"]):
            raise Refused("a volume of vllm-server wants two absolute paths: name on the node, mount_path inside")
        found += ["--volume", one["name"] + ":" + one["mount_path"] + (":ro" if one.get("read_only", True) else "")]
    return found + (["--memory", f"{int(config['memory_mib'])}m"] if config.get("memory_mib") else [])


def secrets(config: Json, metadata: Metadata) -> dict[str, str]:
    """Return the values of secrets by variable, from Secret Manager, with the node's own service account.

    Raises:
        Refused: One is not to be had.
    """
    found = {}
    for one in config.get("env", ()):
        if not one.get("secret"):
            continue
        url = f"{SECRETS}/v1/projects/{metadata.project()}/secrets/{one['secret']}/versions/latest:access"
        sent = urllib.request.Request(url, headers={"Authorization": "Bearer " + metadata.token()})
        try:
            with urllib.request.urlopen(sent, timeout=20) as answer:
                said = json.loads(answer.read())  # not strict: Secret Manager's own answer
            found[one["name"]] = base64.b64decode(said["payload"]["data"]).decode()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Refused(f"secret {one['secret']!r} was not read: {error}") from error
    return found


def port(config: Json) -> int:
    """Return the port that the server listens on."""
    words = list(config.get("args", ()))
    for word, after in zip(words, [*words[1:], ""], strict=True):
        value = after if word == "--port" else word[len("--port=") :] if word.startswith("--port=") else ""
        if value.isdigit():
            return int(value)
    return 8000


def healthy(config: Json) -> bool:
    """Whether the server answers its health check."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port(config)}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def start_limit_s(config: Json) -> int:
    """Return how long a start may take, as the startup probe says."""
    probe = config.get("startup_probe")
    if not isinstance(probe, dict):
        return START_S
    return int(probe.get("initial_delay_s", 0)) + int(probe.get("period_s", 240)) * int(
        probe.get("failure_threshold", 1)
    )


class Node:
    """The one container of this node; each step looks, does what is due and reports.

    Args:
        metadata: The node's metadata server.
        boot: Names this start of the node.
    """

    def __init__(self, metadata: Metadata, boot: str) -> None:
        self._metadata, self._boot = metadata, boot
        self._status: Json = {}
        before = metadata.reported()
        self._ready_revision: str | None = before.get("ready_revision")
        self._over: tuple[str, str] = ("", "")
        if before.get("state") == "failed" and before.get("boot") == boot:
            self._over = (str(before.get("revision")), str(before.get("says")))
        self._reported_at = 0.0
        served = before.get("state") == "ready" and before.get("boot") == boot  # by the script before this one
        self._served = str(before.get("revision")) if served else ""

    def step(self, wait_s: int = 0) -> Json:
        """Take one step and return the report."""
        text = self._metadata.wanted(wait_s)
        revision = ""
        try:
            wanted = parsed(text)
            revision = wanted["revision"]
            state, says = self._onward(revision, wanted["config"])
        except (Refused, KeyError, TypeError, ValueError, AttributeError) as error:
            state, says = "failed", str(error) if isinstance(error, Refused) else f"vllm-server is wrong: {error!r}"
        if state == "ready":
            self._ready_revision = self._served = revision
        preempted = self._metadata.preempted()
        if preempted:
            say(f"TPU node preempted: the node is being taken back, {revision or 'its container'} ends")
        self._tell(
            {
                "protocol": PROTOCOL,
                "boot": self._boot,
                "revision": revision,
                "state": state,
                "says": says[:400],
                "ready_revision": self._ready_revision,
                "preempted": preempted,
            }
        )
        return self._status

    def _onward(self, revision: str, config: Json) -> tuple[str, str]:
        have = self._container()
        if config.get("max_instances") == 0:
            if have is not None:
                self._end(config)
            return "stopped", "no container runs"
        if have is None or have["labels"] != (revision, self._boot):
            if self._over[0] == revision:
                return "failed", self._over[1]
            run, environ = self._prepared(revision, config)
            if have is not None:
                self._end(config)
            return self._begin(revision, config, run, environ)
        if not have["running"]:
            before = "" if self._served == revision else " before it served"
            killed = ", out of memory" if have["oom"] else ""
            return "failed", f"the container ended with exit code {have['code']}{killed}{before}"
        if healthy(config):
            return "ready", "the server answers its health check"
        if self._served == revision:
            return "failed", "the server runs and does not answer its health check"
        limit = start_limit_s(config)
        if time.time() - have["began"] > limit:
            self._end(config)
            return self._give_up(
                revision, f"the server did not answer its health check within {limit} s, and was ended"
            )
        return "starting", "the container runs, and does not answer its health check yet"

    def _container(self) -> Json | None:
        done = docker("inspect", "--type", "container", NAME)
        if done.returncode != 0:
            return None
        found = json.loads(done.stdout)[0]  # not strict: docker on this node wrote it
        state, labels = found["State"], found["Config"]["Labels"] or {}
        return {
            "labels": (labels.get(REVISION), labels.get(BOOT)),
            "running": bool(state["Running"]),
            "code": state["ExitCode"],
            "oom": bool(state.get("OOMKilled")),
            "began": _seconds(state["StartedAt"]),
        }

    def _prepared(self, revision: str, config: Json) -> tuple[list[str], dict[str, str]]:
        """Return the words of ``docker run`` and the variables that stand in none of them."""
        words = [*config.get("command", ()), *config.get("args", ())]
        entry = ["--entrypoint", words.pop(0)] if config.get("command") else []
        labels = ["--label", f"{REVISION}={revision}", "--label", f"{BOOT}={self._boot}"]
        fixed = ["--privileged", "--network", "host", "--shm-size", SHM, "--restart", "no"]
        run = ["--detach", "--name", NAME, *labels, *fixed, *options(config), *entry, config["image"], *words]
        return run, secrets(config, self._metadata)

    def _begin(self, revision: str, config: Json, run: list[str], environ: dict[str, str]) -> tuple[str, str]:
        say(f"revision {revision}: docker run {config['image']}")
        done = docker("run", *run, environ=environ)
        if done.returncode == 0:
            return "starting", "the container was started"
        return self._give_up(
            revision, f"docker run ended with exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        )

    def _give_up(self, revision: str, why: str) -> tuple[str, str]:
        """Nothing is started twice by itself: a person, or a change, gives another revision."""
        self._over = (revision, why)
        return "failed", why

    def _end(self, config: Json) -> None:
        grace = config.get("termination_grace_s")
        docker("stop", "--time", str(30 if grace is None else int(grace)), NAME)
        docker("rm", "--force", NAME)
        self._served = ""

    def _tell(self, status: Json) -> None:
        now = time.time()
        same = {**status, "at": 0} == {**self._status, "at": 0}
        if same and now - self._reported_at < REPORT_S:
            return
        self._status, self._reported_at = {**status, "at": int(now)}, now
        self._metadata.report(self._status)
        if not same:
            say(f"revision {status['revision']} is {status['state']}: {status['says']}")


def _seconds(stamp: str) -> float:
    """Return the time of a stamp such as 2026-11-22T10:00:00.123456789Z, seconds since 1970."""
    return float(calendar.timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")))


def say(text: str) -> None:
    """Print a line: it stands in the node's journal and on its serial port."""
    sys.stdout.write(f"sre-agent: {text}\n")
    sys.stdout.flush()


def boot_id() -> str:
    """Return what names this start of the node."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def install() -> None:
    """Leave this file as a unit of systemd that goes on: a startup script that does not end holds up the boot."""
    unit, place = "sre-agent-node", Path("/var/lib/sre-agent/on_node.py")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["systemctl", "stop", unit], check=False)
    program = ["/usr/bin/python3", str(place), "--stay"]
    subprocess.run(["systemd-run", "--unit", unit, "--collect", "--property=Restart=always", *program], check=True)


def stay() -> None:
    """Go on for ever; what fails is said and tried again."""
    node: Node | None = None
    wait_s = 0
    while True:
        try:
            node = node or Node(Metadata(), boot_id())
            wait_s = STARTING_WAIT_S if node.step(wait_s).get("state") == "starting" else LONGEST_WAIT_S
        except Exception as error:
            say(f"a step failed and is tried again: {type(error).__name__}: {error}")
            time.sleep(STARTING_WAIT_S)


if __name__ == "__main__":
    stay() if sys.argv[1:] == ["--stay"] else install()
