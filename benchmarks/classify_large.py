"""P11: a log of 200 MB through `sre-agent classify`, against the matcher over the same lines in memory.

    python benchmarks/classify_large.py [--megabytes N] [--rounds N]

Both sides read the same file in processes of their own, in turn. Theirs reads all lines into memory first, and only the
scan counts; ours counts whole, from the start of the process to its end. Both are processor time, user and system: each
side is one thread, and a busy machine then changes little. The ratio is taken pair by pair, and its median counts. The
ratio to `grep -c -F -f` of the catalogue's literals is reported, without a bar.
"""

import argparse
import os
import random  # noqa: TID251 - a benchmark draws its lines from a seed
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from agent.catalogue.load_failures import load_failures
from agent.failures.match.phrase import parse_phrase

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.classify import SHAPES, fault

SCAN = """
import sys, time
from agent.catalogue.load_failures import load_failures
from agent.failures.match.matcher import compile_catalogue
lines = open(sys.argv[1], encoding="utf-8").read().split("\\n")
catalogue = load_failures()
matcher = compile_catalogue(catalogue.signatures, catalogue.words)
start = time.process_time()
sum(1 for _ in matcher.scan(lines))
print(time.process_time() - start)
"""


def write_log(path: Path, megabytes: int) -> None:
    """Write traffic of a server, one line in fifty a failure."""
    chance = random.Random(7)
    size = number = 0
    with path.open("w", encoding="utf-8") as stream:
        while size < megabytes * 1_000_000:
            rows = [fault(n) if n % 50 == 0 else chance.choice(SHAPES)(n) for n in range(number, number + 10_000)]
            number += len(rows)
            size += stream.write("\n".join(rows) + "\n")


def cost_of(command: list[str]) -> tuple[float, float, int]:
    """Seconds of processor time, peak memory in MiB, and exit status of a command whose output nobody reads."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        write_log(log, args.megabytes)
        ratios, peaks = [], []
        for _ in range(args.rounds):
            scan = subprocess.run([sys.executable, "-c", SCAN, str(log)], check=True, capture_output=True, text=True)
            classify = [sys.executable, "-m", "agent.entrypoints.cli.main", "classify", "--json", str(log)]
            took, peak, status = cost_of(classify)
            assert status == 0, status
            ratios.append(took / float(scan.stdout))
            peaks.append(peak)
            print(
                f"   classify {took:.1f} s, scan in memory {float(scan.stdout):.1f} s of processor, peak {peak:.0f} MiB"
            )
        print(f"P11 against the matcher in memory: {statistics.median(ratios):.2f}x (bar 1.5x)")
        print(f"   peak memory {max(peaks):.0f} MiB (bar 256)")
        if shutil.which("grep"):
            literals = {parse_phrase(p).anchor for s in load_failures().signatures for p in s.phrases}
            (Path(folder) / "literals").write_bytes(b"\n".join(literals) + b"\n")
            command = ["env", "LC_ALL=C", "grep", "-c", "-i", "-F", "-f", str(Path(folder) / "literals"), str(log)]
            print(f"   against grep -c -i -F -f of the same literals: {took / cost_of(command)[0]:.1f}x")


if __name__ == "__main__":
    main()
