"""Prints what each deployed function weighs and what its start costs, as one table.

Run: python -m tools.function_table [--rounds 5] [--only on_tick ...]

Each function is staged as deploy.sh stages it, packed as it is uploaded, and compiled as the cloud's build leaves it. A
start is the import of its main.py in a process of its own, in turns with that of a function that imports
functions-framework and google-cloud-firestore and nothing of ours; processor time, which the cloud bills and other work
on the machine changes little. The first answer comes later: benchmarks/cold_start.py measures the intake function's.
"""

import argparse
import compileall
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from tools.stage_functions import functions, stage

PEER = "import functions_framework\nfrom google.cloud import firestore\n"
START = """
import json, resource, sys, time
began = time.process_time()
import main
used = time.process_time() - began
ours = [name for name in sys.modules if name.split(".")[0] == "agent"]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([used, len(sys.modules), len(ours), peak / 1024]))
"""


@dataclass(frozen=True, kw_only=True)
class Start:
    """One import of a function.

    Attributes:
        cpu_s: Processor time of the import.
        modules: Loaded afterwards, those of Python and of packages included.
        ours: Of these the modules of agent/.
        peak_mib: The most memory that the process had.
    """

    cpu_s: float
    modules: int
    ours: int
    peak_mib: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One function of the table; ``ratio`` is to the peer, the median of the rounds."""

    function: str
    archive_kib: float
    start: Start
    ratio: float


def archive_bytes(folder: Path) -> int:
    """Return the size of a staged folder as a ZIP file, as Terraform packs it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            archive.write(path, path.relative_to(folder))
    return packed.tell()


def start_of(folder: Path) -> Start:
    """Import the function of a folder in a process of its own.

    Raises:
        subprocess.CalledProcessError: It cannot be imported.
    """
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}  # noqa: TID251 - a child's environment
    done = subprocess.run(
        [sys.executable, "-c", START], cwd=folder, env=kept, capture_output=True, text=True, check=True
    )
    used, modules, ours, peak = json.loads(done.stdout.splitlines()[-1])
    return Start(cpu_s=used, modules=modules, ours=ours, peak_mib=peak)


def rows(names: Sequence[str], folder: Path, *, rounds: int) -> Iterator[Row]:
    """Measure functions.

    Args:
        names: Which ones.
        folder: Where they are staged.
        rounds: Starts of each, in turns with the peer; the first pair, which fills the caches, is left out.
    """
    peer = folder / "peer"
    peer.mkdir()
    (peer / "main.py").write_text(PEER)
    for name in names:
        staged = stage(name, folder)
        size = archive_bytes(staged)
        for part in (staged, peer):
            compileall.compile_dir(part, quiet=1, force=True, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        pairs = [(start_of(staged), start_of(peer)) for _ in range(rounds + 1)][1:]
        ours = sorted((mine for mine, _ in pairs), key=lambda start: start.cpu_s)
        ratio = statistics.median(mine.cpu_s / other.cpu_s for mine, other in pairs)
        yield Row(function=name, archive_kib=size / 1024, start=ours[len(ours) // 2], ratio=ratio)


def table(measured: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    head = "| function | archive | modules (of agent/) | import, processor time | times the peer's | peak memory |"
    lines = [
        f"| `{row.function}` | {row.archive_kib:.0f} KiB | {row.start.modules:,} ({row.start.ours}) "
        f"| {row.start.cpu_s:.2f} s | {row.ratio:.2f} | {row.start.peak_mib:.0f} MiB |"
        for row in measured
    ]
    return "\n".join([head, "|---|---|---|---|---|---|", *lines])


def main() -> int:
    """Print the table."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rounds", type=int, default=5)
    reader.add_argument("--only", nargs="*", choices=functions(), help="all when left out")
    args = reader.parse_args()
    with tempfile.TemporaryDirectory(prefix="functions-") as name:
        print(table(list(rows(args.only or functions(), Path(name), rounds=args.rounds))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
