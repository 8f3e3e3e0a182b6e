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
STRIDE = tries(24, ci=3, soak=1)  # calls that leave nothing behind are taken in turns
TURNS = tries(16, ci=1, soak=1)  # of calls that write, each fault takes every so many, another one than the next fault


def calls(name: str) -> list[str]:
    """The calls of a run in which nothing goes wrong, until the change has ended well or was taken back."""
    run = Simulation(1, COURSES[name]())
    run.run()
    return run.labels[: next(call for call, phase in run.commits if phase in {Phase.RESOLVED, Phase.ROLLED_BACK}) + 12]


@pytest.mark.parametrize("name", COURSES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name.lower())
def test_one_fault_at_any_call_changes_nothing_in_the_end(name: str, fault: Fault) -> None:
    """At most one change per approved plan, nothing lost, everything told; and it ends as if nothing had happened."""
    for number, label in enumerate(calls(name)):
        if label not in WRITES and (fault in {Fault.LOST, Fault.DIES_AFTER} or number % STRIDE):
            continue
        if label not in EFFECTS and (number + FAULTS.index(fault)) % TURNS:
            continue
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
