"""A revision is measured by one completion that reaches it and no other, and never told good without it."""

from collections.abc import Callable, Iterator

import pytest

from agent.adapters.platform.cloud_run.measure import address
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Check
from agent.core.service.serving import Probe, ServingConfig
from agent.errors import InputRejected
from agent.ports.platform import Order
from tests.contracts import cloud_run_world as worlds
from tests.leases import HELD

CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0",
    args=("serve", "/mnt/models/gemma", "--served-model-name", "gemma"),
    cpu=8,
    memory_mib=32768,
    accelerator="nvidia-l4",
    max_instances=1,
    concurrency=16,
    startup_probe=Probe(kind="http", path="/health", port=8080, period_s=15, timeout_s=5, failure_threshold=56),
)
OLD, NEW = "gemma-00001-abc", "gemma-sre-k1"


@pytest.fixture
def make() -> Iterator[Callable]:
    made = []

    def world(**fields):
        made.append(worlds.CloudRunWorld("gemma", CONFIG, **fields))
        return made[-1]

    yield world
    for one in made:
        one.close()


def good(world, revision: str = OLD) -> dict[Check, bool | None]:
    return {m.check: m.good for m in world.open().measure("gemma", revision)}


def rolled(world, *, staged: bool) -> None:
    platform = world.open()
    etag = platform.describe("gemma").etag
    platform.apply(
        Order(
            service="gemma",
            incident="i",
            effect_key="k1",
            revision=NEW,
            etag=etag,
            actions=(worlds_action(),),
            staged=staged,
            lease_end=HELD,
        )
    )
    world.watch.go(400)


def worlds_action():
    from agent.core.plan.action import SetConcurrency

    return SetConcurrency(concurrency=4)


def test_a_ready_revision_answers(make) -> None:
    """All four, by one completion and one look at the counters; what the speed is worth is judged elsewhere."""
    world = make()
    assert good(world) == {Check.READY: True, Check.COMPLETION: True, Check.TOKENS: True, Check.SPEED: None}
    assert [(method, path) for method, path, _, _ in world.vllm.seen] == [
        ("POST", "/v1/chat/completions"),
        ("GET", "/metrics"),
    ]
    assert world.vllm.seen[0][3]["model"] == "gemma"


def test_without_a_name_in_the_startup_flags_no_completion_is_asked_for() -> None:
    """It says so, and says nothing about the model."""
    world = worlds.CloudRunWorld("gemma", CONFIG.with_(args=("serve",)))
    try:
        found = {m.check: m for m in world.open().measure("gemma", OLD)}
        assert set(found) == {Check.READY, Check.COMPLETION}
        assert found[Check.COMPLETION].good is None
        assert found[Check.COMPLETION].says == "the startup flags name no model to ask for"
        assert world.vllm.seen == []
    finally:
        world.close()


def test_the_speed_comes_with_the_time_of_the_first_token(make) -> None:
    """Both as they were seen from outside."""
    world = make()
    world.vllm.script.pause_s = 0.02
    (speed,) = [m for m in world.open().measure("gemma", OLD) if m.check is Check.SPEED]
    assert 0.02 <= speed.first_token_s < 5
    assert 0 < speed.value < 1000


LOCKED = '{"error":"Unauthorized"}'  # vLLM 0.32, entrypoints/openai: a key other than --api-key
KEYS = {
    "no key is named": (None, None, ("services.toml names none", "api_key = 'NAME'", "SERVICE_API_KEYS")),
    "the named key is missing": ("big", None, ("holds no right one named 'big'", "big=KEY")),
    "the named key is wrong": ("big", "sk-wrong-one", ("holds no right one named 'big'", "big=KEY")),
}


@pytest.mark.parametrize(("name", "key", "says"), KEYS.values(), ids=KEYS)
def test_a_server_that_wants_its_own_key_says_what_to_set(make, name: str | None, key: str | None, says: tuple) -> None:
    """It is no verdict on the change, and a person can mend it; the key itself is never said."""
    world = make(key=key, key_name=name)
    world.vllm.script.status, world.vllm.script.body = 401, LOCKED
    answer = next(m for m in world.open().measure("gemma", OLD) if m.check is Check.COMPLETION)
    assert answer.good is None
    assert all(word in answer.says for word in says), answer.says
    assert "sk-wrong-one" not in answer.says


def test_the_platforms_own_refusal_is_told_apart(make) -> None:
    """A page of Cloud Run's front end is about IAM, not about the server's key."""
    world = make()
    world.vllm.script.status, world.vllm.script.body = 401, "<html><title>401 Unauthorized</title></html>"
    answer = next(m for m in world.open().measure("gemma", OLD) if m.check is Check.COMPLETION)
    assert (answer.good, "SERVICE_API_KEYS" in answer.says) == (None, False)


