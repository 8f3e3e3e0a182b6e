"""The supervisor of a server outlives the watcher, notes how the server ended, and leaves no orphan.

It runs as a script of its own (standard library only, ``python -I -S``) and is the leader of the server's session, so
that nothing which happens to the watcher reaches the server.

Usage: ``supervisor.py FOLDER LOCK_FD COMMAND...``. It writes two files into FOLDER, each at once and whole:

* ``server.json``: ``{"supervisor": PID, "server": PID, "started": TICKS}`` when the server was started,
* ``end.json``: ``{"code": CODE, "signal": NUMBER | null, "says": TEXT}`` when it has ended.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PR_SET_NAME = 15
ORPHANS_S = 10.0  # an engine whose server has ended gets so long to end by itself; vLLM takes about 3 s
CANNOT_START = 127


def main(argv: list[str]) -> int:
    """Start the command, wait for it, note its end, and end what it left behind.

    The process that was called returns at once: its child, the supervisor, is nobody's child, and nobody has to
    wait for it.
    """
    folder, lock, command = Path(argv[0]), int(argv[1]), argv[2:]
    if os.fork():
        os._exit(0)
    os.setsid()
    _adopt_orphans()
    os.set_inheritable(lock, False)
    noted, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(tell)
        _become(command, noted)
    os.close(noted)
    note(folder / "server.json", {"supervisor": os.getpid(), "server": child, "started": started(child)})
    with contextlib.suppress(BrokenPipeError):  # somebody killed the child before it was the server
        os.write(tell, b".")
    os.close(tell)
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: received.append(n))
    status = _wait(child, received)
    note(folder / "end.json", _end(status))
    _end_orphans()
    return 0


def _adopt_orphans() -> None:
    """Let what the server leaves behind become our children, so that we find it whatever group it is in."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_NAME, b"sre-supervisor", 0, 0, 0)


def _become(command: list[str], noted: int) -> None:
    """Run the command in this process, once it is written down whose it is; never, if its supervisor ends before."""
    if not os.read(noted, 1):
        os._exit(CANNOT_START)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the words are the operator's own
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(CANNOT_START)


def _wait(child: int, received: list[int]) -> int:
    """Wait for the server; a signal that we get is passed on, and orphans that end meanwhile are taken."""
    while True:
        while received:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, received.pop())
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return status
        if pid == 0:
            time.sleep(0.05)


def _end(status: int) -> dict[str, object]:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return {"code": code, "signal": None, "says": f"exit code {code}"}
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "a signal"
    return {"code": code, "signal": -code, "says": f"signal {-code} ({name})"}


def _end_orphans() -> None:
    """Wait for what is left, then end it; only our own children, so never anything of somebody else."""
    until = time.monotonic() + ORPHANS_S
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > until:
                for orphan in children():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(orphan, signal.SIGKILL)
            time.sleep(0.05)


def children() -> list[int]:
    """Return the process ids of our children."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def started(pid: int) -> int | None:
    """Return when a process started, clock ticks since boot; with the pid it names a process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def note(path: Path, what: dict[str, object]) -> None:
    """Write a small file at once and whole."""
    fresh = path.with_suffix(".tmp")
    with fresh.open("w") as file:
        json.dump(what, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
