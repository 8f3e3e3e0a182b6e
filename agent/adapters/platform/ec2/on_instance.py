"""Runs on the instance, sent whole by Systems Manager: reads, changes and asks the unit that serves a model.

Nothing but the standard library of Python 3.9, because an instance has no more. What to do comes as one argument, JSON
in Base64, so that no text of a log, a model or a person is ever read by a shell. What it prints is one framed line, so
that an output that was cut is noticed. The operator's own unit and environment files are read and never written: a
change is one drop-in of ours behind all others, and what we did is noted in a ledger.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent.adapters.platform.ec2.unit_files import DROP_IN, Files, Json, sha

FRAME_CHARS = 23_500  # Systems Manager gives back 24,000 characters of an output
SHOWN = (
    "LoadState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,UnitFileState,FragmentPath,DropInPaths,Job,"
    "ExecMainStartTimestampMonotonic"
)
KERNEL = re.compile(r"NVRM: Xid|Out of memory: Killed process|oom-kill:")
KEPT_EFFECTS = 20


class Refused(Exception):
    """What was asked for is not done; kind is a word that the other side knows."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def main(argument: str) -> str:
    """Do one thing and return the framed answer."""
    asked = json.loads(base64.b64decode(argument))  # not strict: our own
    try:
        answer = OPERATIONS[asked["op"]](asked)
    except Refused as error:
        answer = {"error": error.kind, "why": str(error)[:2000]}
    except Exception as error:  # noqa: BLE001 - it is told, not lost in a trace
        answer = {"error": "failed", "why": f"{type(error).__name__}: {error}"[:2000]}
    return framed(answer)


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


def shown(unit: str) -> Json:
    """Return what systemd says of the unit."""
    rows = (line.partition("=") for line in run("systemctl", "show", unit, f"--property={SHOWN}").splitlines())
    said: Json = {name: value for name, _, value in rows}
    if said.get("LoadState") != "loaded" or not said.get("FragmentPath"):
        raise Refused("no_unit", f"systemd has no unit {unit!r} (LoadState {said.get('LoadState') or 'unknown'})")
    return said


