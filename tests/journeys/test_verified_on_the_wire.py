"""What a change was worth, measured on Cloud Run's own wire: against the need, the prediction and the start-up log."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agent.adapters.logs.file import FileLogs, timed_lines
from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Rollout
from agent.entrypoints.cli.commands.replay import incident_json
from agent.entrypoints.pubsub.handlers import OBSERVE_ATTEMPTS
from agent.entrypoints.service import Ticker, handlers
from agent.errors import DependencyFailed
from agent.ports.clock import Clock
from agent.ports.logs import InstanceLog
from agent.ports.logs import Logs as InstanceLogs
from agent.ports.stage_context import Owner
from agent.presentation.terminal_text import lines
from tests.contracts import cloud_run_world as worlds

ROOT = Path(__file__).resolve().parents[2]
PROBE = "gemma4-26b-l4-startup-probe"
QUEUE = "gemma4-26b-l4-queue"


# What vLLM 0.22 prints, line by line; the figures of the cache are made up, those of the weights were recorded.
PRINTED = (
    "(APIServer pid=1) INFO 11-21 10:00:00 [utils.py:306] vLLM API server version 0.22.1\n"
    "(EngineCore pid=372) INFO 11-21 10:10:00 [gpu_model_runner.py:5150] Model loading took 15.62 GiB memory and 664.5 s\n"
    "(EngineCore pid=372) INFO 11-21 10:11:00 [gpu_worker.py:420] Available KV cache memory: 3.02 GiB\n"
    "(EngineCore pid=372) INFO 11-21 10:11:00 [kv_cache_utils.py:1620] GPU KV cache size: 113,552 tokens\n"
    "(EngineCore pid=372) INFO 11-21 10:11:00 [kv_cache_utils.py:1625] Maximum concurrency for 16,384 tokens per "
    "request: 6.93x\n"
    "(EngineCore pid=372) INFO 11-21 10:12:00 [gpu_model_runner.py:5400] Graph capturing finished in 9 secs, took "
    "0.06 GiB\n"
)


@pytest.fixture
def begun(journey: Callable, tmp_path: Path) -> Iterator[Callable]:
    """Begins an example whose platform is the wire; a new revision's log says what ``printed`` holds.

    The owner needs one token a second where a test says nothing else, so that a busy machine is fast enough.
    """
    made = []

    def begin(
        example: str = PROBE, *, ready: bool = False, printed: str = PRINTED, need: float = 1, **of_world: object
    ):
        def on_the_wire(settings, clock) -> RuntimeEnvironment:
            scenario = load_scenario(ROOT / "examples" / example / "scenario.toml")
            body = worlds.body_of(scenario.service, scenario.live.config, ready=ready)
            made.append(worlds.CloudRunWorld(scenario.service, recorded=body, watch=clock, **of_world))
            platform = made[-1].open()
            return RuntimeEnvironment(
                platform_of=lambda name: platform if name == scenario.service else None,
                logs=Logs(open_environment(settings, read_services(settings), clock).logs, printed, clock),
            )

        watched = (ROOT / "examples" / example / "services.toml").read_text()
        services = tmp_path / "services.toml"
        services.write_text(watched.replace("tokens_per_s = 20", f"tokens_per_s = {need}"))
        return journey(example, environment=on_the_wire, services=services), made[-1]

    yield begin
    for world in made:
        world.close()


class Logs:
    """The recorded logs, and those of revisions that we make; ``read`` says which were asked for."""

    def __init__(self, recorded: InstanceLogs, printed: str, clock: Clock) -> None:
        self._recorded, self._printed, self._clock = recorded, printed, clock
        self.read: list[str] = []

    def instance_log(self, service: str, *, revision: str | None, instance, until, limit: int = 2000):
        if revision is None or "-sre-" not in revision:
            return self._recorded.instance_log(service, revision=revision, instance=instance, until=until, limit=limit)
        self.read.append(revision)
        found = timed_lines(self._printed, since=self._clock.now())
        log = InstanceLog(service=service, revision=revision, instance=None, lines=found, complete=True)
        return FileLogs(lambda _: (log,)).instance_log(
            service, revision=revision, instance=None, until=max((f.at for f in found), default=until)
        )


def asked(told):
    return told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)


def ended(told, *, also: tuple[Phase, ...] = ()):
    for _ in range(200):
        told.go(60, step=60)
        found = told.incidents()[0]
        if found.ended or found.phase in also:
            return found
    raise AssertionError(f"not ended: {found.phase} {found.ended_why}")


def approved(told):
    plan = asked(told).plan
    told.answer(plan.id)
    return plan


def verdict_of(told, world, *, after_s: float = 787.2):
    """Approve the first plan and go on until it is judged."""
    world.fate = worlds.server.Fate(up=True, after_s=after_s)
    approved(told)
    for _ in range(200):
        told.go(60, step=60)
        found = told.incidents()[0]
        if found.verification is not None and found.verification.verdict is not None:
            return found
    raise AssertionError(f"no verdict: {found.phase}")


def test_the_start_up_log_is_read_back_and_kept_beside_the_prediction(begun: Callable) -> None:
    """Weights, cache, concurrency and graphs as printed, with their errors; enough for a row of known start-ups."""
    told, world = begun()
    done = verdict_of(told, world)
    seen = incident_json(done)["observed"]
    assert (seen["model"], seen["accelerator"], seen["vllm"]) == (
        "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
        "nvidia-l4",
        "0.22.1",
    )
    assert "--max-model-len=16384" in seen["flags"]
    wanted = {"weights_gib": 15.62, "available_kv_gib": 3.02, "kv_tokens": 113_552, "max_concurrency": 6.93}
    assert seen["observed"].items() >= {**wanted, "cuda_graph_gib": 0.06}.items()
    assert abs(seen["off"]["weights_gib"]) < 0.015
    assert seen["off"]["kv_tokens"] == pytest.approx(seen["predicted"]["kv_tokens"] / 113_552 - 1, abs=1e-4)
    assert set(seen["predicted"]) == set(seen["off"]) == set(seen["observed"])
    assert "decode_tokens_per_s" in seen["observed"]
    shown = "\n".join(lines(done, now=told.clock.now()))
    assert "start-up   weights (GiB): 15.62, predicted 15." in shown
    assert json.loads(json.dumps(incident_json(done))) == incident_json(done)


class Closed:
    """Logs that their reader may not see."""

    def __init__(self) -> None:
        self.asked = 0

    def instance_log(self, *_: object, **__: object):
        self.asked += 1
        raise DependencyFailed("the log was not read", why="permission denied", hint="nothing to do")


def test_only_the_function_that_diagnoses_reads_the_log_and_it_does_so_once(begun: Callable) -> None:
    """Who measures has no right to; a log without figures changes nothing about the verdict."""
    told, world = begun(printed="nothing that anybody compares\n")
    worlds_of, closed = told.installation.contexts, Closed()
    worlds_of[Owner.TICK] = replace(worlds_of[Owner.TICK], logs=closed)
    done = verdict_of(told, world)
    assert worlds_of[Owner.INCIDENT].logs.read == [done.execution.revision_after]
    assert closed.asked == 0
    assert (done.verification.verdict, done.verification.observed) == (Verdict.RECOVERED, None)
    assert incident_json(done)["observed"] is None


def test_a_log_that_cannot_be_read_is_given_up_and_holds_nothing_up(begun: Callable) -> None:
    """It is tried a few times, nothing is quarantined, and the incident is resolved without it."""
    told, world = begun()
    plan = asked(told).plan
    closed = Closed()
    told.installation.contexts[Owner.INCIDENT] = replace(told.installation.contexts[Owner.INCIDENT], logs=closed)
    told.work = told.installation.worker(handlers(told.installation), threads=1).run_due
    world.fate = worlds.server.Fate(up=True, after_s=787.2)
    told.answer(plan.id)
    done = ended(told)
    told.go(3600, step=120)
    assert (done.phase, done.verification.observed) == (Phase.RESOLVED, None)
    assert 1 < closed.asked <= OBSERVE_ATTEMPTS
    assert told.installation.quarantine.rows() == ()


def test_slower_than_predicted_and_fast_enough_is_resolved_and_said(begun: Callable) -> None:
    """Some sixteen tokens a second: more than the one that is needed, far less than the 36 to 82 that were computed."""
    told, world = begun()
    world.vllm.script.pause_s = 0.06
    done = verdict_of(told, world)
    assert done.verification.latest(Check.SPEED).good is True
    assert done.verification.latest(Check.PREDICTION).good is False
    assert done.verification.verdict is Verdict.RECOVERED
    over = ended(told)
    assert (over.phase, "slower than predicted" in over.ended_why) == (Phase.RESOLVED, True)
    assert "prediction: deviates - slower than predicted" in "\n".join(lines(over, now=told.clock.now()))


def test_slower_than_needed_is_not_recovered_and_put_back(begun: Callable) -> None:
    """Five tokens a second where the owner needs twenty."""
    told, world = begun(need=20)
    world.vllm.script.pause_s = 0.2
    done = verdict_of(told, world)
    assert done.verification.verdict is Verdict.NOT_RECOVERED
    assert "20 are needed" in done.verification.why
    ended(told, also=(Phase.ASKED,))
    assert len(world.stand_in.updates) == 2


def test_a_needed_speed_that_nobody_measured_is_no_success(begun: Callable) -> None:
    """An answer of one token tells no speed."""
    told, world = begun()
    world.vllm.script.words = ["one"]
    done = verdict_of(told, world)
    assert done.verification.verdict is Verdict.INCONCLUSIVE
    assert "not measured: speed (the answer was too short" in done.verification.why


def test_a_server_with_a_key_that_nobody_named_says_so_before_and_after(begun: Callable) -> None:
    """The plan warns; the verdict is inconclusive and names what to set."""
    told, world = begun(key=None)
    world.vllm.script.status, world.vllm.script.body = 401, '{"error":"Unauthorized"}'

    def with_key(service) -> None:
        service.template.containers[0].env.add(name="VLLM_API_KEY", value="sk-canary-1234567890")

    world.stand_in.edit(world.name, with_key)
    assert any("services.toml names none (api_key)" in note for note in asked(told).plan.notes)
    done = verdict_of(told, world)
    assert done.verification.verdict is Verdict.INCONCLUSIVE
    assert "SERVICE_API_KEYS" in done.verification.why


def test_a_key_that_the_server_says_back_is_kept_nowhere(begun: Callable) -> None:
    """Not in the state, not in the timeline, not in what people are shown; nor is a stranger's secret of a known form."""
    canary, other = "plain-canary-of-no-known-form", "hf_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
    told, world = begun(key=canary, key_name="big")
    world.vllm.script.status, world.vllm.script.body = 500, f"who is {canary} or {other}?"
    done = verdict_of(told, world)
    store = told.installation.store
    said = [done.model_dump_json(), "\n".join(lines(done, now=told.clock.now()))]
    said += [event.model_dump_json() for event in store.timeline(done.id)]
    assert "[our key]" in said[0]
    assert not any(secret in text for text in said for secret in (canary, other))
    sent = [headers for _, path, headers, _ in world.vllm.seen if path.endswith("completions")]
    assert {h["Authorization"] for h in sent} == {f"Bearer {canary}"}


