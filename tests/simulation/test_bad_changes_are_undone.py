"""R13, R14: a change that does not help is taken back, the prior template serves again, and there is an end to trying."""

import pytest

from agent.adapters.platform.rehearsal.template import bare
from agent.core.change.verification import Verdict
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.ports.store import Query
from tests.counts import some
from tests.simulation.simulated.chaos import Fault
from tests.simulation.simulated.driver import Course, Simulation
from tests.simulation.simulated.platform import BAD, Fate


class Begun(Simulation):
    """A simulation that remembers what served before it began."""

    before: dict[str, tuple[object, object]]


def run(**course) -> tuple[Begun, Incident]:
    simulation = Begun(3, Course(**course))
    simulation.before = {n: (bare(s.template), s.traffic) for n, s in simulation.platform.services.items()}
    simulation.run()
    (incident,) = simulation.store.incidents(Query())
    return simulation, incident


def prior_serves(simulation: Begun, service: str) -> bool:
    now = simulation.platform.services[service]
    return (bare(now.template), now.traffic) == simulation.before[service]


def verdicts(simulation: Simulation) -> list[Verdict]:
    said = [i.verification.verdict for _, i in simulation.history if i.phase is Phase.ROLLING_BACK and i.verification]
    return [v for v in dict.fromkeys(said) if v is not None]


@pytest.mark.parametrize("story", ["context", "probe"])
@pytest.mark.parametrize("fate", BAD, ids=lambda f: f.name.lower())
def test_a_bad_change_is_undone_byte_by_byte(fate: Fate, story: str) -> None:
    """Template and traffic are as before, but for the revision's name and stamp; and a person has it in the end."""
    simulation, incident = run(stories=(story,), fates={"apply": [fate] * 6})
    assert prior_serves(simulation, incident.service)
    assert incident.phase is Phase.ESCALATED
    assert all(v in {Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE} for v in verdicts(simulation))
    assert 1 <= sum(m.kind == "apply" for m in simulation.platform.mutations) <= 2


def test_what_cannot_be_measured_is_inconclusive_and_undone() -> None:
    simulation, incident = run(stories=("context",), fates={"apply": [Fate.BLIND] * 6})
    assert verdicts(simulation) == [Verdict.INCONCLUSIVE]
    assert prior_serves(simulation, incident.service)


def test_a_roll_back_that_fails_itself_goes_to_a_person_at_once() -> None:
    """The template is back, but it does not come up although it did before: nothing more is tried."""
    simulation, incident = run(stories=("context",), fates={"apply": [Fate.WRONG], "restore": [Fate.FAILS]})
    assert incident.phase is Phase.ESCALATED
    assert "does not come up" in incident.ended_why
    assert [m.kind for m in simulation.platform.mutations] == ["apply", "restore"]
    assert simulation.people.told[incident.id] == Phase.ESCALATED


def test_a_roll_back_that_never_ends_goes_to_a_person() -> None:
    _, incident = run(stories=("context",), fates={"apply": [Fate.WRONG], "restore": [Fate.NEVER]})
    assert incident.phase is Phase.ESCALATED
    assert "does not come up" in incident.ended_why


def test_where_the_prior_state_was_broken_itself_it_says_so() -> None:
    """Undoing puts the old trouble back; nobody is told that it serves, but which older revision does."""
    simulation, incident = run(stories=("probe",), fates={"apply": [Fate.FAILS] * 6, "restore": [Fate.FAILS] * 6})
    said = [i.ended_why for _, i in simulation.history if i.phase is Phase.ROLLED_BACK]
    assert said[0].startswith("the prior template is back; it did not come up before either, and ")
    assert said[0].endswith("-00001-old serves as before")
    assert incident.phase is Phase.ESCALATED


def test_a_staged_change_whose_traffic_is_not_shifted_is_undone() -> None:
    simulation, incident = run(stories=("context",), spare=True, fates={"shift": [Fate.FAILS] * 6})
    assert prior_serves(simulation, incident.service)
    assert incident.phase is Phase.ESCALATED


def test_after_two_failed_remedies_nothing_more_is_tried_for_a_day() -> None:
    """The trouble goes on, its lines come in; a person has it, and we keep still."""
    simulation, _ = run(stories=("context",), fates={"apply": [Fate.OOM] * 9})
    assert sum(m.kind == "apply" for m in simulation.platform.mutations) <= 2


def test_a_switch_that_could_not_be_read_once_only_delays() -> None:
    """R20: at the last look nobody knew how it stood: the step is tried again, and nothing was given up."""
    smooth = Simulation(3, Course())
    smooth.run()
    made = smooth.labels.index("platform.apply")
    look = max(n for n, label in enumerate(smooth.labels[:made]) if label == "control.kill_switch")
    simulation, incident = run(at_call={look: Fault.FAILS})
    assert incident.phase is Phase.RESOLVED
    assert [r.ended for r in incident.remedies] == [Verdict.RECOVERED.value]
    assert [m.kind for m in simulation.platform.mutations] == ["apply"]


def test_a_change_that_was_never_made_is_no_remedy_that_failed() -> None:
    """Somebody changed the service between the intent and the call: it was refused, so the plan may be asked again."""
    simulation = Simulation(3, Course())
    stored = simulation.control.intent
    seen: list[str] = []

    def intent(key: str) -> object:
        if not seen:
            seen.append(key)
            (name,) = simulation.platform.services
            simulation.platform.by_hand(name)
        return stored(key)

    simulation.control.intent = intent
    simulation.run()
    (incident,) = simulation.store.incidents(Query())
    assert incident.remedies[0].ended == Phase.REFUSED.value
    assert [m.kind for m in simulation.platform.mutations].count("apply") == 1


@pytest.mark.parametrize("story", some(["probe", "context", "staged"], one_in=3))
def test_every_call_of_the_control_database_may_fail_once_and_no_incident_ends_by_it(story: str) -> None:
    """R20: at every step, read or write; what follows is what would have followed."""
    spare = story == "staged"
    course = {"stories": ("context" if spare else story,), "spare": spare}
    smooth, ended = run(**course)
    asked = [n for n, label in enumerate(smooth.labels) if label.startswith("control.")]
    kinds = {smooth.labels[n] for n in asked}
    assert {"control.kill_switch", "control.intent", "control.begin", "control.holds", "control.acquire"} <= kinds
    for number in asked:
        simulation, incident = run(**course, at_call={number: Fault.FAILS})
        label = f"call {number} ({smooth.labels[number]})"
        assert incident.phase is ended.phase, label
        assert incident.plans_made == ended.plans_made, label
        assert [m.kind for m in simulation.platform.mutations] == [m.kind for m in smooth.platform.mutations], label
