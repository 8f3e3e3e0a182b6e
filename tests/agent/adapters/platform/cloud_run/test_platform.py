"""The Cloud Run adapter over the real client and wire: lost answers, rivals, refusals, lies, and the way back."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

from agent.adapters.platform.traffic import TAG_OF_LATEST, TAG_OF_PINNED
from agent.core.change.execution import revision_name
from agent.core.change.verification import Check
from agent.core.plan.action import Restart, SetFlag, SetScaling, SetStartupProbe, applied
from agent.core.service.serving import EFFECT_LABEL, Probe, Traffic
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.platform import LeaseOver, Operation, Order, Restore
from tests.contracts import cloud_run_world as worlds
from tests.leases import HELD, Hands, lease_end

ROOT = Path(__file__).parents[5]
SAMPLES = ROOT / "tests" / "data" / "samples"
SERVICE = "gemma4-vllm"
KEY, UNDO = "0123456789abcdef0123", "fedcba98765432100123"
LONGER = SetFlag(name="max-model-len", value="65536")
SHORTER = SetFlag(name="max-model-len", value="8192")

Fate = worlds.server.Fate


def recorded(name: str = "run_v2_service_gpu_l4.json") -> dict:
    return json.loads((SAMPLES / name).read_text())


@pytest.fixture
def world() -> Iterator:
    made = worlds.CloudRunWorld(SERVICE, recorded=recorded(), bad=("--max-model-len", "65536"))
    yield made
    made.close()


def order(platform, *actions, key: str = KEY, staged: bool = False, etag: str | None = None) -> Order:
    return Order(
        service=SERVICE,
        incident="inc-20261121-a1",
        effect_key=key,
        revision=revision_name(SERVICE, key),
        etag=etag or platform.describe(SERVICE).etag,
        actions=actions or (SHORTER,),
        staged=staged,
        lease_end=HELD,
    )


def undo_of(platform, live) -> Restore:
    return Restore(
        service=SERVICE,
        incident="inc-20261121-a1",
        effect_key=UNDO,
        revision=revision_name(SERVICE, UNDO),
        etag=platform.describe(SERVICE).etag,
        template=live.template,
        traffic=traffic_text(live),
        lease_end=HELD,
    )


def traffic_text(live) -> str:
    return canonical([t.model_dump(mode="json") for t in live.traffic]).decode()


def ended(world, platform, operation: Operation, seconds: float = 400) -> Operation:
    world.watch.go(seconds)
    return platform.operation(operation.name)


def spec(body, *, but: tuple[str, ...] = ("revision", "labels")) -> dict:
    from google.protobuf import json_format

    data = json_format.MessageToDict(body)
    return {k: v for k, v in data.items() if k not in but}


def test_a_recorded_service_is_described(world) -> None:
    """Names short, words verbatim, what the platform says beside it."""
    live = world.open().describe(SERVICE)
    assert live.latest_ready_revision == live.latest_created_revision == "gemma4-vllm-00007-abc"
    assert live.config.args[:2] == ("serve", "/mnt/models/gemma-4-12b-it-qat-w4a16")
    assert live.config.volumes[0].options == ("implicit-dirs", "metadata-cache-ttl-secs=-1")
    assert (live.config.min_instances, live.config.max_instances, live.config.concurrency) == (1, 1, 16)
    assert live.config.request_timeout_s == 3600
    assert live.config.startup_probe.budget_s == 60 + 15 * 56
    assert (live.ready, live.reconciling, live.generation) == (True, False, 7)
    assert live.traffic == (Traffic(percent=100),)


def test_a_failed_service_says_why() -> None:
    """The recorded failure: not ready, reason and message, the last ready revision still there."""
    world = worlds.CloudRunWorld(SERVICE, recorded=recorded("run_v2_service_failed.json"))
    try:
        live = world.open().describe(SERVICE)
        assert live.ready is False
        assert live.message.startswith("HEALTH_CHECK_CONTAINER_ERROR: Revision 'gemma4-vllm-00007-abc' is not ready")
        assert live.latest_ready_revision == "gemma4-vllm-00006-xyz"
    finally:
        world.close()


def test_one_update_with_exactly_the_planned_difference(world) -> None:
    """One request: the template alone, one flag changed, our name and stamp; traffic and the rest untouched."""
    platform = world.open()
    before = platform.describe(SERVICE)
    started = platform.apply(order(platform))
    assert ended(world, platform, started).ok is True
    assert len(world.stand_in.updates) == 1
    sent = world.stand_in.updates[0]
    assert list(sent.update_mask.paths) == ["template"]
    assert sent.service.etag == before.etag
    prior = spec(worlds.server.json_format.ParseDict(json.loads(before.template), type(sent.service.template)()))
    now = spec(sent.service.template)
    assert now["containers"][0]["args"] == [a if a != "32768" else "8192" for a in prior["containers"][0]["args"]]
    now["containers"][0]["args"] = prior["containers"][0]["args"]
    assert now == prior
    assert sent.service.template.revision == "gemma4-vllm-sre-01234567"
    assert dict(sent.service.template.labels) == {EFFECT_LABEL: KEY, "sre-agent-incident": "inc-20261121-a1"}


def test_every_change_is_checked_by_the_platform_first(world) -> None:
    """The dry run with the same body goes before the call."""
    platform = world.open()
    platform.apply(order(platform))
    sent = [req for name, req in world.stand_in.calls if name == "UpdateService"]
    assert [r.validate_only for r in sent] == [True, False]
    sent[0].validate_only = False
    assert sent[0] == sent[1]


LOST = {
    "unavailable": grpc.StatusCode.UNAVAILABLE,
    "deadline": grpc.StatusCode.DEADLINE_EXCEEDED,
    "internal": grpc.StatusCode.INTERNAL,
    "cancelled": grpc.StatusCode.CANCELLED,
}


@pytest.mark.parametrize("code", LOST.values(), ids=LOST)
def test_applied_but_the_answer_was_lost(world, code) -> None:
    """The change is there, once; whoever asks by the stamp gets the platform's own operation, also in a new process."""
    platform = world.open()
    one = order(platform)
    world.stand_in.fail("UpdateService", code, applied=True)
    with pytest.raises(DependencyFailed):
        platform.apply(one)
    found = world.open().find(SERVICE, KEY)
    assert found is not None
    assert found.name.startswith("projects/example-project/locations/us-central1/operations/")
    assert world.open().apply(one).name == found.name
    assert len(world.stand_in.updates) == 1
    assert ended(world, platform, found).ok is True


