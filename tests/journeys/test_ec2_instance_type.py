"""Another instance type by request: stopped, changed, started and verified; without room the old type is put back."""

from datetime import UTC, datetime

import pytest

from agent.adapters.aws.client import Aws
from agent.adapters.aws.errors import translated
from agent.adapters.logs.replay_logs import ReplayLogs
from agent.app import build_app_in_memory
from agent.app.runtime_environment import RuntimeEnvironment
from agent.core.decision.decision import Channel, Person
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetInstanceType
from agent.core.service.services import parse_services
from agent.core.service.serving import ServingConfig
from agent.entrypoints.cli.analysis import SteppedClock
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.request_change import ChangeAsked, request_change
from tests.contracts.ec2_world import REGION, UNIT, Ec2World, sdk
from tests.contracts.ec2_world import TYPE as SMALL
from tests.journeys.conftest import Journey

pytestmark = pytest.mark.ec2

CONFIG = ServingConfig(args=("serve", "/mnt/models/gemma", "--max-model-len=8192"))
TYPE = SetInstanceType(
    instance_type="g6.2xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=8, memory_mib=32_768
)
FOUR = SetInstanceType(
    instance_type="g6.12xlarge", accelerator="nvidia-l4", accelerator_count=4, cpu=48, memory_mib=196_608
)


class NoRoom(Aws):
    """EC2 has none of the larger types."""

    def change(self, region, operation, **asked):
        if operation == "start_instances":
            row = self.call(region, "describe_instances", InstanceIds=asked["InstanceIds"])["Reservations"][0]
            if row["Instances"][0]["InstanceType"] != SMALL:
                from botocore.exceptions import ClientError

                error = ClientError({"Error": {"Code": "InsufficientInstanceCapacity", "Message": "no"}}, operation)
                raise translated(error, "it was not started") from error
        return super().change(region, operation, **asked)


@pytest.fixture
def world(tmp_path):
    made = Ec2World(tmp_path / "instance", "gemma", CONFIG)
    yield made
    made.close()


def asked_for(tmp_path, world, aws, wanted=TYPE):
    """Ask for the type, approve it as somebody else, and go on to the end."""
    policy = tmp_path / "policy.toml"
    policy.write_text('accelerators = ["nvidia-l4"]\nmax_cpu = 48\nchange_window_s = 1\nchanges_per_hour = 100\n')
    row = {"name": "gemma", "platform": "ec2", "location": REGION, "instance": world.instance, "unit": UNIT,
           "model": "google/gemma-4-12B-it-qat-w4a16-ct", "checkpoint": "/mnt/models/gemma", "owner": "console",
           "mounts": {"/mnt/models": "gs://example"}, "accelerator": "nvidia-l4", "vllm": "0.23.0"}  # fmt: skip
    clock = SteppedClock(datetime.now(UTC))
    platform = world.platform = world.open(aws)
    app = build_app_in_memory(
        read_settings({"POLICY": str(policy), "VERIFY_WINDOW_S": "60"}, platform="none"),
        clock=clock,
        state=tmp_path,
        environment=RuntimeEnvironment(platform_of=lambda _: platform, logs=ReplayLogs()),
        services=parse_services({"service": [row]}),
    )
    told = Journey(app, clock)
    wish = ChangeAsked(
        service="gemma",
        actions=(wanted,),
        why="memory",
        by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
    )
    request_change(app.contexts[Owner.DECIDE], wish)
    plan = told.until(lambda i: i.phase in {Phase.ASKED, Phase.REFUSED, Phase.CLOSED}, limit_s=300)
    assert plan.phase is Phase.ASKED, plan.ended_why
    told.answer(plan.plan.id, who="ben")
    for _ in range(120):
        told.go(15, step=15)
        world.wait()
        if told.incidents()[0].ended:
            break
    return plan, told.incidents()[0]


def test_it_is_stopped_changed_started_and_verified(tmp_path, world):
    """The plan says price and downtime; the end is a completion from the new machine."""
    plan, done = asked_for(tmp_path, world, Aws(sdk))
    assert (plan.plan.cost_before_usd_per_h, plan.plan.cost_after_usd_per_h) == (0.8048, 0.9776)
    assert any("nothing answers until" in reason for reason in plan.plan.risk_reasons)
    assert any("go on costing: vol-" in note for note in plan.plan.notes)
    assert done.phase is Phase.RESOLVED, done.ended_why
    assert world.platform.describe("gemma").config.instance_type == "g6.2xlarge"


@pytest.mark.parametrize("wanted", [TYPE, FOUR], ids=["as many cards", "more cards"])
def test_without_room_for_the_type_the_old_one_serves_again(tmp_path, world, wanted):
    """Capacity is named; nobody finds a stopped machine in the morning."""
    _, done = asked_for(tmp_path, world, NoRoom(sdk), wanted)
    assert done.phase is Phase.ROLLED_BACK or "the prior template serves again" in str(done.ended_why), done.ended_why
    assert "InsufficientInstanceCapacity" in str(done.execution)
    live = world.platform.describe("gemma")
    assert (live.config.instance_type, live.ready) == ("g6.xlarge", True)
