"""Real kills and real write errors: what was acknowledged is there, and nothing is there in part."""

import os
import random
import resource
import signal
import time
import traceback

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import Subscription
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.errors import DependencyFailed, InputRejected
from agent.ports.bus import Topic

KILLS = 40
SUBSCRIPTION = Subscription(name="s", topic=Topic.INCIDENTS)


def in_child(work):
    """Run ``work(write)`` in a forked process; return its pid and the end of the pipe on which its words arrive."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda word: os.write(writing, f"{word}\n".encode()))
            code = 0
        except BaseException:  # noqa: BLE001 - a child of a fork must never return into the test runner
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    return pid, os.fdopen(reading, "rb", buffering=0)


def one_step(store, bus, make, version):
    """One stage's work as it is in the service: commit, drain the outbox, take a delivery."""
    incident = make.incident() if version == 0 else store.load("inc-a")
    store.commit(
        make.change(
            incident,
            signals=(make.signal(f"s{version}"),),
            messages=(make.message(f"m{version}.1"), make.message(f"m{version}.2")),
            events=(make.event(f"e{version}.1", version), make.event(f"e{version}.2", version)),
            heads=(f"h{version}",),
            plan=make.plan(f"p{version}"),
        )
    )


def drain(store, bus):
    for message in store.outbox("inc-a"):
        bus.publish(message)
        store.sent((message.id,))


def whole(path, make):
    """Assert that every version is there with all that belongs to it; return how many versions there are."""
    database = SqliteDatabase(path, Kind.STATE)
    store = SqliteStore(database)
    with database.reading() as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        published = {id_ for (id_,) in db.execute("SELECT id FROM bus_seen")}
    try:
        versions = store.load("inc-a").version
    except InputRejected:
        versions = 0
    assert [e.what for e in store.timeline("inc-a")] == [f"e{v}.{n}" for v in range(versions) for n in (1, 2)]
    assert {s.key for s in store.signals("inc-a")} == {f"s{v}" for v in range(versions)}
    assert [store.head(f"h{v}") for v in range(versions + 1)] == ["inc-a"] * versions + [None]
    assert [store.plan(f"p{v}") is not None for v in range(versions + 1)] == [True] * versions + [False]
    waiting = {m.id for m in store.outbox("inc-a")}
    assert waiting | published == {f"m{v}.{n}" for v in range(versions) for n in (1, 2)}, (
        "a message was lost or invented"
    )
    database.close()
    return versions


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path, make):
    """A process that commits and drains is killed with SIGKILL again and again over one file."""
    path = tmp_path / "s.db"
    chance = random.Random(20261121)
    versions = 0
    for _ in range(KILLS):

        def work(write, version=versions):
            database = SqliteDatabase(path, Kind.STATE)
            store = SqliteStore(database)
            bus = EmbeddedBus(database, make.FakeClock(), [SUBSCRIPTION])
            drain(store, bus)
            while True:
                one_step(store, bus, make, version)
                version += 1
                write(version)
                drain(store, bus)

        pid, words = in_child(work)
        acknowledged = versions
        for _ in range(chance.randrange(4)):
            acknowledged = int(words.readline())
        ends = time.perf_counter() + chance.random() * 0.004
        while time.perf_counter() < ends:
            pass
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        rest = words.read().split()
        words.close()
        acknowledged = int(rest[-1]) if rest else acknowledged
        versions = whole(path, make)
        assert versions in {acknowledged, acknowledged + 1}
    assert versions > KILLS


def test_a_disk_that_stops_taking_bytes_is_reported_and_forgiven(tmp_path, make):
    """The file size limit makes real write calls fail at many places; each failure is ours, and room ends it."""

    def work(write):
        path = tmp_path / "s.db"
        database = SqliteDatabase(path, Kind.STATE)
        store = SqliteStore(database)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        version = failures = 0
        for step in range(60):
            room = max((f.stat().st_size for f in tmp_path.glob("s.db*")), default=0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room + step * 700, hard))
            try:
                while version < 400:
                    one_step(store, None, make, version)
                    version += 1
            except DependencyFailed:
                failures += 1
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            found = store.load("inc-a").version if version or store.head("h0") else 0
            assert found in {version, version + 1}, (found, version)
            version = found
        database.close()
        write(f"{version} {failures}")

    pid, words = in_child(work)
    said = words.read().split()
    words.close()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    version, failures = map(int, said)
    assert failures > 30
    database = SqliteDatabase(tmp_path / "s.db", Kind.STATE)
    store = SqliteStore(database)
    assert store.load("inc-a").version == version
    assert len(store.timeline("inc-a")) == 2 * version
    assert len(store.outbox("inc-a")) == 2 * version
    with database.reading() as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


@pytest.mark.parametrize("moment", ["publish", "pull", "ack"])
def test_a_worker_killed_around_a_delivery_leaves_it_to_the_next(tmp_path, make, moment):
    path = tmp_path / "s.db"

    def work(write):
        database = SqliteDatabase(path, Kind.STATE)
        bus = EmbeddedBus(database, make.FakeClock(), [SUBSCRIPTION])
        bus.publish(make.message())
        if moment != "publish":
            (arrival,) = bus.pull("s")
        if moment == "ack":
            bus.ack(arrival)
        os.kill(os.getpid(), signal.SIGKILL)

    pid, words = in_child(work)
    assert words.read() == b""
    words.close()
    os.waitpid(pid, 0)
    clock = make.FakeClock()
    database = SqliteDatabase(path, Kind.STATE)
    bus = EmbeddedBus(database, clock, [SUBSCRIPTION])
    found = {"publish": 1, "pull": 0, "ack": 0}[moment]
    assert len(bus.pull("s")) == found
    clock.go(60)
    assert [a.delivery.attempt for a in bus.pull("s")] == {"publish": [2], "pull": [2], "ack": []}[moment]
    database.close()
