"""S15: whoever writes any field of an incident, at any phase, causes one undo of our own change at most, and no more.

Where policy marks something automatic, that may be had as well, inside policy's lists and limits. An incident is led to
a phase and stopped there. Then one field of it is written over, mostly together with a phase and an effect that would
make the executor act, and everything goes on. Every change of the platform is held against what was approved.

``SOAK=1`` tries every field at every phase. ``CI=true`` tries every field once, at one of the phases that have it, and
so every phase that can be written; ``WRITER_SEED`` chooses which, and a failure names it. Without either it is a third
of the phases, and there a few of the fields: others for each ``WRITER_SEED``.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from agent.core.incident.phase import Phase
from tests.counts import CI, SOAK, tries
from tests.simulation.kills import folder_for_a_while
from tests.simulation.writer import FORCED, PHASE_WRITTEN, SETTINGS, Led, Story, attack, case_of, led_to

TURNS = tries(12, ci=1, soak=1)  # of the fields, one of so many is tried
SEED = int(os.environ.get("WRITER_SEED", "0"))
STOPS = [(name, phase) for name, setting in SETTINGS.items() for phase in setting.phases]
HERE = STOPS if CI or SOAK else STOPS[SEED % 3 :: 3]
NOT_LED = {
    Phase.SUPERSEDED,
    Phase.SELF_RECOVERED,
    Phase.WITHDRAWN,
    Phase.CLOSED,
}  # no signal of these examples leads there; they are written as phases
Case = tuple[tuple[Any, ...], str]


@pytest.fixture(scope="module")
def led() -> Iterator[dict[tuple[str, Phase], Led]]:
    """Incidents that stand at each phase, in memory: nothing here is about the disk."""
    with folder_for_a_while() as name:
        here = Path(name)
        yield {(name, phase): led_to(here / f"{name}-{phase}", case_of(here, name), phase) for name, phase in STOPS}


def chosen(word: str, among: list[Any]) -> Any:
    return among[crc32(f"{word} {SEED}".encode()) % len(among)]


def taken_in_turn(path: tuple[Any, ...]) -> bool:
    """Whether this field is among those that are tried now."""
    return crc32(f"turn {path} {SEED}".encode()) % TURNS == 0


def in_turn(at: dict[tuple[str, Phase], list[Case]]) -> dict[tuple[str, Phase], list[Case]]:
    """Return the cases whose turn it is, at the phases that have one."""
    left = {stop: [case for case in todo if taken_in_turn(case[0])] for stop, todo in at.items()}
    return {stop: todo for stop, todo in left.items() if todo}


def cases(led: dict[tuple[str, Phase], Led], stop: tuple[str, Phase]) -> list[Case]:
    """What is tried at one phase: every field, or the fields whose turn it is; and all that is forced alone."""
    fields = [
        path
        for path in led[stop].paths
        if SOAK or (taken_in_turn(path) and chosen(str(path), [s for s in STOPS if path in led[s].paths]) == stop)
    ]
    phases = [
        how
        for how in PHASE_WRITTEN
        if SOAK or stop in {chosen(f"{how}{n}", STOPS) for n in range(tries(1, ci=3, soak=3))}
    ]
    tried = [(path, chosen(f"{path}{stop}", list(FORCED))) for path in fields]
    return tried + [((), how) for how in (*phases, *FORCED, *FORCED)]


def tried(story: Story, number: int, case: Case) -> bool:
    """Attack, and say whether it could be written; nothing may have come of it."""
    path, how = case
    try:
        written = attack(story, number, path, how)
    finally:
        story.close()
    assert story.violations == [], f"{path} {how!r} by hand {number % 2} WRITER_SEED={SEED}"
    return written


def test_every_phase_is_led_to_or_written() -> None:
    """No phase is forgotten, and a new one asks for a story."""
    assert {phase for _, phase in STOPS} | NOT_LED == set(Phase)


@pytest.mark.xdist_group("writer")  # incidents are led to each phase once, not by each worker
@pytest.mark.parametrize("stop", HERE, ids=lambda s: "-".join(s).lower())
def test_no_field_at_no_phase_makes_another_effect(stop: tuple[str, Phase], led, tmp_path_factory) -> None:
    """On SQLite: each field by turns, with each way to make the executor act."""
    todo = cases(led, stop)
    written = 0
    for number, case in enumerate(todo):
        folder = led[stop].folder.with_name("case")
        try:
            written += tried(led[stop].story(folder), number, case)
        finally:
            shutil.rmtree(folder)
    assert written >= len(todo) // 2


@pytest.fixture
def copies(firestore_emulator, firestore_project) -> Iterator[Any]:
    """Both Firestore databases of a project, written anew from a copy."""
    clients = [firestore_emulator.client(firestore_project, name) for name in ("(default)", "sre-control")]

    def taken() -> list[list[tuple[str, dict[str, Any]]]]:
        return [list(documents(client)) for client in clients]

    def put(copied: list[list[tuple[str, dict[str, Any]]]]) -> None:
        for name, client, rows in zip(("(default)", "sre-control"), clients, copied, strict=True):
            firestore_emulator.clear(firestore_project, name)
            batch = client.batch()
            for path, data in rows:
                batch.set(client.document(path), data)
            batch.commit()

    yield taken, put
    for client in clients:
        client.close()


def documents(parent: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every document of a Firestore database, those below others too."""
    for collection in parent.collections():
        for reference in collection.list_documents():
            found = reference.get()
            if found.exists:
                yield reference.path, found.to_dict()
            yield from documents(reference)


