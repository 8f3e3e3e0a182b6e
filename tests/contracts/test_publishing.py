"""What every bus promises to whoever publishes: accepted when the call returns, at least one delivery, errors of ours."""

import pytest

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pubsub import PubSubBus
from agent.adapters.bus.pulling import Subscription
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.core.value import canonical
from agent.entrypoints.pubsub.delivery import delivery_of
from agent.errors import DependencyFailed, InputRejected
from agent.ports.bus import Topic

NAMES = ("one", "two")


class Queue:
    """A bus that is pulled from, and what arrived at its two subscriptions."""

    def __init__(self, bus):
        self.bus = bus

    def arrived(self, name, count):
        found = []
        while len(found) < count and (came := self.bus.pull(name, 100)):
            assert all(self.bus.ack(arrival) for arrival in came)
            found += [arrival.delivery for arrival in came]
        return found


class PubSub:
    """Pub/Sub as the emulator plays it; what arrives is read as the functions read a push."""

    def __init__(self, emulator, project):
        self.bus = PubSubBus(project, emulator=emulator.host)
        self._emulator = emulator
        topic = emulator.topic(Topic.INCIDENTS, project)
        emulator.topic(Topic.TICK, project)
        self._paths = {name: emulator.subscribe(name, topic, project) for name in NAMES}

    def arrived(self, name, count):
        found = []
        while len(found) < count and (came := self._emulator.pull(self._paths[name])):
            found += [self._delivery(name, arrival.message) for arrival in came]
        return found

    def _delivery(self, name, message):
        wire = type(message).to_dict(message)
        return delivery_of({"message": wire, "subscription": name}, topic=Topic.INCIDENTS)


def subscriptions():
    return [Subscription(name=name, topic=Topic.INCIDENTS) for name in NAMES]


@pytest.fixture(params=["embedded", pytest.param("pubsub", marks=pytest.mark.emulator)])
def heard(request, clock):
    """A bus with two subscriptions to one topic."""
    if request.param == "embedded":
        return Queue(EmbeddedBus(InMemoryDatabase(Kind.STATE), clock, subscriptions()))
    emulator = request.getfixturevalue("pubsub_emulator")
    return PubSub(emulator, request.getfixturevalue("pubsub_project"))


@pytest.mark.journey
def test_a_message_arrives_as_it_was_sent(heard, make):
    sent = make.message("m1", data='{"a":"\u00e9\\u0000 \U0001f600"}', attributes={"run": "live", "k": "' \u202e"})
    number = heard.bus.publish(sent)
    (delivery,) = heard.arrived("one", 1)
    assert delivery.message_id == number
    assert delivery.data.decode() == sent.data
    assert sent.attributes.items() <= delivery.attributes.items()
    assert (delivery.topic, delivery.subscription) == (Topic.INCIDENTS, "one")


def test_every_subscription_gets_its_own_delivery(heard, make):
    heard.bus.publish(make.message())
    assert [len(heard.arrived(name, 1)) for name in NAMES] == [1, 1]


def test_what_returned_was_accepted(heard, make):
    """Fifty messages by four threads: each has an id of its own, each arrives at least once."""
    sent = make.together(
        4, lambda n: [heard.bus.publish(make.message(f"m{n}-{k}", data=f'"{n}-{k}"')) for k in range(12)]
    )
    numbers = [number for each in sent for number in each]
    assert len(set(numbers)) == 48
    assert {d.data for d in heard.arrived("one", 48)} == {canonical(f"{n}-{k}") for n in range(4) for k in range(12)}


def test_a_topic_that_nobody_hears_takes_messages(heard, make):
    assert heard.bus.publish(make.message(topic=Topic.TICK))


def test_publishing_again_is_never_refused(heard, make):
    """After a lost confirmation the same message is sent once more; it arrives, once or twice."""
    heard.bus.publish(make.message("m1"))
    heard.bus.publish(make.message("m1"))
    assert {d.data for d in heard.arrived("one", 1)} == {make.message("m1").data.encode()}


def test_a_message_over_one_megabyte_is_refused_before_it_is_sent(heard, make):
    assert heard.bus.publish(make.message("fits", data="x" * 1_000_000))
    with pytest.raises(InputRejected, match="its body has 1000001 bytes, the limit is 1000000"):
        heard.bus.publish(make.message("big", data="x" * 1_000_001))


@pytest.mark.emulator
class TestPubSub:
    """What only the real wire can show."""

    @pytest.fixture
    def pubsub(self, pubsub_emulator, pubsub_project):
        return PubSub(pubsub_emulator, pubsub_project)

    def test_id_and_trace_travel_as_attributes(self, pubsub_emulator, pubsub, pubsub_project, make):
        bus = PubSubBus(pubsub_project, emulator=pubsub_emulator.host, trace=lambda: "a" * 32)
        bus.publish(make.message("m1"))
        bus.publish(make.message("m2", attributes={"run": "live", "trace": "b" * 32}))
        first, second = sorted(pubsub.arrived("one", 2), key=lambda d: d.attributes["id"])
        assert first.attributes == make.message().attributes | {"id": "m1", "trace": "a" * 32}
        assert second.attributes["trace"] == "b" * 32

    def test_a_missing_topic_is_a_dependency_that_failed_and_says_how_to_mend_it(self, pubsub, make):
        with pytest.raises(DependencyFailed, match=r"was not confirmed by .*deploy\.sh"):
            pubsub.bus.publish(make.message(topic=Topic.DECISIONS))

    def test_nobody_there_is_a_dependency_that_failed_within_the_deadline(self, make):
        bus = PubSubBus("p", emulator="127.0.0.1:9", deadline_s=0.3)
        with pytest.raises(DependencyFailed, match="it is sent again"):
            bus.publish(make.message())