def test_a_lost_answer_told_as_a_conflict_finds_our_own_revision(world) -> None:
    """The client's layer tried twice: the second meets the first's etag, and the stamp tells that it is ours."""
    platform = world.open()
    world.stand_in.fail("UpdateService", grpc.StatusCode.ABORTED, "etag", applied=True)
    started = platform.apply(order(platform))
    assert (started.done, len(world.stand_in.updates)) == (False, 1)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED], ids=str)
def test_not_applied_and_no_answer_is_tried_again_with_the_same_etag(world, code) -> None:
    """No trace of the stamp: the retry makes the change, once, with the etag of the order."""
    platform = world.open()
    one = order(platform)
    world.stand_in.fail("UpdateService", code)
    with pytest.raises(DependencyFailed):
        platform.apply(one)
    assert platform.find(SERVICE, KEY) is None
    platform.apply(one)
    assert [u.service.etag for u in world.stand_in.updates] == [one.etag]


def test_a_rival_between_reading_and_writing_wins(world) -> None:
    """Somebody deploys between our dry run and our call: refused, nothing of ours is there."""
    platform = world.open()
    one = order(platform)
    world.stand_in.fail("UpdateService", grpc.StatusCode.ABORTED, "Conflict for resource: etag")
    with pytest.raises(StateConflict):
        platform.apply(one)
    assert world.stand_in.updates == []


def test_a_service_edited_by_hand_is_another_target(world) -> None:
    """Between plan and apply somebody changed one variable: target digest and etag both tell, and apply refuses."""
    platform = world.open()
    one, before = order(platform), platform.describe(SERVICE)

    def by_hand(service) -> None:
        service.template.containers[0].env[0].value = "0"

    world.stand_in.edit(world.name, by_hand)
    after = platform.describe(SERVICE)
    assert after.target.digest != before.target.digest
    with pytest.raises(StateConflict):
        platform.apply(one)
    assert world.stand_in.updates == []


