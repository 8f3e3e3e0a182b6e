"""From a recorded log event to a verified fix, or to an honest end."""

from pathlib import Path

import pytest

from agent.core.change.verification import Check, Verdict
from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.core.plan.proof import Proof
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.control import KillSwitch
from tests.leases import HELD

ROOT = Path(__file__).resolve().parents[2]
PROBE = "gemma4-26b-l4-startup-probe"
MEMORY = "gemma4-31b-l4-oom"


def test_a_probe_that_was_too_short_ends_resolved(journey) -> None:
    """The recorded probe failure becomes one incident, one plan, one revision, and a verified recovery."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    assert asked.plan is not None
    assert [a.kind for a in asked.plan.actions][:1] == ["set_startup_probe"]
    told.answer(asked.plan.id)
    done = told.until(lambda i: i.ended)
    assert done.phase is Phase.RESOLVED
    assert done.verification is not None
    assert done.verification.verdict is Verdict.RECOVERED
    assert len(told.incidents()) == 1
    live = told.installation.environment.rehearsal.describe(done.service)
    assert live.ready is True
    assert len(live.stamps) == 1


def test_the_recorded_start_is_read_back_and_as_fast_as_it_was_predicted(journey) -> None:
    """15.62 GiB of weights on record, predicted within 1.5 %; 61.67 tokens/s lie in the predicted range."""
    told = journey(PROBE)
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    done = told.until(lambda i: i.ended)
    weights, speed = done.verification.observed.figures
    assert (weights.name, weights.observed, weights.inside) == ("weights_gib", 15.62, True)
    assert abs(weights.off) <= 0.015
    assert (speed.name, speed.observed, speed.inside) == ("decode_tokens_per_s", 61.67, True)
    prediction = done.verification.latest(Check.PREDICTION)
    assert (prediction.good, prediction.first_token_s) == (True, 0.124)
    assert done.plan.fit_after.report["ranges"]["first_token_s"] == [0.0551, 0.1065]
    assert prediction.says.startswith("as predicted: 61.7 tokens/s, 36.3 to 81.8")


def test_nothing_changes_without_a_word(journey) -> None:
    """Two unanswered plans, and a person has it; the service is as it was."""
    told = journey(PROBE)
    before = told.installation.environment.rehearsal.describe("gemma4-26b-qat-l4")
    ended = told.until(lambda i: i.ended, limit_s=3 * 1800)
    assert ended.phase is Phase.ESCALATED
    assert "not answered" in ended.ended_why
    assert told.installation.environment.rehearsal.describe(ended.service).target == before.target


def test_a_rejected_plan_does_not_come_again(journey) -> None:
    """The next plan is another one, or none."""
    told = journey(PROBE)
    first = told.until(lambda i: i.phase is Phase.ASKED).plan
    told.answer(first.id, Choice.REJECT, why="not tonight")
    after = told.until(lambda i: i.ended or (i.plan is not None and i.plan.id != first.id and i.phase is Phase.ASKED))
    assert after.phase is Phase.ESCALATED or after.plan.proposal != first.proposal


def test_a_second_answer_is_told_who_was_first(journey) -> None:
    """One decision per plan; the loser learns who won."""
    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    told.answer(plan.id, who="ada")
    with pytest.raises(StateConflict, match="ada said approve"):
        told.answer(plan.id, Choice.REJECT, who="grace")
    assert told.answer(plan.id, who="ada").who == "ada"


def test_an_expired_plan_cannot_be_approved(journey) -> None:
    """After its time the answer is refused, and says so."""
    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    told.clock.step(1801)
    with pytest.raises(PolicyRefused, match="expired"):
        told.answer(plan.id)


def test_an_unknown_plan_is_an_error_of_the_asker(journey) -> None:
    """No such plan: nothing happens."""
    with pytest.raises(InputRejected, match="p-nothing-1"):
        journey(PROBE).answer("p-nothing-1")


def test_a_service_changed_by_hand_refuses_the_approval(journey) -> None:
    """The approval covers one exact state; another generation is planned anew."""
    from agent.core.plan.action import SetConcurrency
    from agent.ports.platform import Order

    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    live = told.installation.environment.rehearsal.describe(plan.target.service)
    by_hand = Order(
        service=live.service,
        incident="by-hand",
        effect_key="by-hand",
        revision="by-hand-00006",
        etag=live.etag,
        actions=(SetConcurrency(concurrency=7),),
        lease_end=HELD,
    )
    told.installation.environment.rehearsal.apply(by_hand)
    told.answer(plan.id)
    again = told.until(lambda i: i.plan is not None and i.plan.id != plan.id)
    assert any("changed since the plan was made" in e.what for e in told.installation.store.timeline(again.id))
    stamps = told.installation.environment.rehearsal.describe(live.service).stamps
    assert set(stamps.values()) <= {"by-hand"}


def test_the_kill_switch_stops_an_approved_plan(journey) -> None:
    """Approved, and then the switch is turned: nothing is applied, and a person has it."""
    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    told.answer(plan.id)
    told.installation.control.set_kill_switch(KillSwitch(on=True, by="grace", why="maintenance"))
    ended = told.until(lambda i: i.ended)
    assert ended.phase is Phase.ESCALATED
    assert "kill switch" in ended.ended_why
    assert not told.installation.environment.rehearsal.describe(ended.service).stamps


def test_an_approval_under_the_kill_switch_is_refused_and_the_plan_stays(journey) -> None:
    """Nothing could follow from it; a no counts, and with the switch off the same plan may be approved."""
    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    told.installation.control.set_kill_switch(KillSwitch(on=True, by="grace", why="maintenance"))
    with pytest.raises(PolicyRefused, match=r"the kill switch is on \(by grace: maintenance\)") as caught:
        told.answer(plan.id)
    assert "sre-agent stop --off" in caught.value.hint
    told.go(5)
    assert told.incidents()[0].phase is Phase.ASKED
    assert told.installation.control.audit() == ()
    told.installation.control.set_kill_switch(KillSwitch(on=False))
    told.answer(plan.id)
    assert told.until(lambda i: i.ended).phase is Phase.RESOLVED


def test_a_plan_may_be_rejected_under_the_kill_switch(journey) -> None:
    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    told.installation.control.set_kill_switch(KillSwitch(on=True, by="grace", why="maintenance"))
    assert told.answer(plan.id, Choice.REJECT, why="no").answer is Choice.REJECT


def test_a_switch_that_cannot_be_read_takes_no_approval(journey) -> None:
    """Not a refusal: nobody knows how it stands, and the same may be said again."""
    told = journey(PROBE)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan

    def unread() -> KillSwitch:
        raise DependencyFailed("the switch was not read", why="down", hint="wait")

    told.installation.control.kill_switch = unread
    with pytest.raises(DependencyFailed):
        told.answer(plan.id)
    assert told.incidents()[0].phase is Phase.ASKED


def test_a_repeated_event_changes_nothing(journey) -> None:
    """The same events again: the same incident, the same number of signals."""
    from agent.entrypoints.service import publish_example

    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    publish_example(told.installation, ROOT / "examples" / PROBE)
    told.go(5)
    assert told.incidents()[0].signal_count == asked.signal_count
    assert len(told.incidents()) == 1


def test_a_signal_heard_while_people_are_asked_keeps_nobody_busy(journey) -> None:
    """It is weighed once; until the plan expires nothing is due."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    signal = told.installation.store.signals(asked.id)[0]
    from agent.ports.stage_context import Owner
    from agent.stages.signal_to_incident import signal_to_incident

    other = signal.with_(key="another", text="Container called exit(1).", severity="WARNING")
    signal_to_incident(told.installation.contexts[Owner.INTAKE], other)
    told.go(3)
    rested = told.incidents()[0]
    assert rested.received == rested.diagnosed_count > asked.received
    assert rested.due_at == rested.plan.expires_at


