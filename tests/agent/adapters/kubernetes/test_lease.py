"""The Lease at a real API server: one replica leads, the next one follows, and who was away does nothing."""

import threading
import time

import pytest

from agent.adapters.kubernetes import lease as leases
from agent.adapters.kubernetes.lease import DURATION_S, LeaderLease
from agent.app.leading_platform import leading
from agent.app.stores import machine_clock
from agent.errors import DependencyFailed
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("kube")


class Monotonic:
    """Seconds that a test lets go by."""

    def __init__(self):
        self.s = 100.0

    def __call__(self):
        return self.s


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(leases, "RETRY_S", 0.02)
    monkeypatch.setattr(leases, "RENEW_S", 0.05)


@pytest.fixture
def replica_of(kube_cluster):
    cluster, made = kube_cluster(), []

    def make(holder):
        clock = Monotonic()
        one = LeaderLease(
            cluster.api, namespace=cluster.namespace, name="sre", holder=holder, clock=machine_clock(), monotonic=clock
        )
        one.time, one.cluster = clock, cluster
        made.append(one)
        return one

    yield make
    for one in made:
        one.release()


def holds_within(replica, seconds):
    """Whether it leads before so many real seconds are over."""
    stopping, led = threading.Event(), []
    thread = threading.Thread(target=lambda: led.append(replica.hold(stopping)))
    thread.start()
    thread.join(seconds)
    stopping.set()
    thread.join(10)
    return led == [True]


def test_the_second_waits_and_leads_once_the_first_gives_it_back(replica_of):
    first, second = replica_of("a"), replica_of("b")
    assert holds_within(first, 10)
    assert first.leads()
    assert not holds_within(second, 0.5)
    first.release()
    second.time.s += 2  # a Lease that was given back ends after a second
    assert holds_within(second, 10)
    assert second.leads()
    assert not first.leads()


def test_who_gave_it_back_leads_no_more_though_a_renewal_was_under_way(replica_of):
    first = replica_of("a")
    assert holds_within(first, 10)
    first._api = GivenBackMeanwhile(first._api, first)
    assert first._api.renewed.wait(10)
    until(lambda: not any(t.name == "leader-lease" for t in threading.enumerate()))
    assert not first.leads()


class GivenBackMeanwhile:
    """The API server; the Lease is given back while the answer to a renewal is on its way."""

    def __init__(self, api, lease):
        self._api, self._lease, self.renewed = api, lease, threading.Event()

    def patch(self, path, steps):
        answer = self._api.patch(path, steps)
        if not self.renewed.is_set():
            self.renewed.set()
            self._lease.release()
        return answer

    def __getattr__(self, name):
        return getattr(self._api, name)


def test_who_says_nothing_any_more_is_followed_and_notices_it(replica_of):
    """A replica that was stopped and goes on later finds that it leads no more, before it does anything."""
    first, second = replica_of("a"), replica_of("b")
    told = threading.Event()
    assert holds_within(first, 10)
    first._released.set()  # its threads stand still
    assert not holds_within(second, 0.3)
    waits = threading.Thread(target=second.hold, args=(threading.Event(),), daemon=True)
    waits.start()
    end = time.monotonic() + 10
    while not second.leads() and time.monotonic() < end:
        second.time.s += DURATION_S
        time.sleep(0.1)
    assert second.leads()
    first.time.s += DURATION_S
    first.when_lost(told.set)
    assert not first.leads()


def test_a_lease_that_another_one_took_is_lost_for_good(replica_of):
    first = replica_of("a")
    lost = threading.Event()
    assert holds_within(first, 10)
    first.when_lost(lost.set)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{first.cluster.namespace}/leases/sre"
    first.cluster.api.patch(path, [{"op": "replace", "path": "/spec/holderIdentity", "value": "b"}])
    assert lost.wait(10)
    assert not first.leads()


def test_of_two_at_once_one_leads(replica_of):
    """Each of the others has looked at the Lease again after somebody leads, and waits."""
    replicas = [replica_of(name) for name in "abcd"]
    looks = {r: threading.Semaphore(0) for r in replicas}
    for replica in replicas:
        replica._api = Looking(replica._api, looks[replica])
    stopping = threading.Event()
    threads = [threading.Thread(target=r.hold, args=(stopping,)) for r in replicas]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 10
    while not (leading_now := [r for r in replicas if r.leads()]) and time.monotonic() < end:
        assert looks[replicas[0]].acquire(timeout=10)
    for waits in (r for r in replicas if r not in leading_now):
        while looks[waits].acquire(blocking=False):
            continue
        assert all(looks[waits].acquire(timeout=10) for _ in range(2)), "it does not look any more"
    assert [r.leads() for r in replicas].count(True) == 1
    stopping.set()
    for thread in threads:
        thread.join(10)


class Looking:
    """The API server, and a mark for each look at the Lease."""

    def __init__(self, api, looks):
        self._api, self._looks = api, looks

    def find(self, path):
        found = self._api.find(path)
        self._looks.release()
        return found

    def __getattr__(self, name):
        return getattr(self._api, name)


def test_a_renewal_that_breaks_is_a_loss(replica_of, monkeypatch):
    """A bug of ours in the thread that renews must not leave a process that neither works nor ends."""
    first, lost = replica_of("a"), threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _args: None)
    assert holds_within(first, 10)
    first.when_lost(lost.set)
    monkeypatch.setattr(first, "_api", None)
    assert lost.wait(10)
    assert not first.leads()


class Made:
    """A platform that keeps what it was told to do."""

    def __init__(self):
        self.done = []

    def describe(self, service):
        return service

    def apply(self, order):
        self.done.append(order)
        return "op"


def test_an_effect_is_the_leaders_alone():
    """R11 for replicas: reading goes on, nothing is changed."""
    platform, leads = Made(), [True]
    led = leading({"gemma": platform}.get, lambda: leads[0])
    assert (led("gemma").apply("one"), led("other")) == ("op", None)
    leads[0] = False
    assert led("gemma").describe("gemma") == "gemma"
    with pytest.raises(DependencyFailed, match="does not hold the Lease"):
        led("gemma").apply("two")
    assert platform.done == ["one"]
