"""What is special about Container Apps: no etag, no list of operations, effects of two calls, least rights."""

import json
from pathlib import Path

import pytest

from agent.adapters.platform.container_apps.api import ContainerAppsApi
from agent.adapters.platform.work import work_of
from agent.core.change.verification import Check
from agent.core.plan.action import Lifecycle, LifecycleOperation, Restart, SetFlag, SetScaling
from agent.core.plan.lifecycle import NOT_THERE
from agent.core.service.serving import Probe, ServingConfig, Traffic
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.model_server import NotRunning
from agent.ports.platform import NotDeployed, Order, Restore
from tests.contracts import arm_server as arm
from tests.contracts.arm_world import ArmWorld
from tests.leases import HELD

ROLES = Path(__file__).resolve().parents[5] / "deploy" / "azure"
CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0",
    args=("--model", "m", "--max-model-len", "8192"),
    cpu=24,
    memory_mib=225280,
    accelerator="nvidia-a100-80gb",
    min_instances=1,
    max_instances=1,
    startup_probe=Probe(kind="http", path="/health", port=8080, period_s=30, timeout_s=5, failure_threshold=20),
)
SHORTER = SetFlag(name="max-model-len", value="4096")
STOP, DELETE = (Lifecycle(operation=o, confirmed="gemma") for o in (LifecycleOperation.STOP, LifecycleOperation.DELETE))
START = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=1)


@pytest.fixture
def make():
    made = []

    def start(**how):
        made.append(ArmWorld("gemma", CONFIG, **how))
        return made[-1]

    yield start
    for world in made:
        world.close()


def order(platform, *actions, key="11111111", **more):
    etag = more.pop("etag", None) or platform.describe("gemma").etag
    return Order(
        service="gemma", incident="inc-1", effect_key=key, revision=f"gemma-sre-{key[:8]}", etag=etag,
        actions=actions or (SHORTER,), lease_end=HELD, **more,
    )  # fmt: skip


def traffic_of(live):
    return canonical([t.model_dump(mode="json") for t in live.traffic]).decode()


def restore_of(platform, before):
    """The undo that puts ``before`` back."""
    return Restore(
        service="gemma", incident="inc-1", effect_key="33333333", revision="gemma-sre-33333333",
        etag=platform.describe("gemma").etag, template=before.template, traffic=traffic_of(before), lease_end=HELD,
    )  # fmt: skip


def test_an_operation_goes_on_from_its_stored_name_in_another_process(make):
    """ARM's own operation stands in the name; where ARM knows it no more, the revision's state tells all the same."""
    world = make()
    started = world.open().apply(order(world.open()))
    assert "containerappOperationResults/op-1" in started.name
    another = world.open()
    assert another.operation(started.name).ok is None
    world.watch.go(400)
    assert another.operation(started.name).ok is True
    world.arm.expired = True
    assert another.operation(started.name).ok is True


def test_a_stored_name_never_carries_our_token_elsewhere(make):
    """Whoever writes the incident database may put any path there: what is none of our subscription is not asked."""
    world = make()
    platform = world.open()
    done = platform.apply(order(platform))
    world.watch.go(400)
    aim = work_of(done.name).name.partition("#")[2]
    asked = len(world.arm.used)
    for path in (
        "https://attacker.example/subscriptions/x",
        "//attacker.example/x",
        "/subscriptions/other/providers/Microsoft.App/x",
        "/x@attacker.example",
    ):
        found = platform.operation(f"{path}#{aim}")
        assert found.ok is True
    assert len(world.arm.used) == asked
    api = ContainerAppsApi(lambda: pytest.fail("connected"), arm.SUBSCRIPTION)
    assert api.operation("https://attacker.example/") is None


