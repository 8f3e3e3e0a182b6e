"""One suite for every platform: what apply, find, restore, shift and describe promise."""

import json
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from agent.adapters import platform as platform_adapters
from agent.adapters.platform.rehearsal.platform import RehearsalPlatform
from agent.adapters.platform.rehearsal.scenario import Scenario
from agent.core.change.verification import Check
from agent.core.plan.action import (
    NO_SERVICE,
    Action,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetLivenessProbe,
    SetModel,
    SetProgressDeadline,
    SetScaling,
    SetStartupProbe,
    SetTerminationGrace,
    applied,
)
from agent.core.plan.lifecycle import NOT_THERE, absent
from agent.core.service.serving import EnvVar, Live, Probe, ServingConfig
from agent.core.value import canonical
from agent.errors import InputRejected, StateConflict
from agent.ports.platform import LeaseOver, NotDeployed, Operation, Order, Platform, Restore
from tests.contracts import vllm_http
from tests.contracts.arm_world import ArmWorld
from tests.contracts.cloud_run_world import CloudRunWorld
from tests.contracts.ec2_world import Ec2World
from tests.contracts.host_world import HostWorld
from tests.contracts.kube_world import KubeWorld
from tests.contracts.tpu_world import TpuWorld
from tests.leases import HELD, lease_end
from tests.watch import Watch
from tools.platform_abilities import ABILITIES

SERVICE = "gemma"
CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0",
    args=("serve", "/mnt/models/gemma", "--max-model-len=8192", "--gpu-memory-utilization", "0.90"),
    env=(EnvVar(name="HF_HUB_OFFLINE", value="1"), EnvVar(name="VLLM_API_KEY", secret="vllm-api-key")),
    cpu=8,
    memory_mib=32768,
    accelerator="nvidia-l4",
    max_instances=1,
    concurrency=16,
    startup_probe=Probe(kind="http", path="/health", port=8080, period_s=15, timeout_s=5, failure_threshold=56),
)
GOOD = SetFlag(name="max-model-len", value="4096")
BAD = SetFlag(name="max-model-len", value="65536")


TOO_LONG = SetStartupProbe(
    probe=Probe(kind="http", path="/health", port=8080, initial_delay_s=900, period_s=60, timeout_s=5)
)

LONGER_PERIOD = SetStartupProbe(probe=Probe(kind="http", path="/health", port=8080, period_s=30, timeout_s=5))

STOP = Lifecycle(operation=LifecycleOperation.STOP)
DELETE = Lifecycle(operation=LifecycleOperation.DELETE, confirmed=SERVICE)


@dataclass
class World:
    """A platform that runs CONFIG, on which GOOD comes up and BAD fails; ``wait`` lets rollouts end.

    ``stages``: a revision can come up without traffic; ``probes``: a start has a probe.
    """

    platform: Platform
    wait: Callable[[], None]
    again: Callable[[], Platform]
    close: Callable[[], None] = field(default=lambda: None)
    config: ServingConfig = CONFIG
    first: str = "gemma-00001-abc"
    more: tuple[Action, ...] = (SetScaling(min_instances=1, max_instances=2), SetConcurrency(concurrency=4))
    refused: Action = TOO_LONG
    stages: bool = True
    probes: bool = True
    fails: str = "the container did not start"
    forgets: bool = False  # the platform lists no operations, so its own name of one is lost with the answer
    creates: bool = True
    deletes: bool = True
    deletable: Callable[[], None] = field(default=lambda: None)
    script: vllm_http.Script | None = None  # of the server, where the platform runs no program of its own


def rehearsal(tmp_path: Path) -> World:
    watch = Watch()
    scenario = Scenario.model_validate(
        {
            "service": SERVICE,
            "platform": "cloud_run",
            "title": "contract",
            "source": "made for the contract suite",
            "live": {"revision": "gemma-00001-abc", "ready": True, "config": CONFIG.model_dump(mode="json")},
            "free": ["concurrency", "max_instances", "env FAKE_COUNTS_NONE"],
            "outcome": [
                {
                    "name": "shorter",
                    "result": "came_up",
                    "after_s": 300,
                    "when": {"flag max-model-len": "= 4096"},
                    "source": "made",
                    "measured": [{"check": "completion", "good": True, "says": "answered"}],
                },
                {
                    "name": "without its key",
                    "result": "came_up",
                    "after_s": 300,
                    "when": {"env VLLM_API_KEY": "absent"},
                    "source": "made",
                    "measured": [{"check": "completion", "good": True, "says": "answered"}],
                },
                {
                    "name": "longer",
                    "result": "failed",
                    "after_s": 300,
                    "when": {"flag max-model-len": "= 65536"},
                    "source": "made",
                    "message": "the container did not start",
                },
            ],
        }
    )

    def open_it() -> RehearsalPlatform:
        return RehearsalPlatform(tmp_path / "world.db", {SERVICE: scenario}, watch)

    def wait() -> None:
        watch.time += timedelta(seconds=400)

    return World(platform=open_it(), wait=wait, again=open_it)


