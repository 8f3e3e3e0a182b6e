"""One fixed script on an instance by Systems Manager: what it is asked comes as JSON in Base64, never as shell text."""

import base64
import json
import re
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from agent.adapters.aws.client import Aws
from agent.adapters.platform.ec2.target import UnitTarget
from agent.adapters.platform.host.describe import HIDDEN
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.platform import HINTS, LeaseOver
from agent.strict_json import read_object

Json = dict[str, Any]

UNIT_FOLDER: Final = "/etc/systemd/system"
STATE_FOLDER: Final = "/var/lib/sre-agent"
DOCKER_SOCKET: Final = "/var/run/docker.sock"
SCRIPT: Final = ("unit_files.py", "effect_ledger.py", "local_server.py", "docker_engine.py", "docker_container.py",
          "on_instance.py")  # fmt: skip
"""What runs on the instance, one file behind the other."""
DOCUMENT: Final = "AWS-RunShellScript"
ANSWER_S: Final = 60.0
DELIVERY_S: Final = 30  # the least that Systems Manager takes
ANSWER_BYTES: Final = 16 * 2**20
RUNNING: Final = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})
FRAME = ("SRE-AGENT ", " END")


class AgentOffline(DependencyFailed):
    """Systems Manager does not reach the instance."""


class InstanceCommands:
    """Runs the script and returns what it answers.

    Args:
        aws: The account.
        unit_folder: Where units have their drop-ins on the instance.
        state_folder: Where the ledger lies on it.
        docker_socket: Where its Docker engine listens.
        pause: Waits so many seconds between two looks at a command.
        elapsed_s: Seconds on a clock that nobody sets, by which a command is given up.
        now: This machine's clock, in seconds since the epoch.
    """

    def __init__(
        self,
        aws: Aws,
        *,
        unit_folder: str = UNIT_FOLDER,
        state_folder: str = STATE_FOLDER,
        docker_socket: str = DOCKER_SOCKET,
        pause: Callable[[float], None] = time.sleep,
        elapsed_s: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime],
    ) -> None:
        self._aws = aws
        self._folders = {"folder": unit_folder, "state": state_folder, "socket": docker_socket}
        self._pause = pause
        self._elapsed_s = elapsed_s
        self._now = now

    def online(self, target: UnitTarget, instance: str) -> str:
        """Return how Systems Manager sees the instance, such as ``Online``; empty where it does not know it."""
        filters = [{"Key": "InstanceIds", "Values": [instance]}]
        rows = self._aws.call(target.region, "describe_instance_information", Filters=filters)
        return next((str(r["PingStatus"]) for r in rows["InstanceInformationList"]), "")

    def ask(self, target: UnitTarget, instance: str, op: str, **asked: Any) -> Json:
        """Run an operation of the script that changes nothing."""
        return self._run(target, instance, {"op": op, **asked}, within_s=ANSWER_S)

    def change(self, target: UnitTarget, instance: str, *, within_s: float, **asked: Any) -> Json:
        """Run the one that changes the unit; the instance itself refuses it after the end of the lease.

        Args:
            target: The unit.
            instance: Where it is.
            within_s: What is left of the lease, asked right before.
            asked: The change.
        """
        until = self._now().timestamp() + within_s
        return self._run(target, instance, {"op": "change", "not_after": until, **asked}, within_s=within_s)

    def last_read(self, target: UnitTarget, instance: str) -> Json | None:
        """Return what the instance answered last, as Systems Manager keeps it for 30 days; None without that."""
        rows = self._aws.call(target.region, "list_command_invocations", InstanceId=instance)["CommandInvocations"]
        mine = [r for r in rows if r.get("Comment") == _comment(target) and r.get("Status") == "Success"]
        for row in sorted(mine, key=_requested, reverse=True)[:5]:
            ran = self._invocation(target, row["CommandId"], instance)
            if ran is not None:
                answer = _answer(target, ran)
                if "words" in answer:
                    return answer
        return None

    def _run(self, target: UnitTarget, instance: str, asked: Json, *, within_s: float) -> Json:
        which = {"unit": target.unit, "container": target.container, "ledger": target.ledger}
        asked = {**which, "port": target.port, "hidden": HIDDEN, **self._folders, **asked}
        sent = self._aws.change(
            target.region,
            "send_command",
            within_s=within_s,
            InstanceIds=[instance],
            DocumentName=DOCUMENT,
            Comment=_comment(target) if asked["op"] in {"read", "change"} else f"sre-agent {asked['op']}",
            TimeoutSeconds=DELIVERY_S,
            Parameters={"commands": [shell_line(asked)], "executionTimeout": [str(int(ANSWER_S))]},
        )
        done = self._wait(target, sent["Command"]["CommandId"], instance, min(within_s, ANSWER_S))
        return _answer(target, done)

    def _wait(self, target: UnitTarget, command: str, instance: str, within_s: float) -> Json:
        until, pause_s = self._elapsed_s() + within_s, 0.03
        while True:
            ran = self._invocation(target, command, instance)
            if ran is not None and ran["Status"] not in RUNNING:
                return ran
            if self._elapsed_s() >= until:
                raise AgentOffline(
                    f"{target.says} did not answer",
                    why=f"command {command} is {ran['Status'] if ran else 'not known yet'} after {within_s:.0f} s",
                    hint="no action needed: what it did is read back; look at the SSM agent if it stays so",
                )
            self._pause(pause_s)
            pause_s = min(pause_s * 1.6, 1.0)

    def _invocation(self, target: UnitTarget, command: str, instance: str) -> Json | None:
        """Return a command's state; None right after it was sent, when Systems Manager may not know it yet."""
        try:
            return self._aws.call(target.region, "get_command_invocation", CommandId=command, InstanceId=instance)
        except StateConflict:
            return None


