"""EC2 over the wire: what goes wrong there is typed, nothing is lost, and nothing is done twice."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.adapters.aws.client import CALLS, Aws
from agent.adapters.aws.errors import translated
from agent.adapters.logs.cloudwatch import stream_entries, stream_of, system_log
from agent.adapters.platform.ec2 import command
from agent.adapters.platform.ec2.target import CALLED_TAG
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetEnv, SetFlag, SetInstanceType, applied
from agent.core.service.serving import ServingConfig
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.platform import LeaseOver, NotDeployed, Order, Restore
from tests.contracts.ec2_world import UNIT, Ec2World, sdk
from tests.leases import HELD
from tests.waiting import until

pytestmark = pytest.mark.ec2

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ServingConfig(args=("serve", "/mnt/models/gemma", "--max-model-len=8192"))
GOOD = SetFlag(name="max-model-len", value="4096")
STOP = Lifecycle(operation=LifecycleOperation.STOP)
TYPE = SetInstanceType(
    instance_type="g6.2xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=8, memory_mib=32_768
)


@pytest.fixture
def world(tmp_path):
    made = Ec2World(tmp_path, "gemma", CONFIG)
    yield made
    made.close()


def order(world, *actions, key="k1", etag=None):
    return Order(
        service="gemma",
        incident="inc-1",
        effect_key=key,
        revision=f"gemma-sre-{key}",
        etag=etag or world.platform.describe("gemma").etag,
        actions=actions or (GOOD,),
        lease_end=HELD,
    )


class Waits:
    """Time that goes by only while a command is waited for."""

    elapsed_s = 0.0

    def pause(self, seconds):
        self.elapsed_s += seconds

    def look(self):
        return self.elapsed_s


def restarts(world):
    return (world.folder / "called").read_text().count("restart --no-block")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ThrottlingException", DependencyFailed),
        ("AccessDeniedException", PolicyRefused),
        ("ExpiredTokenException", PolicyRefused),
    ],
)
def test_a_refused_call_is_typed_and_changes_nothing(world, code, kind):
    """Throttling is tried again by the SDK first, and then by the next delivery."""
    before = world.platform.describe("gemma")
    world.ssm.refuses = [(400, code, "Rate exceeded")] * 3
    with pytest.raises(kind, match=code):
        world.platform.describe("gemma")
    world.ssm.refuses = []
    assert world.platform.describe("gemma") == before


@pytest.mark.parametrize(("status", "code"), [(429, "TooManyRequestsException"), (400, "ThrottlingException")])
def test_a_read_that_is_throttled_once_is_made_again(world, status, code):
    """By the SDK, after the time that AWS asks for; a call that changes something is never repeated by it."""
    world.ssm.refuses = [(status, code, "Rate exceeded")]
    assert world.platform.describe("gemma").ready is True
    assert world.ssm.refuses == []


def test_a_command_that_systems_manager_does_not_know_yet_is_asked_again(world):
    """Right after it was sent it may be unknown there."""
    world.ssm.unknown = 3
    assert world.platform.describe("gemma").ready is True


def test_a_command_that_stays_pending_to_its_limit_is_typed(world):
    """The agent was seen as online and takes nothing: given up after 60 s, and the next delivery asks again."""
    waits = Waits()
    platform = world.open(pause=waits.pause, elapsed_s=waits.look)
    world.ssm.stalls.set()
    with pytest.raises(command.AgentOffline, match="is Pending after 60 s") as caught:
        platform.describe("gemma")
    assert caught.value.hint == "no action needed: what it did is read back; look at the SSM agent if it stays so"
    assert 60 <= waits.elapsed_s < 62
    world.ssm.stalls.clear()
    assert platform.describe("gemma").ready is True


def test_a_change_that_was_delivered_after_we_gave_up_is_made_once(world):
    """Pending at the limit is no answer: the command may still run, so the next try asks with the same stamp."""
    waits = Waits()
    one, platform = order(world), world.open(pause=waits.pause, elapsed_s=waits.look)
    seen = platform.look("gemma")
    world.ssm.stalls.set()
    with pytest.raises(command.AgentOffline, match="is Pending after 60 s"):
        platform._change(seen, one, platform._text(seen, one), resumes=False)
    assert restarts(world) == 0
    world.ssm.stalls.clear()
    again = world.open()
    again.apply(one)
    world.wait()
    until(lambda: {row["Status"] for row in world.ssm.told(world.instance)} == {"Success"})
    assert again.find("gemma", "k1").ok is True
    assert restarts(world) == 1


def test_an_output_that_was_cut_is_never_half_read(world):
    """It has a beginning and an end."""
    world.ssm.cuts = 300
    with pytest.raises(DependencyFailed, match="its output was cut"):
        world.platform.describe("gemma")


@pytest.mark.parametrize("ping", ["ConnectionLost", ""])
def test_an_agent_that_is_offline_says_where_to_look(world, ping):
    """The instance runs, and nobody can look into it."""
    world.ssm.pings[world.instance] = lambda: ping
    with pytest.raises(DependencyFailed, match="amazon-ssm-agent"):
        world.platform.describe("gemma")


def test_an_instance_that_is_gone_is_not_deployed(world):
    """Terminated, or never there."""
    open_again = world.open()
    world.ec2.terminate_instances(InstanceIds=[world.instance])
    with pytest.raises(NotDeployed, match="terminated"):
        open_again.describe("gemma")


def test_a_tag_that_names_two_instances_is_refused(world):
    """Which one is meant is for a person to say; a tag of one is good."""
    made = world.ec2.run_instances(ImageId="ami-12c6146b", InstanceType="g6.xlarge", MinCount=1, MaxCount=1)
    other = made["Instances"][0]["InstanceId"]
    world.ec2.create_tags(Resources=[world.instance], Tags=[{"Key": "Name", "Value": world.instance}])
    world.target = world.target.with_(instance=f"Name={world.instance}")
    tagged = world.open()
    assert tagged.describe("gemma").uid == f"{world.instance}/{UNIT}"
    world.ec2.create_tags(Resources=[other], Tags=[{"Key": "Name", "Value": world.instance}])
    with pytest.raises(InputRejected, match="names 2"):
        tagged.describe("gemma")
    world.ec2.terminate_instances(InstanceIds=[other])


def test_a_unit_that_is_not_there_is_the_operators_to_mend(world):
    """Its name stands in services.toml."""
    world.target = world.target.with_(unit="nothing.service")
    with pytest.raises(InputRejected, match="has no unit"):
        world.open().describe("gemma")


def test_a_command_that_arrives_after_the_lease_changes_nothing(world):
    """Systems Manager may deliver late: the instance itself looks at the end of the lease (ADR 0025)."""
    before = world.platform.describe("gemma")
    late = world.platform._commands
    with pytest.raises(LeaseOver, match="after the end of its lease"):
        late.ask(
            world.target, world.instance, "change", key="k1", revision="r", incident="i", generation=1, text="",
            expects={}, not_after=1.0,
        )  # fmt: skip
    assert world.platform.describe("gemma") == before
    assert world.platform.find("gemma", "k1") is None


def test_a_change_between_reading_and_writing_is_a_conflict(world):
    """The digest is compared again on the instance, under a lock, right before the drop-in is written."""
    one = order(world)
    seen = world.platform.look("gemma")
    world.unit_file.write_text(world.unit_file.read_text() + "Nice=5\n")
    with pytest.raises(StateConflict, match="changed since they were read"):
        world.platform._change(seen, one, "[Service]\n", resumes=False)
    assert [p.name for p in world.units.iterdir()] == [UNIT]


def test_a_change_by_somebody_after_ours_is_said(world):
    """It is no failure of ours, and no success."""
    started = world.platform.apply(order(world))
    world.wait()
    world.unit_file.write_text(world.unit_file.read_text() + "Nice=5\n")
    told = world.platform.operation(started.name)
    assert (told.done, told.ok) == (True, None)
    assert "somebody changed the unit's files" in told.says


@pytest.mark.parametrize("step", ["daemon-reload", "restart"])
def test_a_script_that_was_killed_is_taken_up_once(world, step):
    """Kill -9 on the instance between two steps: the stamp is found, and the next try does what remains, once."""
    one = order(world)
    systemctl = world.folder / "bin" / "systemctl"
    good = systemctl.read_text()
    systemctl.write_text(good.replace("exec", f'case "$*" in *{step}*) kill -9 $PPID; exit 1;; esac\nexec'))
    with pytest.raises(DependencyFailed):
        world.platform.apply(one)
    systemctl.write_text(good)
    found = world.open().find("gemma", "k1")
    assert found is not None
    assert found.remains
    before = restarts(world)
    again = world.open()
    again.apply(one)
    again.apply(one)
    assert restarts(world) == before + 1
    world.wait()
    assert world.platform.operation(found.name).ok is True


class Killed(BaseException):
    """The agent is gone."""


def goes_on(platform, world, one):
    for _ in range(3):
        platform.apply(one)
        world.wait()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("action", "call"),
    [
        (GOOD, "send_command"), (STOP, "create_tags"), (STOP, "stop_instances"),
        (TYPE, "create_tags"), (TYPE, "stop_instances"), (TYPE, "modify_instance_attribute"), (TYPE, "start_instances"),
    ],
    ids=lambda v: v if isinstance(v, str) else v.kind,
)  # fmt: skip
def test_an_agent_killed_at_an_effect_is_taken_up_once(world, action, call, when):
    """Its last call reached AWS or did not: the next worker with the same order ends it, and nothing is done twice."""
    one = order(world, action)

    class Dying(Aws):
        def change(self, region, operation, **asked):
            mine = operation == call and (
                call != "send_command" or not asked.get("Comment", "").endswith(("read", "http"))
            )
            if mine and self.armed and when == "before":
                raise Killed
            answer = super().change(region, operation, **asked)
            if mine and self.armed:
                raise Killed
            return answer

        armed = False

    dying = Dying(sdk)
    platform = world.open(dying)
    if call == "send_command":  # the first one reads
        seen = platform.look("gemma")
        platform.look = lambda _: seen
    dying.armed, began = True, len(sdk().called)
    with pytest.raises(Killed):
        goes_on(platform, world, one)
    world.platform = again = world.open()
    sent = len(sdk().called)
    again.apply(one)
    world.wait()
    found = again.find("gemma", "k1")
    assert found is not None
    assert (found.done, found.ok) == (True, True) or (action is TYPE and not found.done)
    if action is GOOD:
        assert restarts(world) == 1
    elif action is TYPE:
        assert changed_type(world, one).ok is True
        assert again.describe("gemma").config.instance_type == "g6.2xlarge"
        assert sent_since(began) == ["StopInstances", "ModifyInstanceAttribute", "StartInstances"]
    else:
        assert world.instance_state() == "stopped"
        assert sdk().called[sent:].count("ec2:StopInstances") <= 1


def changed_type(world, one):
    """Call as the pipeline does, until nothing remains."""
    told = world.platform.apply(one)
    for _ in range(4):
        world.wait()
        told = world.platform.operation(told.name)
        if not told.remains:
            return told
        world.platform.apply(one)
    raise AssertionError(told)


def undo_of(world, before, *actions):
    return Restore(
        service="gemma", incident="inc-1", effect_key="u1", revision="gemma-sre-u1", lease_end=HELD, actions=actions,
        etag=world.platform.describe("gemma").etag, template=before.template,
        traffic=canonical([t.model_dump(mode="json") for t in before.traffic]).decode(),
    )  # fmt: skip


def sent_since(began):
    return [name.removeprefix("ec2:") for name in sdk().called[began:] if name in CHANGES]


CHANGES = {"ec2:StopInstances", "ec2:ModifyInstanceAttribute", "ec2:StartInstances"}


def test_another_type_is_stop_change_start_once_each_and_back_again(world):
    """The configuration is what the plan was computed for; the undo is the old type."""
    before, began = world.platform.describe("gemma"), len(sdk().called)
    assert changed_type(world, order(world, TYPE)).ok is True
    after = world.platform.describe("gemma")
    assert (after.config, after.ready) == (applied(before.config, (TYPE,)), True)
    assert sent_since(began) == ["StopInstances", "ModifyInstanceAttribute", "StartInstances"]
    undo = undo_of(world, before, TYPE)
    told = world.platform.restore(undo)
    while (told := world.platform.operation(told.name)).remains:
        world.platform.restore(undo)
    world.wait()
    assert world.platform.operation(told.name).ok is True
    assert world.platform.restored("gemma", template=before.template, traffic=undo.traffic)
    assert world.platform.describe("gemma").config.instance_type == "g6.xlarge"


@pytest.mark.parametrize(
    ("code", "says"),
    [("InsufficientInstanceCapacity", "the zone has none of this type"), ("VcpuLimitExceeded", "the vCPU quota")],
)
def test_no_room_for_the_type_ends_badly_and_the_old_one_is_put_back(world, code, says):
    """It is asked once, not for ever; the instance would stand still otherwise."""
    before, one = world.platform.describe("gemma"), order(world, TYPE)
    world.platform.apply(one)
    world.wait()
    world.platform = world.open(Refusing("start_instances", code))
    first = world.platform.apply(one)
    for told in (first, world.open().operation(first.name), world.open().apply(one)):
        assert (told.done, told.ok) == (True, False)
        assert f"did not start as g6.2xlarge: {code}" in told.says
        assert says in told.says
    world.platform = world.open()
    assert world.platform.describe("gemma").ready is False
    world.platform.restore(undo_of(world, before, TYPE))
    world.wait()
    assert world.platform.find("gemma", "u1").ok is True
    assert world.platform.describe("gemma").config == before.config


@pytest.mark.parametrize("call", ["modify_instance_attribute", "start_instances"])
def test_an_instance_that_is_not_yet_as_ec2_wants_it_is_asked_again(world, call):
    """IncorrectInstanceState is a moment's word: the same order goes on, and nothing counts as failed."""
    one = order(world, TYPE)
    world.platform.apply(one)
    world.wait()
    world.platform = world.open(Refusing(call, "IncorrectInstanceState"))
    with pytest.raises(StateConflict, match="IncorrectInstanceState"):
        world.platform.apply(one)
    assert world.platform.find("gemma", "k1").remains
    world.platform = world.open()
    assert changed_type(world, one).ok is True


