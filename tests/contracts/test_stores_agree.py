"""R5: the same random story told to SQLite and to Firestore leaves the same world, step by step."""

import random

import pytest

from agent.adapters.store.firestore.store import FirestoreStore
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.core.incident.phase import ENDS, NEXT, Phase
from agent.errors import SreError
from agent.ports.store import Query
from tests.counts import some

STEPS = 120


@pytest.mark.emulator
@pytest.mark.journey
@pytest.mark.xdist_group("firestore")
@pytest.mark.parametrize("seed", some(range(5), one_in=3))
def test_two_stores_tell_the_same_story(files, clock, make, seed):
    """Commits at right and wrong versions, storms, marks and questions; answers and errors are compared one by one."""
    chance = random.Random(seed)
    stores = (FirestoreStore(files.documents(), clock), SqliteStore(InMemoryDatabase(Kind.STATE)))
    for number in range(STEPS):
        act = chance.choice([commit, commit, commit, accept, accept, sent])(chance, make, number)
        assert answer(stores[0], act) == answer(stores[1], act), f"step {number}"
    for ask in questions(make):
        assert answer(stores[0], ask) == answer(stores[1], ask)


def commit(chance, make, number):
    name = f"inc-{chance.randrange(6)}"
    off = chance.choice([0, 0, 0, 0, 1, -1])
    fields = {
        "heads": tuple(f"h{chance.randrange(4)}" for _ in range(chance.randrange(3))),
        "signals": tuple(
            make.signal(f"s{chance.randrange(150)}", at=make.at(chance.randrange(50)))
            for _ in range(chance.randrange(2))
        ),
        "messages": tuple(make.message(f"m{number}.{n}") for n in range(chance.randrange(3))),
        "events": tuple(make.event(f"{number}.{n}", chance.randrange(500)) for n in range(chance.randrange(3))),
        "plan": make.plan(f"p{chance.randrange(8)}", why=f"{chance.randrange(3)}") if chance.random() < 0.2 else None,
    }
    opened, due, turn = (
        make.at(chance.randrange(9)),
        chance.choice([None, make.at(chance.randrange(90))]),
        chance.random(),
    )

    def act(store):
        try:
            old = store.load(name)
        except SreError:
            old = make.incident(name, opened_at=opened, service=f"svc-{opened.second % 2}")
        new = old.with_(version=max(old.version + off, 0), due_at=due)
        if old.phase not in ENDS:
            phases = sorted(NEXT[old.phase])
            new = new.move(phases[int(turn * len(phases))], now=make.at(number)) if turn < 0.5 else new
        return store.commit(make.change(new, **fields))

    return act


def accept(chance, make, number):
    key, home, seconds = f"s{chance.randrange(150)}", f"inc-{chance.randrange(6)}", chance.randrange(50)
    return lambda store: store.accept(make.signal(key, at=make.at(seconds)), home).new  # counting: see the contract


def sent(chance, make, number):
    ids = tuple(f"m{chance.randrange(number + 1)}.{chance.randrange(2)}" for _ in range(3))
    return lambda store: store.sent(ids)


def questions(make):
    names = [f"inc-{n}" for n in range(7)]
    asks = [lambda s, n=n, m=m: getattr(s, m)(n) for n in names for m in ("load", "signals", "outbox", "timeline")]
    asks += [lambda s, n=n: s.signals(n, 3) for n in names]
    asks += [lambda s, k=k: s.head(f"h{k}") for k in range(4)]
    asks += [lambda s, k=k: s.knows(f"s{k}") for k in range(150)]
    asks += [lambda s, k=k: s.plan(f"p{k}") for k in range(8)]
    asks += [lambda s, t=t: s.due(make.at(t), 3) for t in (0, 45, 90)]
    asks += [
        lambda s, q=q: s.incidents(Query(**q)) for q in ({}, {"open_only": True}, {"service": "svc-1"}, {"limit": 2})
    ]
    waits = [{"waits_in": phase} for phase in (Phase.ASKED, Phase.ESCALATED)]
    asks += [lambda s, q=q: s.incidents(Query(**q)) for one in waits for q in (one, one | {"service": "svc-1"})]
    return [*asks, lambda s: s.unsent(), lambda s: s.latest_time()]


def answer(store, act):
    """What a store says, errors included, word for word."""
    try:
        return act(store)
    except SreError as error:
        return type(error), str(error)
