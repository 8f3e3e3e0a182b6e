"""Runs on the instance, sent whole by Systems Manager: reads, changes and asks the unit that serves a model.

Nothing but the standard library of Python 3.9, because an instance has no more. What to do comes as one argument, JSON
in Base64, so that no text of a log, a model or a person is ever read by a shell. What it prints is one framed line, so
that an output that was cut is noticed. The operator's own unit and environment files are read and never written: a
change is one drop-in of ours behind all others, and what we did is noted in a ledger.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agent.adapters.platform.ec2.instance.docker_container import (
    change_container,
    http_container,
    log_of_container,
    read_container,
)
from agent.adapters.platform.ec2.instance.effect_ledger import (
    FRAME_CHARS,
    KEPT_EFFECTS,
    Json,
    Refused,
    framed,
    in_time,
    journal_rows,
    keep,
    kernel_rows,
    ledger,
    paged,
    require_expected,
    run,
    write,
)
from agent.adapters.platform.ec2.instance.local_server import exchange, gpus, healthy
from agent.adapters.platform.ec2.instance.unit_files import DROP_IN, Files, sha

SHOWN = (
    "LoadState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,UnitFileState,FragmentPath,DropInPaths,Job,"
    "ExecMainStartTimestampMonotonic"
)


def main(argument: str) -> str:
    """Do one thing and return the framed answer."""
    asked = json.loads(base64.b64decode(argument))  # not strict: our own
    try:
        operations = ON_CONTAINERS if asked.get("container") else ON_UNITS
        answer = operations[asked["op"]](asked)
    except Refused as error:
        answer = {"error": error.kind, "why": str(error)[:2000]}
    except Exception as error:  # noqa: BLE001 - it is told, not lost in a trace
        answer = {"error": "failed", "why": f"{type(error).__name__}: {error}"[:2000]}
    line = framed(answer)
    if len(line) > FRAME_CHARS:
        line = framed({"error": "too_long", "why": "the answer does not fit into an output of Systems Manager"})
    return line


def shown(unit: str) -> Json:
    """Return what systemd says of the unit."""
    rows = (line.partition("=") for line in run("systemctl", "show", unit, f"--property={SHOWN}").splitlines())
    said: Json = {name: value for name, _, value in rows}
    if said.get("LoadState") != "loaded" or not said.get("FragmentPath"):
        raise Refused("no_unit", f"systemd has no unit {unit!r} (LoadState {said.get('LoadState') or 'unknown'})")
    return said


def read(asked: Json) -> Json:
    """Return the unit as it is now, and note in the ledger that its newest start serves."""
    with ledger(asked) as record:
        return described(asked, record)


def described(asked: Json, record: Json) -> Json:
    """Return the unit as it is now; hold the ledger's lock."""
    said = shown(asked["unit"])
    files = Files(said, asked)
    ready, says = readiness(said, files, record, asked)
    effects = record["effects"]
    if effects and ready:
        effects[-1]["ready"] = True
    return {
        "words": files.words,
        "refs": files.refs,
        "unread": files.unread,
        "env": files.shown_env,
        "text": files.text,
        "others": files.others,
        "generation": record["generation"],
        "effects": [{k: v for k, v in e.items() if k != "text"} for e in effects],
        "enabled": said.get("UnitFileState", ""),
        "ready": ready,
        "says": says,
        "gpus": gpus(),
    }


def readiness(said: Json, files: Files, record: Json, asked: Json) -> tuple[bool | None, str]:
    """Return whether the newest start serves (None: nobody knows yet), and why it does not."""
    newest = record["effects"][-1] if record["effects"] else None
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


def http(asked: Json) -> Json:
    """Ask the server on this machine."""
    files = Files(shown(asked["unit"]), asked)
    what = (asked["method"], asked["path"], asked.get("body"))
    return exchange(files, asked, what, float(asked["timeout_s"]))


def change(asked: Json) -> Json:
    """Put our drop-in in place, or take it away, and restart the unit: once for each effect, inside its lease."""
    with ledger(asked) as record:
        newest = record["effects"][-1] if record["effects"] else None
        if any(e["key"] == asked["key"] for e in record["effects"]):
            if newest is not None and newest["key"] == asked["key"] and not newest["restarted"]:
                in_time(asked)
                finish(asked, record, newest)
            return described(asked, record)
        said = shown(asked["unit"])
        files = Files(said, asked)
        in_time(asked)
        now = {"others": files.others, "text": sha(files.text or ""), "generation": record["generation"]}
        require_expected(asked, record, now, "its files changed since they were read")
        if files.later:
            raise Refused("refused", f"drop-ins are read behind ours and would win: {', '.join(files.later)}")
        entry = {"key": asked["key"], "revision": asked["revision"], "incident": asked["incident"],
                 "generation": asked["generation"], "others": now["others"], "holds": sha(asked["text"] or ""),
                 "before": now["text"], "text": asked["text"], "reloaded": 0, "boot": "", "restarted": False,
                 "ready": False, "failed": ""}  # fmt: skip
        record["effects"] = [*record["effects"], entry][-KEPT_EFFECTS:]
        record["generation"] = asked["generation"]
        keep(asked, record)  # the intent first: a second try goes on, whatever becomes of this one
        finish(asked, record, entry)
        return described(asked, record)


def boot_id() -> str:
    """Return the name of this boot; times since a boot say nothing in another one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def began_after(entry: Json, began: int) -> bool:
    """Whether the unit was started with what an entry wrote: since it was read anew, or in a later boot."""
    return began > 0 and (entry.get("boot") != boot_id() or began >= entry["reloaded"])


def finish(asked: Json, record: Json, entry: Json) -> None:
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
        keep(asked, record)
    began = int(shown(asked["unit"]).get("ExecMainStartTimestampMonotonic") or 0)
    if not began_after(entry, began):
        try:
            run("systemctl", "restart", "--no-block", asked["unit"])
        except Refused as error:
            entry["failed"] = f"it was not restarted: {error}"
    entry["restarted"] = True
    keep(asked, record)


def journal(asked: Json) -> Json:
    """Return lines of the unit and of the kernel's own troubles, oldest first, as many from ``skip`` on as fit."""
    until = ("--until", f"@{asked['until']}") if asked.get("until") else ()
    limit = str(int(asked["lines"]))
    rows = journal_rows("--unit", asked["unit"], "-n", limit, *until)
    found = sorted([*rows, *kernel_rows(rows, *until)], key=lambda row: row[0])
    ended = shown(asked["unit"])["ActiveState"] != "active"
    return paged(found, asked, reached=len(rows) < int(limit), ended=ended)


Operations = dict[str, Callable[[Json], Json]]
ON_UNITS: Operations = {"read": read, "change": change, "http": http, "journal": journal}
ON_CONTAINERS: Operations = {
    "read": read_container,
    "change": change_container,
    "http": http_container,
    "journal": log_of_container,
}

if __name__ == "__main__":
    print(main(sys.argv[1]))
