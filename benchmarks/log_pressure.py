"""100 MB of log a minute: does the watching slow the server, and does the watcher's memory grow? Paired, in one run."""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVER = """
import os, sys, time
line = "(EngineCore pid=1) INFO 11-21 03:34:34 [loggers.py:259] Engine 000: Avg prompt throughput: 1.0 tokens/s, " \\
       "Avg generation throughput: 900.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 41.0%\\n"
block = line * 64
per_s, seconds = float(sys.argv[1]), float(sys.argv[2])
began, wrote, blocked, work = time.perf_counter(), 0, 0.0, 0
while (now := time.perf_counter() - began) < seconds:
    if wrote < now * per_s:
        at = time.perf_counter()
        os.write(1, block.encode())
        blocked += time.perf_counter() - at
        wrote += len(block)
    else:
        work += sum(range(2000)) > 0  # what a server does when it does not log
os.write(2, f"{wrote} {blocked} {work}".encode())
"""


def serve(log: Path, *, per_s: float, seconds: float) -> tuple[float, float, int]:
    """Write a log at a rate; return megabytes, seconds spent in writing, and how much other work was done."""
    with log.open("ab", buffering=0) as file:
        done = subprocess.run(
            [sys.executable, "-c", SERVER, str(per_s), str(seconds)], stdout=file, stderr=subprocess.PIPE, check=True
        )
    wrote, blocked, work = done.stderr.split()
    return int(wrote) / 1e6, float(blocked), int(work)


WATCHER = """
import resource, sys, time
from pathlib import Path
from agent.adapters.logs.host import Follower
from agent.app.catalogues import matcher
from agent.core.intake.log_sample import Tally
rules, follower, tally, seen = matcher(), Follower(Path(sys.argv[1])), Tally(), 0
print("ready", flush=True)
first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    for lines in follower.pieces():
        seen += sum(tally.tells(match.signature) for _, match in rules.scan(lines))
    time.sleep(0.25)
used = resource.getrusage(resource.RUSAGE_SELF)
print(first, used.ru_maxrss, used.ru_utime + used.ru_stime, follower.offset, seen, flush=True)
"""


def watched(log: Path, *, per_s: float, seconds: float) -> tuple[tuple[float, float, int], list[float]]:
    """The same with a watcher that follows the log as `sre-agent watch` does."""
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER, str(log), str(seconds + 1)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as watcher:
        watcher.stdout.readline()
        figures = serve(log, per_s=per_s, seconds=seconds)
        return figures, [float(word) for word in watcher.stdout.readline().split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mb-per-min", type=float, default=100)
    args = parser.parse_args()
    per_s = args.mb_per_min * 1e6 / 60
    ratios, waits = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            alone = serve(Path(folder) / f"alone{number}", per_s=per_s, seconds=args.seconds)
            both, told = watched(Path(folder) / f"both{number}", per_s=per_s, seconds=args.seconds)
            ratios.append(both[2] / alone[2])
            waits.append((alone[1], both[1]))
            print(
                f"round {number + 1}: {both[0]:.1f} MB; other work with : without {both[2] / alone[2]:.3f}; "
                f"seconds in write() {alone[1]:.3f} -> {both[1]:.3f}; "
                f"watcher {told[0] / 1024:.0f} -> {told[1] / 1024:.0f} MiB, "
                f"{told[2] / args.seconds:.1%} of a core, read {told[3] / 1e6:.1f} MB, {told[4]:.0f} sights"
            )
    print(f"server's other work, with : without = {statistics.median(ratios):.3f} (median of {args.rounds} pairs)")


if __name__ == "__main__":
    main()