@contextlib.contextmanager
def ledger(asked: Json) -> Iterator[Json]:
    """Hold the ledger of a unit under a lock; what it holds at the end is written where it differs."""
    folder = Path(asked["state"])
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{asked['unit']}.json"
    with (folder / f"{asked['unit']}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = path.read_text() if path.exists() else '{"generation": 0, "effects": []}'
        book: Json = json.loads(held)  # not strict: a file of ours
        before = json.dumps(book)
        yield book
        if json.dumps(book) != before:
            keep(asked, book)


def keep(asked: Json, book: Json) -> None:
    """Write the ledger whole; hold the lock."""
    write(Path(asked["state"]) / f"{asked['unit']}.json", json.dumps(book, indent=1), 0o600)


def write(path: Path, text: str, mode: int) -> None:
    """Put a file in the place of another at once."""
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def read(asked: Json) -> Json:
    """Return the unit as it is now, and note in the ledger that its newest start serves."""
    with ledger(asked) as book:
        return described(asked, book)


def described(asked: Json, book: Json) -> Json:
    """Return the unit as it is now; hold the ledger's lock."""
    said = shown(asked["unit"])
    files = Files(said, asked)
    ready, says = readiness(said, files, book, asked)
    effects = book["effects"]
    if effects and ready:
        effects[-1]["ready"] = True
    return {
        "words": files.words,
        "refs": files.refs,
        "unread": files.unread,
        "env": files.shown_env,
        "text": files.text,
        "others": files.others,
        "generation": book["generation"],
        "effects": [{k: v for k, v in e.items() if k != "text"} for e in effects],
        "enabled": said.get("UnitFileState", ""),
        "ready": ready,
        "says": says,
        "gpus": gpus(),
    }


def readiness(said: Json, files: Files, book: Json, asked: Json) -> tuple[bool | None, str]:
    """Return whether the newest start serves (None: nobody knows yet), and why it does not."""
    newest = book["effects"][-1] if book["effects"] else None
    if newest is not None and newest.get("failed"):
        return False, newest["failed"]
    if said.get("Job") not in {None, "", "0"} or (newest is not None and not newest["restarted"]):
        return None, "it is being restarted"
    began = int(said.get("ExecMainStartTimestampMonotonic") or 0)
    active = said["ActiveState"] == "active" and (newest is None or began_after(newest, began))
    if active and healthy(files, asked):
        return True, ""
    code, restarts = said.get("ExecMainStatus", "?"), int(said.get("NRestarts") or 0)
    if said["ActiveState"] in {"failed", "inactive"} or said["SubState"] == "auto-restart" or (active and restarts):
        again = f", restarted {restarts} times" if restarts else ""
        said_last = run("journalctl", "--unit", asked["unit"], "-n", "1", "-o", "cat", "--no-pager").strip()[:300]
        last = f" (last line: {said_last})" if said_last else ""
        return False, f"the unit ended with exit code {code} ({said.get('Result', '?')}){again}{last}"
    if active and newest is not None and newest["ready"]:
        return False, "its /health does not answer any more"
    return None, f"the unit is {said['ActiveState']} ({said['SubState']}), and its /health does not answer yet"


def healthy(files: Files, asked: Json) -> bool:
    """Ask /health once."""
    return bool(exchange(files, asked, ("GET", "/health", None), 2.0)["status"] == 200)


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


def exchange(files: Files, asked: Json, what: tuple[str, str, str | None], timeout_s: float) -> Json:
    """Send one request to the server on this machine; the pieces of its answer with the time of each, seconds."""
    method, path, body = what
    url = f"http://127.0.0.1:{port_of(files.words, asked)}{path}"
    key = files.secret("VLLM_API_KEY") or flag_value(files.words, "--api-key")
    key = files.secret(key.strip("${}")) if key.startswith("$") else key
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    sent = urllib.request.Request(url, data=body.encode() if body else None, headers=headers, method=method)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    began = time.monotonic()
    try:
        with direct.open(sent, timeout=timeout_s) as answer:
            return {"status": answer.status, "pieces": list(pieces(answer, began, timeout_s))}
    except urllib.error.HTTPError as error:
        said = error.read(4000).decode("utf-8", "replace").replace(key or "\0", "")
        return {"status": error.code, "pieces": [[0.0, said]]}
    except Exception as error:  # noqa: BLE001 - whatever the server does is its answer
        late = "timed out" in str(error)
        return {"status": 0, "pieces": [], "late": late, "why": f"{type(error).__name__}: {error}"[:500]}


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


def http(asked: Json) -> Json:
    """Ask the server on this machine."""
    files = Files(shown(asked["unit"]), asked)
    what = (asked["method"], asked["path"], asked.get("body"))
    answer = exchange(files, asked, what, float(asked["timeout_s"]))
    if len(framed(answer)) > FRAME_CHARS:
        raise Refused("too_long", f"the answer of {asked['path']} does not fit into an output of Systems Manager")
    return answer


def gpus() -> list[list[Any]]:
    """Return name and memory (MiB) of the machine's NVIDIA cards; nothing where nvidia-smi is missing or fails."""
    with contextlib.suppress(OSError, subprocess.SubprocessError, Refused):
        asked = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
        rows = (line.rpartition(",") for line in run(*asked, timeout_s=10).splitlines())
        return [[name.strip(), int(mib)] for name, _, mib in rows if name and mib.strip().isdigit()]
    return []


def change(asked: Json) -> Json:
    """Put our drop-in in place, or take it away, and restart the unit: once for each effect, inside its lease."""
    with ledger(asked) as book:
        newest = book["effects"][-1] if book["effects"] else None
        if any(e["key"] == asked["key"] for e in book["effects"]):
            if newest is not None and newest["key"] == asked["key"] and not newest["restarted"]:
                in_time(asked)
                finish(asked, book, newest)
            return described(asked, book)
        said = shown(asked["unit"])
        files = Files(said, asked)
        in_time(asked)
        now = {"others": files.others, "text": sha(files.text or ""), "generation": book["generation"]}
        if now != asked["expects"]:
            what = ", ".join(name for name in now if now[name] != asked["expects"][name])
            raise Refused("conflict", f"its files changed since they were read ({what})")
        if any(e["revision"] == asked["revision"] for e in book["effects"]):
            raise Refused("conflict", f"revision {asked['revision']!r} exists and is not of this effect")
        if files.later:
            raise Refused("refused", f"drop-ins are read behind ours and would win: {', '.join(files.later)}")
        entry = {"key": asked["key"], "revision": asked["revision"], "incident": asked["incident"],
                 "generation": asked["generation"], "others": now["others"], "holds": sha(asked["text"] or ""),
                 "before": now["text"], "text": asked["text"], "reloaded": 0, "boot": "", "restarted": False,
                 "ready": False, "failed": ""}  # fmt: skip
        book["effects"] = [*book["effects"], entry][-KEPT_EFFECTS:]
        book["generation"] = asked["generation"]
        keep(asked, book)  # the intent first: a second try goes on, whatever becomes of this one
        finish(asked, book, entry)
        return described(asked, book)


def in_time(asked: Json) -> None:
    """Refuse what arrives after the lease under which it was decided; see ADR 0025."""
    if time.time() > asked["not_after"]:  # noqa: TID251 - the instance has no other clock
        raise Refused("late", "the command reached the instance after the end of its lease")


def boot_id() -> str:
    """Return the name of this boot; times since a boot say nothing in another one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def began_after(entry: Json, began: int) -> bool:
    """Whether the unit was started with what an entry wrote: since it was read anew, or in a later boot."""
    return began > 0 and (entry.get("boot") != boot_id() or began >= entry["reloaded"])


def finish(asked: Json, book: Json, entry: Json) -> None:
    """Write, reload, restart; each step fit to be taken up by a second try."""
    if not entry["reloaded"]:
        ours = Path(asked["folder"]) / f"{asked['unit']}.d" / DROP_IN
        held = sha(ours.read_text() if ours.exists() else "")
        if held not in {entry["before"], entry["holds"]}:
            raise Refused("conflict", f"{ours} was changed meanwhile")
        if entry["text"] is not None:
            ours.parent.mkdir(mode=0o755, exist_ok=True)
            write(ours, entry["text"], 0o644)
        elif ours.exists():
            ours.unlink()
            with contextlib.suppress(OSError):
                ours.parent.rmdir()  # where nothing else lies in it
        run("systemctl", "daemon-reload")
        entry["reloaded"], entry["boot"] = int(time.monotonic() * 1_000_000), boot_id()
        keep(asked, book)
    began = int(shown(asked["unit"]).get("ExecMainStartTimestampMonotonic") or 0)
    if not began_after(entry, began):
        try:
            run("systemctl", "restart", "--no-block", asked["unit"])
        except Refused as error:
            entry["failed"] = f"it was not restarted: {error}"
    entry["restarted"] = True
    keep(asked, book)


def journal(asked: Json) -> Json:
    """Return lines of the unit and of the kernel's own troubles, oldest first, as many from ``skip`` on as fit."""
    until = ("--until", f"@{asked['until']}") if asked.get("until") else ()
    limit = str(int(asked["lines"]))
    rows = journal_rows("--unit", asked["unit"], "-n", limit, *until)
    since = ("--since", f"@{rows[0][0] // 1_000_000}") if rows else ()
    kernel = journal_rows("--dmesg", "-n", "500", *since, *until) if rows else []
    found = sorted([*rows, *(row for row in kernel if KERNEL.search(row[2]))], key=lambda row: row[0])
    said = shown(asked["unit"])
    answer: Json = {"total": len(found), "reached": len(rows) < int(limit), "ended": said["ActiveState"] != "active"}
    most = len(found) - asked["skip"]
    while True:
        answer["rows"] = found[asked["skip"] : asked["skip"] + most]
        if len(framed(answer)) <= FRAME_CHARS or most <= 1:
            return answer
        most //= 2


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


OPERATIONS: dict[str, Callable[[Json], Json]] = {"read": read, "change": change, "http": http, "journal": journal}

if __name__ == "__main__":
    print(main(sys.argv[1]))
