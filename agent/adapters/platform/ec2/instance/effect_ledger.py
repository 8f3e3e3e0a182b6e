"""Runs on the instance, in front of the script: what we did there, kept under a lock, and what it answers."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FRAME_CHARS = 23_500  # Systems Manager gives back 24,000 characters of an output
KEPT_EFFECTS = 20
KERNEL = re.compile(r"NVRM: Xid|Out of memory: Killed process|oom-kill:")


class Refused(Exception):
    """What was asked for is not done; kind is a word that the other side knows."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def framed(answer: Json) -> str:
    """Return an answer as one line with a beginning and an end."""
    packed = base64.b64encode(zlib.compress(json.dumps(answer).encode(), 9)).decode()
    return f"SRE-AGENT {packed} END"


def run(*words: str, timeout_s: float = 20) -> str:
    """Run a program without a shell and return what it printed."""
    done = subprocess.run(words, capture_output=True, timeout=timeout_s, check=False)  # noqa: S603 - fixed words
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise Refused("failed", f"{' '.join(words[:2])} ended with exit code {done.returncode}: {said}")
    return done.stdout.decode("utf-8", "replace")


@contextlib.contextmanager
def ledger(asked: Json) -> Iterator[Json]:
    """Hold the ledger of a unit under a lock; what it holds at the end is written where it differs."""
    folder = Path(asked["state"])
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{asked['ledger']}.json"
    with (folder / f"{asked['ledger']}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = path.read_text() if path.exists() else '{"generation": 0, "effects": []}'
        record: Json = json.loads(held)  # not strict: a file of ours
        before = json.dumps(record)
        yield record
        if json.dumps(record) != before:
            keep(asked, record)


def require_expected(asked: Json, record: Json, now: Json, changed: str) -> None:
    """Refuse what was planned for another state, which ``changed`` says, and a revision's name that is taken."""
    if now != asked["expects"]:
        what = ", ".join(name for name in now if now[name] != asked["expects"][name])
        raise Refused("conflict", f"{changed} ({what})")
    if any(e["revision"] == asked["revision"] for e in record["effects"]):
        raise Refused("conflict", f"revision {asked['revision']!r} exists and is not of this effect")


def keep(asked: Json, record: Json) -> None:
    """Write the ledger whole; hold the lock."""
    write(Path(asked["state"]) / f"{asked['ledger']}.json", json.dumps(record, indent=1), 0o600)


def write(path: Path, text: str, mode: int) -> None:
    """Put a file in the place of another at once."""
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def in_time(asked: Json) -> None:
    """Refuse what arrives after the lease under which it was decided; see ADR 0025."""
    if time.time() > asked["not_after"]:  # noqa: TID251 - the instance has no other clock
        raise Refused("late", "the command reached the instance after the end of its lease")


def journal_rows(*words: str) -> list[list[Any]]:
    """Return time (microseconds), start (invocation) and text of journal entries."""
    fields = "--output-fields=MESSAGE,_SYSTEMD_INVOCATION_ID"
    rows = []
    for line in run("journalctl", "-o", "json", fields, "--no-pager", *words, timeout_s=30).splitlines():
        entry = json.loads(line)  # not strict: journald's own
        text = entry.get("MESSAGE") or ""
        text = bytes(text).decode("utf-8", "replace") if isinstance(text, list) else str(text)
        rows.append([int(entry["__REALTIME_TIMESTAMP"]), entry.get("_SYSTEMD_INVOCATION_ID", ""), text[:4000]])
    return rows


def kernel_rows(rows: list[list[Any]], *until: str) -> list[list[Any]]:
    """Return what the kernel said of GPUs and of memory since the first of some lines."""
    if not rows:
        return []
    found = journal_rows("--dmesg", "-n", "500", "--since", f"@{rows[0][0] // 1_000_000}", *until)
    return [row for row in found if KERNEL.search(row[2])]


def paged(found: list[list[Any]], asked: Json, *, reached: bool, ended: bool) -> Json:
    """Return as many lines from ``skip`` on as fit into an output, oldest first."""
    answer: Json = {"total": len(found), "reached": reached, "ended": ended}
    most = len(found) - asked["skip"]
    while True:
        answer["rows"] = found[asked["skip"] : asked["skip"] + most]
        if len(framed(answer)) <= FRAME_CHARS or most <= 1:
            return answer
        most //= 2
