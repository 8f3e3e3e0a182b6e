"""R1, R2: one fault at each call of a port, one run for each; the list of calls is what a run without faults made."""

import pytest

from agent.core.incident.phase import Phase
from agent.ports.store import Query
from tests.counts import tries
from tests.simulation.simulated.chaos import EFFECTS, WRITES, Fault
from tests.simulation.simulated.driver import Course, Simulation
from tests.simulation.simulated.platform import Fate

COURSES = {
    "resolved": Course,
    "undone": lambda: Course(stories=("context",), fates={"apply": [Fate.WRONG]}, answers=[True] + [False] * 9),
    "shifted": lambda: Course(stories=("context",), spare=True),
}
FAULTS = (Fault.LOST, Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.FAILS, Fault.PAUSES)
HEARD_ALONE = {Fault.LOST, Fault.DIES_AFTER}  # after a call that left nothing behind these are the same as before it
TURNS_OF_READS = tries(60, ci=3, soak=1)  # each fault takes every so many, another one than the next fault
TURNS_OF_WRITES = tries(40, ci=1, soak=1)  # the same, of calls that leave something behind; effects are all taken


def calls(name: str) -> list[str]:
    """The calls of a run in which nothing goes wrong, until the change has ended well or was taken back."""
    run = Simulation(1, COURSES[name]())
    run.run()
    return run.labels[: next(call for call, phase in run.commits if phase in {Phase.RESOLVED, Phase.ROLLED_BACK}) + 12]


def disturbed(fault: Fault, name: str) -> list[tuple[int, str]]:
    """The calls of a course at which this fault is tried, by number and label."""
    turn, found = FAULTS.index(fault), []
    for number, label in enumerate(calls(name)):
        turns = 1 if label in EFFECTS else TURNS_OF_WRITES if label in WRITES else TURNS_OF_READS
        if (number + turn) % turns == 0 and (label in WRITES or fault not in HEARD_ALONE):
            found.append((number, label))
    return found


@pytest.mark.parametrize("name", COURSES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name.lower())
def test_one_fault_at_any_call_changes_nothing_in_the_end(name: str, fault: Fault) -> None:
    """At most one change per approved plan, nothing lost, everything told; and it ends as if nothing had happened."""
    tried = disturbed(fault, name)
    assert {label in WRITES for _, label in tried} == ({True} if fault in HEARD_ALONE else {True, False})
    for number, label in tried:
        course = COURSES[name]()
        course.at_call = {number: fault}
        run = Simulation(1, course)
        run.run()
        applies = [m for m in run.platform.mutations if m.kind == "apply"]
        approved = {i.plan.id for _, i in run.history if i.phase is Phase.APPROVED and i.plan is not None}
        assert len(applies) <= len(approved), f"{fault} at {number} ({label})"


def test_a_lost_answer_of_an_effect_is_found_again() -> None:
    """The change was made once, its answer was lost, and the incident is resolved with it."""
    base = calls("resolved")
    for number in [n for n, label in enumerate(base) if label in EFFECTS]:
        course = COURSES["resolved"]()
        course.at_call = {number: Fault.LOST}
        run = Simulation(1, course)
        run.run()
        assert [m.kind for m in run.platform.mutations] == ["apply"]
        assert [i.phase for i in run.store.incidents(Query())] == [Phase.RESOLVED]


@pytest.mark.parametrize("name", COURSES)
def test_the_run_without_faults_makes_the_effects_that_are_disturbed(name: str) -> None:
    """The list of boundaries is not empty: every effect of the course stands in it."""
    wanted = {"resolved": {"apply"}, "undone": {"apply", "restore"}, "shifted": {"apply", "shift"}}[name]
    assert {label.removeprefix("platform.") for label in calls(name) if label in EFFECTS} >= wanted