def test_a_change_by_somebody_else_between_our_look_and_our_call_is_not_overwritten(make):
    """ARM keeps no etag: the version token is made of what was read, and asked again right before the call."""
    world = make()
    platform = world.open()
    late = order(platform)
    world.arm.edit("gemma", {"properties": {"template": {"terminationGracePeriodSeconds": 60}}})
    world.watch.go(400)
    with pytest.raises(StateConflict, match="the change was made for"):
        platform.apply(late)
    assert world.arm.writes == []


def test_a_stop_that_ended_between_its_calls_goes_on_with_the_second(make):
    """The stamp is a tag and changes nothing that runs, so the state that was approved still stands."""
    world = make()
    platform = world.open()
    stop, before = order(platform, STOP), platform.describe("gemma")
    world.arm.faults.append(arm.Fault("POST", "/stop", status=503, code="ServiceUnavailable"))
    with pytest.raises(DependencyFailed):
        platform.apply(stop)
    assert [w[0] for w in world.arm.writes] == ["PATCH"]
    assert platform.find("gemma", stop.effect_key) is None
    assert platform.describe("gemma").target == before.target
    assert platform.apply(stop).done is False
    assert [w[0] for w in world.arm.writes] == ["PATCH", "stop"]
    assert world.open().find("gemma", stop.effect_key).ok is True
    assert world.arm.app("gemma")["tags"]["team"] == "llm"


def test_a_start_that_ended_between_its_calls_goes_on_with_the_second(make):
    """The new revision bears the stamp while the app is still stopped; the retry starts it and makes no other."""
    world = make()
    platform = world.open()
    platform.apply(order(platform, STOP))
    start = order(platform, START, key="22222222")
    world.arm.faults.append(arm.Fault("POST", "/start"))
    with pytest.raises(DependencyFailed):
        platform.apply(start)
    assert world.arm.app("gemma")["properties"]["runningStatus"] == "Stopped"
    platform.apply(start)
    world.watch.go(400)
    assert platform.find("gemma", start.effect_key).ok is True
    assert [w[0] for w in world.arm.writes] == ["PATCH", "stop", "PATCH", "start"]
    assert "sre-agent-effect" not in world.arm.app("gemma")["tags"]


def stopped(world):
    """The adapter of an app that this agent stopped."""
    platform = world.open()
    platform.apply(order(platform, STOP))
    return platform


def test_a_start_that_was_accepted_is_waited_for_and_not_asked_for_again(make):
    """Azure takes its time: until then the app is still called stopped."""
    world = make()
    platform = stopped(world)
    start = order(platform, START, key="22222222")
    world.arm.switch_s = 120
    with pytest.raises(DependencyFailed, match="in progress"):
        platform.apply(start)
    assert platform.find("gemma", start.effect_key).remains == ""
    world.watch.go(120)
    assert platform.find("gemma", start.effect_key).remains == "the app is to be started"
    started = platform.apply(start)
    again = (world.open().operation(started.name), platform.find("gemma", start.effect_key), platform.apply(start))
    assert [(o.done, o.ok, o.remains) for o in again] == [(False, None, "")] * 3
    world.watch.go(800)
    assert world.open().operation(started.name).ok is True
    assert [w[0] for w in world.arm.writes] == ["PATCH", "stop", "PATCH", "start"]


def test_an_app_that_a_person_stopped_after_our_start_stays_stopped(make):
    """Our start was made; that it is stopped now is somebody's will, and nothing of ours remains."""
    world = make()
    platform = stopped(world)
    started = platform.apply(order(platform, START, key="22222222"))
    world.watch.go(800)
    world.arm.switch("gemma", stopped=True)
    found = world.open().operation(started.name)
    assert (found.done, found.ok, found.remains) == (True, False, "")
    assert "somebody stopped it" in found.says
    world.arm.expired = True
    found = world.open().operation(started.name)
    assert (found.done, found.ok, found.remains) == (True, None, "")


