"""What only the bus in the SQLite file has: it tidies up after itself, and remembers who subscribed."""

from datetime import timedelta

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import Subscription
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.ports.bus import Topic

ONE = Subscription(name="one", topic=Topic.INCIDENTS)


@pytest.fixture
def clock(make):
    return make.FakeClock()


@pytest.fixture
def database(tmp_path):
    opened = SqliteDatabase(tmp_path / "s.db", Kind.STATE)
    yield opened
    opened.close()


def count(database, table):
    with database.reading() as db:
        return db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]


def test_an_acknowledged_body_is_gone_and_its_id_is_remembered_for_the_retention(database, clock, make):
    bus = EmbeddedBus(database, clock, [ONE], retention=timedelta(hours=1))
    first = bus.publish(make.message("m1"))
    bus.ack(bus.pull("one")[0])
    assert (count(database, "bus_messages"), count(database, "bus_seen")) == (0, 1)
    clock.go(3600)
    assert bus.publish(make.message("m1")) == first
    clock.go(1)
    bus.publish(make.message("other"))
    assert bus.publish(make.message("m1")) != first


def test_old_ids_do_not_pile_up(database, clock, make):
    """Every publishing forgets a few old ones: after ten retentions only the last one's ids are left."""
    bus = EmbeddedBus(database, clock, [ONE], retention=timedelta(seconds=50))
    for n in range(500):
        bus.publish(make.message(f"m{n}"))
        bus.ack(bus.pull("one")[0])
        clock.go(1)
    assert count(database, "bus_seen") <= 52
    assert count(database, "bus_messages") == 0


def test_a_body_stays_until_the_last_subscription_has_it(database, clock, make):
    bus = EmbeddedBus(database, clock, [ONE, ONE.with_(name="two")])
    bus.publish(make.message())
    bus.ack(bus.pull("one")[0])
    assert count(database, "bus_messages") == 1
    bus.ack(bus.pull("two")[0])
    assert count(database, "bus_messages") == 0


def test_a_message_nobody_hears_is_not_kept(database, clock, make):
    bus = EmbeddedBus(database, clock, [ONE])
    bus.publish(make.message(topic=Topic.TICK))
    assert count(database, "bus_messages") == 0


def test_a_process_that_only_publishes_reaches_subscriptions_of_another(database, clock, make):
    """Such as the command line beside the running service."""
    service = EmbeddedBus(database, clock, [ONE])
    EmbeddedBus(database, clock, []).publish(make.message())
    assert len(service.pull("one")) == 1
