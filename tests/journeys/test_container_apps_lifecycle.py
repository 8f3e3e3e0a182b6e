"""A container app is stopped and started by request: two calls each, of which any may end without an answer."""

from datetime import UTC, datetime

import pytest

from agent.adapters.logs.replay_logs import ReplayLogs
from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app import build_app_in_memory
from agent.app.runtime_environment import RuntimeEnvironment
from agent.core.decision.decision import Channel, Person
from agent.core.incident.phase import Phase
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetFlag, applied
from agent.core.service.services import parse_services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.request_change import ChangeAsked, request_change
from tests.contracts import arm_server as arm
from tests.contracts.arm_world import ArmWorld
from tests.journeys.conftest import ROOT, Journey
from tests.journeys.on_container_apps import EXAMPLE

pytestmark = pytest.mark.azure

STOP = Lifecycle(operation=LifecycleOperation.STOP)
START = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=1)


class Subscription:
    """A whole agent over ARM's wire, on one stepped clock; the app serves."""

    def __init__(self, folder):
        scenario = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml")
        self.service = scenario.service
        policy = folder / "policy.toml"
        policy.write_text(f'lifecycle = ["{self.service}"]\nchange_window_s = 1\nchanges_per_hour = 100\n')
        self.clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        row = {"name": self.service, "platform": "container_apps", "resource_group": arm.GROUP, "owner": "console",
               "model": "google/gemma-4-12B-it-qat-w4a16-ct", "accelerator": "nvidia-a100-80gb", "vllm": "0.23.0"}  # fmt: skip
        good = applied(scenario.live.config, (SetFlag(name="kv-cache-dtype", value="auto"),))
        self.world = ArmWorld(self.service, good, watch=self.clock, after_s=100)
        self.platform = self.world.open()
        settings = read_settings({"POLICY": str(policy)}, platform="none")
        environment = RuntimeEnvironment(platform_of=lambda _: self.platform, logs=ReplayLogs())
        app = build_app_in_memory(
            settings,
            clock=self.clock,
            state=folder,
            environment=environment,
            services=parse_services({"service": [row]}),
        )
        self.journey = Journey(app, self.clock)

    def done(self, action):
        """Ask for it, approve it as somebody else, and go on to the end."""
        app = self.journey.installation
        asked = ChangeAsked(
            service=self.service,
            actions=(action,),
            why="because",
            by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
        )
        made = self.reach(request_change(app.contexts[Owner.DECIDE], asked).id, Phase.ASKED, Phase.CLOSED)
        assert made.phase is Phase.ASKED, made.ended_why
        self.journey.answer(made.plan.id, who="ben")
        return self.reach(made.id, Phase.RESOLVED, Phase.CLOSED, Phase.ESCALATED)

    def reach(self, incident, *phases):
        """Let time go by until it is in one of the phases."""
        for _ in range(200):
            found = self.journey.installation.store.load(incident)
            if found.phase in phases:
                return found
            self.journey.go(30, step=30)
        raise AssertionError((found.phase, found.ended_why))


@pytest.fixture
def subscription(tmp_path):
    made = Subscription(tmp_path)
    yield made
    made.world.close()


@pytest.mark.parametrize("part", ["/stop", "/start"])
@pytest.mark.parametrize("applied", [False, True], ids=["not applied", "applied, answer lost"])
def test_the_second_call_is_made_where_the_first_try_ended_between_them(subscription, part, applied):
    """The stop and the start both end well, and make one revision."""
    subscription.world.arm.faults.append(arm.Fault("POST", part, applied=applied))
    stopped = subscription.done(STOP)
    assert stopped.phase is Phase.RESOLVED, stopped.ended_why
    assert subscription.world.arm.app(subscription.service)["properties"]["runningStatus"] == "Stopped"
    started = subscription.done(START)
    assert started.phase is Phase.RESOLVED, started.ended_why
    assert subscription.platform.describe(subscription.service).ready is True
    assert [w[0] for w in subscription.world.arm.writes] == ["PATCH", "stop", "PATCH", "start"]
    assert subscription.world.arm.faults == []


def test_what_azure_refuses_while_it_is_busy_is_called_when_it_is_not(subscription):
    """A stopped app's new template takes a while, and until then its start is refused: it is made afterwards, once."""
    subscription.done(STOP)
    subscription.world.arm.switch_s = 90
    started = subscription.done(START)
    assert started.phase is Phase.RESOLVED, started.ended_why
    assert [w[0] for w in subscription.world.arm.writes] == ["PATCH", "stop", "PATCH", "start"]


def test_a_start_that_fails_is_undone_by_two_calls(subscription):
    """Its revision crashes: the template of before goes back, and then the app is stopped as it was."""
    subscription.done(STOP)
    before = subscription.platform.describe(subscription.service)
    subscription.world.fate = arm.Fate(up=False, after_s=100)
    wider = START.with_(max_instances=2)
    closed = subscription.done(wider)
    assert closed.phase is Phase.CLOSED, closed.ended_why
    assert [w[0] for w in subscription.world.arm.writes] == ["PATCH", "stop", "PATCH", "start", "PATCH", "stop"]
    now = subscription.platform.describe(subscription.service)
    assert (now.config, now.resumes_with) == (before.config, before.resumes_with)
