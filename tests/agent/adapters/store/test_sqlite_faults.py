"""R4: call N fails, for every N and every way to fail; nothing is ever half written, and no failure is called success."""

import shutil
import sqlite3

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import Subscription
from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.errors import DependencyFailed, SreError
from agent.ports.bus import Delivery, Topic

SUBSCRIPTIONS = [
    Subscription(name="s", topic=Topic.INCIDENTS, deliveries=2),
    Subscription(name="d", topic=Topic.DEAD_LETTER),
]
CAUSES = {"io": sqlite3.SQLITE_IOERR, "full": sqlite3.SQLITE_FULL, "locked": sqlite3.SQLITE_BUSY}


class Faults:
    """Fails the Nth call to SQLite: before it is done, after it is done (the answer is lost), or it and all that follow."""

    def __init__(self):
        self.calls = 0
        self.at = None
        self.code = None
        self.how = "before"

    def arm(self, at, code, how):
        self.calls, self.at, self.code, self.how = 0, at, code, how

    def disarm(self):
        self.at = None

    def hit(self):
        self.calls += 1
        return self.at is not None and (self.calls >= self.at if self.how == "on" else self.calls == self.at)

    def error(self):
        error = sqlite3.OperationalError("injected")
        error.sqlite_errorcode, error.sqlite_errorname = self.code, "SQLITE_INJECTED"
        return error


def connecting(faults):
    class Faulty(sqlite3.Connection):
        def execute(self, *args):
            return self._call(super().execute, args)

        def executemany(self, *args):
            return self._call(super().executemany, args)

        def _call(self, call, args):
            hit = faults.hit()
            if hit and faults.how != "after":
                raise faults.error()
            result = call(*args)
            if hit:
                raise faults.error()
            return result

    def open_(path, busy_s):
        return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False, factory=Faulty)

    return open_


def contents(path):
    """Every row of every table, with the sequence numbers that only say how often was tried left out."""
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {t: sorted(map(repr, connection.execute(f"SELECT * FROM {t}"))) for t in tables if t != "sqlite_sequence"}
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    return rows


# name: (which file, what stands before, what is tried). Each gets the adapters over one database, the values, the clock.
def commit_new(on, make):
    on.store.commit(
        make.change(
            make.incident("inc-new"),
            signals=(make.signal("s1"), make.signal("s2")),
            messages=(make.message("m1"), make.message("m2")),
            events=(make.event("one"), make.event("two")),
            heads=("h1", "h2"),
            plan=make.plan(),
        )
    )


def commit_again(on, make):
    on.store.commit(make.change(make.incident(version=1), messages=(make.message("m9"),), events=(make.event("x", 9),)))


def pull_until_buried(on, make):
    assert on.bus.pull("s", 5) == ()


OPERATIONS = {
    "commit_new": (Kind.STATE, None, commit_new),
    "commit_again": (Kind.STATE, lambda on, make: on.store.commit(make.change()), commit_again),
    "accept": (Kind.STATE, None, lambda on, make: on.store.accept(make.signal(), "inc-a")),
    "sent": (
        Kind.STATE,
        lambda on, make: on.store.commit(make.change(messages=(make.message("m1"), make.message("m2")))),
        lambda on, make: on.store.sent(("m1", "m2")),
    ),
    "publish": (Kind.STATE, None, lambda on, make: on.bus.publish(make.message())),
    "pull": (
        Kind.STATE,
        lambda on, make: [on.bus.publish(make.message(f"m{n}")) for n in range(3)],
        lambda on, make: on.bus.pull("s", 2),
    ),
    "bury": (
        Kind.STATE,
        lambda on, make: (on.bus.publish(make.message()), [on.bus.retry(on.bus.pull("s")[0], delay_s=0) for _ in "12"]),
        pull_until_buried,
    ),
    "ack": (
        Kind.STATE,
        lambda on, make: (on.bus.publish(make.message()), on.keep(on.bus.pull("s")[0])),
        lambda on, make: on.bus.ack(on.kept),
    ),
    "retry": (
        Kind.STATE,
        lambda on, make: (on.bus.publish(make.message()), on.keep(on.bus.pull("s")[0])),
        lambda on, make: on.bus.retry(on.kept, delay_s=7),
    ),
    "quarantine": (
        Kind.STATE,
        lambda on, make: on.quarantine.failed(Delivery(topic=Topic.ALERTS, message_id="1", data=b"x"), "r"),
        lambda on, make: on.quarantine.put(Delivery(topic=Topic.ALERTS, message_id="1", data=b"x"), "r"),
    ),
    "claim": (Kind.CONTROL, None, lambda on, make: on.control.claim("i", "p", "d")),
    "begin": (Kind.CONTROL, None, lambda on, make: on.control.begin(make.intent())),
    "add_intent": (Kind.CONTROL, None, lambda on, make: on.control.add_intent(make.intent())),
    "close_intent": (Kind.CONTROL, None, lambda on, make: on.control.close_intent("e-1", "why")),
    "use_once": (Kind.CONTROL, None, lambda on, make: on.control.use_once("n", at=make.T0, until=make.at(9))),
    "give_back": (
        Kind.CONTROL,
        lambda on, make: on.control.use_once("n", at=make.T0, until=make.at(9)),
        lambda on, make: on.control.give_back("n"),
    ),
    "acquire": (Kind.CONTROL, None, lambda on, make: on.control.acquire("l", "w", for_s=9, now=make.T0)),
    "append": (
        Kind.CONTROL,
        lambda on, make: on.control.append(at=make.T0, kind="k", incident="i", who="w", body="1"),
        lambda on, make: on.control.append(at=make.at(1), kind="k", incident="i", who="w", body="2"),
    ),
}


