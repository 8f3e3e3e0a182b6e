"""The record, as the command shows and checks it."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest

from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.entrypoints.cli.main import main

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Three rows, and the settings that lead to them; the path of the file."""
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path}")
    path = tmp_path / "control.sqlite"
    database = SqliteDatabase(path, Kind.CONTROL)
    control = SqliteControlStore(database)
    body = json.dumps({"plan": "p-a-1", "channel": "slack", "why": "too \x1b[31mbig"})
    control.append(at=AT, kind="decision.reject", incident="inc-a", who="Ada\x1b]0;x\x07", body=body)
    control.append(at=AT, kind="effect.apply", incident="inc-a", who="on_decision", body="e1 rev-1")
    control.append(at=AT, kind="effect.roll_back", incident="inc-a", who="on_decision", body="e2 rev-2")
    database.close()
    return path


def said(capsys, *words):
    code = main(["audit", *words])
    return code, capsys.readouterr().out


def test_rows_are_shown_without_terminal_escapes(record, capsys):
    code, out = said(capsys, "show")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["ROW", "1", "2", "3"]
    assert "p-a-1 through slack: too big" in out
    assert "\x1b" not in out


def test_only_the_newest_are_shown(record, capsys):
    rows = [json.loads(line) for line in said(capsys, "show", "--limit", "2", "--json")[1].splitlines()]
    assert [row["number"] for row in rows] == [2, 3]


def test_a_sound_record_is_sound_and_names_its_last_chain(record, capsys):
    code, out = said(capsys, "verify", "--json")
    found = json.loads(out)
    assert (code, found["soundness"], found["number"]) == (0, "sound", 3)
    assert said(capsys, "verify", "--chain", found["last_chain"])[0] == 0


def test_a_record_without_rows_says_so_and_names_no_chain(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path}")
    code, out = said(capsys, "verify")
    assert (code, out) == (0, "sound: it has no rows yet; nothing was decided or changed\n")


def changed(path, statement):
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER audit_is_never_changed")
        db.execute("DROP TRIGGER audit_is_never_shortened")
        db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE audit SET who = 'eve' WHERE number = 2", "row 2 says something else"),
        ("DELETE FROM audit WHERE number = 2", "row 2 is missing"),
        ("DELETE FROM audit WHERE number = 1", "begins at row 2"),
    ],
)
def test_a_changed_record_is_found_out(record, capsys, statement, says):
    changed(record, statement)
    code, out = said(capsys, "verify")
    assert code == 1
    assert says in out


def test_a_shortened_record_is_found_out_by_a_chain_noted_before(record, capsys):
    last = json.loads(said(capsys, "verify", "--json")[1])["last_chain"]
    changed(record, "DELETE FROM audit WHERE number = 3")
    assert said(capsys, "verify")[0] == 0
    assert said(capsys, "verify", "--chain", last)[0] == 1
