"""R22: a server that prints without measure is watched in bounded memory, and its end is told in time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import tries
from tests.journeys.test_large_sources import LAUNCH
from tests.journeys.watched import AGENT, NAME, Watched

pytestmark = pytest.mark.watched

MB = 1_000_000
LIMIT_MIB = 256
SIZE_MB = tries(6, ci=200, soak=2000)
TELLS_ITS_END_S = 15

FLOODS = {
    "lines": r"b'INFO 11-20 03:00:00 [loggers.py:257] Engine 000: Running: 3 reqs, Waiting: 0 reqs\n' * 12_000",
    "the same failure again and again": r"b'ERROR torch.OutOfMemoryError: CUDA out of memory.\n' * 20_000",
    "one line": "b'CUDA out of memory ' * 52_000",
    "empty lines": r"b'\n' * 1_000_000",
    "binary": "bytes(range(256)) * 3_900",
}
PROGRAM = r"""
import os, sys
block, left = %s, %d
os.write(1, b'INFO 11-20 03:00:00 [utils.py:306] version 0.32.0\n')
while left > 0:
    left -= os.write(1, block)
os.write(1, b'\nERROR 11-20 03:10:00 [core.py:9] ValueError: No available memory for the cache blocks.')
sys.exit(3)
"""
LAST = "No available memory for the cache blocks."


@pytest.fixture
def own(tmp_path):
    made = Watched(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_output_is_watched_in_bounded_memory_and_its_end_is_told(own, flood: str) -> None:
    """The last line has no end of line, and still it is read to its last byte."""
    program = PROGRAM % (FLOODS[flood], SIZE_MB * MB)
    own.words = lambda: [sys.executable, "-c", program, "serve", "/models/gemma"]
    own.watch()
    state = own.until(lambda: (p := own.state()) and p.newest and p.newest.ended_at and p, "the end")
    ended = own.until(lambda: next((i for i in own.incidents() if any(ends(own, i))), None), "the end as a signal")
    (end,) = ends(own, ended)
    assert (end.at - state.newest.ended_at).total_seconds() <= TELLS_ITS_END_S
    assert end.end.exit_code == 3
    log = own.folder / "host" / "gemma" / "starts" / state.newest.mark / "server.log"
    told = own.folder / "host" / "gemma" / "reported.json"
    size = log.stat().st_size
    assert size > SIZE_MB * MB
    own.until(lambda: json.loads(told.read_text())[state.newest.mark]["offset"] == size, "the last byte")
    known = own.until(
        lambda: next((i for i in own.incidents() if i.received == i.diagnosed_count and i.diagnosis), None), "weighed"
    )
    assert len(own.incidents()) == 1
    assert any(LAST in evidence.line for evidence in known.diagnosis.evidence)
    assert peak_mib(own.watcher.pid) <= LIMIT_MIB


def ends(own, incident):
    """Return the ends among an incident's signals."""
    return [s for s in own.signals(incident) if s.end is not None]


def peak_mib(pid: int) -> float:
    """Return the most memory that a process ever held."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def test_a_log_of_one_endless_line_does_not_fill_the_memory_before_the_watching_begins(own, tmp_path) -> None:
    """Nothing in it tells how the server was started: it is refused, and only its beginning is read."""
    log = tmp_path / "vllm.log"
    with log.open("wb") as file:
        file.truncate(SIZE_MB * MB * 10)
    command = [str(AGENT), "watch", "--name", NAME, "--log", str(log)]
    shell = ["sh", "-c", 'exec "$@" 2>&1', "sh", *command]
    launched = [sys.executable, "-c", LAUNCH, str(tmp_path / "said"), *shell]
    done = subprocess.run(launched, capture_output=True, env=own.environ, check=True, cwd=own.folder)
    code, peak_mib = json.loads(done.stdout)
    said = (tmp_path / "said").read_text()
    assert code == 2
    assert peak_mib <= LIMIT_MIB
    assert "it does not tell what the server was started with" in said