@pytest.fixture
def tried_on_firestore(copies, tmp_path: Path, firestore_emulator, firestore_project) -> Callable[..., None]:
    """Lead a new incident to each stop in Google's emulator, and try there what is to be tried."""
    taken, put = copies
    where = {"firestore": [firestore_emulator.host, firestore_project]}

    def all_tried(at: dict[tuple[str, Phase], list[Case]]) -> None:
        written = count = 0
        for stop, todo in in_turn(at).items():
            name, phase = stop
            count += len(todo)
            put([[], []])
            there = led_to(tmp_path / f"{name}-{phase}", case_of(tmp_path, name, **where), phase)
            copied = taken()
            for number, case in enumerate(todo):
                put(copied)
                folder = tmp_path / "case"
                try:
                    written += tried(there.story(folder), number, case)
                finally:
                    shutil.rmtree(folder)
        assert written >= count // 2

    return all_tried


@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_no_field_makes_another_effect_on_firestore(led, tried_on_firestore) -> None:
    """Both databases in Google's emulator: each field of the incident itself, at one of the phases that have it."""
    at: dict[tuple[str, Phase], list[Case]] = {}
    for path in sorted({p for found in led.values() for p in found.paths if SOAK or len(p) <= 1}, key=str):
        stop = chosen(f"firestore {path}", [s for s in STOPS if path in led[s].paths])
        at.setdefault(stop, []).append((path, chosen(f"firestore {path}", list(FORCED))))
    tried_on_firestore(at)


@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_no_field_of_a_request_makes_another_effect_on_firestore(led, tried_on_firestore) -> None:
    """Everything below the request before its plan is made and once later; each field of its plan, who asked too, once."""
    stops = [stop for stop in STOPS if SETTINGS[stop[0]].requested]
    at: dict[tuple[str, Phase], list[Case]] = {}
    for path in sorted({p for stop in stops for p in led[stop].paths if of_request(p)}, key=str):
        having = [stop for stop in stops if path in led[stop].paths]
        first = [having.pop(0)] if path[0] == "request" and having[0][1] is Phase.OPEN else []
        for stop in [*first, *(having if SOAK or not having else [chosen(f"firestore {path}", having)])]:
            at.setdefault(stop, []).append((path, chosen(f"firestore {path}{stop}", list(FORCED))))
    assert {("request", "actions", 0, "concurrency"), ("plan", "asked_by")} <= {
        p for todo in at.values() for p, _ in todo
    }
    assert set(at) == set(stops)
    tried_on_firestore(at)


def of_request(path: tuple[Any, ...]) -> bool:
    """Whether it is below the request, or of its plan."""
    return path[:1] == ("request",) or (path[:1] == ("plan",) and (SOAK or len(path) == 2))
