"""The shelf of profiles keeps exactly what it was given."""

import json
import sqlite3
from dataclasses import replace

import pytest

from agent.adapters.store.sqlite.profiles import SqliteProfileShelf, from_json, to_json
from agent.catalogue.load_fit import load_fit_catalogue
from agent.errors import DependencyFailed
from agent.fit.checkpoint.checkpoint import ModelProfile
from agent.fit.model_and_hardware import TensorGroup


@pytest.fixture
def profile():
    facts = load_fit_catalogue().models.find("google/gemma-4-E2B-it")
    return ModelProfile(
        name="a",
        source="gs://b/a",
        read_at="2026-11-21T00:00:00Z",
        facts=replace(facts, measured_bytes=((TensorGroup.MLP, 17),)),
        dtype_bytes=(("BF16", 17),),
        tensors=1,
        shards=1,
        contradictions=("vocab: bundled 1, checkpoint 2; the checkpoint's is used",),
    )


@pytest.fixture
def shelf(tmp_path):
    return SqliteProfileShelf(tmp_path / "state" / "sre.sqlite")


def test_a_profile_comes_back_equal_in_every_field(shelf, profile):
    shelf.put(profile)
    assert shelf.get("a") == profile


@pytest.mark.slow
def test_every_bundled_model_survives_the_shelf(shelf, profile):
    models = load_fit_catalogue().models
    for name in models.names:
        shelf.put(replace(profile, name=name, facts=models.find(name)))
    assert {held.name: held.facts for held in shelf.list()} == {name: models.find(name) for name in models.names}


def test_what_an_older_row_does_not_say_is_not_known(profile):
    """False would promise that flags leave out all of a tower."""
    row = json.loads(to_json(profile))
    assert row["facts"]["vision"].pop("unnamed") is False
    assert from_json(json.dumps(row).encode(), where="row").facts.vision.unnamed is None


def test_the_last_one_put_wins(shelf, profile):
    shelf.put(profile)
    shelf.put(replace(profile, source="hf:x/a"))
    assert [held.source for held in shelf.list()] == ["hf:x/a"]


def test_an_empty_shelf_has_nothing_and_makes_no_file(shelf, tmp_path):
    assert shelf.get("a") is None
    assert shelf.list() == ()
    assert not (tmp_path / "state").exists()


def test_another_table_in_the_file_is_left_alone(shelf, profile, tmp_path):
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "sre.sqlite") as database:
        database.execute("CREATE TABLE incidents (id TEXT)")
        database.execute("INSERT INTO incidents VALUES ('i1')")
    database.close()
    assert shelf.list() == ()
    shelf.put(profile)
    again = sqlite3.connect(tmp_path / "state" / "sre.sqlite")
    assert again.execute("SELECT id FROM incidents").fetchall() == [("i1",)]
    again.close()


def test_a_damaged_profile_is_said_and_how_to_mend_it(shelf, profile, tmp_path):
    shelf.put(profile)
    database = sqlite3.connect(tmp_path / "state" / "sre.sqlite")
    with database:
        database.execute("UPDATE profiles SET body = '{\"name\": 1}'")
    database.close()
    with pytest.raises(DependencyFailed, match="models add"):
        shelf.get("a")


def test_a_file_that_is_no_database_is_a_dependency_that_failed(tmp_path, profile):
    (tmp_path / "x").write_text("not a database, " * 100)
    with pytest.raises(DependencyFailed, match="not reached"):
        SqliteProfileShelf(tmp_path / "x").put(profile)
