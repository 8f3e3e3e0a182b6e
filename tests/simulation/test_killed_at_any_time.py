"""`sre-agent up`, killed at random points and started again, loses no incident and applies nothing twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.app import App, build_app
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.errors import SreError
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.counts import tries

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
KILLS = 10
JOURNEYS = tries(1, ci=4, soak=100)


class Service:
    """The service as a process of its own, and the person beside it."""

    def __init__(self, state: Path) -> None:
        self.env = {**os.environ, "STORE": f"sqlite:{state}", "REHEARSAL_COMPRESSION": "400"}
        self.settings = read_settings(self.env, platform=f"rehearsal:{EXAMPLE}")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; nothing waits for it to be ready."""
        words = [sys.executable, "-m", "agent.entrypoints.cli.main", "up", "--port", "0", "--example", str(EXAMPLE)]
        self.process = subprocess.Popen(words, cwd=ROOT, env=self.env, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """Take it away without a word."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def person(self, installation: App) -> None:
        """Approve whatever is asked."""
        for incident in self.incidents(installation):
            if incident.phase is Phase.ASKED and incident.plan is not None:
                word = DecisionRequest(
                    plan=incident.plan.id,
                    answer=Choice.APPROVE,
                    by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
                )
                try:
                    plan_to_decision(installation.contexts[Owner.DECIDE], word)
                except SreError:
                    continue

    def incidents(self, installation: App) -> tuple[Incident, ...]:
        return installation.store.incidents(Query())


def wait(seconds: float) -> None:
    """Real time must pass for a real process; this is the one place that lets it."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        subprocess.run(["sleep", f"{left:.3f}"], check=False)


@pytest.mark.parametrize("seed", range(JOURNEYS))
def test_killed_at_random_points_it_ends_as_if_never_killed(seed: int, tmp_path: Path) -> None:
    """Ten kills a journey: one incident, one revision of ours for each approval, and it is resolved."""
    chance = random.Random(seed)
    service = Service(tmp_path)
    for _ in range(KILLS):
        service.start()
        wait(chance.uniform(0.3, 1.9))
        service.kill()
        service.person(build_app(service.settings))
    service.start()
    installation = build_app(service.settings)
    try:
        for _ in range(240):
            found = service.incidents(installation)
            if found and all(i.ended for i in found) and not installation.store.unsent():
                break
            service.person(installation)
            wait(0.25)
    finally:
        service.kill()
    found = service.incidents(installation)
    assert [i.phase for i in found] == [Phase.RESOLVED], f"seed {seed}: {[(i.phase, i.ended_why) for i in found]}"
    assert found[0].execution is not None
    ours = found[0].execution.revision_after
    stored = [s for s in installation.store.signals(found[0].id) if s.revision != ours]
    leased = installation.bus.waiting().get(  # type: ignore[attr-defined]
        "sre-log-events-sub", 0
    )  # of a killed worker; delivered when its lease ends
    assert len(stored) <= 3 <= len(stored) + leased, f"seed {seed}: {len(stored)} stored, {leased} waiting"
    assert installation.environment.rehearsal is not None
    stamps = installation.environment.rehearsal.describe(found[0].service).stamps
    assert len(stamps) == 1, f"seed {seed}: {stamps}"
    assert not installation.store.unsent()
