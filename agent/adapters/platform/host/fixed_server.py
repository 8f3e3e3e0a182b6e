"""A server that somebody else starts: its log is followed, and a fixed restart command of the operator changes it."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent.adapters.platform.host.process import Process, somebody_listens
from agent.adapters.platform.host.server import HostServer, SupervisorRecord, command_line
from agent.adapters.platform.host.supervisor import note
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.host import Start

RESTART_S = 120.0
COMMAND = "command.sh"


class FixedServer(HostServer):
    """The same questions as to a server of ours, answered from outside.

    The restart command is the operator's, word by word: nothing of a plan is ever put into it. What the server is to be
    started with stands in ``command.sh`` beside the record, for the command to use.

    Args:
        folder: As for a server of ours.
        environ: Our own environment.
        log: The file that the server writes to.
        restart: The operator's command; without one nothing can be changed by us.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], *, log: Path, restart: tuple[str, ...]) -> None:
        super().__init__(folder, environ)
        self._log = log
        self._restart = restart
        self._own = dict(environ)

    def log(self, start: Start) -> Path:  # noqa: ARG002 - one file for all starts
        """Return the file that was named."""
        return self._log

    def first_byte(self, start: Start) -> int:
        """Return the size that the file had when the start was ordered; a shorter file was begun anew."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            saved = json.loads((self.place(start) / "server.json").read_text())  # not strict: a file of ours
            first = int(saved["first_byte"])
            return first if first <= self._log.stat().st_size else 0
        return 0

    def launch(self, start: Start, config: ServingConfig) -> None:
        """Write the words down and run the restart command, once for each start.

        Raises:
            PolicyRefused: There is no restart command.
            DependencyFailed: It failed.
        """
        place = self.place(start)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (place / "server.json").exists():
            return
        self._write_command(config)
        if not self._restart:
            raise PolicyRefused(
                f"the server of {start.revision!r} was not restarted",
                why="it is somebody else's, and RESTART_COMMAND is unset",
                hint=f"start it by hand with the command in {str(self._folder / COMMAND)!r}",
            )
        size = self._log.stat().st_size if self._log.exists() else 0
        note(place / "server.json", {"restart": list(self._restart), "first_byte": size})
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own fixed words
                self._restart,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self._own | {"SRE_AGENT_COMMAND": str(self._folder / COMMAND)},
                timeout=RESTART_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._failed(place, str(error))
            return
        if done.returncode != 0:
            self._failed(place, f"exit code {done.returncode}: {done.stderr[-300:].decode('utf-8', 'replace').strip()}")

    def record_of(self, start: Start) -> SupervisorRecord:
        """Return what is known: nothing of processes, and whether the restart command failed."""
        with contextlib.suppress(OSError, ValueError):
            end = json.loads((self.place(start) / "end.json").read_text())  # not strict: a file of ours
            return SupervisorRecord(ended=True, says=str(end.get("says", "")))
        return SupervisorRecord(held=True)

    def left(self, start: Start) -> tuple[Process, ...]:  # noqa: ARG002
        """Return nothing: no process of it is ours to end."""
        return ()

    def serves_on(self, start: Start, port: int) -> bool:  # noqa: ARG002
        """Whether something listens on the port; which process it is cannot be determined."""
        return somebody_listens(port)

    def gone(self, start: Start) -> bool:  # noqa: ARG002
        """Return True: the restart command ends what it has to end."""
        return True

    def _write_command(self, config: ServingConfig) -> None:
        words = "".join(f"export {e.name}={shlex.quote(e.value)}\n" for e in config.env if e.value is not None)
        fresh = self._folder / f"{COMMAND}.tmp"
        fresh.write_text(f"#!/bin/sh\n{words}exec {command_line(config)}\n")
        fresh.chmod(0o700)
        fresh.rename(self._folder / COMMAND)

    def _failed(self, place: Path, why: str) -> None:
        note(place / "end.json", {"code": None, "signal": None, "says": f"a failed restart command: {why}"})


def check_restart(restart: tuple[str, ...]) -> None:
    """Refuse a restart command whose program is not there.

    Raises:
        DependencyFailed: It cannot be run.
    """
    if restart and shutil.which(restart[0]) is None and not os.access(restart[0], os.X_OK):
        raise DependencyFailed(
            "the restart command cannot be run", why=f"{restart[0]!r} is no program", hint="correct RESTART_COMMAND"
        )
