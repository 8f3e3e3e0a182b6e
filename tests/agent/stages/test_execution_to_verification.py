"""A verdict rests on measurements; none of them is no success."""

from datetime import timedelta

import pytest

from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Measurement, Verdict
from agent.core.incident.incident import CorrelatedSignal
from agent.core.intake.signal import End, Signal, Source, Waiting
from agent.core.plan.action import SetConcurrency, SetStrategy
from agent.core.service.serving import Strategy
from agent.ports.store import Change
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.execution_to_verification import execution_to_verification
from agent.stages.shared.outcome import StageOutcome
from agent.stages.watch_operation import watch_operation
from tests.agent.stages.conftest import SERVICE

RECREATE = SetStrategy(strategy=Strategy(kind="Recreate"))


@pytest.fixture
def up(bench):
    """A change that came up."""
    bench.approved()
    bench.run(begin_execution)
    bench.run(call_platform)
    bench.platform.ends("apply", ok=True)
    bench.run(watch_operation, as_tick=True)
    return bench


def named(signal):
    """How intake names the first of its kind on the incident."""
    about = {"signal": signal.key, "at": signal.at, "revision": signal.revision, "line": signal.text}
    return CorrelatedSignal(**about, class_="quota_exceeded", reason="not weighed yet")


def test_what_answers_for_the_whole_window_recovered(up):
    up.good()
    assert up.run(execution_to_verification, as_tick=True) is StageOutcome.WAITING
    up.clock.step(600)
    assert up.run(execution_to_verification, as_tick=True) is StageOutcome.NOTED
    assert up.now().verification.verdict is Verdict.RECOVERED


def test_what_could_not_be_measured_is_inconclusive(up):
    up.clock.step(600)
    up.run(execution_to_verification, as_tick=True)
    assert up.now().verification.verdict is Verdict.INCONCLUSIVE


def test_a_wrong_answer_is_enough_at_once(up):
    wrong = Measurement(check=Check.COMPLETION, good=False, says="empty answer", at=up.clock.now())
    up.platform.measured = (wrong,)
    up.run(execution_to_verification, as_tick=True)
    assert (up.now().verification.verdict, up.now().verification.why) == (Verdict.NOT_RECOVERED, "empty answer")


SAID = {
    "before a change of the strategy": (RECREATE, -5, None),
    "after it": (RECREATE, 5, Verdict.NOT_RECOVERED),
    "of a new template at any time": (SetConcurrency(concurrency=2), -5, Verdict.NOT_RECOVERED),
}


@pytest.mark.parametrize(("action", "after_s", "verdict"), SAID.values(), ids=SAID)
def test_what_a_revision_said_before_the_change_is_no_failure_of_the_change(up, action, after_s, verdict):
    """Where the template stays, the platform calls the revision as before; its old trouble is why the change was made."""
    now = up.now()
    at = now.effect(EffectKind.APPLY).intended_at + timedelta(seconds=after_s)
    told = Signal(
        key="k", source=Source.PLATFORM_LOG, service=SERVICE, platform="kubernetes", revision="svc-5d4f", at=at,
        text="FailedScheduling: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
    )  # fmt: skip
    native = now.execution.with_(revision_native="svc-5d4f")
    changed = now.with_(execution=native, plan=now.plan.with_(actions=(action,)), correlated=(named(told),))
    up.executor.store.commit(Change(incident=changed, signals=(told,)))
    up.good()
    up.run(execution_to_verification, as_tick=True)
    assert up.now().verification.verdict is verdict