def by_hand(world, verb):
    """Somebody starts or stops the instance later; moto keeps the time of a launch, which EC2 moves with every start."""
    from moto.ec2.models import ec2_backends

    getattr(world.ec2, f"{verb}_instances")(InstanceIds=[world.instance])
    there = ec2_backends["123456789012"]["us-east-1"].get_instance(world.instance)
    if verb == "start":
        there.launch_time = there.launch_time.replace(year=2030)
    else:
        there._reason = "User initiated (2030-01-01 00:00:00 GMT)"
    world.wait()


START = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=1)


@pytest.mark.parametrize("action", [STOP, START, TYPE], ids=["stop", "start", "type"])
def test_who_starts_or_stops_it_after_our_call_has_the_last_word(world, action):
    """It is said, the call is not made again, and the state is read as theirs."""
    if action is START:
        world.platform.apply(order(world, STOP, key="k0"))
        world.wait()
    one = order(world, action)
    if action is TYPE:
        assert changed_type(world, one).ok is True
    else:
        world.platform.apply(one)
        world.wait()
    verb, word = ("start", "started") if action is STOP else ("stop", "stopped")
    by_hand(world, verb)
    began = len(sdk().called)
    for told in (world.platform.find("gemma", "k1"), world.open().apply(one)):
        assert (told.done, told.ok, told.remains) == (True, False, "")
        assert f"somebody {word} it since" in told.says
    assert sent_since(began) == []
    assert world.platform.describe("gemma").config.max_instances == (1 if verb == "start" else 0)