def test_the_second_half_of_a_start_is_not_made_over_somebody_elses_revision(make):
    """The first half stands with our stamp, and another template since: starting the app would start that."""
    world = make()
    platform = stopped(world)
    start = order(platform, START, key="22222222")
    world.arm.faults.append(arm.Fault("POST", "/start", status=503, code="ServiceUnavailable"))
    with pytest.raises(DependencyFailed):
        platform.apply(start)
    assert platform.find("gemma", start.effect_key).remains
    world.arm.edit("gemma", {"properties": {"template": {"terminationGracePeriodSeconds": 60}}})
    with pytest.raises(StateConflict, match="gemma--by-hand"):
        platform.apply(start)
    found = platform.find("gemma", start.effect_key)
    assert (found.done, found.ok, found.remains) == (True, False, "")
    assert [w[0] for w in world.arm.writes] == ["PATCH", "stop", "PATCH"]


def test_the_undo_of_a_start_puts_the_template_back_and_then_stops_it(make):
    """Azure refuses a stop while it still puts the template in place: the same call stops it when that has ended."""
    world = make()
    platform = stopped(world)
    before = platform.describe("gemma")
    wider = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=2)
    platform.apply(order(platform, wider, key="22222222"))
    world.watch.go(400)
    undo = restore_of(platform, before)
    first = platform.restore(undo)
    assert (first.done, first.remains) == (False, "")
    assert platform.find("gemma", undo.effect_key).remains == ""
    world.watch.go(400)
    assert world.open().operation(first.name).remains == "the app is to be stopped again"
    world.arm.switch_s = 60
    stopping = platform.restore(undo)
    assert (world.open().operation(stopping.name).ok, platform.find("gemma", undo.effect_key).remains) == (None, "")
    world.watch.go(400)
    assert world.open().operation(stopping.name).ok is True
    assert platform.restored("gemma", template=before.template, traffic=traffic_of(before))
    assert [w[0] for w in world.arm.writes] == ["PATCH", "stop", "PATCH", "start", "PATCH", "stop"]
    assert platform.find("gemma", undo.effect_key).ok is True


def test_the_second_half_of_an_undo_is_not_made_over_somebody_elses_revision(make):
    """They changed the app while our undo waited for its stop: it goes on running."""
    world = make()
    platform = stopped(world)
    before = platform.describe("gemma")
    wider = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=2)
    platform.apply(order(platform, wider, key="22222222"))
    world.watch.go(400)
    undo = restore_of(platform, before)
    platform.restore(undo)
    world.watch.go(400)
    world.arm.edit("gemma", {"properties": {"template": {"terminationGracePeriodSeconds": 60}}})
    with pytest.raises(StateConflict, match="gemma--by-hand"):
        platform.restore(undo)
    assert world.arm.app("gemma")["properties"]["runningStatus"] == "Running"


@pytest.mark.parametrize(
    "action", [SHORTER, Restart(), SetScaling(min_instances=1, max_instances=2)], ids=lambda a: a.kind
)
def test_a_stopped_app_is_started_before_it_is_changed(make, action):
    """Its new revision would come up at its next start, so nothing could tell how the change ends."""
    world = make()
    platform = stopped(world)
    for carry_out in (platform.validate, platform.apply):
        with pytest.raises(InputRejected, match="is stopped") as refused:
            carry_out(order(platform, action, key="22222222"))
        assert "sre-agent change gemma --start" in refused.value.hint
    assert [w[0] for w in world.arm.writes] == ["PATCH", "stop"]


def test_an_operation_under_way_is_waited_for_and_is_no_conflict(make):
    """Azure changes one thing of an app at a time: the next try finds the end of it."""
    world = make()
    platform = world.open()
    platform.apply(order(platform))
    second = order(platform, SetFlag(name="max-model-len", value="2048"), key="22222222")
    with pytest.raises(DependencyFailed, match="in progress"):
        platform.apply(second)
    world.watch.go(400)
    platform.apply(second)
    assert len(world.arm.writes) == 2


