"""R1 on Container Apps' own wire: a real kill -9 before and after every effect of a change and of its undo."""

import json
import subprocess
import sys

import pytest

from agent.adapters.clock import SystemClock
from tests.contracts import arm_server as arm
from tests.counts import spread, tries
from tests.journeys.conftest import ROOT
from tests.journeys.on_container_apps import EXAMPLE, world_of
from tests.journeys.test_kubernetes_kill_9 import boundaries

pytestmark = pytest.mark.azure

KILLS = tries(1, ci=8, soak=1000)  # at most all of them


class Agents:
    """The warmed process that is forked for each journey, each on an app of its own."""

    def __init__(self, folder, *, comes_up):
        self.folder, self.count, self.comes_up = folder, 0, comes_up
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.journeys.killed_on_container_apps"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, kill):
        """Return how a journey ended, and what stands at ARM then."""
        folder, self.count = self.folder / f"w{self.count}", self.count + 1
        folder.mkdir()
        world = world_of(SystemClock(), after_s=0.1)
        if not self.comes_up:
            world.fate = arm.Fate(up=False, after_s=0.1)
        try:
            before = world.arm.app(world.service)["properties"]["template"]
            case = {"folder": str(folder), "example": EXAMPLE, "url": world.arm.url, "kill": kill, "step_s": 30}
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            outcome = json.loads(self.process.stdout.readline())
            assert "broke" not in outcome, (kill, outcome["broke"])
            calls, now = outcome.pop("calls"), world.arm.app(world.service)["properties"]["template"]
        finally:
            world.close()
        stands = {
            "writes": [method for method, _, _ in world.arm.writes],
            "revisions": len(world.arm.revisions(world.service)),
            "args": now["containers"][0]["args"],
            "scale": now["scale"] == before["scale"],
            "as_before": now["containers"][0]["args"] == before["containers"][0]["args"],
        }
        return outcome | stands, calls

    def close(self):
        self.process.communicate(timeout=30)


@pytest.mark.parametrize("comes_up", [True, False], ids=["resolved", "undone"])
def test_killed_at_any_effect_it_ends_as_if_never_killed(tmp_path, comes_up):
    """One revision for one approval, the same end, and an undo of one more."""
    running = Agents(tmp_path, comes_up=comes_up)
    try:
        smooth, calls = running.tell(None)
        assert (smooth["phase"] == "RESOLVED", smooth["as_before"]) == (comes_up, not comes_up)
        assert (smooth["approved"], calls["platform.apply"], calls["control.begin"]) == (1, 1, 1)
        assert smooth["writes"] == ["PATCH"] * (1 if comes_up else 2)
        among = boundaries(calls)
        tried = min(KILLS, len(among))
        for number in range(tried):
            kill = among[spread(number, tried, len(among))]
            assert running.tell(kill)[0] == smooth, kill
    finally:
        running.close()