def test_a_call_that_a_read_does_not_show_yet_is_not_made_again(world):
    """EC2 tells the state of a moment ago: nobody started it, and our stop is on its way."""
    one = order(world, STOP)
    told = world.platform.apply(one)
    moved = world.platform.look("gemma")
    stale = moved.with_(instance=moved.instance.with_(state="running"))
    found = world.platform._ours(stale, "k1")
    assert (found.name, found.done, found.remains) == (told.name, False, "")


def test_without_the_right_to_the_second_tag_the_call_counts_all_the_same(world):
    """An installation whose policy is older: the stop was accepted, and that is what is told."""

    class Older(Aws):
        def change(self, region, operation, **asked):
            if any(t["Key"] == CALLED_TAG for t in asked.get("Tags", ())):
                raise PolicyRefused("it was not tagged", why="UnauthorizedOperation", hint="grant it")
            return super().change(region, operation, **asked)

    world.platform = world.open(Older(sdk))
    assert "asked to stop" in world.platform.apply(order(world, STOP)).says
    world.wait()
    assert world.platform.find("gemma", "k1").ok is True


class Refusing(Aws):
    """EC2 refuses one call in its own words."""

    def __init__(self, operation, code):
        super().__init__(sdk)
        self.refused, self.code = operation, code

    def change(self, region, operation, **asked):
        if operation != self.refused:
            return super().change(region, operation, **asked)
        from botocore.exceptions import ClientError

        error = ClientError({"Error": {"Code": self.code, "Message": "no"}}, operation)
        raise translated(error, f"{operation} failed") from error