def test_traffic_moved_by_hand_is_another_target_too(world) -> None:
    """The digest covers template and traffic."""
    platform = world.open()
    before = platform.describe(SERVICE).target

    def pin(service) -> None:
        service.traffic[0].type_ = 2
        service.traffic[0].revision = "gemma4-vllm-00007-abc"

    world.stand_in.edit(world.name, pin)
    assert platform.describe(SERVICE).target.digest != before.digest
    with pytest.raises(InputRejected, match="pinned"):
        platform.apply(order(platform))


def test_a_share_that_is_pinned_is_refused_before_anything_is_changed(world) -> None:
    """Half of the requests would be answered by another revision, so that no measurement could be believed."""

    def split(pb) -> None:
        pb.traffic[0].percent = 50
        pb.traffic.add(type_=2, revision="gemma4-vllm-00007-abc", percent=50)

    world.stand_in.edit(world.name, split)
    platform = world.open()
    with pytest.raises(InputRejected, match="a share of it, is pinned"):
        platform.validate(order(platform))
    assert world.stand_in.updates == []


def test_a_failed_rollout_is_put_back_byte_by_byte(world) -> None:
    """The bad template stays in the service until the prior one is back: equal but for name and stamp."""
    platform = world.open()
    before = platform.describe(SERVICE)
    failed = ended(world, platform, platform.apply(order(platform, LONGER)))
    assert (failed.done, failed.ok) == (True, False)
    assert "the container did not start" in failed.says
    assert not platform.restored(SERVICE, template=before.template, traffic=traffic_text(before))
    undo = undo_of(platform, before)
    world.stand_in.fail("UpdateService", grpc.StatusCode.UNAVAILABLE, applied=True)
    with pytest.raises(DependencyFailed):
        platform.restore(undo)
    back = world.open().restore(undo)
    assert ended(world, platform, back).ok is True
    assert platform.restored(SERVICE, template=before.template, traffic=traffic_text(before))
    assert len(world.stand_in.updates) == 2
    sent = world.stand_in.updates[1].service.template
    prior = worlds.server.json_format.ParseDict(json.loads(before.template), type(sent)())
    for message in (sent, prior):
        message.revision = ""
        message.labels.clear()
    assert sent.SerializeToString(deterministic=True) == prior.SerializeToString(deterministic=True)


def test_a_restored_template_that_carried_a_stamp_gets_the_new_one(world) -> None:
    """The second incident's prior template is our own of the first; its undo is found by its own stamp only."""
    platform = world.open()
    ended(world, platform, platform.apply(order(platform, Restart())))
    before = platform.describe(SERVICE)
    ended(world, platform, platform.apply(order(platform, LONGER, key="a" * 20)))
    ended(world, platform, platform.restore(undo_of(platform, before)))
    stamps = platform.describe(SERVICE).stamps
    assert stamps == {
        "gemma4-vllm-sre-01234567": KEY,
        "gemma4-vllm-sre-aaaaaaaa": "a" * 20,
        "gemma4-vllm-sre-fedcba98": UNDO,
    }
    assert platform.restored(SERVICE, template=before.template, traffic=traffic_text(before))


def test_a_deployment_by_hand_that_inherits_our_labels_is_not_ours(world) -> None:
    """A person deploys on top of our revision: the labels stay in the template, the effect stays where it was."""
    from google.cloud import run_v2

    platform = world.open()
    started = platform.apply(order(platform))
    ended(world, platform, started)
    client = worlds.clients_over(world.stand_in.channel()).services
    service = client.get_service(name=world.name)
    service.template.revision = ""
    service.template.max_instance_request_concurrency = 2
    client.update_service(request=run_v2.UpdateServiceRequest(service=service))
    world.watch.go(400)
    live = platform.describe(SERVICE)
    assert live.latest_ready_revision not in live.stamps
    assert live.stamps == {"gemma4-vllm-sre-01234567": KEY}
    assert platform.find(SERVICE, KEY).name == started.name


