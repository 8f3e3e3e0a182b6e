"""A small systemd for tests: `systemctl` and `journalctl` over units in a folder, with real processes of this machine.

Called as `systemctl ...` or `journalctl ...` through shims on a PATH; everything lies in the folder FAKE_SYSTEMD names. The
answers have the form of systemd's own. A unit is loaded at daemon-reload, as there: a file that changed since does not count.
What a unit prints is kept with its invocation; how it ended, a small runner of each start writes down.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ["FAKE_SYSTEMD"])
UNITS = ROOT / "units"


def main(words: list[str]) -> int:
    program, *rest = words
    if program == "run":
        return runner(*rest)
    if program == "journalctl":
        return journal(rest)
    verb = next(w for w in rest if not w.startswith("-"))
    (ROOT / "called").open("a").write(" ".join(rest) + "\n")
    if verb == "daemon-reload":
        for unit in UNITS.glob("*.service"):
            (ROOT / f"{unit.name}.loaded").write_text(json.dumps(loaded(unit.name)))
        return 0
    unit = next(w for w in rest[rest.index(verb) + 1 :] if not w.startswith("-"))
    if verb == "show":
        return show(unit)
    if (ROOT / "broken").exists():
        print("Failed to restart: Unit is masked.", file=sys.stderr)
        return 1
    job = ROOT / f"{unit}.job"
    if verb == "restart" and "--no-block" in rest and (ROOT / "holds").exists():
        job.touch()  # queued; a test lets it run by a restart of its own
        return 0
    job.unlink(missing_ok=True)
    if verb in {"restart", "stop"}:
        stop(unit)
    if verb in {"restart", "start"}:
        start(unit)
    return 0


def drop_ins(unit: str) -> list[Path]:
    return sorted((UNITS / f"{unit}.d").glob("*.conf"))


def loaded(unit: str) -> dict[str, list[str]]:
    """Read the unit as systemd does at a reload; its own parser, so that the two do not agree by sharing a mistake."""
    kept: dict[str, list[str]] = {"ExecStart": [], "Environment": [], "EnvironmentFile": []}
    for path in [UNITS / unit, *drop_ins(unit)]:
        for line in path.read_text().replace("\\\n", " ").splitlines():
            key, _, value = line.strip().partition("=")
            if key in kept:
                kept[key] = [*kept[key], value] if value else []
    return kept


def command_of(unit: str) -> tuple[list[str], dict[str, str]]:
    held = json.loads((ROOT / f"{unit}.loaded").read_text())
    env = dict(w.split("=", 1) for line in held["Environment"] for w in shlex.split(line))
    for name in held["EnvironmentFile"]:
        text = Path(name.lstrip("-")).read_text()
        env |= dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    words = []
    for word in shlex.split(held["ExecStart"][-1].replace("%%", "%")):
        if word.startswith("$") and word[1:] in env:
            words += shlex.split(env[word[1:]])
        else:
            words.append(re.sub(r"\$\$|\$\{(\w+)\}", lambda m: env.get(m[1], "") if m[1] else "$", word))
    return words, env


def state_of(unit: str) -> dict:
    path = ROOT / f"{unit}.state"
    return json.loads(path.read_text()) if path.exists() else {}


def start(unit: str) -> None:
    words, env = command_of(unit)
    state = {"began": time.monotonic_ns() // 1000, "invocation": os.urandom(16).hex()}
    told, telling = os.pipe()
    os.set_inheritable(telling, True)
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, "run", unit, str(state["invocation"]), str(telling), *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, **env, "PYTHONUNBUFFERED": "1"}, close_fds=False,
    )  # fmt: skip
    os.close(telling)
    pid = int(os.read(told, 32))
    (ROOT / f"{unit}.state").write_text(json.dumps({**state, "pid": pid}))


def runner(unit: str, invocation: str, telling: str, *words: str) -> int:
    """Start the server, keep what it prints, and write down how it ended."""
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    os.write(int(telling), str(server.pid).encode())
    os.close(int(telling))
    with (ROOT / f"{unit}.journal").open("a") as journal:
        for line in server.stdout:
            entry = {"__REALTIME_TIMESTAMP": str(time.time_ns() // 1000), "_SYSTEMD_INVOCATION_ID": invocation}
            journal.write(json.dumps({**entry, "MESSAGE": line.rstrip("\n")}) + "\n")
            journal.flush()
    (ROOT / f"{invocation}.end").write_text(str(server.wait()))
    return 0


def alive(state: dict) -> bool:
    return bool(state) and not (ROOT / f"{state['invocation']}.end").exists()


def stop(unit: str) -> None:
    state = state_of(unit)
    if alive(state):
        os.kill(state["pid"], signal.SIGTERM)
        until = time.monotonic() + 5
        while alive(state) and time.monotonic() < until:
            time.sleep(0.01)


def show(unit: str) -> int:
    if not (UNITS / unit).exists():
        print("LoadState=not-found\nActiveState=inactive\nSubState=dead\nFragmentPath=")
        return 0
    state = state_of(unit)
    end = ROOT / f"{state.get('invocation')}.end"
    code = int(end.read_text() or 0) if end.exists() else 0
    up = alive(state)
    active, sub = ("active", "running") if up else ("failed", "failed") if code > 0 else ("inactive", "dead")
    rows = {
        "LoadState": "loaded", "ActiveState": active, "SubState": sub, "Result": "exit-code" if code > 0 else "success",
        "ExecMainStatus": code, "NRestarts": 0, "UnitFileState": "enabled", "FragmentPath": UNITS / unit,
        "DropInPaths": " ".join(map(str, drop_ins(unit))), "Job": 7 if (ROOT / f"{unit}.job").exists() else 0,
        "ExecMainStartTimestampMonotonic": state.get("began", 0),
    }  # fmt: skip
    print("\n".join(f"{k}={v}" for k, v in rows.items()))
    return 0


def journal(rest: list[str]) -> int:
    def after(*names: str) -> str | None:
        return next((rest[i + 1] for i, w in enumerate(rest) if w in names), None)

    path = ROOT / ("kernel.journal" if "--dmesg" in rest else f"{after('--unit')}.journal")
    lines = path.read_text().splitlines() if path.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    until, since = after("--until"), after("--since")
    at = {w: float(w.lstrip("@")) * 1_000_000 for w in (until, since) if w}
    entries = [e for e in entries if not until or int(e["__REALTIME_TIMESTAMP"]) <= at[until]]
    entries = [e for e in entries if not since or int(e["__REALTIME_TIMESTAMP"]) >= at[since]]
    for entry in entries[-int(after("-n") or 10) :]:
        print(entry["MESSAGE"] if after("-o") == "cat" else json.dumps(entry))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
