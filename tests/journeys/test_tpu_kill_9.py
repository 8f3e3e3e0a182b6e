"""R1 on Cloud TPU's own wire: a real kill -9 before and after every effect of a change and of its undo."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.adapters.platform.rehearsal.template import bare
from tests.contracts.tpu_world import TpuWorld
from tests.counts import some, spread, tries
from tests.journeys.conftest import ROOT
from tests.journeys.test_kubernetes_kill_9 import boundaries
from tests.journeys.test_tpu_vm import EXAMPLE, SHARE

pytestmark = [pytest.mark.slow, pytest.mark.tpu]
KILLS = tries(1, ci=1000, soak=1000)  # at most all of them


class Agents:
    """The warmed process that is forked for each journey, and the nodes that it is given."""

    def __init__(self, folder, *, comes_up):
        self.folder, self.count = folder, 0
        self.environ = SHARE | ({} if comes_up else {"FAKE_FITS_SHARE": "0.1"})
        self.scenario = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.journeys.killed_on_tpu"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, kill):
        """Return how a journey on a node of its own ended, and what stands on the node then."""
        folder, self.count = self.folder / str(self.count), self.count + 1
        (folder / "containers").mkdir(parents=True)
        world = TpuWorld(folder / "containers", self.scenario.service, self.scenario.live.config, **self.environ)
        try:
            return self._told(world, folder, kill)
        finally:
            world.close()

    def _told(self, world, folder, kill):
        with running(world):
            before = world.platform.describe(world.service).template
            case = {"folder": str(folder), "example": EXAMPLE, "url": world.cloud.address, "node": world.name}
            self.process.stdin.write(json.dumps(case | {"kill": kill}) + "\n")
            self.process.stdin.flush()
            outcome = json.loads(self.process.stdout.readline())
        assert "broke" not in outcome, (kill, outcome["broke"])
        calls = outcome.pop("calls")
        live = world.platform.describe(world.service)
        stands = {
            "generation": live.generation,
            "stamps": len(live.stamps),
            "args": live.config.args[:-1],
            "as_before": bare(live.template) == bare(before),
            "updates": world.cloud.calls.count("UpdateNode"),
            "containers": len(world.docker_calls("run")),
        }
        return outcome | stands, calls


@contextmanager
def running(world):
    """Let the node's script go on by itself."""
    over = threading.Event()

    def go_on():
        while not over.wait(0.01):
            world.script.step()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        world.script.step()


@pytest.mark.parametrize("end", some(["undone", "resolved"], one_in=2))
def test_killed_at_any_effect_it_ends_as_if_never_killed(tmp_path, end):
    """One change for one approval, one container for each, the same end, and an undo that is equal to the byte."""
    comes_up = end == "resolved"
    agents = Agents(tmp_path, comes_up=comes_up)
    try:
        smooth, calls = agents.tell(None)
        assert (smooth["phase"] == "RESOLVED", smooth["as_before"]) == (comes_up, not comes_up), smooth
        assert (smooth["updates"], smooth["approved"]) == (1 if comes_up else 2, 1)
        among = boundaries(calls)
        tried = min(KILLS, len(among))
        for number in range(tried):
            kill = among[spread(number, tried, len(among))]
            assert agents.tell(kill)[0] == smooth, kill
    finally:
        agents.process.communicate(timeout=30)