@pytest.mark.parametrize(
    ("change", "why"),
    [({"instance_type": "g99.xlarge"}, "does not have g99.xlarge"), ({"memory_mib": 1}, "the plan was made for 8")],
)
def test_a_type_that_the_zone_lacks_or_that_is_another_is_refused_before_the_stop(world, change, why):
    """What the plan was computed for is what EC2 has, or nothing is stopped."""
    for act in (world.platform.validate, world.platform.apply):
        with pytest.raises(InputRejected, match=why):
            act(order(world, TYPE.with_(**change)))
    assert world.instance_state() == "running"


def test_a_stop_names_what_goes_on_costing(world):
    """Volumes with their sizes and Elastic IPs; what is lost with it, too."""
    address = world.ec2.allocate_address(Domain="vpc")
    world.ec2.associate_address(InstanceId=world.instance, AllocationId=address["AllocationId"])
    said = "; ".join(world.platform.describe("gemma").when_stopped)
    assert re.search(r"its volumes go on costing: vol-\w+ \(\d+ GiB gp\d\)", said), said
    assert f"its Elastic IP addresses go on costing: {address['PublicIp']}" in said
    assert "instance store disks of g6.xlarge are lost" in said
    world.platform.apply(order(world, STOP))
    world.wait()
    assert "go on costing: vol-" in world.platform.find("gemma", "k1").says  # moto forgets the address with a stop


