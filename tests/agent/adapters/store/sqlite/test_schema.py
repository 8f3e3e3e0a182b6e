"""Whose a file is, which version it has, and how an older one is brought up to date."""

import sqlite3
import stat

import pytest

from agent.adapters.store.named_sql import migrations
from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase, connect
from agent.adapters.store.sqlite.schema import Kind, prepare
from agent.adapters.store.sqlite.store import SqliteStore
from agent.core.decision.decision import Channel, PersonAct
from agent.core.incident.phase import Phase
from agent.core.incident.renotify import waits_in
from agent.errors import InputRejected
from agent.ports.store import Query

OLD = ((1, "CREATE TABLE a (b);"),)
NEW = (*OLD, (2, "ALTER TABLE a ADD COLUMN c DEFAULT 7;\nCREATE INDEX i ON a (c);"))
BROKEN = (*OLD, (2, "ALTER TABLE a ADD COLUMN c;\nCREATE TABLE a (twice);"))


def prepared(path, scripts, kind=Kind.STATE):
    connection = connect(str(path), 1)
    prepare(connection, kind, scripts, path=str(path), busy_s=1)
    return connection


def version(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def test_a_new_file_is_made_with_its_folder_for_its_owner_alone(tmp_path):
    path = tmp_path / "deep" / "er" / "s.db"
    SqliteDatabase(path, Kind.STATE).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert version(path) == len(migrations("state"))


def test_an_older_file_is_brought_up_to_date_and_keeps_its_rows(tmp_path):
    old = prepared(tmp_path / "s.db", OLD)
    old.execute("INSERT INTO a VALUES ('kept')")
    old.close()
    new = prepared(tmp_path / "s.db", NEW)
    assert new.execute("SELECT b, c FROM a").fetchall() == [("kept", 7)]
    new.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path):
    prepared(tmp_path / "s.db", OLD).close()
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        prepared(tmp_path / "s.db", BROKEN)
    assert version(tmp_path / "s.db") == 1
    prepared(tmp_path / "s.db", NEW).close()


def test_a_newer_file_is_refused_with_both_versions(tmp_path):
    prepared(tmp_path / "s.db", NEW).close()
    with pytest.raises(InputRejected) as caught:
        prepared(tmp_path / "s.db", OLD)
    assert str(caught.value) == (
        f"the database {str(tmp_path / 's.db')!r} was not opened: its schema has version 2, this program knows 1. "
        "Hint: run the newer program, or restore the copy that was made before the upgrade"
    )


def test_the_control_file_is_not_taken_for_the_state_file(tmp_path):
    SqliteDatabase(tmp_path / "c.db", Kind.CONTROL).close()
    with pytest.raises(InputRejected, match="not the state database"):
        SqliteDatabase(tmp_path / "c.db", Kind.STATE)


def test_a_foreign_database_is_not_written_to(tmp_path):
    foreign = sqlite3.connect(tmp_path / "f.db")
    foreign.executescript("PRAGMA user_version = 1; CREATE TABLE theirs (x);")
    foreign.close()
    with pytest.raises(InputRejected, match="application id"):
        SqliteDatabase(tmp_path / "f.db", Kind.STATE)


def test_a_table_that_stands_in_the_file_already_stays(tmp_path):
    """The shelf of model profiles may have made the file."""
    shelf = sqlite3.connect(tmp_path / "s.db")
    shelf.executescript("CREATE TABLE profiles (name TEXT); INSERT INTO profiles VALUES ('mine');")
    shelf.close()
    database = SqliteDatabase(tmp_path / "s.db", Kind.STATE)
    with database.reading() as db:
        assert db.execute("SELECT name FROM profiles").fetchall() == [("mine",)]
    database.close()


