"""The lab: real vLLM on this machine's CPU, broken on purpose, and mended by `sre-agent watch` in a closed loop.

`make lab` sets up a virtual environment of its own and runs every case; `make lab CASE=NAME` runs one. Each case
starts a real server, waits for the plan, approves it as a person would, and waits for a verified recovery. What is
printed: seconds from the crash to the verified recovery, and how much of that was vLLM starting, the verification
window, the approval, and the agent itself.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tools.lab_environment import GEMMA, MODELS, ROOT, VLLM, set_up

if TYPE_CHECKING:
    from agent.adapters.platform.host.platform import HostPlatform
    from agent.core.incident.incident import Event, Incident
    from agent.core.plan.plan import Plan

Reached = TypeVar("Reached")
AGENT = ROOT / ".venv" / "bin"
RUNS = ROOT / ".lab" / "runs"
LIMIT_S = 240.0
VERIFY_S = 12.0
POLICY = "change_window_s = 1\nchanges_per_hour = 1000\n"


@dataclass
class Case:
    """One way to break a server.

    Attributes:
        flags: Flags of the first start, which fails or is broken afterwards.
        wanted: The failure class that must be found.
        action: How the plan's first action begins.
        break_it: What is done to a server that serves; None where the start itself fails.
        before_yes: What the person mends before saying yes.
        again: Words of a corrected command, where only a person can correct it.
    """

    name: str
    wanted: str
    action: str
    model: str = "real-llama"
    flags: tuple[str, ...] = ("--max-model-len", "2048")
    env: dict[str, str] = field(default_factory=dict)
    break_it: Callable[["Run"], None] | None = None
    before: Callable[["Run"], None] = lambda _: None
    before_yes: Callable[["Run"], None] = lambda _: None
    again: tuple[str, ...] = ()


class Run:
    """One case under way."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.folder = RUNS / case.name
        self.port = free_port()
        self.name = case.name.replace("_", "-")
        self.squatter: socket.socket | None = None
        self.broken_at = 0.0
        self.watcher: subprocess.Popen[bytes] | None = None

    def words(self, flags: tuple[str, ...]) -> list[str]:
        """The server's words."""
        model = str(MODELS / self.case.model)
        own = ["--enforce-eager", "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(self.port)]
        return [str(VLLM), "serve", model, *own, *flags]

    @property
    def env(self) -> dict[str, str]:
        """The environment of watcher and server."""
        own = {
            "STORE": f"sqlite:{self.folder}",
            "POLICY": str(self.folder / "policy.toml"),
            "VERIFY_WINDOW_S": str(VERIFY_S),
            "POLL_S": "2",
            "QUIET_S": "3",
            "SETTLE_S": "10",
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
        }
        return {k: v for k, v in {**os.environ, **own, **self.case.env}.items() if v}  # noqa: TID251

    def watch(self, flags: tuple[str, ...]) -> None:
        """Start a watcher; it starts the server or takes it over."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "policy.toml").write_text(POLICY)
        said = (self.folder / "watch.txt").open("ab")
        self.watcher = subprocess.Popen(
            ["nice", "-n", "10", str(AGENT / "sre-agent"), "watch", "--name", self.name, "--", *self.words(flags)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=self.env,
            cwd=ROOT,
        )

    def stop_watching(self, number: int = signal.SIGTERM) -> None:
        """End the watcher, kindly or not."""
        assert self.watcher is not None
        self.watcher.send_signal(number)
        self.watcher.wait(60)

    def page(self) -> dict[str, Any]:
        """What is on record of the server."""
        try:
            read: dict[str, Any] = json.loads((self.folder / "host" / self.name / "server.json").read_text())
        except (OSError, ValueError):
            return {"starts": []}
        return read

    def newest(self) -> dict[str, Any]:
        """The newest start on record."""
        starts = self.page()["starts"]
        return starts[-1] if starts else {}

    def incidents(self) -> "list[tuple[Incident, tuple[Event, ...]]]":
        """All incidents, oldest first."""
        sys.path.insert(0, str(ROOT))
        from agent.adapters.store.sqlite.database import SqliteDatabase
        from agent.adapters.store.sqlite.schema import Kind
        from agent.adapters.store.sqlite.store import SqliteStore
        from agent.ports.store import Query

        if not (self.folder / "sre.sqlite").exists():
            return []
        store = SqliteStore(SqliteDatabase(self.folder / "sre.sqlite", Kind.STATE))
        found = sorted(store.incidents(Query(limit=100)), key=lambda i: i.opened_at)
        return [(i, store.timeline(i.id)) for i in found]

    def until(self, what: str, reached: Callable[[], Reached | None], limit_s: float = LIMIT_S) -> Reached:
        """Wait until something is true."""
        began = time.monotonic()
        while time.monotonic() - began < limit_s:
            found = reached()
            if found:
                return found
            time.sleep(0.2)
        raise SystemExit(f"{self.case.name}: {what} was not reached in {limit_s:.0f} s; see {self.folder}")

    def pids(self, title: str) -> list[int]:
        """Processes of the newest start whose title has these words."""
        mark = f"SRE_AGENT_START={self.newest()['mark']}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                    if mark in (entry / "environ").read_bytes() and title in words:
                        found.append(int(entry.name))
        return found

    def clean(self) -> None:
        """End watcher and server."""
        if self.squatter is not None:
            self.squatter.close()
        if self.watcher is not None and self.watcher.poll() is None:
            self.stop_watching()
        sys.path.insert(0, str(ROOT))
        from agent.adapters.clock import SystemClock
        from agent.adapters.platform.host.platform import HostPlatform

        platform = HostPlatform(self.folder / "host", SystemClock(), dict(os.environ))  # noqa: TID251
        with contextlib.suppress(Exception):
            platform.stop(self.name)
            self.until("the server's end", lambda: _ended_server(platform, self.name), 40)


def play(case: Case) -> dict[str, object]:
    """Run one case and return its figures."""
    import shutil

    shutil.rmtree(RUNS / case.name, ignore_errors=True)
    run = Run(case)
    try:
        case.before(run)
        run.watch(case.flags)
        if case.break_it is not None:
            run.until("a serving server", lambda: run.newest().get("stage") == "ready")
            time.sleep(3)
            run.broken_at = time.time()  # noqa: TID251
            case.break_it(run)
        incident, plan = run.until("a plan", lambda: _asked(run))
        case.before_yes(run)
        if case.again:
            run.stop_watching()
            run.watch(case.again)
        subprocess.run(
            [str(AGENT / "sre-agent"), "approve", plan.id, "--by", "lab"],
            env=run.env,
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        incident, events = run.until("an end", lambda: _ended(run, incident.id))
        return _figures(run, incident, plan, events)
    finally:
        run.clean()


def _ended_server(platform: "HostPlatform", name: str) -> bool:
    newest = platform.settled(name).newest
    return newest is not None and newest.stage == "ended"


def _asked(run: Run) -> "tuple[Incident, Plan] | None":
    for incident, _ in run.incidents():
        if incident.phase == "ASKED" and incident.plan is not None:
            return incident, incident.plan
    return None


def _ended(run: Run, wanted: str) -> "tuple[Incident, tuple[Event, ...]] | None":
    return next(((i, e) for i, e in run.incidents() if i.id == wanted and i.ended), None)


def _figures(run: Run, incident: "Incident", plan: "Plan", events: "tuple[Event, ...]") -> dict[str, object]:
    at = {str(event.phase): event.at for event in reversed(events)}
    broke = run.broken_at or incident.opened_at.timestamp()  # a start breaks with the first line that says so
    newest = run.newest()
    began, ready = (datetime.fromisoformat(str(newest[k])).timestamp() for k in ("began_at", "ready_at"))
    asked, said, done = (
        at[k].timestamp() for k in ("ASKED", "APPROVED", "RESOLVED" if "RESOLVED" in at else str(incident.phase))
    )
    total, people, start = done - broke, said - asked, ready - began
    window = 0.0 if plan.by_person else VERIFY_S  # what a person did is over as soon as it serves
    action = plan.actions[0]
    assert incident.diagnosis is not None
    named = getattr(action, "name", getattr(action, "action", ""))
    words = f"{action.kind} {named} {getattr(action, 'value', '')}".strip()
    return {
        "case": run.case.name,
        "class": incident.cause,
        "signature": incident.diagnosis.signature,
        "certain": incident.diagnosis.certain,
        "plan": words,
        "fit_before": plan.fit_before.fits,
        "fit_after": plan.fit_after.fits,
        "ended": str(incident.phase),
        "why": incident.ended_why,
        "crash_to_plan_s": round(asked - broke, 1),
        "crash_to_recovery_s": round(total, 1),
        "people_s": round(people, 1),
        "vllm_start_s": round(start, 1),
        "window_s": window,
        "agent_s": round(total - people - start - window, 1),
        "right": incident.cause == run.case.wanted
        and words.startswith(run.case.action)
        and incident.phase == "RESOLVED",
    }


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def squat(run: Run) -> None:
    """Take the server's port."""
    run.squatter = socket.socket()
    run.squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    run.squatter.bind(("127.0.0.1", run.port))
    run.squatter.listen(1)


def leave(run: Run) -> None:
    """Give the port back."""
    assert run.squatter is not None
    run.squatter.close()
    run.squatter = None


def cut(run: Run) -> None:
    """Cut the weights in the middle of their header; the whole file is kept beside it."""
    whole = MODELS / "cut-llama" / "model.safetensors"
    real = (MODELS / "real-llama" / "model.safetensors").read_bytes()
    whole.unlink(missing_ok=True)
    whole.write_bytes(real[: len(real) // 3])


def hint(run: Run) -> None:
    """Fetch the weights again, as the plan says."""
    (MODELS / "cut-llama" / "model.safetensors").write_bytes((MODELS / "real-llama" / "model.safetensors").read_bytes())


def kill_engine(run: Run) -> None:
    """SIGKILL to the engine core."""
    for pid in run.pids("EngineCore")[:1] or run.pids("spawn_main")[:1]:
        os.kill(pid, signal.SIGKILL)


def stop_engine(run: Run) -> None:
    """SIGSTOP to the engine core and its workers: /health goes on answering 200."""
    found = run.pids("EngineCore") or run.pids("spawn_main")
    for pid in found:
        os.kill(pid, signal.SIGSTOP)


CASES = (
    Case(
        "kv_cache_insufficient",
        "kv_cache_insufficient",
        "set_flag max-model-len",
        "fatkv-llama",
        ("--max-model-len", "131072"),
    ),
    Case(  # the variable would beat the flag and takes whole gigabytes alone; empty here takes it away
        "gemma_kv_cache",
        "kv_cache_insufficient",
        "set_flag max-model-len",
        GEMMA,
        ("--max-model-len", "32768", "--kv-cache-memory-bytes", "67108864", "--max-num-seqs", "8"),
        env={"VLLM_CPU_KVCACHE_SPACE": ""},
    ),
    Case(
        "invalid_flag",
        "invalid_flag",
        "for_person fix_command_line",
        flags=("--max-model-length-tokens", "2048"),
        again=("--max-model-len", "2048"),
    ),
    Case(
        "unsupported_dtype",
        "unsupported_dtype_or_quant",
        "set_flag dtype",
        "tiny-gemma3",
        ("--load-format", "dummy", "--max-model-len", "2048", "--dtype", "float16"),
    ),
    Case("port_in_use", "port_not_listening", "restart", before=squat, before_yes=leave),
    Case("weights_unreadable", "weights_unreadable", "for_person", "cut-llama", before=cut, before_yes=hint),
    Case("engine_killed", "engine_dead", "restart", break_it=kill_engine),
    Case("engine_hang", "engine_hang", "restart", break_it=stop_engine),
)


def main() -> int:
    """Run the cases that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=[c.name for c in CASES], help="only this case; may be repeated"
    )
    args = parser.parse_args()
    set_up({case.model for case in CASES if not args.case or case.name in args.case})
    rows = []
    for case in CASES:
        if not args.case or case.name in args.case:
            print(f"== {case.name} ==", flush=True)
            rows.append(play(case))
            print(json.dumps(rows[-1]), flush=True)
    print("\ncase                    right    to plan  to recovery  people   vLLM  window  agent")
    for r in rows:
        print(
            f"{r['case']:<24}{'yes' if r['right'] else 'NO':<7}{r['crash_to_plan_s']:>8} s"
            f"{r['crash_to_recovery_s']:>11} s"
            f"{r['people_s']:>6} s{r['vllm_start_s']:>5} s{r['window_s']:>6} s{r['agent_s']:>5} s"
        )
    return 0 if all(r["right"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
