"""R22: a source of any size and content is read in bounded memory, by classify and by replay alike."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from tests.counts import some, tries

ROOT = Path(__file__).resolve().parents[2]
MB = 1_000_000
LIMIT_MIB = 256
LINE = (
    "INFO 11-20 03:00:{:02d} [loggers.py:257] Engine 000: Avg generation throughput: {}.5 tokens/s, Running: 3 reqs\n"
)
OOM = "ERROR 11-20 03:10:00 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB.\n"
SERVICE = {"project_id": "example-project", "location": "us-central1", "service_name": "gemma-4-31b"}
ENTRY = {
    "insertId": "%d",
    "timestamp": "2026-11-20T03:00:00.123456Z",
    "receiveTimestamp": "2026-11-20T03:00:00.654321Z",
    "logName": "projects/example-project/logs/run.googleapis.com%%2Fstderr",
    "resource": {
        "type": "cloud_run_revision",
        "labels": SERVICE | {"configuration_name": "gemma-4-31b", "revision_name": "gemma-4-31b-00007-abc"},
    },
    "labels": {"instanceId": "00f46b9285" * 12, "run.googleapis.com/base_image_versions": "none"},
    "textPayload": "INFO 11-20 03:00:00 [loggers.py:257] Engine 000: all is calm, number %d",
}

SIZE_MB = tries(3, ci=200, soak=2000)
SMALL_MB = tries(1, ci=20, soak=2000)
"""Of contents that are read the same way as another one that is tried at full size."""


def ordinary() -> Iterator[bytes]:
    """Yield a server's log that ends out of memory, block by block."""
    block = "".join(LINE.format(n % 60, n % 900) for n in range(10_000)).encode()
    while True:
        yield block


def one_line() -> Iterator[bytes]:
    """Yield a line that never ends."""
    while True:
        yield b"CUDA out of memory " * 50_000


def distinct() -> Iterator[bytes]:
    """Yield lines of which no two are alike, each with the words of a failure in it."""
    chance = random.Random(7)
    while True:
        yield b"".join(b"ERROR %x CUDA out of memory %x\n" % (chance.getrandbits(400), n) for n in range(5000))


def entries() -> Iterator[bytes]:
    """Yield log entries as Cloud Logging writes them, one a line."""
    line, number = json.dumps(ENTRY) + "\n", 0
    while True:
        yield "".join(line % (n, n) for n in range(number, number + 1000)).encode()
        number += 1000


def noise() -> Iterator[bytes]:
    """Yield a line of text, then bytes that are none."""
    chance = random.Random(7)
    yield b"INFO started\n" * 6000
    while True:
        yield chance.randbytes(MB)


CONTENTS: dict[str, tuple[Callable[[], Iterator[bytes]], int]] = {
    "a log": (ordinary, SIZE_MB),
    "one line": (one_line, SMALL_MB),
    "distinct lines": (distinct, SMALL_MB),
    "entries": (entries, SMALL_MB),
    "binary after text": (noise, SMALL_MB),
}


def write(path: Path, blocks: Iterator[bytes], megabytes: int, *, packed: bool = False) -> Path:
    written = 0
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as stream:
        for block in blocks:
            stream.write(block)
            written += len(block)
            if written >= megabytes * MB:
                break
        stream.write(b"\n" + OOM.encode())
    return path


LAUNCH = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], "wb"), stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024]))
"""
"""A small process between the test and the command: the kernel counts the memory of whoever starts one as its own."""


def run(command: str, source: Path, folder: Path) -> tuple[int, bytes, float]:
    """Return the exit code, the output, and the peak memory of the process in MiB."""
    words = [sys.executable, "-m", "agent.entrypoints.cli.main", command, "--json", str(source)]
    env = {**os.environ, "STORE": f"sqlite:{folder / 'state'}"}
    launched = [sys.executable, "-c", LAUNCH, str(folder / "out"), *words]
    done = subprocess.run(launched, capture_output=True, env=env, check=True, cwd=ROOT)
    code, peak_mib = json.loads(done.stdout)
    return code, (folder / "out").read_bytes(), peak_mib


@pytest.mark.parametrize(
    ("command", "name"), some([(c, n) for n in CONTENTS for c in ("classify", "replay")], one_in=5)
)
def test_memory_is_bounded_whatever_the_source_holds(command: str, name: str, tmp_path: Path) -> None:
    """The command ends with an answer, and the failure at the end of a log is in it."""
    blocks, megabytes = CONTENTS[name]
    source = write(tmp_path / "server.log", blocks(), megabytes)
    code, out, peak_mib = run(command, source, tmp_path)
    assert code in {0, 1}
    assert peak_mib <= LIMIT_MIB
    if name == "a log":
        assert b"gpu_oom" in out


@pytest.mark.parametrize("command", ["classify", "replay"])
def test_what_was_packed_well_costs_no_more(command: str, tmp_path: Path) -> None:
    source = write(tmp_path / "server.log.gz", ordinary(), SMALL_MB, packed=True)
    code, out, peak_mib = run(command, source, tmp_path)
    assert (code in {0, 1}, b"gpu_oom" in out) == (True, True)
    assert peak_mib <= LIMIT_MIB


INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from agent.entrypoints.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The command as a terminal starts it: under nohup, or started in the background, it would not see Ctrl-C."""


def test_it_can_be_interrupted_at_any_time(tmp_path: Path) -> None:
    """Ctrl-C while a source without an end is read: no traceback, the code of an interrupted command."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "classify", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin
    for block in islice(ordinary(), 4):  # returns once the command has read all but a pipe's content
        process.stdin.write(block)
    process.stdin.flush()
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    with suppress(BrokenPipeError):
        process.stdin.close()
    assert process.wait(timeout=30) == 130
    assert time.monotonic() - before < 10
    assert process.stderr
    assert process.stdout
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.stdout.close()