def cloud_run(tmp_path: Path) -> World:
    """The real client over the real wire, against a server that keeps Cloud Run's rules; answers come from loopback."""
    wire = CloudRunWorld(SERVICE, CONFIG, bad=("--max-model-len", "65536"))
    return World(
        platform=wire.open(),
        wait=lambda: wire.watch.go(400),
        again=wire.open,
        close=wire.close,
        script=wire.vllm.script,
    )


def host(tmp_path: Path) -> World:
    """Real processes of this machine: a program that starts, serves and fails like vLLM."""
    own = HostWorld(tmp_path, SERVICE, CONFIG)
    return World(
        platform=own.platform,
        wait=own.wait,
        again=own.open,
        close=own.close,
        config=own.config,
        first="gemma-1",
        more=(SetEnv(name="VLLM_CPU_KVCACHE_SPACE", value="2"),),
        refused=SetScaling(min_instances=1, max_instances=2),
        stages=False,
        fails="the server ended with exit code 1 before it served",
    )


def ec2_container(tmp_path: Path) -> World:
    """The same, with a Docker container that no unit starts, behind an engine on its own wire."""
    return ec2(tmp_path, bare=True)


def ec2(tmp_path: Path, *, bare: bool = False) -> World:
    """The real SDK over the wire: EC2 by moto, a unit whose script really runs, and a server that is started by it."""
    own = Ec2World(tmp_path, SERVICE, CONFIG, bare=bare)
    live = own.platform.describe(SERVICE)
    return World(
        platform=own.platform,
        wait=own.wait,
        again=own.open,
        close=own.close,
        config=live.config,
        first=str(live.latest_ready_revision),
        more=(SetEnv(name="VLLM_CPU_KVCACHE_SPACE", value="2"),),
        refused=SetScaling(min_instances=1, max_instances=2),
        stages=False,
        probes=False,
        creates=False,
        deletes=False,
        fails=f"the {'container' if bare else 'unit'} ended with exit code 1",
    )


