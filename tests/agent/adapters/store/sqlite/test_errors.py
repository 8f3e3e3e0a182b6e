"""Whatever sqlite3 raises becomes ours, with what to do."""

import sqlite3

import pytest

from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.errors import FOREIGN, DatabaseTimeout, translated
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.errors import DependencyFailed, InputRejected, SreError

CLASSES = sorted(
    (c for c in vars(sqlite3).values() if isinstance(c, type) and issubclass(c, Exception)), key=lambda c: c.__name__
)
CODES = sorted({n for n in dir(sqlite3) if n.startswith("SQLITE_") and isinstance(getattr(sqlite3, n), int)} & {
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM",
    "SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_NOMEM", "SQLITE_SCHEMA", "SQLITE_CONSTRAINT", "SQLITE_MISUSE",
    "SQLITE_PROTOCOL", "SQLITE_INTERRUPT", "SQLITE_IOERR_FSYNC", "SQLITE_BUSY_SNAPSHOT", "SQLITE_AUTH", "SQLITE_INTERNAL",
})  # fmt: skip


@pytest.fixture
def database(tmp_path):
    opened = SqliteDatabase(tmp_path / "s.db", Kind.STATE, busy_s=0.05)
    yield opened
    opened.close()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_every_exception_class_of_sqlite_is_translated_wherever_it_is_raised(database, kind):
    assert issubclass(kind, FOREIGN)
    for block in (database.reading, database.writing):
        with pytest.raises(SreError) as caught, block():
            raise kind("the disk said no")
        assert isinstance(caught.value.__cause__, kind)
        assert "the disk said no" in caught.value.why
        assert str(database.path) in caught.value.what


def test_the_walk_over_the_classes_is_not_empty():
    assert {c.__name__ for c in CLASSES} >= {
        "Error",
        "OperationalError",
        "IntegrityError",
        "ProgrammingError",
        "Warning",
    }


@pytest.mark.parametrize("code", CODES)
def test_every_result_code_asks_for_another_try_and_says_what_to_do(code):
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = getattr(sqlite3, code)
    error.sqlite_errorname = code
    ours = translated(error, "/var/lib/sre/s.db")
    assert isinstance(ours, DependencyFailed)
    assert ours.why.startswith(code)
    assert ours.hint


def test_one_full_message():
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
    assert str(translated(error, "s.db")) == (
        "the database 's.db' did not answer: SQLITE_FULL: database or disk is full. "
        "Hint: free space on the disk, then it goes on by itself"
    )


def test_a_number_that_no_column_holds_is_the_senders_mistake(database):
    with pytest.raises(InputRejected, match="OverflowError"), database.writing() as db:
        db.execute("INSERT INTO latest VALUES (1, ?)", (2**63,))


def test_half_a_character_is_the_senders_mistake_and_is_not_repeated(database):
    with pytest.raises(InputRejected) as caught:
        SqliteStore(database).knows("secret-\ud800")
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "s.db").write_bytes(b"this was never a database" * 100)
    with pytest.raises(DependencyFailed, match="SQLITE_NOTADB"):
        SqliteDatabase(tmp_path / "s.db", Kind.STATE)


def test_a_folder_in_place_of_the_file_is_named(tmp_path):
    with pytest.raises(DependencyFailed, match="SQLITE_CANTOPEN"):
        SqliteDatabase(tmp_path, Kind.STATE)


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DependencyFailed, match=r"Not a directory|File exists|CANTOPEN"):
        SqliteDatabase(tmp_path / "file" / "s.db", Kind.STATE)


def test_a_damaged_page_is_told_apart(tmp_path):
    path = tmp_path / "s.db"
    database = SqliteDatabase(path, Kind.STATE)
    with database.writing() as db:
        db.executemany("INSERT INTO heads VALUES (?, 'x' || zeroblob(200))", [(str(n),) for n in range(2000)])
    database.close()
    body = bytearray(path.read_bytes())
    body[4096 * 20 :] = b"\xff" * (len(body) - 4096 * 20)
    path.write_bytes(body)
    with pytest.raises(DependencyFailed, match="SQLITE_CORRUPT"):
        SqliteDatabase(path, Kind.STATE)


def test_a_full_disk_leaves_nothing_behind_and_room_lets_it_go_on(database):
    """The page limit is SQLite's own, so that the error is the real one."""
    with database.reading() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DependencyFailed, match="SQLITE_FULL"), database.writing() as db:
        db.execute("INSERT INTO cards VALUES ('a', 'b', zeroblob(100000))")
    with database.reading() as db:
        assert db.execute("SELECT COUNT(*) FROM cards").fetchone() == (0,)
        db.execute("PRAGMA max_page_count = 100000")
    with database.writing() as db:
        db.execute("INSERT INTO cards VALUES ('a', 'b', zeroblob(100000))")


def test_a_file_that_another_process_writes_is_busy_not_lost(database):
    rival = sqlite3.connect(database.path, isolation_level=None)
    rival.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseTimeout, match="SQLITE_BUSY"):
        SqliteStore(database).sent(("m",))
    assert SqliteStore(database).head("x") is None
    rival.execute("ROLLBACK")
    SqliteStore(database).sent(("m",))
    rival.close()


def test_a_body_that_a_newer_program_wrote_is_not_guessed_at(database):
    with database.writing() as db:
        db.execute("INSERT INTO plans VALUES ('p', 'i', '{\"id\":\"p\",\"invented\":1}')")
    with pytest.raises(DependencyFailed, match="a stored Plan was not read"):
        SqliteStore(database).plan("p")
