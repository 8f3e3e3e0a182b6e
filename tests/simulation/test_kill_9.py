"""R1: a real kill -9 before and after every call that leaves something behind; the list is what the code calls."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.counts import CI, SOAK, some, spread, tries
from tests.simulation.kills import STUCK_S, again, boundaries

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("default:a process that forks")]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {"resolved": "gemma4-26b-l4-startup-probe", "undone": "gemma4-26b-l4-context-refused"}
CASES = {"resolved": tries(8, ci=220, soak=5_000), "undone": tries(4, ci=330, soak=5_000)}
REQUESTED = {"example": EXAMPLES["undone"], "actions": [{"kind": "set_concurrency", "concurrency": 2}]}
REQUESTS = tries(4, ci=210, soak=2_000)
ON_FIRESTORE = tries(1, ci=20, soak=20)
VOTES, EFFECTS = tries(2, ci=80, soak=400), tries(1, ci=40, soak=400)
SHARDS = 4
TOGETHER = """
[[rules]]
services = ["gemma4-*"]
kinds = ["set_concurrency"]
mode = "person"
approvals = 2

[[approvers]]
name = "Ada"
slack = "U0ADA"
services = ["gemma4-*"]

[[approvers]]
name = "Ben"
slack = "U0BEN"
services = ["gemma4-*"]
"""
ANSWERS = [("U0ADA", "approve"), ("U0ADA", "withdraw"), ("U0BEN", "approve"), ("U0ADA", "approve")]
VOTED = REQUESTED | {"policy": TOGETHER, "answers": ANSWERS}
SERVICE = "gemma4-26b-qat-l4"
MAY_CREATE = f'lifecycle = ["{SERVICE}"]\naccelerators = ["nvidia-l4"]\n'
STOP = {"kind": "lifecycle", "operation": "stop"}
DELETE = {"kind": "lifecycle", "operation": "delete", "confirmed": SERVICE}
LIVES = {"stop": "RESOLVED", "start": "RESOLVED", "delete": "RESOLVED", "create": "CLOSED"}  # created, then removed
SILENT_S = 2 * STUCK_S + 20  # once to warm up, once to go the way
LATE_S = 60 + 120 + 3 * 60  # the queue's lease, the service's lease, and the ticks in which it is noticed


class Forks:
    """The warmed process that is forked for each journey.

    A journey that is stuck ends by itself and says so. A process that is silent for longer than that is stuck outside
    of any journey: a warning shows where, and a new process gets the same case.
    """

    def __init__(self, stderr: Path) -> None:
        self._stderr = stderr
        self._begin()

    def tell(self, case: dict[str, Any]) -> dict[str, Any]:
        line = self._answer(case)
        if line is None:
            warnings.warn(f"a process that forks journeys was silent; it was at:\n{self._ended()}", stacklevel=2)
            self._begin()
            line = self._answer(case)
        if line is None or not line.startswith("{"):
            pytest.fail(f"{line or ''}{self._ended()}")
        outcome = json.loads(line)
        assert "broke" not in outcome, outcome["broke"]
        return outcome

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def _begin(self) -> None:
        with self._stderr.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "tests.simulation.kills"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                text=True,
            )

    def _answer(self, case: dict[str, Any]) -> str | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        until = time.monotonic() + SILENT_S
        while time.monotonic() < until:
            if select.select([self._process.stdout], [], [], 1)[0]:
                return self._process.stdout.readline()
        return None

    def _ended(self) -> str:
        """End the process and its journey; return their stacks, and what the kernel has the process wait for."""
        asleep = [Path(f"/proc/{self._process.pid}/{name}") for name in ("wchan", "syscall")]
        waits = []
        with suppress(OSError):  # no such system, or no right to look
            waits += [path.read_text() for path in asleep]
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGABRT)
        rest, _ = self._process.communicate(timeout=30)
        return "\n".join([*waits, rest, self._stderr.read_text()])


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    held = Forks(tmp_path_factory.mktemp("forks") / "stderr")
    yield held
    held.close()


def as_if_never_killed(outcome: dict[str, Any], smooth: dict[str, Any]) -> None:
    """0 lost, 0 double, 0 stuck past one lease for each death."""
    for word in ("incidents", "signals", "stamps", "approved", "unsent", "record", "stands"):
        assert outcome[word] == smooth[word], word
    assert outcome["took_s"] <= smooth["took_s"] + outcome["deaths"] * LATE_S


def kill(forks: Forks, case: dict[str, Any], smooth: dict[str, Any], kills: list[tuple[int, bool]]) -> None:
    """Have one journey killed, and compare it with one that lived."""
    outcome = forks.tell(case | {"kills": kills})
    assert outcome["deaths"] >= 1
    try:
        as_if_never_killed(outcome, smooth)
    except AssertionError as error:
        label = smooth["calls"][kills[0][0]]
        raise AssertionError(f"killed at {kills} ({label}): {error}") from error


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("name", EXAMPLES)
def test_killed_at_any_boundary_it_ends_as_if_never_killed(name: str, shard: int, forks: Forks) -> None:
    """The same incident, the same end, one change for each approval; a second kill hits every second restart."""
    example = EXAMPLES[name]
    smooth = forks.tell({"example": example})
    assert smooth["incidents"]
    assert "platform.apply" in smooth["calls"]
    all_ = boundaries(smooth)
    for number in range(shard, CASES[name], SHARDS):
        kills = again(f"{number // len(all_)}", all_[spread(number, CASES[name], len(all_))], len(smooth["calls"]))
        kill(forks, {"example": example}, smooth, kills)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_request_killed_at_any_boundary_is_neither_lost_nor_made_twice(shard: int, forks: Forks) -> None:
    """From asking on: recorded once, planned once, one change for the approval, undone and closed."""
    smooth = forks.tell(REQUESTED)
    assert [phase for _, phase in smooth["incidents"]] == ["CLOSED"]
    all_ = boundaries(smooth)
    hit = {smooth["calls"][n] for n, _ in all_}
    assert {"control.add_request", "control.use_once", "control.append", "platform.apply", "platform.restore"} <= hit
    assert len(all_) <= REQUESTS or not (CI or SOAK)
    for number in range(shard, REQUESTS, SHARDS):
        kills = again(f"{number // len(all_)}", all_[spread(number, REQUESTS, len(all_))], len(smooth["calls"]))
        kill(forks, REQUESTED, smooth, kills)


def test_two_persons_and_a_withdrawal_killed_at_any_vote_count_once_each(forks: Forks) -> None:
    """One approves and takes it back, two approve: each is on record once, and one decision of both is carried out."""
    smooth = forks.tell(VOTED)
    ada, ben = "U0ADA", "U0BEN"
    votes = [["decision.approve", ada], ["vote.approve", ada], ["vote.approve", ben], ["vote.withdraw", ada]]
    assert [row for row in smooth["record"] if row[0].startswith(("vote.", "decision."))] == votes
    assert smooth["stamps"] == 2  # the change, and its roll-back
    at_votes = [(n, before) for n, before in boundaries(smooth) if n in smooth["of_people"]]
    assert {"control.cast", "control.append", "store.commit"} <= {smooth["calls"][n] for n, _ in at_votes}
    for number in range(VOTES):
        at = at_votes[spread(number, VOTES, len(at_votes))]
        kill(forks, VOTED, smooth, again(f"votes {number}", at, len(smooth["calls"])))


def life(name: str) -> dict[str, Any]:
    """Return what a person asks for, and what was done by hand before."""
    if name == "start":
        return {"before": [STOP], "actions": [{"kind": "lifecycle", "operation": "start"}]}
    if name == "create":
        return {"before": [DELETE], "creates": True}
    return {"actions": [{"stop": STOP, "delete": DELETE}[name]]}


@pytest.mark.parametrize("name", some(LIVES, one_in=2))
def test_a_lifecycle_killed_at_any_effect_happens_once(name: str, forks: Forks) -> None:
    """Created and removed again, started, stopped, deleted: 0 lost, 0 double, 0 stuck."""
    case = {"example": EXAMPLES["undone"], "policy": MAY_CREATE, **life(name)}
    smooth = forks.tell(case)
    assert [phase for _, phase in smooth["incidents"]] == [LIVES[name]]
    effects = boundaries(smooth, of=("control.", "platform."))
    assert {"platform.apply", "control.begin"} <= {smooth["calls"][n] for n, _ in effects}
    assert name != "create" or "platform.restore" in {smooth["calls"][n] for n, _ in effects}
    for number in range(EFFECTS):
        at = effects[spread(number, EFFECTS, len(effects))]
        kill(forks, case, smooth, again(f"{name} {number}", at, len(smooth["calls"])))


def test_every_effect_is_among_the_boundaries(forks: Forks) -> None:
    """The cases of CI go through the whole list at least once, and the effects stand in it."""
    for name, example in EXAMPLES.items():
        smooth = forks.tell({"example": example})
        assert len(boundaries(smooth)) <= CASES[name] or not (CI or SOAK)
        hit = {smooth["calls"][n] for n, _ in boundaries(smooth)}
        assert {"store.commit", "bus.publish", "control.begin", "control.acquire", "platform.apply"} <= hit
    assert {"platform.restore", "control.add_intent"} <= hit


@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_killed_over_firestore_it_ends_as_if_never_killed(forks: Forks, firestore_emulator, firestore_project) -> None:
    """Kills spread over the boundaries, the incidents in Google's emulator."""
    case = {"example": EXAMPLES["resolved"]}
    smooth = forks.tell({**case, "firestore": [firestore_emulator.host, f"{firestore_project}-s"]})
    all_ = boundaries(smooth)
    for number in range(ON_FIRESTORE):
        kill = all_[spread(number, ON_FIRESTORE, len(all_))]
        place = [firestore_emulator.host, f"{firestore_project}-{number}"]
        outcome = forks.tell({**case, "kills": [kill], "firestore": place})
        assert outcome["deaths"] == 1
        as_if_never_killed(outcome, smooth)
