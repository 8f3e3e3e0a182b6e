"""What every bus promises: at least once for each subscription, in no order, and not for ever."""

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import Subscription, default_subscriptions
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.errors import InputRejected
from agent.ports.bus import Topic

PATIENT = Subscription(name="incidents", topic=Topic.INCIDENTS, lease_s=60, backoff_min_s=10, backoff_max_s=600)
DEAD = Subscription(name="dead", topic=Topic.DEAD_LETTER, deliveries=None)


@pytest.fixture
def bus(clock):
    """A bus that one test opens once; in a file it runs the same statements."""
    return EmbeddedBus(InMemoryDatabase(Kind.STATE), clock, [PATIENT, DEAD])


def pulled(bus, subscription="incidents", limit=100):
    return list(bus.pull(subscription, limit))


class TestDelivery:
    def test_a_published_message_arrives_as_it_was_sent(self, bus, make, clock):
        sent = make.message("m1", data='{"a":"\u00e9\\u0000 \U0001f600"}', attributes={"run": "live", "k": "' \u202e"})
        number = bus.publish(sent)
        (arrival,) = pulled(bus)
        delivery = arrival.delivery
        assert (delivery.topic, delivery.message_id, delivery.attempt) == (Topic.INCIDENTS, number, 1)
        assert (delivery.data.decode(), delivery.attributes) == (sent.data, sent.attributes)
        assert (delivery.subscription, delivery.published_at) == ("incidents", clock.now())

    def test_an_acknowledged_message_never_comes_back(self, bus, make, clock):
        bus.publish(make.message())
        assert bus.ack(pulled(bus)[0])
        clock.go(10**6)
        assert pulled(bus) == []
        assert bus.waiting()["incidents"] == 0

    def test_the_oldest_message_that_waits_says_how_old_the_queue_is(self, bus, make, clock):
        assert bus.oldest_s() == 0
        bus.publish(make.message("m1"))
        clock.go(30)
        bus.publish(make.message("m2"))
        clock.go(5)
        assert bus.oldest_s() == 35
        first = pulled(bus, limit=1)[0]
        assert bus.oldest_s() == 35, "it is worked on, and not done"
        assert bus.ack(first)
        assert bus.oldest_s() == 5
        clock.go(-60)
        assert bus.oldest_s() == 0, "no age is below nothing, whatever the clock does"

    def test_dead_letters_do_not_make_the_queue_old(self, open_bus, make, clock):
        bus = open_bus([PATIENT.with_(deliveries=1), DEAD])
        bus.publish(make.message())
        for _ in range(2):
            pulled(bus)
            clock.go(3600)
        assert bus.waiting() == {"incidents": 0, "dead": 1}
        assert bus.oldest_s() == 0

    def test_a_leased_message_is_nobody_elses(self, bus, make, clock):
        bus.publish(make.message())
        pulled(bus)
        clock.go(59.9)
        assert pulled(bus) == []

    def test_a_message_whose_worker_died_comes_back(self, bus, make, clock):
        bus.publish(make.message())
        first = pulled(bus)[0]
        clock.go(60)
        (second,) = pulled(bus)
        assert (second.delivery.message_id, second.delivery.attempt) == (first.delivery.message_id, 2)

    def test_work_that_goes_on_keeps_its_lease(self, bus, make, clock):
        bus.publish(make.message())
        arrival = pulled(bus)[0]
        for _ in range(5):
            clock.go(50)
            assert bus.extend(arrival)
            assert pulled(bus) == []
        assert bus.ack(arrival)

    def test_a_worker_that_lost_its_lease_changes_nothing(self, bus, make, clock):
        """Neither its acknowledgement nor its wish for a retry touches the delivery that counts now."""
        bus.publish(make.message())
        late = pulled(bus)[0]
        clock.go(60)
        (ours,) = pulled(bus)
        assert not bus.ack(late)
        assert not bus.retry(late, delay_s=0)
        assert not bus.extend(late)
        assert pulled(bus) == []
        assert bus.ack(ours)

    def test_oldest_first_and_no_more_than_asked(self, bus, make, clock):
        for n in range(5):
            bus.publish(make.message(f"m{n}", data=str(n)))
            clock.go(1)
        assert [a.delivery.data for a in pulled(bus, limit=2)] == [b"0", b"1"]
        assert [a.delivery.data for a in pulled(bus, limit=9)] == [b"2", b"3", b"4"]

    def test_every_subscription_of_a_topic_gets_its_own_delivery(self, open_bus, make):
        both = [PATIENT, PATIENT.with_(name="second")]
        bus = open_bus(both)
        bus.publish(make.message())
        (one,), (two,) = pulled(bus), pulled(bus, "second")
        assert one.delivery.data == two.delivery.data
        assert bus.ack(one)
        assert bus.waiting() == {"incidents": 0, "second": 1}
        assert bus.ack(two)

    def test_a_topic_that_nobody_hears_takes_messages(self, bus, make):
        assert bus.publish(make.message(topic=Topic.TICK))
        assert bus.waiting() == {"incidents": 0, "dead": 0}

    def test_another_handle_gets_what_was_published(self, open_bus, make):
        open_bus([PATIENT, DEAD]).publish(make.message())
        other = open_bus([PATIENT, DEAD])
        assert len(pulled(other)) == 1

    def test_racing_workers_never_hold_one_delivery_together(self, open_bus, make):
        buses = [open_bus([PATIENT, DEAD]) for _ in range(4)]
        for n in range(40):
            buses[0].publish(make.message(f"m{n}"))

        def work(n):
            mine = []
            while arrivals := buses[n].pull("incidents", 3):
                mine += [a.delivery.message_id for a in arrivals]
                assert all(buses[n].ack(a) for a in arrivals)
            return mine

        results = make.together(4, work)
        everything = [m for mine in results for m in mine]
        assert len(everything) == len(set(everything)) == 40
        assert buses[0].waiting()["incidents"] == 0


