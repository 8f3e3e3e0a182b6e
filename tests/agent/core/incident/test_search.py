"""Which incidents a search finds, and which earlier ones resemble one."""

from datetime import timedelta

import pytest

from agent.core.incident.search import IncidentSearch, most_alike, resembles
from tests.agent.entrypoints.console import scenes


@pytest.fixture
def stage():
    return scenes.a_stage()


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ({"text": "STARTUP probe"}, True),
        ({"text": "probe startup"}, True),
        ({"text": "probe banana"}, False),
        ({"text": "gemma4-26b-qat-l4-00005-k2f"}, True),
        ({"text": "VLLM_ENGINE_READY_TIMEOUT_S"}, True),
        ({"text": "   "}, True),
        ({"class_": "startup_probe_failed"}, True),
        ({"class_": "gpu_oom_weights"}, False),
        ({"since": scenes.START}, True),
        ({"since": scenes.START + timedelta(microseconds=1)}, False),
        ({"until": scenes.START}, False),
        ({"until": scenes.START + timedelta(seconds=1), "text": "780 s"}, True),
    ],
    ids=str,
)
def test_all_that_is_asked_for_must_hold(stage, search, found):
    assert IncidentSearch(**search).matches(stage.waiting()) is found


def test_the_same_service_and_signature_come_first(stage):
    other = stage.waiting("other")
    stage.clock.step(60)
    oom = stage.waiting("third", diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    own = stage.waiting("gemma", run="live")
    stage.clock.step(60)
    newest = stage.waiting("fourth")
    stage.clock.step(60)
    now = own.with_(id="inc-now", opened_at=stage.clock.now())
    assert [i.id for i in most_alike(now, (other, oom, newest, own, own), 5)] == [own.id, newest.id, other.id]
    assert most_alike(now, (other, newest, own), 1)[0].id == own.id


def test_a_replay_resembles_no_live_incident_and_the_unknown_nothing(stage):
    live, replayed = stage.waiting(), stage.waiting(run="replay-1")
    assert not resembles(live, replayed)
    assert not resembles(stage.open("a"), stage.open("b"))
    assert not resembles(live, live)
