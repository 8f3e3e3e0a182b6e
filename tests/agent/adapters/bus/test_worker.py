"""The worker: one delivery in a thread at a time, an outcome for each, and a clean end."""

import itertools
import threading

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import Subscription
from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.bus.worker import Worker
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.errors import DependencyFailed, InputRejected, StateConflict
from agent.ports.bus import Outcome, Topic

ONE = Subscription(name="one", topic=Topic.INCIDENTS)
TWO = Subscription(name="two", topic=Topic.ALERTS)
DEAD = Subscription(name="dead", topic=Topic.DEAD_LETTER, deliveries=None)


@pytest.fixture
def clock(make):
    return make.FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def bus(request, tmp_path, clock):
    if request.param == "memory":
        yield EmbeddedBus(InMemoryDatabase(Kind.STATE), clock, [ONE, TWO, DEAD])
        return
    database = SqliteDatabase(tmp_path / "s.db", Kind.STATE)
    yield EmbeddedBus(database, clock, [ONE, TWO, DEAD])
    database.close()


@pytest.fixture
def quarantine(clock):
    return SqliteQuarantine(InMemoryDatabase(Kind.STATE), clock, redact=str)


@pytest.fixture
def worker(bus, quarantine):
    made = []

    def make_(handle, **more):
        handlers = handle if isinstance(handle, dict) else {"one": handle, "two": handle}
        made.append(Worker(bus, handlers, quarantine=quarantine, **more))
        return made[-1]

    yield make_
    for each in made:
        assert each.stop()


def raising(error):
    def handle(delivery):
        raise error

    return handle


def bug(delivery):
    return 1 / 0


def rounds(worker, clock, count):
    """Let the waits between deliveries pass ``count`` times; return how many deliveries were handled."""
    handled = 0
    for _ in range(count):
        handled += worker.run_due()
        clock.go(601)
    return handled


def test_what_is_due_is_handled_and_its_outcome_told_to_the_bus(worker, bus, make, clock):
    outcomes = {"m1": Outcome.ACK, "m2": Outcome.RETRY, "m3": Outcome.QUARANTINED}
    for name in outcomes:
        bus.publish(make.message(name, data=name))
    assert worker(lambda d: outcomes[d.data.decode()]).run_due() == 3
    assert bus.waiting()["one"] == 1
    clock.go(10)
    (again,) = bus.pull("one")
    assert (again.delivery.data, again.delivery.attempt) == (b"m2", 2)


def test_what_a_handler_publishes_is_handled_too(worker, bus, make):
    """A chain of events runs to its end."""

    def handle(delivery):
        left = int(delivery.data)
        if left:
            bus.publish(
                make.message(f"left-{left - 1}", data=str(left - 1), topic=(Topic.ALERTS, Topic.INCIDENTS)[left % 2])
            )
        return Outcome.ACK

    bus.publish(make.message("left-5", data="5"))
    assert worker(handle).run_due() == 6
    assert set(bus.waiting().values()) == {0}


@pytest.mark.parametrize("handle", [bug, raising(InputRejected("x", why="y", hint="z"))], ids=["bug", "refusal"])
def test_poison_is_put_aside_at_the_fifth_failure_with_its_reason(worker, bus, make, clock, quarantine, handle):
    bus.publish(make.message("m1", data="poison"))
    assert rounds(worker(handle), clock, 9) == 5
    assert set(bus.waiting().values()) == {0}
    (row,) = quarantine.rows()
    assert row["data"] == "poison"
    assert row["reason"] in {"ZeroDivisionError: division by zero", "x: y. Hint: z"}


@pytest.mark.parametrize("kind", [DependencyFailed, StateConflict])
def test_what_another_try_can_mend_is_tried_as_often_as_the_bus_does(worker, bus, make, clock, quarantine, kind):
    """Time-outs are not the message's fault: twenty deliveries, then the dead letters, never the quarantine."""
    bus.publish(make.message())
    assert rounds(worker(raising(kind("x", why="y", hint="z"))), clock, 25) == 20
    assert quarantine.rows() == ()
    assert bus.waiting()["dead"] == 1


