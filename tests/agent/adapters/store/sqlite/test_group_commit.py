"""R4: writers that wait for each other share a commit, and each is told the truth about its own rows."""

import sqlite3
import threading
import time

import pytest

from agent.adapters.store.sqlite import group_commit as sqlite_turns
from agent.adapters.store.sqlite.errors import DatabaseTimeout
from agent.adapters.store.sqlite.group_commit import Handle, Turns


class Disk:
    """A file with connections that record their statements, and fail or wait where they are told to."""

    def __init__(self, path):
        self.path = path
        self.said = []
        self.levels = []
        self.fails = {}
        self.before_commit = None
        self.plain = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.plain.execute("PRAGMA journal_mode = WAL")
        self.plain.execute("CREATE TABLE rows (name TEXT PRIMARY KEY)")

    def handle(self):
        disk = self

        class Told(sqlite3.Connection):
            def execute(self, sql, *args):
                disk.said.append(sql)
                how = disk.fails.get(len(disk.said))
                if how == "before":
                    raise sqlite3.OperationalError("injected")
                if sql == "COMMIT":
                    disk.levels.append(super().execute("PRAGMA synchronous").fetchone()[0])
                    if disk.before_commit:
                        disk.before_commit()
                done = super().execute(sql, *args)
                if how == "after":
                    raise sqlite3.OperationalError("injected")
                return done

        return Handle(
            sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False, factory=Told)
        )

    def rows(self):
        return [name for (name,) in self.plain.execute("SELECT name FROM rows ORDER BY name")]

    @property
    def commits(self):
        return self.said.count("COMMIT")


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_turns, "LONGEST_S", 60.0)
    made = Disk(tmp_path / "t.db")
    yield made
    made.plain.close()


def insert(name):
    return lambda db: db.execute("INSERT INTO rows VALUES (?)", (name,))


def together(turns, disk, works, durable=(True,) * 9):
    """Let the first transaction hold its turn until all others wait behind it, in order; return what each said."""
    said = [None] * len(works)
    inside, going = threading.Event(), threading.Event()

    def write(number):
        try:
            with turns.turn(disk.handle, durable=durable[number]) as db:
                if number == 0:
                    inside.set()
                    until(lambda: turns.waiting == len(works) - 1)
                    going.set()
                works[number](db)
        except (sqlite3.Error, ZeroDivisionError) as error:
            said[number] = error

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(works))]
    for number, thread in enumerate(threads):
        thread.start()
        if number == 0:
            inside.wait(10)
        else:
            until(lambda at=number: turns.waiting == at or going.is_set())
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "a writer hangs"
    return said


def until(reached):
    ends = time.monotonic() + 10
    while not reached():
        assert time.monotonic() < ends, "not reached"
        time.sleep(0)


def test_those_who_wait_share_one_commit(disk):
    assert together(Turns("t.db", 5), disk, [insert(name) for name in "abcd"]) == [None] * 4
    assert disk.rows() == ["a", "b", "c", "d"]
    assert disk.commits == 1


def test_one_alone_begins_writes_and_commits_and_nothing_else(disk):
    with Turns("t.db", 5).turn(disk.handle, durable=True) as db:
        insert("a")(db)
    assert disk.said == ["BEGIN IMMEDIATE", "INSERT INTO rows VALUES (?)", "COMMIT"]


def test_nobody_returns_before_the_commit_has(disk):
    turns, returned = Turns("t.db", 5), []
    seen = []
    disk.before_commit = lambda: seen.append((list(returned), disk.rows()))
    first = threading.Event()

    def write(name):
        with turns.turn(disk.handle, durable=True) as db:
            first.set()
            if name == "a":
                until(lambda: turns.waiting == 1)
            insert(name)(db)
        returned.append(name)

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    threads[0].start()
    first.wait(10)
    threads[1].start()
    for thread in threads:
        thread.join(20)
    assert seen == [([], [])]
    assert sorted(returned) == disk.rows() == ["a", "b"]


def test_a_transaction_that_raises_takes_back_its_own_rows_alone(disk):
    def half(db):
        insert("x")(db)
        raise ZeroDivisionError

    said = together(Turns("t.db", 5), disk, [insert("a"), half, insert("c")])
    assert [type(error) for error in said] == [type(None), ZeroDivisionError, type(None)]
    assert disk.rows() == ["a", "c"]


def test_a_statement_that_fails_takes_back_its_own_rows_alone(disk):
    said = together(Turns("t.db", 5), disk, [insert("a"), insert("a"), insert("c")])
    assert [type(error) for error in said] == [type(None), sqlite3.IntegrityError, type(None)]
    assert disk.rows() == ["a", "c"]


def test_a_transaction_sees_those_before_it(disk):
    seen = []
    works = [insert("a"), lambda db: seen.extend(db.execute("SELECT name FROM rows").fetchall())]
    assert together(Turns("t.db", 5), disk, works) == [None, None]
    assert seen == [("a",)]


def test_what_was_concluded_from_rows_that_are_lost_is_not_said(disk):
    """The second finds the row of the first and refuses; the commit fails: there never was such a row."""

    def refuses(db):
        assert db.execute("SELECT name FROM rows").fetchall() == [("a",)]
        raise ZeroDivisionError

    turns = Turns("t.db", 5)
    fails_at_commit(disk)
    said = together(turns, disk, [insert("a"), refuses])
    assert [type(error) for error in said] == [sqlite3.OperationalError] * 2
    assert disk.rows() == []


