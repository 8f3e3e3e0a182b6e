"""One file for several threads and processes."""

import gc
import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.errors import DependencyFailed
from agent.ports.store import Query


@pytest.fixture
def database(tmp_path):
    opened = SqliteDatabase(tmp_path / "s.db", Kind.STATE, busy_s=0.1)
    yield opened
    opened.close()


def heads(database):
    with database.reading() as db:
        return [key for (key,) in db.execute("SELECT key FROM heads ORDER BY key")]


def add(db, key):
    db.execute("INSERT INTO heads VALUES (?, 'x')", (key,))


def test_what_raises_inside_a_transaction_leaves_nothing(database):
    def half(db):
        add(db, "a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), database.writing() as db:
        half(db)
    assert heads(database) == []
    with database.writing() as db:
        add(db, "b")
    assert heads(database) == ["b"]


def test_a_reader_sees_one_state_while_others_write(database, make):
    with database.reading() as db:
        before = db.execute("SELECT COUNT(*) FROM heads").fetchone()

        def write(_):
            with database.writing() as other:
                add(other, "a")

        assert make.together(1, write) == [None]
        assert db.execute("SELECT COUNT(*) FROM heads").fetchone() == before
    assert heads(database) == ["a"]


def test_accepted_events_are_synced_and_marks_are_not(database):
    """2 is FULL, 1 is NORMAL: https://www.sqlite.org/pragma.html#pragma_synchronous."""
    for durable, level in [(True, 2), (False, 1), (True, 2)]:
        with database.writing(durable=durable) as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (level,)


def test_each_thread_has_its_own_connection_and_gives_it_back(tmp_path, make):
    opened = []

    def counted(path, busy_s):
        opened.append(sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False))
        return opened[-1]

    database = SqliteDatabase(tmp_path / "s.db", Kind.STATE, opened=counted)
    make.together(3, lambda n: heads(database))
    assert len(opened) == 4
    gc.collect()
    for connection in opened[1:]:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert heads(database) == []
    database.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_writer_waits_for_a_writer_of_the_same_process_and_no_longer_than_told(database):
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with database.writing() as db:
            add(db, "a")
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    with pytest.raises(DependencyFailed, match="have been writing"), database.writing():
        pass
    leave.set()
    holder.join()
    with database.writing() as db:
        add(db, "b")
    assert heads(database) == ["a", "b"]


def test_it_can_be_used_again_after_it_was_closed(database):
    database.close()
    with database.writing() as db:
        add(db, "a")
    assert heads(database) == ["a"]


def in_fork(work):
    """Run ``work()`` in the child of a fork; return its exit code: 0 done, 3 an assertion, 1 anything else."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except AssertionError:
            code = 3
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_file_that_is_open_is_not_touched_by_the_child_of_a_fork(database, make):
    """Neither through the parent's object nor through a new one: SQLite would believe in locks that nobody holds."""
    store = SqliteStore(database)
    assert in_fork(lambda: store.commit(make.change())) == 3
    assert in_fork(lambda: SqliteDatabase(database.path, Kind.STATE)) == 3
    assert in_fork(lambda: SqliteDatabase(database.path.with_name("other.db"), Kind.STATE)) == 0
    assert store.incidents(Query()) == ()


def test_a_file_that_was_closed_before_the_fork_serves_both_sides(database, make):
    store = SqliteStore(database)
    store.commit(make.change(make.incident("inc-before")))
    database.close()
    assert in_fork(lambda: store.commit(make.change(make.incident("inc-child")))) == 0
    store.commit(make.change(make.incident("inc-parent")))
    assert {i.id for i in store.incidents(Query())} == {"inc-before", "inc-child", "inc-parent"}


PASSING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT COUNT(*) FROM heads").fetchone()
connection.close()
"""


def test_opening_the_file_twice_here_does_not_let_another_process_take_its_log_away(tmp_path, make):
    """A process that opens and closes the file beside SQLite loses its locks, and the next to leave deletes the log.

    https://www.sqlite.org/howtocorrupt.html, section 2.2.
    """
    path = tmp_path / "s.db"
    database = SqliteDatabase(path, Kind.STATE)
    SqliteStore(database).commit(make.change())
    second = SqliteDatabase(path, Kind.STATE)
    subprocess.run([sys.executable, "-c", PASSING, str(path)], check=True)
    assert path.with_name("s.db-wal").exists()
    SqliteStore(second).commit(make.change(make.incident("inc-b")))
    second.close()
    database.close()
    check = sqlite3.connect(path)
    assert check.execute("SELECT id FROM incidents ORDER BY id").fetchall() == [("inc-a",), ("inc-b",)]
    check.close()
