"""Services that come and go: asked for, proved, approved by somebody else, done once, verified by what is left."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from agent.adapters.logs.replay_logs import ReplayLogs
from agent.app import build_app_in_memory
from agent.app.runtime_environment import RuntimeEnvironment
from agent.core.decision.decision import Channel, Person
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetScaling
from agent.core.planning.creation import creation
from agent.core.service.services import parse_services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.errors import PolicyRefused
from agent.ports.platform import NotDeployed
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.observe_services import observe_services
from agent.stages.request_change import ChangeAsked, request_change
from tests.contracts.cloud_run_world import CloudRunWorld
from tests.journeys.conftest import Journey

SERVICE = "gemma"
ENTRY = {
    "name": SERVICE,
    "platform": "cloud_run",
    "project": "example-project",
    "location": "us-central1",
    "model": "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    "accelerator": "nvidia-l4",
    "vllm": "0.22.1",
    "checkpoint": "/mnt/models/gemma-4",
    "mounts": {"/mnt/models": "gs://example-models"},
    "owner": "console",
    "needs": {"context": 16384, "users": 4},
}
POLICY = f"""
lifecycle = ["{SERVICE}"]
accelerators = ["nvidia-l4"]
change_window_s = 1
changes_per_hour = 100
"""
STOP = Lifecycle(operation=LifecycleOperation.STOP)
DELETE = Lifecycle(operation=LifecycleOperation.DELETE, confirmed=SERVICE)


class Region:
    """A whole agent over Cloud Run's real wire, on one stepped clock."""

    def __init__(self, folder: Path) -> None:
        policy = folder / "policy.toml"
        policy.write_text(POLICY)
        self.clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        self.services = parse_services({"service": [ENTRY]})
        settings = read_settings({"POLICY": str(policy)}, platform="none")
        rules = {"services": self.services}
        blank = build_app_in_memory(settings, clock=self.clock, state=folder / "blank", **rules)
        self.creation = creation(self.services.services[0], blank.rules.fits)
        self.world = CloudRunWorld(SERVICE, self.creation.config, watch=self.clock)
        self.platform = self.world.open()
        environment = RuntimeEnvironment(platform_of=lambda _: self.platform, logs=ReplayLogs())
        app = build_app_in_memory(settings, clock=self.clock, state=folder, environment=environment, **rules)
        self.journey = Journey(app, self.clock)

    def ask(self, action: Lifecycle | SetScaling) -> Incident:
        """Ada asks."""
        asked = ChangeAsked(
            service=SERVICE,
            actions=(action,),
            why="because",
            by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
        )
        return request_change(self.journey.installation.contexts[Owner.DECIDE], asked)

    def reach(self, incident: Incident, *phases: Phase) -> Incident:
        """Let time go by until it is in one of the phases."""
        for _ in range(4000):
            found = self.journey.installation.store.load(incident.id)
            if found.phase in phases:
                return found
            self.journey.go(5, step=5)
        raise AssertionError((found.phase, found.ended_why))

    def done(self, action: Lifecycle | SetScaling) -> Incident:
        """Ask, have it approved by somebody else, and wait for its end."""
        asked = self.reach(self.ask(action), Phase.ASKED, Phase.CLOSED)
        assert asked.phase is Phase.ASKED, asked.ended_why
        self.journey.answer(asked.plan.id, who="ben")
        return self.reach(asked, Phase.RESOLVED, Phase.CLOSED, Phase.ESCALATED)

    def gone(self) -> bool:
        try:
            self.platform.describe(SERVICE)
        except NotDeployed:
            return True
        return False


@pytest.fixture
def region(tmp_path: Path) -> Iterator[Region]:
    made = Region(tmp_path)
    yield made
    made.world.close()


@pytest.mark.parametrize("stop", [STOP, SetScaling(min_instances=0, max_instances=0)], ids=lambda a: a.kind)
def test_a_stop_and_a_start_are_verified_by_what_serves(region: Region, stop: Lifecycle | SetScaling) -> None:
    """Nothing serves, and no completion is asked for; then the same configuration serves again, and one is."""
    before = region.platform.describe(SERVICE)
    observe_services(region.journey.installation.contexts[Owner.TICK])
    stopped = region.done(stop)
    assert (stopped.phase, stopped.ended_why) == (Phase.RESOLVED, f"no instance of {SERVICE} serves")
    assert stopped.plan.takes_away == f"{SERVICE} answers no requests until it is started again"
    assert (stopped.plan.cost_after_usd_per_h, stopped.plan.proof) == (0.0, "not_needed")
    live = region.platform.describe(SERVICE)
    assert (live.config.max_instances, live.ready) == (0, False)
    app = region.journey.installation
    observe_services(app.contexts[Owner.TICK])
    record = app.service_records.service_record(SERVICE)
    assert [(change.ours, change.by) for change in record.changes][-1] == (True, "")
    assert record.drift == ()  # approved, though no revision bears its stamp
    low, high = live.resumes_with
    started = region.done(Lifecycle(operation=LifecycleOperation.START, min_instances=low, max_instances=high))
    assert started.phase is Phase.RESOLVED, started.ended_why
    assert region.platform.describe(SERVICE).config == before.config