def test_a_message_that_cannot_be_put_aside_is_not_acknowledged(bus, make, clock):
    class Full(SqliteQuarantine):
        def put(self, delivery, reason):
            raise DependencyFailed("no", why="the disk is full", hint="free space")

    worker = Worker(bus, {"one": bug}, quarantine=Full(InMemoryDatabase(Kind.STATE), clock, redact=str))
    bus.publish(make.message())
    rounds(worker, clock, 8)
    assert bus.waiting()["one"] == 1


def test_threads_share_the_work_and_stop_when_told(worker, bus, make):
    """Each message is handled once, by more than one thread, and none after the stop."""
    seen, done = [], threading.Semaphore(0)
    together, number = threading.Barrier(3), itertools.count()

    def handle(delivery):
        if next(number) < 3:
            together.wait(30)  # three at once, or the test would not go on
        seen.append((delivery.message_id, threading.current_thread().name))
        done.release()
        return Outcome.ACK

    started = worker(handle, threads=3, poll_s=0.01)
    started.start()
    for n in range(30):
        bus.publish(make.message(f"m{n}", topic=(Topic.INCIDENTS, Topic.ALERTS)[n % 2]))
    for _ in range(30):
        assert done.acquire(timeout=30)
    assert started.stop()
    bus.publish(make.message("late"))
    assert len({message for message, _ in seen}) == len(seen) == 30
    assert len({thread for _, thread in seen}) == 3
    assert bus.waiting()["one"] == 1


def test_a_stop_lets_the_running_work_end(worker, bus, make):
    inside, leave = threading.Event(), threading.Event()

    def handle(delivery):
        inside.set()
        assert leave.wait(30)
        return Outcome.ACK

    started = worker(handle, poll_s=0.01)
    started.start()
    bus.publish(make.message())
    assert inside.wait(30)
    assert not started.stop(timeout_s=0)
    leave.set()
    assert started.stop()
    assert bus.waiting()["one"] == 0


def test_the_lease_of_running_work_is_extended(bus, quarantine, make, clock):
    """The handler ends only after its lease was extended past its first end, and nobody else got the message."""
    extended = threading.Event()

    class Watched:
        def __getattr__(self, name):
            return getattr(bus, name)

        def extend(self, arrival):
            ours = bus.extend(arrival)
            extended.set()
            return ours

    def handle(delivery):
        clock.go(50)
        extended.clear()
        assert extended.wait(30)
        clock.go(50)
        assert bus.pull("one") == ()
        done.set()
        return Outcome.ACK

    done = threading.Event()
    worker = Worker(Watched(), {"one": handle}, quarantine=quarantine, threads=1, extend_s=0.005, poll_s=0.01)
    bus.publish(make.message())
    worker.start()
    assert done.wait(30)
    assert worker.stop()
    assert bus.waiting()["one"] == 0


def test_a_bus_that_fails_for_a_while_does_not_end_the_threads(bus, quarantine, make):
    failures = iter([True, True, True])

    class Shaky:
        def __getattr__(self, name):
            return getattr(bus, name)

        def pull(self, subscription, limit=1):
            if next(failures, False):
                raise DependencyFailed("no", why="locked", hint="wait")
            return bus.pull(subscription, limit)

    done = threading.Event()

    def handle(delivery):
        done.set()
        return Outcome.ACK

    worker = Worker(Shaky(), {"one": handle}, quarantine=quarantine, threads=1, poll_s=0.001)
    worker.start()
    bus.publish(make.message())
    assert done.wait(30)
    assert worker.stop()


def test_a_lost_acknowledgement_brings_the_message_again(bus, quarantine, make, clock):
    class Deaf:
        def __getattr__(self, name):
            return getattr(bus, name)

        def ack(self, arrival):
            raise DependencyFailed("no", why="the disk is full", hint="free space")

    attempts = []

    def handle(delivery):
        attempts.append(delivery.attempt)
        return Outcome.ACK

    worker = Worker(Deaf(), {"one": handle}, quarantine=quarantine)
    bus.publish(make.message())
    worker.run_due()
    clock.go(60)
    worker.run_due()
    assert attempts == [1, 2]
