"""SQL by name: every statement is well formed, used, and finds its rows without walking a table."""

import re
from pathlib import Path

import pytest

from agent.adapters.store.named_sql import migrations, parse, queries, statements
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind

ADAPTERS = Path(__file__).resolve().parents[4] / "agent" / "adapters"
USERS = {
    "state": (
        "store/sqlite/store.py",
        "store/sqlite/cards.py",
        "store/sqlite/service_records.py",
    ),
    "bus": ("bus/embedded.py", "bus/dead_letters.py", "bus/quarantine/sqlite.py"),
    "control": ("store/sqlite/control.py",),
}
FILE_OF = {"state": Kind.STATE, "bus": Kind.STATE, "control": Kind.CONTROL}
ALL = [(stem, name) for stem in USERS for name in queries(stem)]

# Walked whole on purpose: tables of one row, small ones, or a question that is asked once a minute.
WALKS = {
    "latest",
    "deliveries_add",
    "kill_switch",
    "outbox_incidents",
    "request_counts_since",  # a row for each service and hour
    "waiting",
    "oldest",  # ends at the first message that is no dead letter
    "begun_count",  # a row for each change that ever began; counted once before a change, over an index
    "audit_last",
    "audit_newest",
    "quarantine_rows",
    "quarantine_letters",  # newest first by its index; ends at the limit
}


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    opened = {kind: SqliteDatabase(folder / f"{kind.prefix}.db", kind) for kind in Kind}
    yield opened
    for database in opened.values():
        database.close()


@pytest.mark.parametrize(("stem", "name"), ALL, ids=lambda part: part)
def test_every_statement_is_used_and_walks_no_table(databases, stem, name):
    sources = "".join((ADAPTERS / user).read_text() for user in USERS[stem])
    assert f'"{name}"' in sources
    steps = plan_of(databases[FILE_OF[stem]], queries(stem)[name])
    if name not in WALKS:
        assert not [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step], steps
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "run",
        "service",
        "open_only",
        "run service",
        "service open_only",
        "run before",
        "open_only before",
        "waits_in",
        "service waits_in",
    ],
)
def test_listing_incidents_sorts_nothing(databases, clauses):
    from agent.adapters.store.sqlite.store import _CLAUSES

    where = " AND ".join(_CLAUSES[c] for c in clauses.split()) or "1"
    steps = plan_of(
        databases[Kind.STATE], f"SELECT body FROM incidents WHERE {where} ORDER BY opened_at DESC, id DESC LIMIT :limit"
    )
    assert all("USING INDEX" in step for step in steps), steps


def plan_of(database, statement):
    values = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
    with database.reading() as db:
        return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def test_names_are_read_with_their_statements():
    assert parse("-- a file\n-- name: one\nSELECT 1;\n\n-- name: two\n-- why\nSELECT\n  2;\n", "x") == {
        "one": "SELECT 1",
        "two": "-- why\nSELECT\n  2",
    }


@pytest.mark.parametrize("text", ["-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "SELECT 1;\n-- name: a\nSELECT 2;"])
def test_a_name_given_twice_or_a_statement_without_one_is_a_bug(text):
    with pytest.raises(AssertionError):
        parse(text, "x")


def test_a_script_is_split_at_its_statements_and_triggers_stay_whole():
    script = "CREATE TABLE a (b);\n-- why; because\nCREATE TRIGGER t BEFORE UPDATE ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\n"
    assert [s.split()[1] for s in statements(script.replace("-- why; because\n", ""))] == ["TABLE", "TRIGGER"]
    assert len(list(statements(script))) == 2


def test_a_script_that_ends_in_the_middle_is_a_bug():
    with pytest.raises(AssertionError, match="ends inside"):
        list(statements("CREATE TABLE a (b);\nCREATE TABLE c"))


def test_migrations_are_numbered_from_one_without_holes():
    assert [number for number, _ in migrations("state")] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [number for number, _ in migrations("control")] == [1, 2, 3, 4, 5, 6, 7]
