"""P3: redaction against detect-secrets' scan_line, both over the same lines in the same run.

    python benchmarks/redact.py [--detect-secrets PYTHON]

PYTHON is an interpreter that has detect-secrets; without it one is made in a temporary venv. Lines are recorded
vLLM logs (from ../shared, else lines of the same looks), one in a hundred with a made-up token. Rounds alternate,
the ratio is taken pair by pair, and its median counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from agent.catalogue.load_secrets import load_secrets
from agent.core.redaction import Redactor

LOGS = Path(__file__).parents[1].parent / "shared" / "data" / "vllm-cpu-logs"
LINES = 100_000
THEIRS = 1_000
ROUNDS = 5

SCAN = """
import json, sys, time
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
lines = json.load(open(sys.argv[1]))
with default_settings():
    for line in lines[:20]:
        list(scan_line(line))
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        found = sum(bool(list(scan_line(line))) for line in lines)
        print(json.dumps([time.perf_counter() - start, found]), flush=True)
"""


def log_lines() -> list[str]:
    if LOGS.is_dir():
        plain = [line for path in sorted(LOGS.glob("*.log")) for line in path.read_text().splitlines()]
    else:
        plain = [
            f"(EngineCore pid={n}) INFO 11-21 03:47:{n % 60:02} [core.py:{n}] GPU KV cache size: {n * 977:,} tokens"
            for n in range(2_000)
        ]
    token = "hf" + "_" + "aBcDeFgHiJkLmNoPqRsT" + "uVwXyZaBcDeFgH"
    many = [plain[n % len(plain)] for n in range(LINES)]
    return [f"{line} token {token}" if n % 100 == 0 else line for n, line in enumerate(many)]


def interpreter(given: str | None, folder: Path) -> str:
    if given:
        return given
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "detect-secrets==1.5.0"], check=True)
    return python


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--detect-secrets")
    given = arguments.parse_args()
    lines = log_lines()
    redactor = Redactor(load_secrets())
    redactor.redact_lines(lines[:1_000])
    ours, ratios = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lines.json").write_text(json.dumps(lines[:THEIRS]))
        (folder / "scan.py").write_text(SCAN)
        command = [interpreter(given.detect_secrets, folder), str(folder / "scan.py"), str(folder / "lines.json")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as rival:
            assert rival.stdin
            assert rival.stdout
            rival.stdout.readline()
            for _ in range(ROUNDS):
                start = time.perf_counter()
                found = len(redactor.redact_lines(lines).found)
                rate = LINES / (time.perf_counter() - start)
                rival.stdin.write("go\n")
                rival.stdin.flush()
                took_s, theirs_found = json.loads(rival.stdout.readline())
                ours.append(rate)
                ratios.append(rate * took_s / THEIRS)
                print(f"ours {rate:,.0f} lines/s ({found} found in {LINES})", end=", ")
                print(f"detect-secrets {THEIRS / took_s:,.0f} lines/s ({theirs_found} found in {THEIRS})", end=", ")
                print(f"ratio {ratios[-1]:,.0f}")
            rival.stdin.close()
    rate, ratio = statistics.median(ours), statistics.median(ratios)
    held = rate >= 100_000 and ratio >= 100
    print(f"P3 median {rate:,.0f} lines/s (bar 100,000), {ratio:,.0f}x detect-secrets (bar 100):", end=" ")
    print("held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