STAGED = {"latest": ((Traffic(percent=100),), TAG_OF_LATEST), "pinned": (None, TAG_OF_PINNED)}


@pytest.mark.parametrize(("traffic", "tag"), STAGED.values(), ids=STAGED)
def test_a_staged_revision_is_tagged_and_the_policy_comes_back(world, traffic, tag) -> None:
    """At 0 % with an address of its own; after the shift the traffic follows the latest only where it did before."""
    platform = world.open()
    if traffic is None:

        def pin(service) -> None:
            service.traffic[0].type_ = 2
            service.traffic[0].revision = "gemma4-vllm-00007-abc"

        world.stand_in.edit(world.name, pin)
    started = platform.apply(order(platform, staged=True))
    assert ended(world, platform, started).ok is True
    live = platform.describe(SERVICE)
    old, new = "gemma4-vllm-00007-abc", "gemma4-vllm-sre-01234567"
    assert live.traffic == (Traffic(revision=old, percent=100), Traffic(revision=new, tag=tag))
    world.stand_in.fail("UpdateService", grpc.StatusCode.UNAVAILABLE, applied=True)
    with pytest.raises(DependencyFailed):
        platform.shift(SERVICE, revision=new, etag=live.etag, effect_key="s", lease_end=HELD)
    done = platform.shift(SERVICE, revision=new, etag=live.etag, effect_key="s", lease_end=HELD)
    assert (done.done, done.ok) == (True, True)
    want = (Traffic(percent=100),) if traffic else (Traffic(revision=new, percent=100),)
    assert platform.describe(SERVICE).traffic == want
    assert len(world.stand_in.updates) == 2
    assert list(world.stand_in.updates[1].update_mask.paths) == ["traffic"]


def test_a_staged_revision_that_fails_leaves_no_tag_behind(world) -> None:
    """An orphaned tag would break the next deployment."""
    platform = world.open()
    before = platform.describe(SERVICE)
    assert ended(world, platform, platform.apply(order(platform, LONGER, staged=True))).ok is False
    ended(world, platform, platform.restore(undo_of(platform, before)))
    assert platform.describe(SERVICE).traffic == before.traffic


REFUSALS = {
    "a probe beyond the window": (
        SetStartupProbe(
            probe=Probe(kind="http", path="/health", port=8080, period_s=240, timeout_s=5, failure_threshold=8)
        ),
        InputRejected,
        "1800",
    ),
    "quota": (SetScaling(min_instances=1, max_instances=3), PolicyRefused, "requested: 3 allowed: 2"),
}


@pytest.mark.parametrize(("action", "kind", "says"), REFUSALS.values(), ids=REFUSALS)
def test_what_the_platform_refuses_is_refused_before_the_call(world, action, kind, says: str) -> None:
    """In its own words; nothing was changed."""
    platform = world.open()
    for attempt in (platform.validate, platform.apply):
        with pytest.raises(kind, match=says):
            attempt(order(platform, action))
    assert world.stand_in.updates == []


def test_without_permission_the_refusal_names_what_is_missing(world) -> None:
    """A person reads which permissions to give."""
    platform = world.open()
    one = order(platform)
    world.stand_in.denied.add("UpdateService")
    with pytest.raises(PolicyRefused, match=r"run\.services\.update"):
        platform.apply(one)


def test_who_may_not_list_operations_still_finds_the_effect(world) -> None:
    """The revision alone tells how far it is; only the platform's own name is missing."""
    platform = world.open()
    platform.apply(order(platform))
    world.stand_in.denied.add("ListOperations")
    found = platform.find(SERVICE, KEY)
    assert ended(world, platform, found).ok is True


LIES = {
    "says good, is bad": (Fate(up=False, operation="says_good"), False),
    "says bad, is good": (Fate(up=True, operation="says_bad"), True),
    "never ends, is good": (Fate(up=True, operation="never_ends"), True),
    "never ends, is bad": (Fate(up=False, operation="never_ends"), False),
    "known no more, is good": (Fate(up=True, operation="lost"), True),
    "known no more, is bad": (Fate(up=False, operation="lost"), False),
    "says good, never ends": (Fate(up=None, operation="says_good"), None),
    "says bad, never ends": (Fate(up=None, operation="says_bad"), None),
}


