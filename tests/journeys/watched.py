"""A watcher process and the server it watches, as an operator starts them; answers come from another terminal."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agent.adapters.clock import SystemClock
from agent.adapters.platform.host.platform import HostPlatform
from agent.adapters.platform.host.process import processes_of_start
from agent.adapters.platform.host.server import HostServer
from agent.adapters.platform.host.state_file import StateFile
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal
from agent.ports.host import Stage, State
from agent.ports.store import Query

ROOT = Path(__file__).resolve().parents[2]
FAKE = ROOT / "tests" / "fake_vllm.py"
AGENT = Path(sys.executable).with_name("sre-agent")
NAME = "gemma"
LIMIT_S = 200.0  # longer than the leases of who was killed: a delivery for 60 s, a service for 120 s
POLICY = "change_window_s = 0.1\nchanges_per_hour = 1000\n"


class Watched:
    """One service on this machine.

    Args:
        folder: For state, policy and what the watcher says.
        environ: What differs for this server.
    """

    def __init__(self, folder: Path, **environ: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.said = folder / "said.txt"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        own = {"STORE": f"sqlite:{folder}", "POLICY": str(self.policy), "VERIFY_WINDOW_S": "0.5", "POLL_S": "0.4",
               "QUIET_S": "0.5", "SETTLE_S": "2", "PLATFORM": "host"}  # fmt: skip
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG", "TMPDIR"}}
        self.environ = {**kept, **own, **environ}
        self.watcher: subprocess.Popen[bytes] | None = None

    def words(self, *flags: str) -> list[str]:
        """The server's words."""
        model = ["--port", str(self.port), "--served-model-name", NAME]
        return [sys.executable, str(FAKE), "serve", "/models/gemma", *model, *flags]

    def watch(
        self, *flags: str, before: tuple[str, ...] = (), program: tuple[str, ...] = (str(AGENT),)
    ) -> subprocess.Popen[bytes]:
        """Start a watcher for a server with these flags."""
        with self.said.open("ab") as said:
            self.watcher = subprocess.Popen(
                [*program, "watch", "--name", NAME, *before, "--", *self.words(*flags)],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=self.environ, cwd=self.folder,
            )  # fmt: skip
        return self.watcher

    def follow(self, log: Path, *more: str) -> None:
        """Start a watcher that follows somebody else's log."""
        with self.said.open("ab") as said:
            self.watcher = subprocess.Popen(
                [str(AGENT), "watch", "--name", NAME, "--log", str(log), *more],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=self.environ, cwd=self.folder,
            )  # fmt: skip

    def kill_watcher(self, number: int = signal.SIGKILL) -> int:
        """End the watcher by force, or kindly."""
        assert self.watcher is not None
        self.watcher.send_signal(number)
        return self.watcher.wait(30)

    def approve(self, plan: str) -> None:
        """Say yes from another terminal."""
        command = [str(AGENT), "approve", plan, "--by", "ada"]
        subprocess.run(command, env=self.environ, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=60)

    def state(self) -> State | None:
        """The record of the server, as it stands."""
        return StateFile(self.folder / "host" / NAME).read()

    def serving(self) -> bool:
        """Whether the newest start serves, by the record."""
        state = self.state()
        return state is not None and state.newest is not None and state.newest.stage is Stage.READY

    def processes(self) -> tuple[int, ...]:
        """Every living process of any start of this server, supervisors left out."""
        state = self.state()
        server = HostServer(self.folder / "host" / NAME, self.environ)
        starts = state.starts if state is not None else ()
        return tuple(p.pid for s in starts for p in processes_of_start(s.mark, server.record_of(s).supervisor))

    def server(self) -> int:
        """The process of the newest server itself."""
        state = self.state()
        assert state is not None
        found = HostServer(self.folder / "host" / NAME, self.environ).record_of(state.newest).server
        assert found is not None
        return found

    def incidents(self) -> tuple[Incident, ...]:
        """All incidents, oldest first."""
        if not (self.folder / "sre.sqlite").exists():
            return ()
        store = SqliteStore(SqliteDatabase(self.folder / "sre.sqlite", Kind.STATE))
        return tuple(sorted(store.incidents(Query(limit=100)), key=lambda i: i.opened_at))

    def signals(self, incident: Incident) -> tuple[Signal, ...]:
        """What an incident heard."""
        return SqliteStore(SqliteDatabase(self.folder / "sre.sqlite", Kind.STATE)).signals(incident.id)

    def asked(self) -> Incident | None:
        """The newest incident that waits for a word."""
        return next((i for i in reversed(self.incidents()) if i.phase is Phase.ASKED), None)

    def ended(self) -> Incident | None:
        """The newest incident, once it has ended."""
        found = self.incidents()
        return found[-1] if found and found[-1].ended else None

    def until(self, reached: Callable[[], object], what: str = "") -> object:
        """Wait until something is so."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            found = reached()
            if found:
                return found
            time.sleep(0.05)
        said = self.said.read_text()[-3000:] if self.said.exists() else ""
        plain = re.sub(r"[^ -~\n]", "?", said)
        raise AssertionError(f"{what or reached} was not reached:\n{plain}")

    def close(self) -> None:
        """End watcher and server."""
        if self.watcher is not None and self.watcher.poll() is None:
            self.kill_watcher()
        state = self.state()
        if state is None:
            return
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        platform = HostPlatform(self.folder / "host", SystemClock(), self.environ, grace_s=0.5)
        platform.stop(NAME)
        self.until(lambda: platform.settled(NAME).newest.stage is Stage.ENDED and not self.processes(), "the end")