class TestPublishing:
    def test_the_same_message_twice_is_kept_once(self, bus, make):
        first = bus.publish(make.message("m1"))
        assert bus.publish(make.message("m1")) == first
        assert bus.publish(make.message("m2")) != first
        assert len(pulled(bus)) == 2

    def test_the_same_message_is_noticed_after_it_was_handled(self, bus, make, clock):
        bus.publish(make.message("m1"))
        bus.ack(pulled(bus)[0])
        clock.go(3600)
        bus.publish(make.message("m1"))
        assert pulled(bus) == []

    def test_a_message_over_one_megabyte_is_refused(self, bus, make):
        bus.publish(make.message("fits", data="x" * 1_000_000))
        with pytest.raises(InputRejected, match="its body has 1000001 bytes, the limit is 1000000"):
            bus.publish(make.message("big", data="x" * 999_999 + "\u00e9"))


class TestRetry:
    def test_the_wait_doubles_from_the_least_to_the_most(self, open_bus, make, clock):
        bus = open_bus([PATIENT.with_(deliveries=None)])
        bus.publish(make.message())
        for wait_s in (10, 20, 40, 80, 160, 320, 600, 600, 600):
            (arrival,) = pulled(bus)
            bus.retry(arrival)
            clock.go(wait_s - 0.1)
            assert pulled(bus) == []
            clock.go(0.1)

    def test_a_rehearsal_compresses_the_waits(self, open_bus, make, clock):
        bus = open_bus([PATIENT.with_(compression=100)])
        bus.publish(make.message())
        bus.retry(pulled(bus)[0])
        clock.go(0.09)
        assert pulled(bus) == []
        clock.go(0.02)
        assert len(pulled(bus)) == 1

    def test_the_worker_may_name_the_wait(self, bus, make, clock):
        bus.publish(make.message())
        bus.retry(pulled(bus)[0], delay_s=3)
        clock.go(2.9)
        assert pulled(bus) == []
        clock.go(0.1)
        assert pulled(bus)[0].delivery.attempt == 2


class TestDeadLetters:
    def test_after_twenty_deliveries_a_message_is_put_away(self, bus, make, clock):
        bus.publish(make.message("m1", data="poison", attributes={"run": "live"}))
        attempts = []
        for _ in range(25):
            for arrival in pulled(bus):
                attempts.append(arrival.delivery.attempt)
                bus.retry(arrival, delay_s=0)
        assert attempts == list(range(1, 21))
        assert bus.waiting() == {"incidents": 0, "dead": 1}
        (dead,) = pulled(bus, "dead")
        assert (dead.delivery.data, dead.delivery.topic) == (b"poison", Topic.DEAD_LETTER)
        source = "CloudPubSubDeadLetterSource"
        assert dead.delivery.attributes == {
            "run": "live",
            f"{source}DeliveryCount": "20",
            f"{source}Subscription": "incidents",
            f"{source}TopicPublishTime": "2026-11-21T06:00:00.000+00:00",
        }

    def test_poison_does_not_hold_up_the_others(self, bus, make, clock):
        bus.publish(make.message("poison", data="poison"))
        handled = []
        for n in range(60):
            bus.publish(make.message(f"good{n}", data="good"))
            for arrival in pulled(bus):
                good = arrival.delivery.data == b"good"
                bus.ack(arrival) if good else bus.retry(arrival, delay_s=0)
                handled += [good]
        assert handled.count(True) == 60
        assert handled.count(False) == 20

    def test_a_dead_letter_is_kept_however_often_it_is_looked_at(self, bus, make):
        bus.publish(make.message(topic=Topic.DEAD_LETTER))
        for _ in range(30):
            (arrival,) = pulled(bus, "dead")
            bus.retry(arrival, delay_s=0)


class TestWaiting:
    def test_publishing_wakes_whoever_waits_in_this_process(self, bus, make):
        """A wait of an hour ends at once."""

        def work(n):
            if n:
                return bus.publish(make.message())
            bus.wait(0)
            while not (found := pulled(bus)):
                bus.wait(3600)
            return found

        found, _ = make.together(2, work)
        assert len(found) == 1


def test_every_topic_has_a_subscription_by_default():
    subscriptions = default_subscriptions()
    assert {s.topic for s in subscriptions} == set(Topic)
    assert {s.deliveries for s in subscriptions if s.topic is not Topic.DEAD_LETTER} == {20}