def test_what_the_platform_would_refuse_is_refused_before_anything_is_stored(begun: Callable) -> None:
    """REFUSED with Cloud Run's words, then another plan or a person; never the same again, and no update."""
    told, world = begun()
    first = asked(told).plan
    world.stand_in.gpus_allowed = 0
    told.answer(first.id)
    found = ended(told, also=(Phase.ASKED,))
    timeline = told.installation.store.timeline(found.id)
    refused = [event.what for event in timeline if event.phase is Phase.REFUSED]
    assert len(refused) >= 1
    assert "the platform would refuse the change" in refused[0]
    assert "quota" in refused[0].lower()
    assert world.stand_in.updates == []
    assert found.phase is Phase.ESCALATED or found.plan.proposal != first.proposal
    assert Phase.APPLYING not in {event.phase for event in timeline}


@pytest.mark.parametrize(("spare", "rollout"), [(None, Rollout.IN_PLACE), (1, Rollout.STAGED)], ids=["unknown", "one"])
def test_a_spare_accelerator_takes_the_way_by_a_tag(begun: Callable, spare: int | None, rollout: Rollout) -> None:
    """Measured at its tag while the old revision serves, then the traffic; without one in place, said beforehand."""
    told, world = begun(QUEUE, ready=True, spare=spare)
    world.fate = worlds.server.Fate(up=True, after_s=300)
    plan = approved(told)
    assert plan.rollout is rollout
    assert any("replaced in place" in reason for reason in plan.risk_reasons) is (rollout is Rollout.IN_PLACE)
    done = ended(told)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    masks = [list(update.update_mask.paths) for update in world.stand_in.updates]
    asked_at = {path for _, path, _, _ in world.vllm.seen if path.endswith("completions")}
    shifted = done.execution.effect(EffectKind.SHIFT)
    if rollout is Rollout.STAGED:
        assert masks == [["template", "traffic"], ["traffic"]]
        first = world.stand_in.updates[0].service.traffic
        assert [(t.percent, bool(t.tag)) for t in first] == [(100, False), (0, True)]
        assert asked_at == {"/sre-new/v1/chat/completions"}
        assert shifted is not None
    else:
        assert masks == [["template"]]
        assert asked_at == {"/v1/chat/completions"}
        assert shifted is None
    after = world.open().describe(world.service)
    assert [(t.revision, t.percent) for t in after.traffic] == [(None, 100)]


def test_a_good_service_is_asked_once_a_poll_however_often_the_tick_comes(begun, monkeypatch):
    """Ten minutes, a tick every 2.5 s as `watch` has it: a completion every ten seconds, though none of them is news."""
    told, world = begun()
    world.fate = worlds.server.Fate(up=True, after_s=100)
    approved(told)
    platform = told.installation.environment.platform_of(told.incidents()[0].service)
    asked_at, measure = [], platform.measure

    def counted(*args: object) -> object:
        asked_at.append(told.clock.now())
        return measure(*args)

    monkeypatch.setattr(platform, "measure", counted)
    ticker = Ticker(told.installation, every_s=2.5)
    while not told.incidents()[0].ended:
        ticker.tick()
        told.work()
        told.clock.step(2.5)
    assert told.incidents()[0].phase is Phase.RESOLVED
    assert {(b - a).total_seconds() for a, b in pairwise(asked_at)} == {10}
    assert len(asked_at) == 61
