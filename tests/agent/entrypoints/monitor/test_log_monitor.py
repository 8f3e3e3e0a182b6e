"""Which containers are followed, from when on, and what is told of their lines."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from agent.app import build_app_in_memory
from agent.core.service.services import parse_services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.monitor import log_monitor
from agent.entrypoints.monitor.log_monitor import LogMonitor
from agent.errors import DependencyFailed
from agent.ports.cluster import PrintedLine
from agent.ports.store import Query
from agent.settings import read_settings
from tests.waiting import until

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
DEAD = (
    "(APIServer pid=1) ERROR 11-22 10:00:01 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
    "encountered an issue. See stack trace (above) for the root cause."
)
SERVICES = parse_services(
    {"service": [{"name": "gemma", "platform": "kubernetes", "namespace": "llm", "workload": "deployment/vllm",
                  "model": "google/gemma-3-27b-it", "accelerator": "nvidia-l4", "owner": "console"}]}
)  # fmt: skip
(SERVICE,) = SERVICES.services


class Held:
    """Container logs that a test lets speak."""

    def __init__(self):
        self.followed, self.tells, self.since, self.ended = [], {}, {}, threading.Event()

    def follow(self, container, tell, *, since, running, over):
        self.followed.append(container.pod)
        self.tells[container.pod], self.since[container.pod] = tell, since
        over.wait(30)
        del self.tells[container.pod]

    def stop(self):
        self.ended.set()


def pod(number, *, started=NOW, ready=True, state=None, restarts=0):
    row = {
        "name": "vllm",
        "ready": ready,
        "restartCount": restarts,
        "state": state or {"running": {"startedAt": started.isoformat()}},
    }
    owner = {"kind": "ReplicaSet", "name": "vllm-7d9f8b6c5", "controller": True}
    told = {"name": f"vllm-7d9f8b6c5-x2x4{number}", "uid": str(number), "namespace": "llm", "ownerReferences": [owner]}
    return {"metadata": told, "spec": {"containers": [{"name": "vllm"}]}, "status": {"containerStatuses": [row]}}


def named(number):
    return pod(number)["metadata"]["name"]


@pytest.fixture
def app(tmp_path):
    return build_app_in_memory(
        read_settings({}, platform="none"), clock=SteppedClock(NOW), state=tmp_path, services=SERVICES
    )


@pytest.fixture
def monitor(app):
    logs = Held()
    made = LogMonitor(app, logs, most=2)
    made.held = logs
    yield made
    made.stop()
    assert logs.ended.is_set()


def printed(*lines, at=NOW):
    return [PrintedLine(f"{at.isoformat()}/{n}", at, line) for n, line in enumerate(lines)]


def test_of_many_pods_so_many_are_followed_and_the_next_where_one_has_gone(monitor):
    for number in range(4):
        monitor.observe(SERVICE, pod(number))
        monitor.observe(SERVICE, pod(number))
    until(lambda: len(monitor.held.tells) == 2)
    assert sorted(monitor.held.followed) == [named(0), named(1)]
    monitor.gone("2")  # it was never begun
    monitor.gone("0")
    until(lambda: monitor.held.followed[2:] == [named(3)])
    until(lambda: sorted(monitor.held.tells) == [named(1), named(3)])


def test_what_does_not_run_is_not_followed(monitor):
    monitor.observe(SERVICE, pod(1, state={"waiting": {"reason": "ImagePullBackOff"}}))
    assert monitor.held.followed == []


BEFORE, LATER = NOW - timedelta(hours=1), NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("how", "seen_at", "since"),
    [
        ({"started": BEFORE}, None, NOW),
        ({"started": BEFORE, "ready": False}, None, BEFORE),
        ({"started": BEFORE}, NOW - timedelta(minutes=5), NOW - timedelta(minutes=5)),
        ({"started": LATER}, None, LATER),
    ],
    ids=["a ready server at the first start", "a server that loads", "after a predecessor", "a start of later"],
)
def test_from_when_on(app, how, seen_at, since):
    logs = Held()
    monitor = LogMonitor(app, logs, seen_at=seen_at)
    monitor.observe(SERVICE, pod(1, **how))
    until(lambda: logs.since)
    monitor.stop()
    assert logs.since == {named(1): since}


def incidents(app):
    return app.store.incidents(Query(limit=10))


def test_a_telling_line_is_an_incident_and_the_others_are_not(app, monitor):
    monitor.observe(SERVICE, pod(1))
    until(lambda: monitor.held.tells)
    tell = monitor.held.tells[named(1)]
    tell(
        printed(
            'INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK', "INFO 11-22 10:00:00 Engine 000: Running"
        )
    )
    assert incidents(app) == ()
    tell(printed(f"\x1b[31m{DEAD}\x1b[0m", at=NOW + timedelta(seconds=1)))
    (incident,) = incidents(app)
    assert (incident.service, incident.revision) == ("gemma", "vllm-7d9f8b6c5")
    assert incident.correlated[0].class_ == "engine_dead"
    tell(printed(f"\x1b[31m{DEAD}\x1b[0m", at=NOW + timedelta(seconds=1)))  # read again after a restart of ours
    assert incidents(app)[0].signal_count == 1


def test_a_storm_is_told_by_powers_of_two_and_anew_at_each_start(monitor, monkeypatch):
    """What the store did not take is not counted: it is told again."""
    taken, refuse = [], [True]

    def take(_context, signal):
        if refuse:
            refuse.pop()
            raise DependencyFailed("the store is full", why="it says so", hint="no action needed")
        taken.append(signal.key)

    monkeypatch.setattr(log_monitor, "signal_to_incident", take)
    monitor.observe(SERVICE, pod(1))
    until(lambda: monitor.held.tells)
    tell, storm = monitor.held.tells[named(1)], printed(*[DEAD] * 100)
    with pytest.raises(DependencyFailed):
        tell(storm)
    assert taken == []
    tell(storm)
    assert len(taken) == 7  # 1, 2, 4, ... 64
    monitor.observe(SERVICE, pod(1, restarts=1))
    tell(printed(DEAD))
    assert len(taken) == 8


def test_a_line_that_breaks_us_does_not_hide_the_next(monitor, monkeypatch):
    seen = []

    def breaks(_context, signal):
        seen.append(signal)
        raise ValueError("a bug of ours")

    monkeypatch.setattr(log_monitor, "signal_to_incident", breaks)
    monitor.observe(SERVICE, pod(1))
    until(lambda: monitor.held.tells)
    monitor.held.tells[named(1)](printed(DEAD, DEAD))
    assert len(seen) == 2
