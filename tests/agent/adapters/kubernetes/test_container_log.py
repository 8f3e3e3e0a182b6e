"""Container logs through a real API server: every line once, whatever happens to the connection in between."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.kubernetes import container_log
from agent.adapters.kubernetes.container_log import FollowedLogs
from agent.errors import DependencyFailed
from agent.ports.cluster import ContainerRef
from tests.waiting import until
from tools.kubelet_logs import KubeletLogs, LiveLog

pytestmark = pytest.mark.xdist_group("kube")


class Followed:
    """One container that is followed, and what was told of it."""

    def __init__(self, cluster, kubelet, logs):
        cluster.deploy("vllm", ["serve"])
        kubelet.on_node(cluster.api, cluster.namespace)
        bound = cluster.until(lambda: self._bound(cluster))
        self.ref = ContainerRef(cluster.namespace, bound[0]["metadata"]["name"], "vllm")
        self.follower, self.kubelet, self.logs = FollowedLogs(cluster.api), kubelet, logs
        self.running, self.over = threading.Event(), threading.Event()
        self.told, self.refusals = [], 0
        self.thread = None

    @staticmethod
    def _bound(cluster):
        return [p for p in cluster.api.items(cluster.path("pods")) if p["spec"].get("nodeName")]

    def begin(self, *, since=None):
        how = {"since": since or datetime(2026, 1, 1, tzinfo=UTC), "running": self.running, "over": self.over}
        self.thread = threading.Thread(
            target=self.follower.follow, args=(self.ref, self._tell), kwargs=how, daemon=True
        )
        self.thread.start()

    def _tell(self, lines):
        if self.refusals:
            self.refusals -= 1
            raise DependencyFailed("the store is full", why="it says so", hint="no action needed")
        self.told += [line.text for line in lines]

    def has(self, *lines):
        until(lambda: self.told[-len(lines) :] == list(lines), lambda: str(self.told[-10:]))

    def has_all(self, lines):
        until(lambda: self.told == lines, lambda: f"{self.told[-10:]} {lines[-10:]}")

    def ends(self):
        self.thread.join(10)
        return not self.thread.is_alive()


@pytest.fixture
def followed(kube_plane, kube_cluster, monkeypatch):
    monkeypatch.setattr(container_log, "FIRST_WAIT_S", 0.02)
    logs = {"now": LiveLog()}
    kubelet = KubeletLogs(
        kube_plane.certificate, lambda _ns, _pod, _container, previous: None if previous else logs["now"]
    )
    made = Followed(kube_cluster(), kubelet, logs)
    yield made
    made.over.set()
    made.running.set()
    made.follower.stop()
    for log in logs.values():
        log.end()
    assert made.thread is None or made.ends(), "the log is followed still"
    kubelet.close()


def test_lines_are_told_as_they_are_printed_and_each_once_however_often_it_is_cut(followed):
    """Equal lines, several in one second, and what is printed while nobody listens."""
    log, said = followed.logs["now"], []
    followed.running.set()
    followed.begin()
    for cut in range(6):
        printed = [f"line {cut}.{n // 2}" for n in range(4)]  # two equal ones, each twice
        log.say(*printed)
        said += printed
        followed.has_all(said)
        log.cut()
        log.say(f"while away {cut}")
        said.append(f"while away {cut}")
        followed.has_all(said)
    assert any("sinceTime=20" in path and "sinceTime=2026-01" not in path for path in followed.kubelet.asked[1:])


def test_a_log_that_was_not_taken_is_told_again_and_the_rest_once(followed):
    log = followed.logs["now"]
    followed.running.set()
    followed.begin()
    log.say("first")
    followed.has("first")
    followed.refusals = 3
    log.say("second")
    followed.has("second")
    log.say("third")
    followed.has("first", "second", "third")


def test_nothing_is_asked_while_the_container_does_not_run_and_a_new_start_goes_on(followed):
    """No polling: what waits in CrashLoopBackOff is read once it runs again."""
    log = followed.logs["now"]
    followed.running.set()
    followed.begin()
    log.say("of the first start")
    followed.has("of the first start")
    followed.running.clear()
    log.end()
    until(lambda: log.readers == 0)
    asked = len(followed.kubelet.asked)
    followed.logs["now"] = again = LiveLog()
    again.say("of the second start")
    assert followed.told == ["of the first start"]
    assert len(followed.kubelet.asked) == asked
    followed.running.set()
    followed.has("of the first start", "of the second start")


def test_lines_of_before_are_left_out(followed):
    log, now = followed.logs["now"], datetime.now(UTC)
    log.say("old", at=now - timedelta(hours=1))
    log.say("new")
    followed.running.set()
    followed.begin(since=now - timedelta(seconds=1))
    followed.has("new")
    assert followed.told == ["new"]


def test_it_ends_with_its_pod_and_with_us(followed):
    followed.begin()
    followed.over.set()
    followed.running.set()
    assert followed.ends()
    followed.over.clear()
    followed.begin()
    followed.logs["now"].say("a line")
    followed.has("a line")
    followed.follower.stop()
    assert followed.ends()