def test_where_no_replica_is_assigned_it_is_open_and_says_so(make):
    """A GPU that cannot be had: no failure of the change, and no end."""
    world = make()
    world.fate = arm.Fate(assigns=False)
    platform = world.open()
    started = platform.apply(order(platform))
    world.watch.go(4000)
    found = platform.operation(started.name)
    assert found.ok is None
    assert "AssigningReplica" in found.says
    assert platform.measure("gemma", "gemma-sre-11111111")[0].good is None


def test_in_single_mode_nothing_is_staged_and_the_hint_names_the_command(make):
    world = make()
    platform = world.open()
    assert platform.describe("gemma").can_stage is False
    with pytest.raises(InputRejected, match="set-mode --mode multiple"):
        platform.validate(order(platform, staged=True))


def test_a_pinned_share_of_the_traffic_refuses_a_change_in_place(make):
    """A new revision would come up and serve nobody."""
    world = make(mode="Multiple")
    world.arm.edit(
        "gemma",
        {
            "properties": {
                "configuration": {"ingress": {"traffic": [{"revisionName": "gemma--0000001", "weight": 100}]}}
            }
        },
    )
    platform = world.open()
    with pytest.raises(InputRejected, match="pinned to 'gemma--0000001'"):
        platform.apply(order(platform))
    platform.apply(order(platform, staged=True))
    world.watch.go(400)
    live = platform.describe("gemma")
    platform.shift("gemma", revision="gemma-sre-11111111", etag=live.etag, effect_key="s", lease_end=HELD)
    assert platform.describe("gemma").traffic == (Traffic(revision="gemma-sre-11111111", percent=100),)


def test_a_restore_puts_another_workload_profile_back(make):
    """It stands beside the template, and belongs to what was changed."""
    world = make()
    platform = world.open()
    before = platform.describe("gemma")
    traffic = traffic_of(before)
    move = {"kind": "set_accelerator", "accelerator": "nvidia-t4", "cpu": 8, "memory_mib": 57344}
    platform.apply(
        Order.model_validate(order(platform).model_dump(exclude={"lease_end"}) | {"actions": [move]}).with_(
            lease_end=HELD
        )
    )
    world.watch.go(400)
    assert world.arm.app("gemma")["properties"]["workloadProfileName"] == "small"
    platform.restore(restore_of(platform, before))
    world.watch.go(400)
    assert platform.restored("gemma", template=before.template, traffic=traffic)
    assert platform.describe("gemma").config == before.config