@pytest.mark.journey
def test_hostile_values_never_reach_a_shell(world):
    """What a plan sets arrives as a word of the server or is refused; the line that a shell reads is Base64."""
    hostile = "$(touch /tmp/owned); `id` 'a' \"b\" {{ssm:parameter}} %n"
    world.platform.apply(order(world, SetEnv(name="VLLM_NOTE", value=hostile)))
    assert hostile in {e.value for e in world.platform.describe("gemma").config.env}
    for sent in world.ssm.sent:
        (line,) = sent["Parameters"]["commands"]
        assert re.fullmatch(r"exec python3 -I -S -c '[a-z0-9,;().\[\]_ ]+' [A-Za-z0-9+/=]+ [A-Za-z0-9+/=]+", line), (
            line[:200]
        )
        assert len(line) < 30_000
    for value in ("${VLLM_API_KEY}", "$VLLM_API_KEY"):
        with pytest.raises(InputRejected, match="systemd would fill it in"):
            world.platform.apply(order(world, SetFlag(name="served-model-name", value=value), key="k2"))


@pytest.mark.journey
def test_no_secret_leaves_the_instance(world):
    """Neither what is read nor what is asked of the server carries its key."""
    world.platform.measure("gemma", world.platform.describe("gemma").latest_ready_revision)
    said = json.dumps(list(world.ssm._told.values()), default=str) + json.dumps(world.ssm.sent)
    assert "sk-stays-here" not in said
    seen = world.platform.look("gemma")
    assert ["VLLM_API_KEY", None] in seen.report["env"]
    assert "sk-stays-here" not in json.dumps(seen.report)


