"""P5: events per second of the intake function behind Google's Pub/Sub emulator, beside an empty function there.

Run: python benchmarks/events_per_second.py [--events 400] [--rounds 3]

Both functions stand under functions-framework as they are deployed (one worker, eight threads), each behind a push
subscription of its own; rounds alternate. Both write one durable SQLite row for an event, which is the least that an
acknowledgement may rest on: the empty one inserts its body, ours stores the signal and counts it. One event
in twenty is the first failure of a revision and opens an incident; the others are a storm that repeats one failure.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
PROMISED = 0.8
LIMIT_S = 300
EMPTY = """
import os, sqlite3, threading
import functions_framework

here = threading.local()

@functions_framework.http
def empty(request):
    if not hasattr(here, "db"):
        here.db = sqlite3.connect(os.environ["EMPTY_DB"], timeout=30, isolation_level=None)
        here.db.execute("pragma journal_mode=wal")
        here.db.execute("pragma synchronous=full")
        here.db.execute("create table if not exists events (body text)")
    here.db.execute("insert into events values (?)", (request.get_data(as_text=True),))
    return "ok", 200
"""


def beside(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(count: int, round_: int, opening: float) -> list[bytes]:
    """Return entries as the sink publishes them; ``opening`` of them name a revision of their own."""
    recorded = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])
    made = []
    for number in range(count):
        entry = recorded | {"insertId": f"r{round_}n{number}"}
        if number < count * opening:
            labels = recorded["resource"]["labels"] | {"revision_name": f"gemma4-26b-qat-l4-{round_:03d}{number:04d}"}
            entry["resource"] = recorded["resource"] | {"labels": labels}
        made.append(json.dumps(entry).encode())
    return made


def publish(emulator, topic: str, bodies: list[bytes]) -> None:
    for at in range(0, len(bodies), 100):
        emulator.publisher.publish(request={"topic": topic, "messages": [{"data": b} for b in bodies[at : at + 100]]})


def rate(emulator, topic: str, bodies: list[bytes], handled) -> float:
    """Publish everything, wait until all of it is handled; return events per second."""
    before = handled()
    began = time.perf_counter()
    publish(emulator, topic, bodies)
    while handled() - before < len(bodies):
        if time.perf_counter() - began > LIMIT_S:
            sys.exit(f"{handled() - before} of {len(bodies)} events handled in {LIMIT_S} s")
        time.sleep(0.01)
    return len(bodies) / (time.perf_counter() - began)


def rows(path: Path, table: str):
    import sqlite3

    def count() -> int:
        if not path.exists():
            return 0
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as db:
            try:
                return db.execute(f"select count(*) from {table}").fetchone()[0]
            except sqlite3.OperationalError:
                return 0

    return count


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--events", type=int, default=400)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--opening", type=float, default=0.05, help="share of events that open an incident")
    args = reader.parse_args()
    tools, deployed = beside(ROOT / "tests" / "pubsub_emulator.py"), beside(ROOT / "tests" / "journeys" / "deployed.py")
    with tempfile.TemporaryDirectory(prefix="events-") as name, contextlib.ExitStack() as open_:
        folder = Path(name)
        emulator = tools.Emulator(folder / "pubsub.log")
        open_.callback(emulator.stop)
        (folder / "empty.py").write_text(EMPTY)
        words = {"THREADS": "8", "STORE": f"sqlite:{folder / 'state'}", "BUS": f"pubsub:{tools.PROJECT}"}
        words |= {"PUBSUB_EMULATOR_HOST": emulator.host, "PLATFORM": f"rehearsal:{EXAMPLE}"}
        environ = deployed.clean_environ(**words, EMPTY_DB=str(folder / "empty.sqlite"))
        emulator.topic("sre-incidents")
        ours = deployed.Function("on_log_event", tools.free_port(), environ, folder / "ours.log")
        open_.callback(ours.stop)
        empty = deployed.Function("empty", tools.free_port(), environ, folder / "empty.log", source=folder / "empty.py")
        open_.callback(empty.stop)
        topics = {}
        for which, function in (("empty", empty), ("ours", ours)):
            function.answers()
            topics[which] = emulator.topic(f"events-{which}")
            emulator.push(f"push-{which}", topics[which], function.url + "/")
        handled = {
            "empty": rows(folder / "empty.sqlite", "events"),
            "ours": rows(folder / "state" / "sre.sqlite", "signals"),
        }
        rates: dict[str, list[float]] = {"empty": [], "ours": []}
        for round_ in range(args.rounds + 1):
            bodies = entries(args.events if round_ else 50, round_, args.opening)
            for which in ("empty", "ours"):
                found = rate(emulator, topics[which], bodies, handled[which])
                if round_:  # the first round wakes both
                    rates[which].append(found)
        return report(rates)


def report(rates: dict[str, list[float]]) -> int:
    for name, found in rates.items():
        print(f"{name:5} {statistics.median(found):7.1f} events/s, median of {len(found)}, best {max(found):.1f}")
    ratio = statistics.median([o / e for o, e in zip(rates["ours"], rates["empty"], strict=True)])
    print(f"P5: {ratio:.2f} of the empty function's (promised >= {PROMISED}); {os.cpu_count()} processors")
    return 0 if ratio >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