def test_a_deletion_is_over_when_the_platform_has_no_such_service(region: Region) -> None:
    """Asked for once, though its answer is lost; the page says before that there is no way back."""
    asked = region.reach(region.ask(DELETE), Phase.ASKED)
    assert asked.plan.undo == "a deletion cannot be undone"
    assert asked.plan.risk == "high"
    assert {row.after for row in asked.plan.difference} == {None}
    region.world.stand_in.fail("DeleteService", grpc.StatusCode.UNAVAILABLE, applied=True)
    region.journey.answer(asked.plan.id, who="ben")
    ended = region.reach(asked, Phase.RESOLVED, Phase.CLOSED, Phase.ESCALATED)
    assert (ended.phase, ended.ended_why) == (Phase.RESOLVED, f"the platform does not have {SERVICE} any more")
    assert region.gone()
    assert len(region.world.stand_in.deletions) == 1


def test_a_service_is_created_with_flags_that_are_proved(region: Region) -> None:
    """The same path as a change: proof, approval, one call, a real completion."""
    region.done(DELETE)
    created = region.done(region.creation)
    assert created.phase is Phase.RESOLVED, created.ended_why
    assert (created.plan.proof, created.plan.fit_after.fits) == ("computed", True)
    assert region.platform.describe(SERVICE).config == region.creation.config
    assert len(region.world.stand_in.creations) == 1


def test_a_creation_that_is_typed_twice_is_one(region: Region) -> None:
    """While it is open the same request is found; once the service is there, nothing is done."""
    region.done(DELETE)
    asked = region.reach(region.ask(region.creation), Phase.ASKED)
    assert region.ask(region.creation).id == asked.id
    region.journey.answer(asked.plan.id, who="ben")
    assert region.ask(region.creation).id == asked.id
    assert region.reach(asked, Phase.RESOLVED, Phase.CLOSED).phase is Phase.RESOLVED
    again = region.reach(region.ask(region.creation), Phase.CLOSED)
    assert (again.id == asked.id, again.ended_why.partition(";")[0]) == (False, f"{SERVICE} exists")
    assert len(region.world.stand_in.creations) == 1


@pytest.mark.parametrize(
    ("action", "method", "made"),
    [("stop", "UpdateService", "updates"), ("create", "CreateService", "creations")],
)
def test_an_answer_that_was_lost_makes_nothing_twice(region: Region, action: str, method: str, made: str) -> None:
    """The platform did it, and nobody heard: the stamp leads back to it."""
    if action == "create":
        region.done(DELETE)
    asked = region.reach(region.ask(STOP if action == "stop" else region.creation), Phase.ASKED)
    region.world.stand_in.fail(method, grpc.StatusCode.UNAVAILABLE, applied=True)
    region.journey.answer(asked.plan.id, who="ben")
    ended = region.reach(asked, Phase.RESOLVED, Phase.CLOSED, Phase.ESCALATED)
    assert ended.phase is Phase.RESOLVED, ended.ended_why
    assert len(getattr(region.world.stand_in, made)) == 1


def test_what_a_creation_left_half_made_is_removed_and_nothing_else(region: Region) -> None:
    """The service never comes up: what this very intent created goes again, and the request is closed."""
    region.done(DELETE)
    region.world.bad = (
        "--max-model-len",
        dict(zip(*[iter(region.creation.config.args)] * 2, strict=False))["--max-model-len"],
    )
    ended = region.done(region.creation)
    assert ended.phase is Phase.CLOSED, ended.ended_why
    assert region.gone()
    assert (len(region.world.stand_in.creations), len(region.world.stand_in.deletions)) == (1, 2)


def test_a_service_that_somebody_else_made_meanwhile_is_left_alone(region: Region) -> None:
    """Created by hand while the plan waited for its approval: the plan is refused, the service stays."""
    body = region.world.stand_in._kept[region.world.name].pb
    region.done(DELETE)
    asked = region.reach(region.ask(region.creation), Phase.ASKED)
    from google.protobuf import json_format

    region.world.stand_in.put(json_format.MessageToDict(body) | {"deleteTime": None})
    region.journey.answer(asked.plan.id, who="ben")
    ended = region.reach(asked, Phase.CLOSED, Phase.ESCALATED, Phase.RESOLVED)
    assert ended.phase is Phase.CLOSED
    assert not region.gone()
    assert len(region.world.stand_in.creations) == 0


def test_a_service_that_policy_does_not_name_is_not_stopped(region: Region, tmp_path: Path) -> None:
    """Off by default: the list 'lifecycle' names it, or nobody can ask."""
    (tmp_path / "policy.toml").write_text("changes_per_hour = 4\n")
    settings = read_settings({"POLICY": str(tmp_path / "policy.toml")}, platform="none")
    environment = RuntimeEnvironment(platform_of=lambda _: region.platform, logs=ReplayLogs())
    app = build_app_in_memory(
        settings, clock=region.clock, state=tmp_path / "b", environment=environment, services=region.services
    )
    region.journey = Journey(app, region.clock)
    with pytest.raises(PolicyRefused, match="does not name 'gemma'"):
        region.ask(STOP)