def test_many_who_open_a_new_file_at_once_all_find_it_ready(tmp_path, make):
    def open_(n):
        database = SqliteDatabase(tmp_path / "s.db", Kind.STATE)
        with database.writing() as db:
            db.execute("INSERT INTO heads VALUES (?, 'x')", (str(n),))
        database.close()
        return n

    assert make.together(8, open_) == list(range(8))
    assert version(tmp_path / "s.db") == len(migrations("state"))


def test_the_record_of_the_control_file_can_only_grow(tmp_path):
    database = SqliteDatabase(tmp_path / "c.db", Kind.CONTROL)
    with database.writing() as db:
        db.execute("INSERT INTO audit VALUES (1, 0, 'k', 'i', 'w', 'b', 'c')")
    for statement in (
        "UPDATE audit SET who = 'me'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit VALUES (1, 0, '', '', '', '', '')",
    ):
        connection = sqlite3.connect(tmp_path / "c.db")
        connection.execute("PRAGMA recursive_triggers = ON")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
        connection.close()
    database.close()


def test_changes_begun_before_intents_were_kept_can_be_undone_and_never_applied(tmp_path, make):
    """Template, traffic and time are carried over byte by byte; what was only used, or only kept, is not enough."""
    path = tmp_path / "control.sqlite"
    old = prepared(path, migrations("control")[:2], Kind.CONTROL)
    at = round(make.T0.timestamp() * 1_000_000)
    template = '{"a": "\u202e \' \\u0000"}'
    old.execute("INSERT INTO receipts VALUES ('d1', 'e1', 'gemma', ?), ('d2', 'e2', 'gemma', ?)", (at, at))
    old.execute("INSERT INTO priors VALUES ('e1', ?, '[]'), ('e3', '{}', '[]')", (template,))
    old.close()
    database = SqliteDatabase(path, Kind.CONTROL)
    control = SqliteControlStore(database)
    kept = control.intent("e1")
    assert (kept.prior_template, kept.prior_traffic, kept.service, kept.decision) == (template, "[]", "gemma", "d1")
    assert kept.applied_at == make.T0
    assert (kept.etag, kept.target) == ("", None)
    assert control.intent("e2") is None
    assert control.intent("e3") is None
    database.close()


def test_a_sqlite_that_is_too_old_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    """RHEL 8 brings 3.26, which knows no RETURNING: said when the file is opened, not in the middle of a stage."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 26, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.26.0")
    with pytest.raises(
        InputRejected, match=r"has SQLite 3\.26\.0, and 3\.35\.0 or newer is needed\. Hint: use a Python"
    ):
        SqliteDatabase(tmp_path / "s.db", Kind.STATE)
    assert (tmp_path / "s.db").read_bytes() == b""


def test_what_waits_for_a_person_is_known_after_an_upgrade_as_before_it(tmp_path, make):
    """A file of version 6 told incidents apart in their bodies alone; each field that counts, beside every phase."""
    act = PersonAct(who="ben", name="ben", channel=Channel.CONSOLE, verified=True, at=make.T0)
    fields = [{}, {"assignee": "ben"}, {"acknowledged": act}, {"replan": act}, {"run": "replay-1"}]
    fields += [{"request": make.request()}, {"ended_why": '"phase":"ESCALATED"'}]
    rows = [make.incident(f"{p}-{n}", phase=p, **more) for p in Phase for n, more in enumerate(fields)]
    old = prepared(tmp_path / "s.db", migrations("state")[:6])
    for row in rows:
        values = (row.id, row.run, row.service, row.model_dump_json())
        old.execute("INSERT INTO incidents VALUES (?, 1, ?, ?, 0, 1, NULL, ?)", values)
    old.close()
    database = SqliteDatabase(tmp_path / "s.db", Kind.STATE)
    for phase in Phase:
        found = {i.id for i in SqliteStore(database).incidents(Query(waits_in=phase, limit=100))}
        assert found == {row.id for row in rows if waits_in(row) is phase}
    assert [waits_in(row) for row in rows].count(Phase.ESCALATED) == 3
    database.close()