@pytest.mark.parametrize(
    ("spare", "awake", "room"),
    [(None, 0, None), (0, 0, False), (1, 0, True), (1, 2, False), (2, 2, True)],
    ids=["nobody said", "none", "one", "one for two awake", "two for two awake"],
)
def test_room_for_a_second_revision_is_what_the_owner_said(make, spare: int | None, awake: int, room) -> None:
    """The API does not tell; every instance that must be awake needs one."""
    world = make(spare=spare)

    def keep_awake(service) -> None:
        service.template.scaling.min_instance_count = awake

    world.stand_in.edit(world.name, keep_awake)
    assert world.open().describe("gemma").spare_accelerator is room


def test_a_revision_that_starts_is_not_asked(make) -> None:
    """A request to a server that is still loading would only wait."""
    world = make()
    world.fate = worlds.server.Fate(up=None)
    rolled(world, staged=False)
    assert good(world, NEW) == {Check.READY: None}
    assert world.vllm.seen == []


def test_a_staged_revision_is_asked_at_its_tag(make) -> None:
    """The service's own address would be answered by the old revision; the token is for the service all the same."""
    world = make()
    rolled(world, staged=True)
    assert good(world, NEW)[Check.COMPLETION] is True
    assert world.vllm.seen[0][1] == "/sre-new/v1/chat/completions"
    assert world.audiences == [world.vllm.url]


def test_a_revision_without_traffic_or_tag_is_not_measured(make) -> None:
    """Its successor would answer in its stead: no measurement is no success."""
    world = make()
    rolled(world, staged=False)
    assert good(world, OLD) == {Check.READY: True, Check.COMPLETION: None}
    assert world.vllm.seen == []


BAD = {
    "empty": ({"words": []}, False),
    "broken": ({"status": 500, "body": "EngineDeadError"}, False),
    "not let in": ({"status": 403}, None),
    "busy": ({"status": 429}, None),
}


@pytest.mark.parametrize(("script", "want"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_bad_and_a_closed_door_is_unknown(make, script: dict, want: bool | None) -> None:
    """Three-valued; the rest is not told."""
    world = make()
    for name, value in script.items():
        setattr(world.vllm.script, name, value)
    assert good(world) == {Check.READY: True, Check.COMPLETION: want}


@pytest.mark.parametrize(("least", "want"), [(0, None), (1, False)], ids=["may sleep", "always awake"])
def test_silence_is_a_hang_only_where_somebody_must_be_awake(make, least: int, want: bool | None) -> None:
    """A cold start of minutes looks like silence from outside."""
    world = make(timeout_s=0.2)

    def awake(service) -> None:
        service.template.scaling.min_instance_count = least

    world.stand_in.edit(world.name, awake)
    world.vllm.script.hangs = True
    assert good(world)[Check.COMPLETION] is want


def test_missing_counters_are_unknown(make) -> None:
    """Metrics that cannot be read are no proof of anything; nor is another instance's counter."""
    world = make()
    world.vllm.script.counter = None
    assert good(world)[Check.TOKENS] is None
    world.vllm.script.counter, world.vllm.script.counts = 2.0, False
    assert good(world)[Check.TOKENS] is None


def test_a_revision_that_is_not_there_is_refused(make) -> None:
    """Nothing is measured in its stead."""
    with pytest.raises(InputRejected):
        make().open().measure("gemma", "gemma-sre-none")


def test_while_traffic_moves_the_services_own_address_proves_nothing() -> None:
    """Nobody knows which revision answers just then."""
    from google.cloud import run_v2

    full = "projects/p/locations/l/services/gemma/revisions/gemma-1"
    service = run_v2.Service.pb(run_v2.Service(uri="https://gemma", latest_ready_revision=full))
    service.traffic.add(type_="TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", percent=100)
    assert address(service, "gemma-1") == "https://gemma"
    assert address(service, "gemma-0") is None
    service.reconciling = True
    assert address(service, "gemma-1") is None


NAMES = {
    "served name": (("serve", "/m", "--served-model-name", "a"), "a"),
    "its other form": (("serve", "/m", "--served_model_name=a"), "a"),
    "the path": (("serve", "/m", "--port", "1"), "/m"),
    "the flag": (("--model", "google/gemma"), "google/gemma"),
    "none": (("--port", "1"), None),
}


@pytest.mark.parametrize(("args", "want"), NAMES.values(), ids=NAMES)
def test_the_model_is_asked_for_by_the_name_it_serves(args: tuple[str, ...], want: str | None) -> None:
    """Without asking the server, which may sleep."""
    assert served_name(ServingConfig(args=args)) == want
