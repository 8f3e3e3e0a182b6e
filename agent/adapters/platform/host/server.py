"""Starting and ending one server process tree on this machine, each step fit to be taken up by a successor."""

import contextlib
import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from agent.adapters.platform.host import supervisor as host_supervisor
from agent.adapters.platform.host.process import MARK, Process, alive, listens, processes_of_start, send
from agent.core.service.serving import ServingConfig
from agent.core.value import Value
from agent.errors import DependencyFailed
from agent.ports.host import Start

LOG = "server.log"


class SupervisorRecord(Value):
    """What the supervisor wrote down of a start.

    Attributes:
        held: Whether a supervisor lives, or is being born.
        supervisor: Its pid while it lives and has said it, else None.
        server: The server itself while it lives, else None.
        ticks: When the server began, by the kernel's clock; with its pid that is one process and no other.
        code: Exit code, None while the server runs or where the supervisor was ended by force.
        says: What the supervisor said of the end.
        ended: Whether the supervisor saw the end.
    """

    held: bool = False
    supervisor: int | None = None
    server: int | None = None
    ticks: int | None = None
    code: int | None = None
    says: str = ""
    ended: bool = False

    @property
    def process(self) -> tuple[Process, ...]:
        """The server's own process, or nothing."""
        if self.server is None or self.ticks is None or not alive(self.server, self.ticks):
            return ()
        return (Process(pid=self.server, ticks=self.ticks),)


class HostServer:
    """The processes of one service's starts.

    Args:
        folder: One folder below it for each start, with its log and what its supervisor wrote down.
        environ: Our own environment, which a server inherits.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = dict(environ)

    def place(self, start: Start) -> Path:
        """Return the folder of a start."""
        return self._folder / "starts" / start.mark

    def log(self, start: Start) -> Path:
        """Return the file that the server writes its output to."""
        return self.place(start) / LOG

    def first_byte(self, start: Start) -> int:  # noqa: ARG002 - each start has a file of its own
        """Return where a start's output begins in its log."""
        return 0

    def launch(self, start: Start, config: ServingConfig) -> None:
        """Call the supervisor of a start; calling again finds that it was called.

        Server and supervisor write to a file and hold none of our pipes, so that our own end touches neither.

        Raises:
            DependencyFailed: No process could be made.
        """
        place = self.place(start)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(place / "supervisor.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # its supervisor lives, or is being born
            if (place / "server.json").exists():
                return
            self._call(start, config, lock)
        except (OSError, subprocess.SubprocessError) as error:
            raise DependencyFailed(
                f"the server of {start.revision!r} was not started",
                why=str(error),
                hint="check disk space, memory and process limits of this machine",
            ) from error
        finally:
            os.close(lock)

    def was_called(self, start: Start) -> bool:
        """Whether a supervisor of ours was ever called for a start; never for a server that somebody else started."""
        place = self.place(start)
        return (place / "supervisor.lock").exists() or "supervisor" in _read(place / "server.json")

    def _call(self, start: Start, config: ServingConfig, lock: int) -> None:
        words = (*config.command, *config.args)
        with self.log(start).open("ab", buffering=0) as log:
            subprocess.run(  # noqa: S603 - the operator's own words, and never a shell
                [sys.executable, "-I", "-S", host_supervisor.__file__, str(self.place(start)), str(lock), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env(start, config),
                start_new_session=True,
                pass_fds=(lock,),
                check=True,
            )

    def _env(self, start: Start, config: ServingConfig) -> dict[str, str]:
        """Our environment, the configuration's own values, and three of ours.

        Python must not hold the last lines back in a buffer, and must not write its process title over the
        environment that we know it by.
        """
        own = {e.name: e.value for e in config.env if e.value is not None}
        ours = {"PYTHONUNBUFFERED": "1", "SPT_NOENV": "1", MARK: start.mark}
        return self._environ | ours | own | {MARK: start.mark}

    def record_of(self, start: Start) -> SupervisorRecord:
        """Return what is known of a start's processes now."""
        place = self.place(start)
        born, end = _read(place / "server.json"), _read(place / "end.json")
        supervisor, server, ticks = born.get("supervisor"), born.get("server"), born.get("started")
        held = _locked(place / "supervisor.lock")
        return SupervisorRecord(
            held=held,
            supervisor=supervisor if held and isinstance(supervisor, int) else None,
            server=server if isinstance(server, int) else None,
            ticks=ticks if isinstance(ticks, int) else None,
            code=end.get("code") if isinstance(end.get("code"), int) else None,
            says=str(end.get("says", "")),
            ended=bool(end),
        )

    def left(self, start: Start) -> tuple[Process, ...]:
        """Return everything of a start that lives, its supervisor left out."""
        return processes_of_start(start.mark, self.record_of(start).supervisor)

    def ask_to_end(self, start: Start) -> None:
        """Ask the server itself to end; what it started is its own to end."""
        send(self.record_of(start).process, signal.SIGTERM)

    def end_by_force(self, start: Start) -> None:
        """End everything of a start that is left."""
        send(self.left(start), signal.SIGKILL)

    def serves_on(self, start: Start, port: int) -> bool:
        """Whether one of this start's own processes listens there; another's server is not ours to be judged by."""
        return listens(self.left(start), port)

    def gone(self, start: Start) -> bool:
        """Whether nothing of a start is left, its supervisor included."""
        return not self.record_of(start).held and not self.left(start)


def command_line(config: ServingConfig) -> str:
    """Return a configuration's words as one line for a shell."""
    return shlex.join((*config.command, *config.args))


def last_line(log: Path) -> str:
    """Return the last line of a log, cut, or nothing; untrusted text."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def _read(path: Path) -> dict[str, object]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text())  # not strict: a file of ours
        return found if isinstance(found, dict) else {}
    return {}


def _locked(path: Path) -> bool:
    """Whether a supervisor holds its lock; the kernel gives it back whichever way the supervisor ends."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
