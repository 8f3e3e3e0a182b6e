"""R9: a million lines of one fault through the whole replay, beside a million lines of hostile variety."""

import json
import random  # noqa: TID251 - seeded, to make hostile lines
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT = 1_000_000
LINE = (
    "(EngineCore pid={}) ERROR 11-21 03:00:{:02d} [core.py:1510] torch.OutOfMemoryError: CUDA out of memory. "
    "Tried to allocate 2.62 GiB. GPU 0 has a total capacity of 21.96 GiB of which 2.15 GiB is free.\n"
)


def sources(folder: Path) -> dict[str, Path]:
    chance = random.Random(1)
    raw, wild, entries, small = (folder / name for name in ("raw.log", "hostile.log", "entries.jsonl", "one.log"))
    small.write_text("one line\n")
    with raw.open("w") as file:
        file.writelines(LINE.format(n % 4, n % 60) for n in range(COUNT))
    with wild.open("w") as file:
        file.writelines(
            f"ERROR {chance.getrandbits(128):032x} memory CUDA {chance.getrandbits(64):x} probe {n}\n"
            for n in range(COUNT)
        )
    with entries.open("w") as file:
        for n in range(COUNT):
            place = {"service_name": "s", "revision_name": "s-1", "project_id": "p", "location": "us-central1"}
            entry = {
                "textPayload": LINE.format(n % 4, n % 60).rstrip(),
                "insertId": f"{n:024x}",
                "timestamp": f"2026-11-21T03:{n // 60_000 % 60:02d}:{n // 1000 % 60:02d}.{n % 1000:06d}Z",
                "resource": {"type": "cloud_run_revision", "labels": place},
                "logName": "projects/p/logs/run.googleapis.com%2Fstderr",
            }
            file.write(json.dumps(entry) + "\n")
    return {"one line": small, "raw lines": raw, "hostile lines": wild, "LogEntry JSON": entries}


def replay(path: Path) -> tuple[float, int, int]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    words = [sys.executable, "-m", "agent.entrypoints.cli.main", "replay", str(path), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    peak = max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, before.ru_maxrss)
    return took, len(done.stdout.splitlines()), peak


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'source':<16} {'seconds':>8} {'incidents':>10} {'peak MiB so far':>16}")
        for name, path in sources(Path(folder)).items():
            took, incidents, peak_kib = replay(path)
            print(f"{name:<16} {took:>8.2f} {incidents:>10} {peak_kib / 1024:>16.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
