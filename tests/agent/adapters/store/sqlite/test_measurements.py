"""Measurements are kept once, survive a new process, and can be removed."""

import sqlite3

import pytest

from agent.adapters.store.sqlite.measurements import SqliteMeasurements
from agent.errors import DependencyFailed
from tests.agent.fit.speed.test_calibration import measured


def test_the_same_measurement_twice_is_one(tmp_path):
    store = SqliteMeasurements(tmp_path / "folder" / "m.sqlite")
    assert store.list() == ()
    assert not store.remove("m-1")
    assert store.add([measured(1, 0.6), measured(2, 0.61)]) == 2
    assert store.add([measured(2, 0.61), measured(3, 0.62)]) == 1
    again = SqliteMeasurements(tmp_path / "folder" / "m.sqlite")
    assert again.list() == (measured(1, 0.6), measured(2, 0.61), measured(3, 0.62))
    assert again.remove("m-2")
    assert not again.remove("m-2")
    assert [each.id for each in store.list()] == ["m-1", "m-3"]


def test_what_cannot_be_read_is_a_failed_dependency(tmp_path):
    path = tmp_path / "m.sqlite"
    store = SqliteMeasurements(path)
    store.add([measured(1, 0.6)])
    with sqlite3.connect(path) as database:
        database.execute("UPDATE measurements SET body = '{}'")
    with pytest.raises(DependencyFailed, match="calibration remove m-1"):
        store.list()
    assert store.remove("m-1")
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(DependencyFailed, match="not reached"):
        store.list()