def test_a_stop_that_nothing_would_bring_back_is_refused(world):
    """The unit is not started at boot."""
    systemd = world.folder / "bin" / "systemctl"
    systemd.write_text(
        systemd.read_text().replace("exec ", "").rstrip() + " | sed s/UnitFileState=enabled/UnitFileState=disabled/\n"
    )
    for act in (world.platform.validate, world.platform.apply):
        with pytest.raises(PolicyRefused, match="systemctl enable"):
            act(order(world, STOP))
    assert world.instance_state() == "running"


def test_the_policy_allows_the_calls_that_are_made_and_no_others(world):
    """S20: the document, the table of calls, and what a whole life of a unit really sends."""
    began = len(sdk().called)
    platform = world.open(Aws(sdk))
    platform.apply(order(world))
    world.wait()
    platform.apply(order(world, STOP, key="k2"))
    world.wait()
    start = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=1)
    platform.apply(order(world, start, key="k3"))
    world.wait()
    assert changed_type(world, order(world, TYPE, key="k4")).ok is True
    target, _ = platform.target_of("gemma")
    aws = Aws(sdk)
    system_log(aws, target.region, world.instance)
    aws.call(target.region, "describe_instance_status", InstanceIds=[world.instance])
    logs = sdk().client("logs")
    logs.create_log_group(logGroupName=world.instance)
    logs.create_log_stream(logGroupName=world.instance, logStreamName=world.instance)
    stream = stream_of(aws, target.region, world.instance, "")
    stream_entries(aws, target.region, world.instance, stream, until=datetime.now(UTC), lines=10)
    document = json.loads((ROOT / "deploy/ec2/policy.json").read_text())
    allowed = {
        a for s in document["Statement"] for a in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
    }
    by_world = {"ec2:RunInstances", "ec2:TerminateInstances", "logs:CreateLogGroup", "logs:CreateLogStream"}
    assert allowed == {c.action for c in CALLS.values()} == set(sdk().called[began:]) - by_world
    changes = {c.action for c in CALLS.values() if c.changes}
    wide = {a for s in document["Statement"] if s["Resource"] == "*" for a in s["Action"]}
    assert not changes & wide, "what changes something is allowed for named instances alone"


@pytest.mark.journey
def test_the_script_runs_on_python_3_9():
    """Amazon Linux 2023 has no newer one as python3; the packed text is the two files and nothing else of ours."""
    import ast
    import base64
    import zlib

    text = zlib.decompress(base64.b64decode(command.script())).decode()
    tree = ast.parse(text, feature_version=(3, 9))
    imported = {n.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
    imported |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
    done = subprocess.run([sys.executable, "-I", "-c", text, "e30="], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("SRE-AGENT ")