def kubernetes(request: pytest.FixtureRequest) -> World:
    """A real control plane, a Deployment with an accelerator to spare; the kubelet is played."""
    probe = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 15, "failureThreshold": 56}
    secret = {"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "vllm", "key": "api-key"}}}
    container = {
        "env": [{"name": "HF_HUB_OFFLINE", "value": "1"}, secret],
        "startupProbe": probe | {"timeoutSeconds": 5},
        "ports": [{"containerPort": 8080}],
    }
    cluster = request.getfixturevalue("kube_cluster")(gpus=2)
    own = KubeWorld(cluster, SERVICE, CONFIG.args, container=container)
    live = own.platform.describe(SERVICE)
    return World(
        platform=own.platform,
        wait=own.wait,
        again=own.open,
        close=own.close,
        config=live.config,
        first=str(live.latest_ready_revision),
        more=(SetScaling(min_instances=2, max_instances=2), SetProgressDeadline(seconds=1200)),
        refused=SetStartupProbe(probe=Probe(kind="http", path="/health", port=70000)),
        stages=False,
        fails="CrashLoopBackOff: vllm of pod",
        script=own.vllm.script,
    )


def container_apps(mode: str) -> Callable[[Path], World]:
    """The official client over a real socket, against a stand-in of ARM; answers come from loopback."""

    def made(tmp_path: Path) -> World:
        config = CONFIG.with_(
            accelerator="nvidia-a100-80gb",
            concurrency=None,
            startup_probe=Probe(kind="http", path="/health", port=8080, period_s=30, timeout_s=5, failure_threshold=28),
        )
        wire = ArmWorld(SERVICE, config, bad=("--max-model-len", "65536"), mode=mode)
        return World(
            platform=wire.open(),
            wait=lambda: wire.watch.go(400),
            again=wire.open,
            close=wire.close,
            config=config,
            first="gemma--0000001",
            more=(SetScaling(min_instances=1, max_instances=2), SetTerminationGrace(seconds=120)),
            stages=mode == "Multiple",
            script=wire.vllm.script,
            fails="ContainerCrashing",
            forgets=True,
        )

    return made


def tpu_vm(tmp_path: Path) -> World:
    """The real client over the real wire; the node's real script, whose containers are processes of this machine."""
    key = EnvVar(name="VLLM_API_KEY", secret="vllm-api-key")
    config = CONFIG.with_(cpu=None, memory_mib=None, concurrency=None, env=(CONFIG.env[0], key))
    own = TpuWorld(tmp_path, SERVICE, config)
    live = own.platform.describe(SERVICE)
    return World(
        platform=own.platform,
        wait=own.wait,
        again=own.open,
        close=own.close,
        config=live.config,
        first="gemma-1",
        more=(SetEnv(name="VLLM_TPU_BUCKET", value="2"),),
        refused=SetScaling(min_instances=1, max_instances=2),
        stages=False,
        fails="the container ended with exit code 1 before it served",
        creates=False,
        deletable=own.suspend,
    )


WORLDS = {
    "container_apps": container_apps("Single"),
    "container_apps_multiple": container_apps("Multiple"),
    "rehearsal": rehearsal,
    "cloud_run": cloud_run,
    "host": host,
    "tpu_vm": tpu_vm,
    "ec2": ec2,
    "ec2_container": ec2_container,
}
KUBE = pytest.param("kubernetes", marks=(pytest.mark.kube, pytest.mark.xdist_group("kube")))


EC2 = {name: pytest.param(name, marks=pytest.mark.ec2) for name in ("ec2", "ec2_container")}


@pytest.fixture(params=[*(EC2.get(name, name) for name in sorted(WORLDS)), KUBE])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = kubernetes(request) if request.param == "kubernetes" else WORLDS[request.param](tmp_path)
    yield made
    made.close()


def order(world: World, *actions: object, key: str = "k1", staged: bool = False, etag: str | None = None) -> Order:
    return Order(
        service=SERVICE,
        incident="inc-1",
        effect_key=key,
        revision=f"gemma-sre-{key}",
        etag=etag or world.platform.describe(SERVICE).etag,
        actions=actions or (GOOD,),
        staged=staged,
        lease_end=HELD,
    )


def traffic_json(world: World) -> str:
    return canonical([t.model_dump(mode="json") for t in world.platform.describe(SERVICE).traffic]).decode()


def ended(world: World, operation: Operation) -> Operation:
    world.wait()
    return world.platform.operation(operation.name)


def name_of(world: World, operation: Operation | None) -> str:
    """An operation's name, without the part that only the answer to the call tells where the platform lists none."""
    assert operation is not None
    return operation.name.partition("#")[2] if world.forgets else operation.name


def test_describe_after_apply_equals_what_the_actions_say(world: World) -> None:
    """The platform makes of the actions what core makes of them, and touches nothing else."""
    actions = (
        GOOD,
        SetFlag(name="enforce-eager", value=""),
        *((LONGER_PERIOD,) if world.probes else ()),
        *world.more,
    )
    before = world.platform.describe(SERVICE)
    world.platform.apply(order(world, *actions))
    after = world.platform.describe(SERVICE)
    assert after.config == applied(before.config, actions)
    assert after.uid == before.uid
    assert after.generation > before.generation
    assert after.etag != before.etag


def test_the_same_order_twice_is_one_change(world: World) -> None:
    """A retry with the etag of the first try finds the first try, whatever became of the service since."""
    one = order(world)
    first = world.platform.apply(one)
    generation = world.platform.describe(SERVICE).generation
    assert name_of(world, world.platform.apply(one)) == name_of(world, first)
    world.wait()
    again = world.platform.apply(one)
    assert (name_of(world, again), again.done, again.ok) == (name_of(world, first), True, True)
    assert world.platform.describe(SERVICE).generation == generation
    assert list(world.platform.describe(SERVICE).stamps.values()) == ["k1"]


def test_a_stale_etag_is_refused(world: World) -> None:
    """The service changed since the etag was read, by another effect: nothing happens."""
    stale = world.platform.describe(SERVICE).etag
    world.platform.apply(order(world, key="k1"))
    before = world.platform.describe(SERVICE)
    with pytest.raises(StateConflict):
        world.platform.apply(order(world, BAD, key="k2", etag=stale))
    assert world.platform.describe(SERVICE) == before
    assert world.platform.find(SERVICE, "k2") is None


def test_a_foreign_revision_of_that_name_is_a_conflict(world: World) -> None:
    """A revision of the wanted name without our stamp is somebody else's."""
    world.platform.apply(order(world, key="k1"))
    foreign = order(world, BAD, key="k2").with_(revision="gemma-sre-k1")
    with pytest.raises(StateConflict):
        world.platform.apply(foreign)


def test_an_effect_is_found_by_its_stamp(world: World) -> None:
    """The answer was lost: the stamp leads back to the operation, also after both sides were started again."""
    assert world.platform.find(SERVICE, "k1") is None
    started = world.platform.apply(order(world))
    found = world.again().find(SERVICE, "k1")
    assert found is not None
    assert name_of(world, found) == name_of(world, started)
    assert world.again().describe(SERVICE).stamps == {"gemma-sre-k1": "k1"}


def test_an_operation_runs_then_ends_well(world: World) -> None:
    """While a start runs nobody knows how it ends; then the new revision is the latest ready one."""
    started = world.platform.apply(order(world))
    assert (started.done, started.ok) == (False, None)
    live = world.platform.describe(SERVICE)
    assert live.reconciling
    assert live.ready is None
    assert live.latest_ready_revision == world.first
    assert (ended(world, started).done, ended(world, started).ok) == (True, True)
    live = world.platform.describe(SERVICE)
    assert (live.ready, live.reconciling) == (True, False)
    assert live.latest_ready_revision == live.latest_created_revision == "gemma-sre-k1"


def test_a_failed_start_leaves_the_traffic_and_keeps_the_bad_template(world: World) -> None:
    """The last ready revision goes on serving; the next change would inherit what failed."""
    finished = ended(world, world.platform.apply(order(world, BAD)))
    assert (finished.done, finished.ok) == (True, False)
    assert world.fails in finished.says
    live = world.platform.describe(SERVICE)
    assert live.ready is False
    assert live.latest_ready_revision == world.first
    assert live.latest_created_revision == "gemma-sre-k1"
    assert "--max-model-len" in live.config.args
    assert live.config == applied(world.config, (BAD,))


def test_restore_puts_the_prior_template_back_byte_by_byte(world: World) -> None:
    """But for the revision's name and the stamp; doing it twice is one change."""
    before = world.platform.describe(SERVICE)
    traffic = traffic_json(world)
    ended(world, world.platform.apply(order(world, BAD)))
    assert not world.platform.restored(SERVICE, template=before.template, traffic=traffic)
    undo = Restore(
        service=SERVICE,
        incident="inc-1",
        effect_key="u1",
        revision="gemma-sre-u1",
        etag=world.platform.describe(SERVICE).etag,
        template=before.template,
        traffic=traffic,
        lease_end=HELD,
    )
    first = world.platform.restore(undo)
    assert name_of(world, world.platform.restore(undo)) == name_of(world, first)
    assert ended(world, first).ok is True
    after = world.platform.describe(SERVICE)
    assert world.platform.restored(SERVICE, template=before.template, traffic=traffic)
    assert (after.config, after.traffic) == (before.config, before.traffic)
    assert after.stamps["gemma-sre-u1"] == "u1"
    assert after.latest_ready_revision == "gemma-sre-u1"


def test_restored_sees_one_changed_byte(world: World) -> None:
    """A template that differs in one value is not restored, nor is other traffic."""
    live = world.platform.describe(SERVICE)
    other = live.template.replace("8192", "8193")
    assert other != live.template
    assert world.platform.restored(SERVICE, template=live.template, traffic=traffic_json(world))
    assert not world.platform.restored(SERVICE, template=other, traffic=traffic_json(world))
    elsewhere = json.dumps([{"revision": world.first, "percent": 100, "tag": None}])
    assert not world.platform.restored(SERVICE, template=live.template, traffic=elsewhere)


def test_a_restore_with_a_stale_etag_is_refused(world: World) -> None:
    """Undoing follows the same rule as changing."""
    before = world.platform.describe(SERVICE)
    traffic = traffic_json(world)
    world.platform.apply(order(world))
    undo = Restore(
        service=SERVICE,
        incident="inc-1",
        effect_key="u1",
        revision="gemma-sre-u1",
        etag=before.etag,
        template=before.template,
        traffic=traffic,
        lease_end=HELD,
    )
    with pytest.raises(StateConflict):
        world.platform.restore(undo)


def test_a_staged_revision_gets_no_traffic_until_the_shift(world: World) -> None:
    """First it comes up beside the old one, then all traffic goes to it, once; where there is no room, it is refused."""
    if not world.stages:
        with pytest.raises(InputRejected):
            world.platform.apply(order(world, staged=True))
        return
    ended(world, world.platform.apply(order(world, staged=True)))
    live = world.platform.describe(SERVICE)
    assert {t.revision for t in live.traffic if t.percent} == {world.first}
    first = world.platform.shift(SERVICE, revision="gemma-sre-k1", etag=live.etag, effect_key="s1", lease_end=HELD)
    world.wait()
    again = world.platform.shift(SERVICE, revision="gemma-sre-k1", etag=live.etag, effect_key="s1", lease_end=HELD)
    assert name_of(world, again) == name_of(world, first)
    live = world.platform.describe(SERVICE)
    serving = {t.revision or live.latest_ready_revision for t in live.traffic if t.percent}
    assert serving == {"gemma-sre-k1"}
    assert sum(t.percent for t in live.traffic) == 100


def test_validate_changes_nothing_and_refuses_what_apply_would(world: World) -> None:
    """An initial delay beyond the platform's limit is refused in words; a good change passes silently."""
    before = world.platform.describe(SERVICE)
    world.platform.validate(order(world))
    with pytest.raises(InputRejected):
        world.platform.validate(order(world, world.refused))
    assert world.platform.describe(SERVICE) == before


def test_measuring_tells_ready_starting_and_failed_apart(world: World) -> None:
    """Ready is None while it starts, True when it serves, False when it failed."""
    started = world.platform.apply(order(world))
    assert ready(world, "gemma-sre-k1") is None
    ended(world, started)
    assert ready(world, "gemma-sre-k1") is True
    ended(world, world.platform.apply(order(world, BAD, key="k2")))
    assert ready(world, "gemma-sre-k2") is False


def test_a_counter_without_our_tokens_is_unknown_and_never_bad(world: World) -> None:
    """An answer came, so what the counter says otherwise is of another instance, or late: no reason to roll back."""
    stands_still = SetEnv(name="FAKE_COUNTS_NONE", value="1")
    if world.script is not None:
        world.script.counter, world.script.counts = 0, False
    assert ended(world, world.platform.apply(order(world, GOOD, stands_still))).ok is True
    found = {m.check: m.good for m in world.platform.measure(SERVICE, "gemma-sre-k1")}
    assert found[Check.COMPLETION] is True
    assert found.get(Check.TOKENS) is None


def test_a_counter_with_our_tokens_is_good(world: World, request: pytest.FixtureRequest) -> None:
    """It begins at 0 with the start, so at least what we were given stands there."""
    assert ended(world, world.platform.apply(order(world))).ok is True
    found = {m.check: m.good for m in world.platform.measure(SERVICE, "gemma-sre-k1")}
    assert found.get(Check.TOKENS) is (None if "rehearsal" in request.node.name else True)


def ready(world: World, revision: str) -> bool | None:
    newest = [m for m in world.platform.measure(SERVICE, revision) if m.check is Check.READY]
    return newest[-1].good


def test_a_restart_makes_a_new_revision_of_the_same_configuration(world: World) -> None:
    """Nothing differs but name and stamp."""
    before = world.platform.describe(SERVICE)
    assert ended(world, world.platform.apply(order(world, Restart()))).ok is True
    after = world.platform.describe(SERVICE)
    assert after.config == before.config
    assert after.latest_ready_revision == "gemma-sre-k1"


def test_an_unknown_service_is_refused(world: World) -> None:
    """A service that the platform does not have is the caller's mistake."""
    with pytest.raises(InputRejected):
        world.platform.describe("somebody-else")


def start_again(world: World) -> Lifecycle:
    """The start that a stopped service is given, with the instances that it had."""
    resumes = world.platform.describe(SERVICE).resumes_with
    assert resumes is not None
    return Lifecycle(operation=LifecycleOperation.START, min_instances=resumes[0], max_instances=resumes[1])


def create(world: World) -> Lifecycle:
    """A creation of what the world runs, but for its secrets."""
    plain = tuple(e for e in world.config.env if e.secret is None)
    config = world.config.with_(env=plain, image=world.config.image or CONFIG.image)
    return Lifecycle(operation=LifecycleOperation.CREATE, config=config)


def refuses_creation(world: World) -> bool:
    """Whether this platform creates nothing: then it says so, and how a person does it."""
    if world.creates:
        return False
    one = order(world, create(world), key="k3", etag=NOT_THERE)
    for carry_out in (world.platform.validate, world.platform.apply):
        with pytest.raises(InputRejected) as refused:
            carry_out(one)
        assert refused.value.hint.startswith("create it yourself: ")
    return True


def restore_of(world: World, template: str, traffic: str) -> Restore:
    return Restore(
        service=SERVICE,
        incident="inc-1",
        effect_key="u1",
        revision="gemma-sre-u1",
        etag=world.platform.describe(SERVICE).etag,
        template=template,
        traffic=traffic,
        lease_end=HELD,
    )


def is_gone(world: World) -> bool:
    try:
        world.platform.describe(SERVICE)
    except NotDeployed:
        return True
    return False


@pytest.mark.parametrize("action", [STOP, SetScaling(min_instances=0, max_instances=0)], ids=lambda a: a.kind)
def test_a_stopped_service_serves_nothing_and_is_stopped_once(world: World, action: Action) -> None:
    """Nothing is asked for twice, the configuration stays but for its instances, and the stamp leads back."""
    before = world.platform.describe(SERVICE)
    one = order(world, action)
    first = world.platform.apply(one)
    finished = ended(world, first)
    assert (finished.done, finished.ok) == (True, True)
    live = world.platform.describe(SERVICE)
    assert live.config == applied(before.config, (action,))
    assert (live.ready, live.reconciling) == (False, False)
    assert live.resumes_with == (before.config.min_instances, before.config.max_instances)
    assert name_of(world, world.platform.apply(one)) == name_of(world, first)
    found = world.again().find(SERVICE, "k1")
    assert found is not None
    assert (name_of(world, found), found.ok) == (name_of(world, first), True)
    assert world.platform.describe(SERVICE).generation == live.generation
    assert before.uid == live.uid


def test_a_stop_with_a_stale_etag_is_refused(world: World) -> None:
    """A stop follows the same rule as any other change."""
    stale = world.platform.describe(SERVICE).etag
    world.platform.apply(order(world, key="k1"))
    world.wait()
    with pytest.raises(StateConflict):
        world.platform.apply(order(world, STOP, key="k2", etag=stale))
    assert world.platform.describe(SERVICE).config.max_instances != 0


def test_a_start_gives_the_instances_back_and_is_a_revision_to_measure(world: World) -> None:
    """What was stopped comes up again as it was, and carries the stamp of its start."""
    before = world.platform.describe(SERVICE)
    ended(world, world.platform.apply(order(world, STOP)))
    assert ended(world, world.platform.apply(order(world, start_again(world), key="k2"))).ok is True
    live = world.platform.describe(SERVICE)
    assert (live.config, live.ready, live.resumes_with) == (before.config, True, None)
    assert live.latest_ready_revision == "gemma-sre-k2"
    assert live.stamps["gemma-sre-k2"] == "k2"
    assert ready(world, "gemma-sre-k2") is True


def test_a_stop_is_undone_and_a_start_too(world: World) -> None:
    """The prior template stands again, with as many instances as before; of a start with none."""
    before, traffic = world.platform.describe(SERVICE), traffic_json(world)
    ended(world, world.platform.apply(order(world, STOP)))
    stopped = world.platform.describe(SERVICE)
    assert not world.platform.restored(SERVICE, template=before.template, traffic=traffic)
    assert ended(world, world.platform.restore(restore_of(world, before.template, traffic))).ok is True
    assert world.platform.restored(SERVICE, template=before.template, traffic=traffic)
    assert world.platform.describe(SERVICE).config == before.config
    again = restore_of(world, stopped.template, traffic).with_(effect_key="u2", revision="gemma-sre-u2")
    first = world.platform.restore(again)
    assert name_of(world, world.platform.restore(again)) == name_of(world, first)
    assert ended(world, first).ok is True
    assert world.platform.restored(SERVICE, template=stopped.template, traffic=traffic)
    assert world.platform.describe(SERVICE).config == stopped.config


def test_a_deleted_service_is_not_found(world: World) -> None:
    """A deletion of another state is refused; the one that was asked for is done when the platform has no service."""
    if not world.deletes:
        with pytest.raises(InputRejected):
            world.platform.apply(order(world, DELETE))
        assert not is_gone(world)
        return
    stale = world.platform.describe(SERVICE).etag
    ended(world, world.platform.apply(order(world, key="k1")))
    world.deletable()
    with pytest.raises(StateConflict):
        world.platform.apply(order(world, DELETE, key="k2", etag=stale))
    assert not is_gone(world)
    world.platform.validate(order(world, DELETE, key="k2"))
    assert not is_gone(world)
    finished = ended(world, world.platform.apply(order(world, DELETE, key="k2")))
    assert (finished.done, finished.ok) == (True, True)
    assert is_gone(world)
    assert world.platform.restored(SERVICE, template="", traffic="[]")
    with pytest.raises(NotDeployed):
        world.platform.find(SERVICE, "somebody's")


def test_a_service_is_created_once_with_the_stamp_of_its_effect(world: World) -> None:
    """It comes up as it was asked for; a retry finds it, and another creation is a conflict."""
    if refuses_creation(world):
        return
    ended(world, world.platform.apply(order(world, DELETE)))
    creation = create(world)
    one = order(world, creation, key="k3", etag=NOT_THERE)
    world.platform.validate(one)
    assert is_gone(world)
    first = world.platform.apply(one)
    assert name_of(world, world.platform.apply(one)) == name_of(world, first)
    assert ended(world, first).ok is True
    live = world.platform.describe(SERVICE)
    assert live.config == applied(NO_SERVICE, (creation,))
    assert (live.ready, live.latest_ready_revision) == (True, "gemma-sre-k3")
    assert live.stamps["gemma-sre-k3"] == "k3"
    assert live.etag != NOT_THERE
    assert live.target != absent(SERVICE, live.platform).target
    with pytest.raises(StateConflict):
        world.platform.apply(order(world, creation, key="k4", etag=NOT_THERE))


def test_what_a_creation_made_is_removed_again(world: World) -> None:
    """The roll-back of a creation leaves nothing, once, and only in the state that it was ordered for."""
    if refuses_creation(world):
        return
    ended(world, world.platform.apply(order(world, DELETE)))
    stale = ended(world, world.platform.apply(order(world, create(world), key="k3", etag=NOT_THERE)))
    assert stale.ok is True
    undo = restore_of(world, "", traffic_json(world))
    with pytest.raises(StateConflict):
        world.platform.restore(undo.with_(etag='"another"'))
    assert not world.platform.restored(SERVICE, template="", traffic="[]")
    assert ended(world, world.platform.restore(undo)).ok is True
    assert is_gone(world)
    assert world.platform.restored(SERVICE, template="", traffic="[]")


def test_nothing_is_sent_once_the_lease_is_over(world: World) -> None:
    """A worker that stood still decided for a state that another one may have closed; the same order is good later."""
    before, traffic, over = world.platform.describe(SERVICE), traffic_json(world), lease_end(0)
    for action in (GOOD, STOP, *((DELETE,) if world.creates else ())):
        late = order(world, action, key="late").with_(lease_end=over)
        with pytest.raises(LeaseOver):
            world.platform.apply(late)
    assert world.platform.describe(SERVICE) == before
    assert world.platform.find(SERVICE, "late") is None
    assert ended(world, world.platform.apply(order(world))).ok is True
    changed, undo = world.platform.describe(SERVICE), restore_of(world, before.template, traffic)
    with pytest.raises(LeaseOver):
        world.platform.restore(undo.with_(lease_end=over))
    assert world.platform.describe(SERVICE) == changed
    assert world.platform.find(SERVICE, "u1") is None
    assert ended(world, world.platform.restore(undo)).ok is True
    assert world.platform.restored(SERVICE, template=before.template, traffic=traffic)


def test_nothing_is_created_or_removed_again_once_the_lease_is_over(world: World) -> None:
    """A creation follows the same rule, and so does its roll-back."""
    if refuses_creation(world):
        return
    ended(world, world.platform.apply(order(world, DELETE)))
    creation, over = order(world, create(world), key="k3", etag=NOT_THERE), lease_end(0)
    with pytest.raises(LeaseOver):
        world.platform.apply(creation.with_(lease_end=over))
    assert is_gone(world)
    assert ended(world, world.platform.apply(creation)).ok is True
    undo = restore_of(world, "", traffic_json(world))
    with pytest.raises(LeaseOver):
        world.platform.restore(undo.with_(lease_end=over))
    assert not is_gone(world)
    assert world.platform.find(SERVICE, "u1") is None


def test_traffic_is_not_shifted_once_the_lease_is_over(world: World) -> None:
    """Where a revision can be brought up beside the old one, it stays without traffic."""
    if not world.stages:
        pytest.skip("nothing is brought up beside it here")
    ended(world, world.platform.apply(order(world, staged=True)))
    live = world.platform.describe(SERVICE)
    with pytest.raises(LeaseOver):
        world.platform.shift(
            SERVICE, revision="gemma-sre-k1", etag=live.etag, effect_key="s1", lease_end=lease_end(-0.001)
        )
    assert world.platform.describe(SERVICE).traffic == live.traffic


SAMPLES: dict[str, Action] = {
    "flags": GOOD,
    "variables": SetEnv(name="VLLM_LOGGING_LEVEL", value="DEBUG"),
    "model": SetModel(model="google/gemma-3-1b-it"),
    "startup probe": SetStartupProbe(probe=Probe(kind="http", path="/health", port=8080, period_s=30, timeout_s=5)),
    "liveness probe": SetLivenessProbe(probe=None),
    "instances": SetScaling(min_instances=2, max_instances=2),
    "concurrency": SetConcurrency(concurrency=4),
    "instance type": SetInstanceType(
        instance_type="g6.2xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=8, memory_mib=32_768
    ),
    "termination grace": SetTerminationGrace(seconds=60),
    "progress deadline": SetProgressDeadline(seconds=1200),
    "restart": Restart(),
    "stop": STOP,
    "delete": DELETE,
}
READS: dict[str, Callable[[Live], object]] = {
    "image": lambda live: live.config.image,
    "CPU and memory": lambda live: live.config.cpu and live.config.memory_mib,
    "accelerator": lambda live: live.config.accelerator,
    "instances": lambda live: live.config.max_instances is not None,
    "concurrency": lambda live: live.config.concurrency,
    "startup probe": lambda live: live.config.startup_probe,
    "address": lambda live: live.url,
    "who changed it": lambda live: live.changed_by,
}


def accepts(world: World, action: Action, *, staged: bool = False) -> bool:
    """Whether the adapter would carry it out."""
    try:
        world.platform.validate(order(world, action, staged=staged))
    except InputRejected:
        return False
    return True


def kind_of(world: str) -> str:
    """Return the adapter of a world."""
    return world.removesuffix("_multiple").removesuffix("_container")


def test_what_is_said_of_it_is_what_it_does(world: World, request: pytest.FixtureRequest) -> None:
    """docs/platforms.md is written from this: what it reads and changes, whether it stages, and whether it creates."""
    name = request.node.callspec.params["world"]
    said = ABILITIES[kind_of(name)]
    live = world.platform.describe(SERVICE)
    of_container = {"image"} if name == "ec2_container" else set()  # a unit's program has none
    assert {*said.reads, *of_container} == {what for what, read in READS.items() if read(live)}
    assert sorted(said.changes) == [name for name, action in sorted(SAMPLES.items()) if accepts(world, action)]
    assert (
        accepts(world, GOOD, staged=True) is world.stages is (said.stages and (world.stages or not said.stages_where))
    )
    assert said.creates is world.creates


def test_every_adapter_is_held_to_what_is_said_of_it() -> None:
    """A new one needs its row and its place in this suite."""
    adapters = {found.name for found in pkgutil.iter_modules(platform_adapters.__path__) if found.ispkg}
    assert adapters == set(ABILITIES) == {kind_of(name) for name in WORLDS} | {"kubernetes"}
