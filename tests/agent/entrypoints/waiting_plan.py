"""An embedded installation on a real file, with one incident that waits for a decision."""

import gc
import shutil
import time
from pathlib import Path

import pytest

from agent.app import build_app
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import handlers, publish_example
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gemma4-26b-l4-startup-probe"
FRESH_S = 300.0  # a plan can be approved for half an hour
left: dict[str, tuple[float, Path]] = {}


@pytest.fixture
def asked(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Incident:
    """The incident as the running service left it; the environment leads every command to the same file.

    The service runs once every few minutes; each test has a copy of what it left.
    """
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    monkeypatch.setenv("QUIET_S", "0.01")
    monkeypatch.setenv("REHEARSAL_COMPRESSION", "1000")
    for name in ("SERVICES", "POLICY", "DECIDE_URL"):
        monkeypatch.delenv(name, raising=False)
    made_at, folder = left.get("asked", (-FRESH_S, tmp_path))
    if time.monotonic() - made_at >= FRESH_S:
        folder = tmp_path_factory.mktemp("asked") / "state"
        monkeypatch.setenv("STORE", f"sqlite:{folder}")
        publish_example(build_app(read_settings()), EXAMPLE)
        run_until(Phase.ASKED)
        gc.collect()  # the service's connections end here, and not while their files are copied
        left["asked"] = time.monotonic(), folder
    shutil.copytree(folder, tmp_path / "state", ignore=shutil.ignore_patterns("*-shm"), dirs_exist_ok=True)
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    (incident,) = build_app(read_settings()).store.incidents(Query())
    return incident


class Service:
    """The running service of the environment, one step at a time."""

    def __init__(self) -> None:
        self.app = build_app(read_settings())
        self._work = self.app.worker(handlers(self.app), threads=1).run_due

    def step(self) -> None:
        """Handle what is queued, and tick once."""
        self._work()
        on_tick(self.app.contexts[Owner.TICK])


def run_until(phase: Phase, *, requested: bool = False) -> Incident:
    """Run the installation of the environment until its newest incident, or requested change, is in a phase."""
    service = Service()
    ends = time.monotonic() + 60  # a machine that has nothing else to do takes many steps before a wait is over
    while time.monotonic() < ends:
        service.step()
        found = [i for i in service.app.store.incidents(Query()) if (i.request is not None) is requested]
        if found and found[0].phase is phase:
            return found[0]
    raise AssertionError([(incident.phase, incident.cause, incident.ended_why) for incident in found])
