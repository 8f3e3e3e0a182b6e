"""Processes of one start on this machine: found by a mark in their environment, so that no other is ever touched."""

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.adapters.platform.host.supervisor import started

MARK = "SRE_AGENT_START"  # every process of a start inherits it; /proc/PID/environ shows it
PROC = Path("/proc")
LISTENING = "0A"  # state of a listening socket in /proc/net/tcp


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process, named for good: a pid may be given again, never with the same start."""

    pid: int
    ticks: int


def alive(pid: int | None, ticks: int | None) -> bool:
    """Whether this very process lives: the pid was not given to another one since, and it is no zombie."""
    return pid is not None and ticks is not None and started(pid) == ticks and _state(pid) not in {"Z", "X", ""}


def processes_of_start(mark: str, supervisor: int | None) -> tuple[Process, ...]:
    """Return the living processes of a start, whatever group or session they are in; the supervisor is left out.

    Args:
        mark: Of the start.
        supervisor: The pid of its supervisor where that one lives: what descends from it belongs to the start as well.
    """
    parents: dict[int, int] = {}
    ours: set[int] = set()
    wanted = f"{MARK}={mark}".encode()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = (entry / "stat").read_text().rpartition(")")[2].split()
            if words[0] in {"Z", "X"}:
                continue
            parents[pid] = int(words[1])
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                ours.add(pid)
    ours |= _below(supervisor, parents) if supervisor is not None else set()
    found = ((pid, started(pid)) for pid in sorted(ours - {supervisor}))
    return tuple(Process(pid=pid, ticks=ticks) for pid, ticks in found if ticks is not None)


def _below(top: int, parents: dict[int, int]) -> set[int]:
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {top}


def send(processes: tuple[Process, ...], number: signal.Signals) -> None:
    """Send a signal to these very processes; each is held by a handle and looked at again before it is sent."""
    for process in processes:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(process.pid)
            try:
                if started(process.pid) == process.ticks:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def listens(processes: tuple[Process, ...], port: int) -> bool:
    """Whether one of these processes listens on a TCP port; another process that does is not ours to be judged by."""
    sockets = set(_sockets(port))
    return bool(sockets) and any(sockets & set(_held(p.pid)) for p in processes)


def somebody_listens(port: int) -> bool:
    """Whether any process of this machine listens on a TCP port."""
    return any(True for _ in _sockets(port))


def memory_mib() -> int | None:
    """Return the memory of this machine, MiB."""
    with contextlib.suppress(OSError, ValueError):
        for line in (PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) // 1024
    return None


def _state(pid: int) -> str:
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _sockets(port: int) -> Iterator[str]:
    """Yield the inodes of listening sockets; the port stands in hex behind the address."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / "net" / name).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                    yield words[9]


def _held(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for handle in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(handle.readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]
