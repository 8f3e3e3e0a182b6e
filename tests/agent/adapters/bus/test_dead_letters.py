"""Dead letters of the queue on this machine: shown, delivered again at most once, and never lost on the way."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.bus.dead_letters import SqliteDeadLetters
from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import default_subscriptions
from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.ports.bus import Delivery, Message, Topic

INCIDENTS = f"{Topic.INCIDENTS}-sub"


class Clock:
    at = datetime(2026, 11, 22, tzinfo=UTC)

    def now(self):
        return self.at


class Queue:
    """A queue, its quarantine and its dead letters in one file."""

    def __init__(self, folder):
        self.clock = Clock()
        self.database = SqliteDatabase(folder / "sre.sqlite", Kind.STATE)
        self.bus = EmbeddedBus(self.database, self.clock, default_subscriptions())
        self.quarantine = SqliteQuarantine(self.database, self.clock, redact=str)
        self.letters = SqliteDeadLetters(self.database, self.clock)

    def give_up(self, data="{}", **attributes):
        """Let a message be delivered as often as its subscription allows, and once more."""
        self.bus.publish(Message(id=f"m-{data}", topic=Topic.INCIDENTS, data=data, attributes=attributes))
        while pulled := self.bus.pull(INCIDENTS):
            self.bus.retry(pulled[0], delay_s=0)

    def put_aside(self, data=b"{}", topic=Topic.INCIDENTS, name="7", **attributes):
        delivery = Delivery(topic=topic, message_id=name, data=data, attributes=attributes, subscription=f"{topic}-sub")
        self.quarantine.put(delivery, "it cannot be read")
        return delivery

    def pulled(self):
        return [(p.delivery.topic, p.delivery.data, p.delivery.attributes) for p in self.bus.pull(INCIDENTS, 10)]


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path)


def test_both_kinds_are_shown_newest_first_with_their_reason(queue):
    queue.give_up('{"a": 1}', incident="inc-1")
    queue.clock.at += timedelta(minutes=1)
    queue.put_aside(b'{"b": 2}', incident="inc-2")
    found = queue.letters.letters()
    assert [(i.topic, i.data, i.attributes, i.kept_because) for i in found] == [
        (Topic.INCIDENTS, '{"b": 2}', {"incident": "inc-2"}, ""),
        (Topic.INCIDENTS, '{"a": 1}', {"incident": "inc-1"}, ""),
    ]
    assert found[0].reason == "it cannot be read"
    assert found[1].reason == f"20 deliveries to {INCIDENTS} came to nothing"
    assert queue.letters.letters(limit=1) == found[:1]


@pytest.mark.parametrize("kind", ["give_up", "put_aside"])
def test_delivered_again_it_reaches_its_receiver_once_and_is_gone_from_the_list(queue, kind):
    getattr(queue, kind)(data='{"a": 1}' if kind == "give_up" else b'{"a": 1}', incident="inc-1")
    (letter,) = queue.letters.letters()
    assert [queue.letters.deliver_again(letter.key) for _ in range(3)] == [True, False, False]
    assert queue.pulled() == [(Topic.INCIDENTS, b'{"a": 1}', {"incident": "inc-1"})]
    assert queue.letters.letters() == ()
    assert queue.letters.letter(letter.key) is None


def test_of_many_who_press_at_once_one_delivers(queue):
    queue.put_aside()
    (letter,) = queue.letters.letters()
    done: list[bool] = []
    racers = [threading.Thread(target=lambda: done.append(queue.letters.deliver_again(letter.key))) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(done) == [False] * 7 + [True]
    assert len(queue.pulled()) == 1


def test_what_fails_again_becomes_a_dead_letter_again(queue):
    queue.give_up()
    (letter,) = queue.letters.letters()
    queue.letters.deliver_again(letter.key)
    while pulled := queue.bus.pull(INCIDENTS):
        queue.bus.retry(pulled[0], delay_s=0)
    (again,) = queue.letters.letters()
    assert again.key != letter.key


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"data": b"\xff\xfe"}, "its body is no text"),
        ({"topic": Topic.DEAD_LETTER}, "nobody here receives"),
    ],
    ids=["binary", "a dead letter's own topic"],
)
def test_what_could_never_be_handled_stays(queue, given, why):
    queue.put_aside(**given)
    (letter,) = queue.letters.letters()
    assert why in letter.kept_because
    assert not queue.letters.deliver_again(letter.key)
    assert len(queue.letters.letters()) == 1


@pytest.mark.parametrize("key", ["", "q:", "q:nothing", "d:", "d:x", "d:1", "d:²", "d:" + "9" * 40, "x:1"])
def test_a_key_of_nothing_delivers_nothing(queue, key):
    queue.put_aside()
    assert queue.letters.letter(key) is None
    assert not queue.letters.deliver_again(key)
    assert len(queue.letters.letters()) == 1


def test_a_failure_in_between_loses_nothing(queue, monkeypatch):
    """The message is taken away and delivered in one transaction: either both happened, or neither."""
    from agent.adapters.bus import dead_letters as module

    queue.put_aside()
    (letter,) = queue.letters.letters()

    def broken(*_a):
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "add_message", broken)
        with pytest.raises(OSError, match="no space"):
            queue.letters.deliver_again(letter.key)
    assert queue.letters.letters() == (letter,)
    assert queue.letters.deliver_again(letter.key)