class Adapters:
    """Everything that stands on one file."""

    def __init__(self, path, kind, make, opened=None):
        more = {} if opened is None else {"opened": opened}
        self.database = SqliteDatabase(path, kind, busy_s=0.1, **more)
        self.clock = make.FakeClock()
        self.kept = None
        if kind is Kind.CONTROL:
            self.control = SqliteControlStore(self.database)
        else:
            self.store = SqliteStore(self.database)
            self.bus = EmbeddedBus(self.database, self.clock, SUBSCRIPTIONS)
            self.quarantine = SqliteQuarantine(self.database, self.clock, redact=str)

    def keep(self, thing):
        self.kept = thing


@pytest.mark.parametrize("how", ["before", "after", "on"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failing_call_writes_all_or_nothing_and_says_so(tmp_path, make, name, how):
    kind, prepare, operate = OPERATIONS[name]
    template = tmp_path / "template.db"
    ready = Adapters(template, kind, make)
    if prepare:
        prepare(ready, make)
    ready.database.close()
    before = contents(template)

    def fresh(case):
        path = tmp_path / f"{case}.db"
        shutil.copy(template, path)
        faults = Faults()
        on = Adapters(path, kind, make, connecting(faults))
        on.kept = ready.kept
        on.clock.time = ready.clock.time
        return path, faults, on

    path, _, on = fresh("whole")
    operate(on, make)
    on.database.close()
    after = contents(path)
    assert after != before

    outcomes = set()
    for number in range(1, 100):
        cause, code = list(CAUSES.items())[number % len(CAUSES)]
        path, faults, on = fresh(f"{number}-{cause}")
        faults.arm(number, code, how)
        try:
            operate(on, make)
        except DependencyFailed:
            failed = True
        except SreError as other:  # pragma: no cover - a wrong type is what the test is about
            pytest.fail(f"call {number}: {other!r}")
        else:
            failed = False
        reached = faults.calls >= number
        faults.disarm()
        found = contents(path)
        assert found in (before, after), f"half written at call {number}"
        assert failed or found == after, f"success was reported at call {number}, but nothing is there"
        outcomes.add((failed, found == after))
        again(on, make, operate, path, found, before, after)
        on.database.close()
        path.unlink()
        if not reached:
            break
    assert (False, True) in outcomes
    assert (True, False) in outcomes
    assert ((True, True) in outcomes) == (how == "after"), "a lost answer to COMMIT is written, everything else is not"


def again(on, make, operate, path, found, before, after):
    """The same adapters go on working, without a restart: what was not written is written by the next try."""
    if found == before:
        operate(on, make)
        assert contents(path) == after
    with on.database.writing() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_failing_read_is_a_failure_not_an_empty_answer(tmp_path, make):
    """Nothing found and nothing readable are two things: no incident is opened because the disk failed."""
    faults = Faults()
    on = Adapters(tmp_path / "s.db", Kind.STATE, make, connecting(faults))
    on.store.commit(make.change(signals=(make.signal(),), heads=("h",), plan=make.plan()))
    control = Adapters(tmp_path / "c.db", Kind.CONTROL, make, connecting(faults)).control
    lease = control.acquire("l", "w", for_s=9, now=make.T0)
    reads = [
        lambda: on.store.knows("k1"),
        lambda: on.store.head("h"),
        lambda: on.store.load("inc-a"),
        lambda: on.store.signals("inc-a"),
        lambda: on.store.outbox("inc-a"),
        on.store.unsent,
        lambda: on.store.due(make.T0),
        on.store.latest_time,
        lambda: on.store.timeline("inc-a"),
        lambda: on.store.plan("p-a-1"),
        lambda: on.bus.pull("s"),
        on.bus.waiting,
        on.quarantine.rows,
        control.kill_switch,
        lambda: control.limits("gemma", make.T0),
        lambda: control.intent("e"),
        lambda: control.holds(lease, make.T0),
        control.audit,
    ]
    for read in reads:
        faults.arm(100, sqlite3.SQLITE_IOERR, "before")
        read()
        assert faults.calls >= 1
        for number in range(1, faults.calls + 1):
            faults.arm(number, sqlite3.SQLITE_IOERR, "before")
            with pytest.raises(DependencyFailed):
                read()
        faults.disarm()
        read()
    on.database.close()
