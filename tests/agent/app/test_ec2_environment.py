"""EC2 as a place: which units there are, what may be done to them, their log page by page, and what the doctor says."""

import json

import pytest

from agent.adapters.aws import client
from agent.adapters.clock import SystemClock
from agent.app import ec2_environment
from agent.app.ec2_environment import open_ec2, unit_targets
from agent.app.runtime_environment import open_environment
from agent.core.service.services import parse_services
from agent.core.service.serving import ServingConfig
from agent.entrypoints.cli.doctor.ec2 import ec2_units
from agent.errors import SettingsRejected
from agent.settings import Settings, read_settings
from tests.contracts.ec2_world import REGION, UNIT, Ec2World, sdk

CONFIG = ServingConfig(args=("serve", "/mnt/models/gemma", "--max-model-len=8192"))
BASE = {"name": "gemma", "platform": "ec2", "model": "m", "accelerator": "nvidia-l4", "owner": "console"}


def services(**more):
    return parse_services({"service": [BASE | more]})


@pytest.mark.parametrize(
    "more", [{"unit": "vllm.service"}, {"instance": "i-0abc1234"}, {"instance": "i-0abc1234", "unit": "v.service"}]
)
def test_half_a_unit_is_no_unit(more):
    """Instance, unit and region go together."""
    with pytest.raises(SettingsRejected, match="go together"):
        services(**more)


@pytest.mark.parametrize("more", [{"instance": "i-1"}, {"unit": "a b.service"}, {"unit": "../x.service"}, {"port": 0}])
def test_what_is_no_name_is_refused(more):
    """It would reach systemctl as a word."""
    with pytest.raises(SettingsRejected):
        services(**({"instance": "i-0abc1234", "unit": "vllm.service", "location": REGION} | more))


def test_an_empty_selection_is_not_all(monkeypatch):
    """PLATFORM=ec2 without a unit has nothing to work on; with one it opens without a call."""
    with pytest.raises(SettingsRejected, match="watches no ec2 service with an instance"):
        unit_targets(Settings(platform="ec2"), services())
    whole = services(instance="i-0abc1234", unit="vllm.service", location=REGION)
    settings = read_settings({}, platform="ec2:work")
    environment = open_environment(settings, whole, SystemClock())
    assert environment.platform_of("gemma") is not None
    assert environment.platform_of("other") is None


def test_a_profile_that_is_not_there_is_named():
    """boto3 says which."""
    with pytest.raises(SettingsRejected, match="no-such-profile"):
        client.open_session("no-such-profile")


def test_a_signal_that_names_the_instance_is_the_units():
    """EventBridge knows nothing else of it."""
    whole = services(instance="i-0abc1234", unit="vllm.service", location=REGION)
    assert whole.by_labels({"InstanceId": "i-0abc1234"}).name == "gemma"
    assert whole.by_labels({"InstanceId": "i-0abc1235"}) is None


@pytest.fixture
def opened(tmp_path, monkeypatch):
    world = Ec2World(tmp_path, "gemma", CONFIG)
    whole = services(instance=world.instance, unit=UNIT, location=REGION)
    made = open_ec2(Settings(platform="ec2"), whole, SystemClock(), session=sdk, commands=world.commands)
    monkeypatch.setattr(ec2_environment, "open_ec2", lambda *_: made)
    yield world, made, whole
    world.close()


def test_the_doctor_says_how_the_unit_stands_and_what_is_not_allowed(opened):
    """Denied calls are asked by dry run; nothing is changed."""
    world, made, whole = opened
    before = world.platform.describe("gemma")
    found = {f.check: f for f in ec2_units(Settings(platform="ec2"), whole)}
    assert (found["ec2:gemma"].state, found["ec2:rights:gemma"].state) == ("good", "good")
    assert "it serves" in found["ec2:gemma"].says
    assert world.platform.describe("gemma") == before
    made.aws.change = denied
    said = [f for f in ec2_units(Settings(platform="ec2"), whole) if f.check == "ec2:rights:gemma"]
    assert [f.says.split(":")[1:3] for f in said] == [
        [" ec2", "CreateTags"],
        [" ec2", "StartInstances"],
        [" ec2", "StopInstances"],
        [" ec2", "ModifyInstanceAttribute"],
    ]
    world.ssm.pings[world.instance] = str
    (offline,) = ec2_units(Settings(platform="ec2"), whole)
    assert (offline.state, "not online" in offline.says) == ("unknown", True)


def denied(region, operation, **asked):
    from agent.errors import PolicyRefused

    if operation == "send_command":
        return client.Aws(sdk).change(region, operation, **asked)
    raise PolicyRefused("it failed", why="UnauthorizedOperation", hint="grant it")


def test_a_journal_longer_than_an_output_is_read_in_pages(opened):
    """Systems Manager gives back 24,000 characters: every line comes, once, in order."""
    world, made, _ = opened
    now = int(SystemClock().now().timestamp() * 1_000_000)
    rows = [
        {
            "__REALTIME_TIMESTAMP": str(now - 2_000_000 + n),
            "_SYSTEMD_INVOCATION_ID": "a",
            "MESSAGE": f"{n} {hash((n, n)):x} {hash(str(n)):x}",
        }
        for n in range(1900)
    ]
    (world.folder / f"{UNIT}.journal").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = made.logs.instance_log("gemma", revision=None, instance=world.instance, until=SystemClock().now())
    assert [line.text for line in found.lines] == [row["MESSAGE"] for row in rows]
    assert found.complete
    pages = [s for s in world.ssm.sent if s["Comment"] == "sre-agent journal"]
    assert len(pages) > 1