BAD = {
    "throttled": (arm.Fault("GET", "containerApps", status=429, code="TooManyRequests", message="slow", headers=(("Retry-After", "17"),)), DependencyFailed, "17 s"),
    "an expired sign-in": (arm.Fault("GET", "containerApps", status=401, code="ExpiredAuthenticationToken"), PolicyRefused, "az login"),
    "no such app": (arm.Fault("GET", "containerApps", status=404, code="ResourceNotFound"), NotDeployed, "services.toml"),
    "a broken answer": (arm.Fault("GET", "containerApps"), DependencyFailed, "tried again"),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "kind", "hint"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_typed_and_loses_nothing(make, fault, kind, hint):
    """Nothing is repeated behind our back: the next call finds everything as it was."""
    world = make()
    platform = world.open()
    before = platform.describe("gemma")
    world.arm.faults.append(fault)
    with pytest.raises(kind) as caught:
        platform.describe("gemma")
    assert hint in caught.value.hint
    assert world.arm.faults == []
    assert platform.describe("gemma") == before


def test_a_group_that_is_not_there_is_no_deleted_app(make):
    """A mistake in services.toml must not look like the end of a deletion."""
    world = make()
    with pytest.raises(InputRejected, match="ResourceGroupNotFound") as caught:
        world.open(group="other").describe("gemma")
    assert not isinstance(caught.value, NotDeployed)


def test_a_sleeping_app_is_not_woken_by_a_look(make):
    """Its server is asked by the verification alone."""
    world = make()
    platform = world.open()
    assert platform.server("gemma") is not None
    platform.apply(order(platform, SetScaling(min_instances=0, max_instances=1)))
    world.watch.go(400)
    with pytest.raises(NotRunning, match="scales to zero"):
        platform.server("gemma")
    assert world.vllm.seen == []
    assert platform.measure("gemma", "gemma-sre-11111111")[1].good is True


def test_a_revision_without_an_address_is_open(make):
    """No ingress: nobody can ask it, and that proves nothing."""
    world = make()
    world.arm.apps[world.arm._id("gemma")]["properties"]["configuration"]["ingress"].pop("fqdn")
    world.arm.fqdn = ""
    measured = world.open().measure("gemma", "gemma--0000001")
    assert [(m.check, m.good) for m in measured] == [(Check.READY, True), (Check.COMPLETION, None)]


def test_a_creation_without_an_environment_is_refused(make):
    world = make()
    platform = world.open()
    platform._apps["gemma"] = platform._apps["gemma"].with_(environment=None)
    create = Lifecycle(operation=LifecycleOperation.CREATE, config=CONFIG)
    with pytest.raises(InputRejected, match="names no environment"):
        platform.validate(order(platform, create, etag=NOT_THERE))


def whole_life(world):
    """Every call that the adapter makes, once; at the end the app is gone."""
    platform = world.open()
    platform.server("gemma")
    before = platform.describe("gemma")
    done = platform.apply(order(platform))
    world.watch.go(400)
    platform.operation(done.name), platform.measure("gemma", "gemma-sre-11111111")
    platform.apply(order(platform, staged=True, key="22222222"))
    world.watch.go(400)
    etag = platform.describe("gemma").etag
    platform.shift("gemma", revision="gemma-sre-22222222", etag=etag, effect_key="s", lease_end=HELD)
    platform.apply(order(platform, STOP, key="33333333"))
    platform.apply(order(platform, START, key="44444444"))
    world.watch.go(400)
    assert platform.describe("gemma").ready is True
    assert before.uid == platform.describe("gemma").uid
    return platform


def lifecycle(world, platform):
    platform.apply(order(platform, DELETE, key="55555555"))
    world.watch.go(400)
    create = Lifecycle(operation=LifecycleOperation.CREATE, config=CONFIG)
    made = platform.apply(order(platform, create, key="66666666", etag=NOT_THERE))
    world.watch.go(400)
    assert platform.operation(made.name).ok is True


def actions(name):
    return set(json.loads((ROLES / name).read_text())["Actions"])


@pytest.mark.slow
def test_the_role_holds_what_is_called_and_nothing_else(make):
    """S20: with it everything works, none of it is unused, and creating and deleting need the other role."""
    world = make(mode="Multiple")
    operator, more = actions("role.json"), actions("role-lifecycle.json")
    statuses = {"Microsoft.App/locations/containerappOperationStatuses/read"}  # only a creation is polled by its status
    world.arm.allowed = set(operator)
    platform = whole_life(world)
    assert world.arm.used == operator - statuses
    with pytest.raises(PolicyRefused, match="containerApps/delete"):
        platform.apply(order(platform, DELETE, key="55555555"))
    world.arm.allowed = operator | more
    lifecycle(world, platform)
    assert world.arm.used == operator | more


@pytest.mark.parametrize("missing", sorted(actions("role.json")))
def test_without_any_one_of_them_something_is_refused_and_the_hint_names_the_role(make, missing):
    """Each is needed; a refusal is typed and changes nothing else."""
    world = make(mode="Multiple")
    world.arm.allowed = actions("role.json") | actions("role-lifecycle.json")
    world.arm.allowed -= {missing}
    with pytest.raises(SreError) as caught:
        lifecycle(world, whole_life(world))
    assert isinstance(caught.value, PolicyRefused)
    assert "deploy/azure/role.json" in caught.value.hint