def test_an_example_opens_the_incident_that_the_tutorial_names(journey) -> None:
    """Its entries are taken in one after another: the last one names no revision, and would open another incident."""
    from agent.entrypoints.service import read_example

    told = journey(MEMORY)
    read_example(told.installation, ROOT / "examples" / MEMORY)
    assert [i.id for i in told.incidents()] == ["inc-19f35143ba56"]
    assert told.installation.queue.waiting().get("sre-log-events-sub", 0) == 0
    assert "sre-agent incidents show inc-19f35143ba56" in (ROOT / "docs" / "tutorial.md").read_text()


def test_the_first_incident_that_anybody_sees_carries_a_proof_of_memory(journey) -> None:
    """What `make run`, the tutorial and the README's picture show is what the README says the agent does."""
    plan = journey(MEMORY).until(lambda i: i.phase is Phase.ASKED).plan
    assert (plan.proof, plan.fit_after.fits) == (Proof.COMPUTED, True)
    assert f"EXAMPLE ?= examples/{MEMORY}\n" in (ROOT / "Makefile").read_text()
    assert f"sre-agent up --example {MEMORY}\n" in (ROOT / "docs" / "tutorial.md").read_text()
    assert "docs/pictures/incident-asked-memory-desk.webp" in (ROOT / "README.md").read_text()
