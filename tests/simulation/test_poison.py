"""R7: poison cannot block: put aside with its reason after five handled failures at most, while the good goes through."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.app import build_app_in_memory
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.service import entry_message, handlers
from agent.errors import DependencyFailed
from agent.ports.bus import Message, Outcome, Topic
from agent.ports.stage_context import Owner
from agent.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
GOOD, POISON = 400, 8  # two in a hundred
HANDLED_FAILURES = 5


WAYS = {
    "poison-bug": lambda: ZeroDivisionError("a bug that this entry wakes"),
    "poison-dependency": lambda: DependencyFailed("not stored", why="refused", hint="later"),
    "poison-timeout": lambda: TimeoutError("the store did not answer in time"),
}


class ToxicStore:
    """The real store, but for entries that carry a word: each breaks it in its own way, every time."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def accept(self, signal, incident_id):
        self._break(signal)
        return self._store.accept(signal, incident_id)

    def commit(self, change):
        for signal in change.signals:
            self._break(signal)
        return self._store.commit(change)

    def _break(self, signal):
        for word, error in WAYS.items():
            if word in signal.text:
                raise error()


def entry(number, text):
    recorded = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])
    return recorded | {"insertId": f"n{number}", "textPayload": text}


class Poisoned:
    """The intake on a queue, with a store that some entries break; counts what is worked on."""

    def __init__(self, folder):
        self.clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
        made = build_app_in_memory(settings, clock=self.clock, state=folder)
        store = ToxicStore(made.store)
        self.installation = dataclasses.replace(made, store=store)
        self.outcomes = {}
        intake = handlers(self.installation)[f"{Topic.LOG_EVENTS}-sub"]

        def counted(delivery):
            outcome = intake(delivery)
            self.outcomes.setdefault(delivery.message_id, []).append(outcome)
            return outcome

        self.work = self.installation.worker({f"{Topic.LOG_EVENTS}-sub": counted}, threads=1).run_due

    def publish(self, number, text):
        return self.installation.bus.publish(entry_message(entry(number, text)))

    def until_nothing_waits(self, limit=40):
        for _ in range(limit):
            self.work()
            if not self.installation.bus.waiting()[f"{Topic.LOG_EVENTS}-sub"]:
                return
            self.clock.step(600)


def mixed(poisoned, poison):
    every = GOOD // POISON
    good, bad = [], []
    for number in range(GOOD):
        if number % every == 0:
            bad.append(poisoned.publish(f"bad{number}", f"{poison} {number}"))
        good.append(poisoned.publish(number, f"CUDA out of memory while loading shard {number}"))
    return good, bad


@pytest.mark.parametrize("poison", ["poison-bug", "poison-dependency"])
def test_poison_is_put_aside_after_five_failures_and_blocks_nobody(tmp_path, poison):
    poisoned = Poisoned(tmp_path)
    good, bad = mixed(poisoned, poison)
    poisoned.work()
    assert all(poisoned.outcomes[number] == [Outcome.ACK] for number in good), "a good message waited for a bad one"
    poisoned.until_nothing_waits()
    for number in bad:
        assert poisoned.outcomes[number] == [Outcome.RETRY] * (HANDLED_FAILURES - 1) + [Outcome.QUARANTINED]
    rows = poisoned.installation.quarantine.rows(1000)
    assert sorted(row["id"] for row in rows) == sorted(bad)
    assert all(row["reason"] for row in rows)
    worked_on = sum(len(outcomes) for outcomes in poisoned.outcomes.values())
    assert len(good) / worked_on >= 0.9


def test_a_body_that_can_never_succeed_costs_one_delivery(tmp_path):
    poisoned = Poisoned(tmp_path)
    for number in range(20):
        poisoned.installation.bus.publish(Message(id=f"b{number}", topic=Topic.LOG_EVENTS, data=f'{{"x":{number}}}'))
    poisoned.until_nothing_waits()
    assert set(map(tuple, poisoned.outcomes.values())) == {(Outcome.QUARANTINED,)}


def test_time_outs_say_nothing_about_the_message(tmp_path):
    """They are not counted: the message is tried as often as the bus tries, then it is the bus that puts it aside."""
    poisoned = Poisoned(tmp_path)
    number = poisoned.publish(1, "poison-timeout")
    poisoned.until_nothing_waits()
    assert poisoned.outcomes[number] == [Outcome.RETRY] * 20
    assert poisoned.installation.quarantine.rows() == ()
    assert poisoned.installation.bus.waiting()[f"{Topic.DEAD_LETTER}-sub"] == 1


def test_what_the_quarantine_cannot_keep_is_not_acknowledged(tmp_path):
    class Full:
        def __getattr__(self, name):
            raise DependencyFailed("not kept", why="the disk is full", hint="make room")

    poisoned = Poisoned(tmp_path)
    full = dataclasses.replace(poisoned.installation, quarantine=Full())
    from agent.ports.bus import Delivery

    handle = handlers(full)[f"{Topic.LOG_EVENTS}-sub"]
    delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="1", data=b"{}", subscription="s")
    assert [handle(delivery) for _ in range(7)] == [Outcome.RETRY] * 7
    assert full.contexts[Owner.INTAKE].store is not None
