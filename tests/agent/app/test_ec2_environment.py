"""EC2 as a place: which units there are, what may be done to them, their log page by page, and what the doctor says."""

import json

import pytest
from moto.ec2.responses import general

from agent.adapters.aws import client
from agent.adapters.clock import SystemClock
from agent.adapters.logs import cloudwatch
from agent.app import ec2_environment
from agent.app.ec2_environment import failed_checks, log_says, open_ec2, unit_targets
from agent.app.runtime_environment import open_environment
from agent.core.service.services import parse_services
from agent.core.service.serving import ServingConfig
from agent.entrypoints.cli.doctor.platforms import ec2_units
from agent.errors import DependencyFailed, SettingsRejected
from agent.settings import Settings, read_settings
from tests.contracts.ec2_world import REGION, UNIT, Ec2World, sdk

pytestmark = pytest.mark.slow

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


@pytest.mark.ec2
@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA L4", "nvidia-l4"),
        ("NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb"),
        ("Tesla T4", "nvidia-t4"),
        ("NVIDIA New", "nvidia-new"),
    ],
)
def test_the_card_of_another_type_has_the_catalogues_name(tmp_path, printed, name):
    """A plan names it so, whatever services.toml declared; what the catalogue lacks keeps its own."""
    world = Ec2World(tmp_path, "gemma", CONFIG, gpu=f"{printed}, 81559")
    whole = services(instance=world.instance, unit=UNIT, location=REGION)
    world.target = unit_targets(Settings(platform="ec2"), whole)["gemma"]
    assert world.open().describe("gemma").config.accelerator == name
    world.close()


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


@pytest.mark.ec2
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


@pytest.mark.ec2
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


@pytest.mark.ec2
def test_a_log_in_cloudwatch_is_read_in_pages_and_outlives_the_instance(opened, monkeypatch):
    """Every line comes once, in order, of the newest start; a stream that is not there names what to do."""
    world, made, _ = opened
    logs, group, now = sdk().client("logs"), f"/vllm/{world.instance}", int(SystemClock().now().timestamp() * 1000)
    logs.create_log_group(logGroupName=group)
    target = world.target.with_(log_group=group)
    monkeypatch.setitem(made.platform._targets, "gemma", target)
    with pytest.raises(DependencyFailed, match="none of its streams begins with"):
        made.logs.instance_log("gemma", revision=None, instance=None, until=SystemClock().now())
    stream = f"{world.instance}/vllm"
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    texts = ["of an earlier start", "INFO vLLM API server version 0.22.1", *(f"line {n}" for n in range(300))]
    events = [{"timestamp": now - 5000 + n, "message": text} for n, text in enumerate(texts)]
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    monkeypatch.setattr(cloudwatch, "PAGE_LINES", 100)
    world.ec2.stop_instances(InstanceIds=[world.instance])
    found = made.logs.instance_log("gemma", revision=None, instance=world.instance, until=SystemClock().now())
    assert [line.text for line in found.lines] == texts[1:]
    assert log_says(made, "gemma") == f"CloudWatch Logs {group}, {stream}"
    world.ec2.start_instances(InstanceIds=[world.instance])


@pytest.mark.ec2
def test_of_a_machine_that_does_not_answer_the_system_log_tells_xid_errors(opened, monkeypatch):
    """GetConsoleOutput needs no agent on the instance; without such a line, the agent is what is named."""
    world, made, _ = opened
    world.ssm.pings[world.instance] = str
    with pytest.raises(DependencyFailed, match="InvalidInstanceId"):
        made.logs.instance_log("gemma", revision=None, instance=world.instance, until=SystemClock().now())
    xid = "[  812.1] NVRM: Xid (PCI:0000:31:00): 79, pid=1234, GPU has fallen off the bus."
    monkeypatch.setattr(general, "SAMPLE_CONSOLE_OUTPUT", f"Linux version 6.1\n{xid}\n")
    found = made.logs.instance_log("gemma", revision=None, instance=world.instance, until=SystemClock().now())
    assert [line.text for line in found.lines] == [xid]


@pytest.mark.ec2
def test_the_doctor_says_which_status_check_fails(opened, monkeypatch):
    """EC2's own word of the machine and its host, and what it plans for it."""
    _, made, whole = opened
    assert failed_checks(made, "gemma") == ""
    asked = made.aws.call
    row = {
        "InstanceStatus": {"Status": "impaired"}, "SystemStatus": {"Status": "ok"},
        "Events": [{"Code": "instance-retirement", "Description": "hardware"}],
    }  # fmt: skip

    def call(region, operation, **words):
        return (
            {"InstanceStatuses": [row]}
            if operation == "describe_instance_status"
            else asked(region, operation, **words)
        )

    monkeypatch.setattr(made.aws, "call", call)
    said = {f.check: f for f in ec2_units(Settings(platform="ec2"), whole)}
    assert said["ec2:status:gemma"].state == "bad"
    assert said["ec2:status:gemma"].says == "instance status check: impaired; EC2 plans instance-retirement: hardware"


@pytest.mark.parametrize("more", [{"container": "vllm"}, {"container": "vllm", "unit": "v.service"}])
def test_a_container_stands_in_the_place_of_a_unit(more):
    """One of them; both is a doubt."""
    place = {"instance": "i-0abc1234", "location": REGION}
    if "unit" in more:
        with pytest.raises(SettingsRejected, match="want one of them"):
            services(**place, **more)
    else:
        assert unit_targets(Settings(platform="ec2"), services(**place, **more))["gemma"].name == "container vllm"
        assert services(**place, container="Vllm_1.a").services[0].container == "Vllm_1.a"
        with pytest.raises(SettingsRejected):
            services(**place, container="--privileged")