@pytest.mark.parametrize(("fate", "ok"), LIES.values(), ids=LIES)
def test_an_operation_is_not_believed_against_its_revision(world, fate, ok: bool | None) -> None:
    """What counts is whether the revision is ready."""
    world.fate = fate
    platform = world.open()
    told = ended(world, platform, platform.apply(order(platform)))
    assert (told.done, told.ok) == (ok is not None, ok)


def test_a_slow_start_is_still_running(world) -> None:
    """Thirteen minutes are no failure."""
    world.fate = Fate(after_s=780)
    platform = world.open()
    started = platform.apply(order(platform))
    assert ended(world, platform, started, 700).done is False
    assert ended(world, platform, started, 100).ok is True


def test_ready_then_crash_is_seen(world) -> None:
    """A revision that was ready and died is not ready: without a request to a server that is down."""
    world.fate = Fate(after_s=300, crashes_after_s=100)
    platform = world.open()
    started = platform.apply(order(platform))
    assert ended(world, platform, started, 300).ok is True
    world.watch.go(200)
    (ready,) = platform.measure(SERVICE, "gemma4-vllm-sre-01234567")
    assert (ready.check, ready.good) == (Check.READY, False)
    assert platform.describe(SERVICE).ready is False
    assert world.vllm.seen == []


def test_restart_changes_name_and_stamp_alone(world) -> None:
    """The same configuration, a new revision."""
    platform = world.open()
    before = platform.describe(SERVICE)
    ended(world, platform, platform.apply(order(platform, Restart())))
    after = platform.describe(SERVICE)
    assert after.config == applied(before.config, (Restart(),)) == before.config
    assert platform.restored(SERVICE, template=before.template, traffic=traffic_text(before))


FOREIGN = ["", "projects/p/operations/1", "x#projects/p/locations/l/services/other/revisions/r"]


@pytest.mark.parametrize("name", FOREIGN, ids=["none", "not ours", "a service that is not watched"])
def test_a_foreign_operation_is_refused(world, name: str) -> None:
    """We watch what we started, on services that we watch: nothing is even asked."""
    with pytest.raises(InputRejected):
        world.open().operation(name)
    assert world.stand_in.calls == []


def test_no_cloud_library_is_imported_until_it_is_used() -> None:
    """Start-up time is a promise: the adapter and its parts cost nothing of google or grpc."""
    parts = sorted(p.stem for p in (ROOT / "agent" / "adapters" / "platform" / "cloud_run").glob("[a-z]*.py"))
    names = (*(f"cloud_run.{part}" for part in parts), "completion")
    code = "import sys\n" + "".join(f"import agent.adapters.platform.{name}\n" for name in names)
    code += "heavy = {'google.cloud.run_v2', 'google.api_core', 'google.auth', 'google.protobuf', 'grpc', 'requests'}\n"
    code += "print(sorted(heavy & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


class PassesDuringTheCheck(Hands):
    """A clock that goes on by three minutes once Cloud Run has checked an update."""

    def __init__(self, stand_in) -> None:
        super().__init__()
        self._stand_in = stand_in

    def now(self):
        checked = any(name == "UpdateService" and req.validate_only for name, req in self._stand_in.calls)
        return self.time + timedelta(minutes=3 if checked else 0)


def test_a_lease_that_ends_during_the_dry_run_lets_nothing_be_sent(world) -> None:
    """The end is looked at after everything else, right before the call that changes the service."""
    platform = world.open()
    late = order(platform).with_(lease_end=lease_end(120, PassesDuringTheCheck(world.stand_in)))
    with pytest.raises(LeaseOver):
        platform.apply(late)
    assert [r.validate_only for name, r in world.stand_in.calls if name == "UpdateService"] == [True]
    assert world.stand_in.updates == []


def test_no_call_waits_longer_than_the_lease_lasts(world) -> None:
    """By the deadline that the server is told; with time to spare it is our own limit for a write."""
    platform = world.open()
    platform.apply(order(platform).with_(lease_end=lease_end(7)))
    checked, made = [s for name, s in world.stand_in.waits_s if name == "UpdateService"]
    assert checked > 50
    assert 1 < made < 8
