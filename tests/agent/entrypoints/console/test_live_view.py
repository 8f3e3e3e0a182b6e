"""Live progress: what platform and log say beside what is stored; asked for seldom, and by one at a time."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.decision.decision import Choice
from agent.core.service.serving import Live
from agent.entrypoints.console.live_view import KEPT_S, LiveView
from agent.errors import DependencyFailed
from agent.ports.logs import InstanceLog, LogLine
from agent.ports.platform import Operation
from agent.ports.stage_context import Owner
from tests.agent.entrypoints.console.scenes import CONFIG, LONGER


class Platform:
    """Describes one service that is starting."""

    def __init__(self):
        self.asked, self.error, self.gate, self.message = 0, None, None, "Deploying <b>revision</b>"

    def describe(self, service):
        self.asked += 1
        if self.gate is not None:
            self.gate[0].set()
            self.gate[1].wait(10)
        if self.error is not None:
            raise self.error
        config = CONFIG.with_(startup_probe=LONGER.probe)
        named = {
            "service": service,
            "platform": "cloud_run",
            "uid": "u",
            "generation": 6,
            "etag": "e",
            "template": "{}",
        }
        more = {"latest_created_revision": "r-6", "message": self.message}
        return Live.model_validate(named | more | {"config": config})

    def operation(self, name):
        return Operation(name=name, done=False, ok=None, says="waiting for the startup probe")


class Logs:
    """The log of the new revision: twelve lines, the last with a secret."""

    def instance_log(self, service, *, revision, instance, until, limit=2000):
        lines = [f"shard {n} loaded" for n in range(11)] + ["token hf_abcdefghijklmnopqrstuvwxyz0123456789"]
        told = tuple(LogLine(at=until, text=line) for line in lines)
        return InstanceLog(service=service, revision=revision, instance=instance, lines=told, complete=True)


@pytest.fixture
def platform():
    return Platform()


@pytest.fixture
def world(stage, platform):
    return replace(stage.world, platform_of=lambda _: platform, logs=Logs())


@pytest.fixture
def applying(stage):
    return stage.applying(stage.said(stage.waiting(), Choice.APPROVE))


def test_the_platform_the_probe_and_the_last_lines_are_shown(stage, world, applying):
    seen = LiveView(world).of(applying, stage.clock.step(300))
    assert seen.look.conditions == ("r-6: starting", "Deploying <b>revision</b>", "waiting for the startup probe")
    assert seen.look.lines[0] == "shard 4 loaded"
    assert len(seen.look.lines) == 8
    assert "hf_abc" not in "".join(seen.look.lines)
    assert "5 of 63 attempts" in seen.probe
    assert seen.progress.steps[1].expected_s == pytest.approx(664.24 + 98.93)


def test_what_another_condition_says_too_is_said_once(stage, world, platform, applying):
    """A simulated platform adds to each message that it is one."""
    platform.message = "startup probe"
    seen = LiveView(world).of(applying, stage.clock.step(300))
    assert seen.look.conditions == ("r-6: starting", "waiting for the startup probe")


def test_a_rehearsal_is_expected_as_much_sooner_as_it_runs_faster(stage, world, applying):
    seen = LiveView(world, faster=60).of(applying, stage.clock.now())
    assert seen.progress.steps[1].expected_s == pytest.approx((664.24 + 98.93) / 60)


def test_many_readers_cost_one_question_every_few_seconds(stage, world, platform, applying):
    at = [0.0]
    view = LiveView(world, monotonic=lambda: at[0])
    for _ in range(20):
        view.of(applying, stage.clock.now())
    assert platform.asked == 1
    at[0] = KEPT_S
    view.of(applying, stage.clock.now())
    assert platform.asked == 2


def test_a_page_that_shows_a_later_second_alone_is_not_read_anew(stage, world, applying):
    """A browser asks for the mark every two seconds, and reads the whole page for another one."""
    view, began = LiveView(world, monotonic=lambda: 0.0), applying.execution.effects[0].intended_at
    marks = [view.of(applying, began + timedelta(seconds=n)).mark for n in (30, 32, 44, 46)]
    assert len(set(marks[:3])) == 1
    assert marks[3] != marks[0]
    verifying = stage.verifying(applying)
    assert view.of(verifying, began + timedelta(seconds=30)).mark not in marks


def test_a_platform_that_hangs_holds_one_thread_only(stage, world, platform, applying):
    """Everybody else sees at once what is stored."""
    reached, go_on = threading.Event(), threading.Event()
    platform.gate = (reached, go_on)
    view = LiveView(world)
    first = threading.Thread(target=view.of, args=(applying, stage.clock.now()))
    first.start()
    assert reached.wait(10)
    assert view.of(applying, stage.clock.now()).look.conditions == ()
    go_on.set()
    first.join(10)
    assert view.of(applying, stage.clock.now()).look.conditions[0] == "r-6: starting"
    assert platform.asked == 1


def test_what_does_not_answer_is_named(stage, world, platform, applying):
    platform.error = DependencyFailed("the service was not described", why="the API timed out", hint="wait")
    seen = LiveView(world).of(applying, stage.clock.now())
    assert seen.look.note == "The platform did not answer: the API timed out."
    assert seen.progress.at == 2


def test_the_deployed_console_asks_no_platform(stage, world, platform, applying):
    """In the cloud it may read databases and nothing else."""
    seen = LiveView(replace(world, owner=Owner.INCIDENT)).of(applying, stage.clock.now())
    assert platform.asked == 0
    assert (seen.progress.at, "does not ask the platform" in seen.look.note) == (2, True)