def fails_at_commit(disk):
    def fail():
        disk.before_commit = None
        raise sqlite3.OperationalError("the disk is gone")

    disk.before_commit = fail


def test_a_commit_that_fails_fails_all_of_them_and_the_next_one_works(disk):
    turns = Turns("t.db", 5)
    fails_at_commit(disk)
    said = together(turns, disk, [insert(name) for name in "abc"])
    assert [type(error) for error in said] == [sqlite3.OperationalError] * 3
    assert disk.rows() == []
    assert together(turns, disk, [insert(name) for name in "abc"]) == [None] * 3
    assert disk.rows() == ["a", "b", "c"]


def test_where_sqlite_rolls_everything_back_those_before_are_told(disk):
    """As a full disk does: https://www.sqlite.org/lang_transaction.html, section 3."""

    def full(db):
        db.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    said = together(Turns("t.db", 5), disk, [insert("a"), full, insert("c")])
    assert [type(error) for error in said] == [sqlite3.OperationalError, sqlite3.OperationalError, type(None)]
    assert disk.rows() == ["c"]


def test_what_must_outlive_a_power_cut_joins_nobody_who_need_not(disk):
    """2 is FULL, 1 is NORMAL."""
    works = [insert(name) for name in "abc"]
    assert together(Turns("t.db", 5), disk, works, durable=(False, True, False)) == [None] * 3
    assert disk.levels == [1, 2]
    assert disk.rows() == ["a", "b", "c"]


def test_a_commit_takes_no_more_than_so_many(disk, monkeypatch):
    monkeypatch.setattr(sqlite_turns, "MOST", 2)
    assert together(Turns("t.db", 5), disk, [insert(name) for name in "abcde"]) == [None] * 5
    assert disk.commits == 3


def test_an_old_commit_is_not_kept_waiting_for_more(disk, monkeypatch):
    monkeypatch.setattr(sqlite_turns, "LONGEST_S", -1.0)
    assert together(Turns("t.db", 5), disk, [insert(name) for name in "abc"]) == [None] * 3
    assert disk.commits == 3


def test_who_waited_too_long_has_written_nothing_and_holds_nobody_up(disk):
    turns = Turns("t.db", 0.05)
    inside, leave, late = threading.Event(), threading.Event(), []

    def hold():
        with turns.turn(disk.handle, durable=True) as db:
            inside.set()
            leave.wait(10)
            insert("a")(db)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(10)
    with pytest.raises(DatabaseTimeout, match="have been writing"), turns.turn(disk.handle, durable=True):
        late.append("inside")
    leave.set()
    holder.join(10)
    assert turns.waiting == 0
    with turns.turn(disk.handle, durable=True) as db:
        insert("b")(db)
    assert (late, disk.rows()) == ([], ["a", "b"])


def test_a_commit_of_which_nothing_is_heard_is_no_success(disk, monkeypatch):
    monkeypatch.setattr(sqlite_turns, "COMMIT_S", 0.05)
    turns, gone = Turns("t.db", 5), threading.Event()
    disk.before_commit = lambda: gone.wait(10)
    said = []

    def first():
        try:
            with turns.turn(disk.handle, durable=True) as db:
                until(lambda: turns.waiting == 1)
                insert("a")(db)
        except DatabaseTimeout as error:
            said.append(str(error))
        gone.set()

    def second():
        with turns.turn(disk.handle, durable=True) as db:
            insert("b")(db)

    threads = [threading.Thread(target=work) for work in (first, second)]
    threads[0].start()
    until(lambda: disk.said)
    threads[1].start()
    for thread in threads:
        thread.join(20)
    assert len(said) == 1
    assert "has lasted" in said[0]
    assert disk.rows() == ["a", "b"]


@pytest.mark.parametrize("how", ["before", "after"])
def test_call_n_fails_for_every_n_and_success_is_said_of_written_rows_alone(tmp_path, monkeypatch, how):
    monkeypatch.setattr(sqlite_turns, "LONGEST_S", 60.0)
    failed = 0
    for number in range(1, 30):
        disk = Disk(tmp_path / f"{number}.db")
        turns = Turns("t.db", 5)
        disk.fails = {number: how}
        said = together(turns, disk, [insert(name) for name in "abc"]) if number > 1 else alone(turns, disk)
        reached = len(disk.said) >= number
        disk.fails = {}
        rows = disk.rows()
        for name, error in zip("abc", said, strict=False):
            assert error is not None or name in rows, f"success was reported at call {number}, but nothing is there"
        failed += any(said)
        missing = [name for name in "abc" if name not in rows]
        assert together(turns, disk, [insert(name) for name in missing]) == [None] * len(missing)
        assert disk.rows() == ["a", "b", "c"]
        disk.plain.close()
        if not reached:
            break
    assert failed >= 8


def alone(turns, disk):
    """The first call is the first one's BEGIN; while it fails nobody can wait behind it."""
    try:
        with turns.turn(disk.handle, durable=True) as db:
            insert("a")(db)
    except sqlite3.Error as error:
        return [error]
    return [None]