def shell_line(asked: Json) -> str:
    """Return the one line that runs the script: program and argument are Base64, whatever they hold."""
    argument = base64.b64encode(json.dumps(asked).encode()).decode()
    program = "import base64,sys,zlib;exec(zlib.decompress(base64.b64decode(sys.argv.pop(1))))"
    return f"exec python3 -I -S -c '{program}' {script()} {argument}"


@cache
def script() -> str:
    """Return what runs on the instance, packed: our files one behind the other, without their imports of each other."""
    folder = resources.files("agent.adapters.platform.ec2.instance")
    future = "from __future__ import annotations\n"
    text = future + "\n".join(folder.joinpath(name).read_text().replace(future, "") for name in SCRIPT)
    own = re.sub(r"^from agent\.\S+ import (\([^)]*\)|.*)$", "", text, flags=re.MULTILINE)
    return base64.b64encode(zlib.compress(own.encode(), 9)).decode()


def _answer(target: UnitTarget, ran: Json) -> Json:
    """Return what the script answered.

    Raises:
        LeaseOver: It reached the instance too late; nothing was changed.
        StateConflict: The unit is not what the change was made for.
        InputRejected: There is no such unit, or it can never be changed so.
        DependencyFailed: It did not run to its end, or its output was cut.
    """
    out = str(ran.get("StandardOutputContent", "")).strip()
    if ran["Status"] != "Success":
        said = str(ran.get("StandardErrorContent", "")).strip()[-500:]
        raise AgentOffline(
            f"{target.says} did not answer",
            why=f"the command ended as {ran.get('StatusDetails') or ran['Status']}{': ' if said else ''}{said}",
            hint="no action needed: what it did is read back; the instance needs python3 and systemd",
        )
    if not (out.startswith(FRAME[0]) and out.endswith(FRAME[1])):
        raise DependencyFailed(
            f"the answer of {target.says} was not read",
            why="its output was cut, or something else printed into it",
            hint="no action needed: what it did is read back",
        )
    packed = base64.b64decode(out.removeprefix(FRAME[0]).removesuffix(FRAME[1]))
    unpacker = zlib.decompressobj()
    answer = read_object(unpacker.decompress(packed, ANSWER_BYTES), what="answer of the instance", limit=ANSWER_BYTES)
    if "error" in answer:
        raise _refusal(target, str(answer["error"]), str(answer.get("why", "")))
    return answer


def _refusal(target: UnitTarget, kind: str, why: str) -> SreError:
    what = f"{target.says} was not changed"
    match kind:
        case "late":
            return LeaseOver(what, why=why, hint="no action needed: the next worker checks the live state")
        case "conflict":
            return StateConflict(what, why=why, hint=HINTS[StateConflict])
        case "refused":
            return PolicyRefused(what, why=why, hint="rename that drop-in so that ours is read last")
        case "no_unit":
            named = "container" if target.container else "unit"
            hint = f"look at {named} of the service in services.toml"
            return InputRejected(f"{target.says} was not read", why=why, hint=hint)
        case "invalid":
            return InputRejected(what, why=why, hint="nothing was changed; see docs/ec2.md, 'A container'")
    return DependencyFailed(f"{target.says} was not read", why=why, hint="look at it on the instance")


def _comment(target: UnitTarget) -> str:
    return f"sre-agent {target.service} {target.name}"[:100]


def _requested(row: Json) -> datetime:
    at = row.get("RequestedDateTime")
    return at if isinstance(at, datetime) else datetime.fromtimestamp(0, UTC)