@pytest.mark.parametrize(("after_s", "verdict"), [(0, None), (1, Verdict.NOT_RECOVERED)])
@pytest.mark.parametrize("action", [RECREATE, SetConcurrency(concurrency=2)], ids=["template kept", "new template"])
def test_what_a_new_server_waited_for_until_it_was_ready_is_no_failure(up, action, after_s, verdict):
    """A node that is added takes minutes, and the scheduler says so in new words each time that the nodes change."""
    now = up.now()
    waited = Signal(
        key="k", source=Source.PLATFORM_LOG, service=SERVICE, platform="kubernetes", revision="svc-5d4f",
        at=now.verification.ready_at + timedelta(seconds=after_s), waiting=Waiting.FOR_A_PLACE,
        text="FailedScheduling: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    )  # fmt: skip
    native = now.execution.with_(revision_native="svc-5d4f")
    changed = now.with_(execution=native, plan=now.plan.with_(actions=(action,)), correlated=(named(waited),))
    up.executor.store.commit(Change(incident=changed, signals=(waited,)))
    up.good()
    up.run(execution_to_verification, as_tick=True)
    assert up.now().verification.verdict is verdict


HUB = "requests.exceptions.ReadTimeout: (host='huggingface.co', port=443): Read timed out. (read timeout=10)"
REGISTRY = "Failed to pull image: toomanyrequests: You have reached your pull rate limit"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
PORT = "connect to 127.0.0.1:8000 failed: Connection refused"
DEAD = f"[core.py:1] EngineCore encountered a fatal error.\n[core.py:1] {HUB}"
LINES = {
    "the hub, until it was ready": (HUB, 0, {}, None),
    "the hub, afterwards": (HUB, 5, {}, Verdict.NOT_RECOVERED),
    "the registry, until it was ready": (REGISTRY, 0, {}, None),
    "its port, until it was ready": (PORT, 0, {}, None),
    "memory, until it was ready": (OUT_OF_MEMORY, 0, {}, Verdict.NOT_RECOVERED),
    "an engine that died of the hub": (DEAD, 0, {}, Verdict.NOT_RECOVERED),
    "the hub, and its process ended": (HUB, 0, {"end": End(exit_code=1)}, Verdict.NOT_RECOVERED),
}


def verify_after(up, text, after_s, said, **also):
    now = up.now()
    at = now.verification.ready_at + timedelta(seconds=after_s)
    about = {"source": Source.APP_LOG, "service": SERVICE, "platform": "cloud_run"}
    line = Signal(key="k", revision=now.execution.revision_after, at=at, text=text, **about, **said)
    changed = now.with_(correlated=(*now.correlated, named(line)), **also)
    up.executor.store.commit(Change(incident=changed, signals=(line,)))
    up.clock.step(10)
    up.good()
    up.run(execution_to_verification, as_tick=True)


@pytest.mark.parametrize(("text", "after_s", "said", "verdict"), LINES.values(), ids=LINES)
def test_what_was_tried_again_until_it_was_ready_does_not_undo_a_change(up, text, after_s, said, verdict):
    """Undoing a good change costs another start; a download that failed once says nothing against it."""
    verify_after(up, text, after_s, said)
    assert up.now().verification.verdict is verdict


def test_what_the_incident_is_about_has_come_back_also_where_it_was_tried_again(up):
    verify_after(up, HUB, 0, {}, diagnosis=up.now().diagnosis.with_(class_="network_timeout"))
    assert up.now().verification.verdict is Verdict.NOT_RECOVERED


@pytest.mark.parametrize(("names", "verdict"), [(63, None), (64, Verdict.NOT_RECOVERED)], ids=["room left", "full"])
def test_signals_are_read_where_the_incident_may_not_name_their_revision(up, names, verdict):
    """The first signal of a revision is named on the incident while there is room; each poll reads the rest if need be."""
    now = up.now()
    said = {"source": Source.APP_LOG, "service": SERVICE, "platform": "cloud_run", "at": up.clock.now()}
    old = tuple(named(Signal(key=f"k{n}", revision="svc-old", text=f"line {n}", **said)) for n in range(names))
    new = Signal(
        key="k", revision=now.execution.revision_after, text="torch.OutOfMemoryError: CUDA out of memory.", **said
    )
    up.executor.store.commit(Change(incident=now.with_(correlated=old), signals=(new,)))
    up.good()
    up.run(execution_to_verification, as_tick=True)
    assert up.now().verification.verdict is verdict
