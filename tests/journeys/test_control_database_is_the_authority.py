"""S3, S15, R13: no effect is made from what the incident database says; each attack writes there and nowhere else."""

from datetime import timedelta

import pytest

from agent.core.change.execution import Effect, EffectKind, EffectState, Execution, effect_key, revision_name
from agent.core.change.verification import Verdict, Verification
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetConcurrency
from agent.core.value import canonical
from agent.ports.platform import Order
from agent.ports.store import Change
from tests.journeys.staging import staged_example
from tests.leases import HELD

PROBE = "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"


@pytest.fixture
def staged(journey, tmp_path):
    """A journey whose first plan is staged."""

    def make(**outcome):
        return journey(str(staged_example(tmp_path, **outcome)))

    return make


def live(told):
    return told.installation.environment.rehearsal.describe(SERVICE)


def ours(told):
    return {name: key for name, key in live(told).stamps.items() if key != "by-hand"}


def by_hand(told, concurrency=7, key="by-hand"):
    """A person changes the service."""
    order = Order(
        service=SERVICE,
        incident="by-hand",
        effect_key=key,
        revision=f"{key}-00009",
        etag=live(told).etag,
        actions=(SetConcurrency(concurrency=concurrency),),
        lease_end=HELD,
    )
    told.installation.environment.rehearsal.apply(order)


def written(told, incident, **changes):
    """Write an incident as somebody could who may write the incident database and nothing else."""
    now = told.installation.store.load(incident.id)
    return told.installation.store.commit(Change(incident=incident.with_(version=now.version, **changes)))


def effect(told, incident, kind, **changes):
    """An effect as the executor would have written it, with the etag of now."""
    key = effect_key(incident.id, incident.plan.digest, kind)
    made = effect_key(incident.id, incident.plan.digest, EffectKind.APPLY) if kind is EffectKind.SHIFT else key
    fields = {"key": key, "kind": kind, "etag": live(told).etag, "revision": revision_name(SERVICE, made)}
    return Effect(**(fields | {"intended_at": told.clock.now()} | changes))


def execution(told, incident, *effects):
    now = live(told)
    return Execution(
        plan=incident.plan.id,
        effects=effects,
        revision_before=now.latest_ready_revision,
        revision_after=effects[0].revision,
        prior_template=now.template,
        prior_traffic=canonical([t.model_dump(mode="json") for t in now.traffic]).decode(),
        prior_ready=now.ready,
    )


def applying(told, incident):
    """Say that the intent of the incident's plan is stored."""
    intended = execution(told, incident, effect(told, incident, EffectKind.APPLY))
    written(told, incident, phase=Phase.APPLYING, execution=intended, due_at=told.clock.now())


def test_a_hidden_action_of_an_approved_plan_is_not_applied(journey):
    """The plan shows one change and makes two; refused by the executor, it is written as intended all the same."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    hides = asked.plan.with_(
        id="p-4d24780e817e-7", actions=(*asked.plan.actions, SetConcurrency(concurrency=999)), ordinal=7
    )
    told.installation.store.commit(Change(incident=asked.with_(plan=hides, plans_made=7), plan=hides))
    told.answer(hides.id)
    approved = told.installation.store.load(asked.id)
    applying(told, approved)
    told.go(30)
    assert not ours(told)
    assert live(told).config.concurrency != 999


def test_what_the_executor_refused_is_not_applied_when_it_is_written_as_intended_again(journey):
    """The intent was closed before the incident moved."""
    told = journey(PROBE)
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    (asked,) = told.incidents()
    approved = told.installation.store.load(asked.id)
    by_hand(told)
    refused = told.until(lambda i: i.phase is Phase.ASKED and i.plan.id != approved.plan.id, limit_s=300)
    assert refused.phase is Phase.ASKED
    applying(told, approved)
    told.go(30)
    assert not ours(told)


def test_an_approval_for_generation_5_is_not_applied_on_generation_6(journey):
    """The etag of now stands in the stored effect; the approval was given to what stood before."""
    told = journey(PROBE)
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    approved = told.incidents()[0]
    by_hand(told)
    applying(told, approved)
    told.go(30)
    assert not ours(told)
    assert live(told).config.concurrency == 7


def test_a_proof_that_was_written_over_is_computed_anew_and_refused(journey):
    """What does not fit is shown as fitting; the executor asks the arithmetic itself."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    lies = asked.plan.with_(
        id="p-4d24780e817e-7", fit_after=asked.plan.fit_after.with_(sentence="fits, needs 1.00 of 22.03 GiB"), ordinal=7
    )
    told.installation.store.commit(Change(incident=asked.with_(plan=lies, plans_made=7), plan=lies))
    told.answer(lies.id)
    told.go(30)
    assert not ours(told)
    assert any("the arithmetic says" in e.what for e in told.installation.store.timeline(asked.id))


def test_a_proof_that_nothing_gives_is_computed_anew_and_refused(journey):
    """The plan says that its memory was measured; the executor finds another proof."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    lies = asked.plan.with_(id="p-4d24780e817e-7", proof="measured", ordinal=7)
    told.installation.store.commit(Change(incident=asked.with_(plan=lies, plans_made=7), plan=lies))
    told.answer(lies.id)
    told.go(30)
    assert not ours(told)
    assert any(
        "from the live configuration it is not_needed" in e.what for e in told.installation.store.timeline(asked.id)
    )


def resolved(told):
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    return told.until(lambda i: i.phase is Phase.RESOLVED, limit_s=900)


def rolling_back(told, incident, *, stored: bool):
    """Say that the change did not help; with ``stored`` the roll-back stands there as intended, with the etag of now."""
    bad = incident.verification.with_(verdict=Verdict.NOT_RECOVERED, why="made up")
    done = incident.execution
    if stored:
        done = done.with_effect(effect(told, incident, EffectKind.ROLL_BACK))
    now = told.clock.now()
    written(told, incident, phase=Phase.ROLLING_BACK, verification=bad, execution=done, due_at=now, ended_why="")
    told.go(60)
    return told.installation.store.load(incident.id)


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("days", [0, 3])
def test_a_past_change_is_not_rolled_back_over_a_persons_work(journey, stored, days):
    """Neither at once nor days later, whether or not a roll-back stands there as intended."""
    told = journey(PROBE)
    incident = resolved(told)
    told.clock.step(days * 86_400)
    by_hand(told)
    theirs = live(told).template
    ended = rolling_back(told, incident, stored=stored)
    assert live(told).template == theirs
    assert ended.phase is Phase.ESCALATED
    assert "somebody changed" in ended.ended_why or "over 24 hours ago" in ended.ended_why


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_change_is_not_rolled_back_by_us_after_24_hours(journey, stored):
    """Nobody touched the service since; a person is asked all the same."""
    told = journey(PROBE)
    incident = resolved(told)
    told.clock.step(86_400)
    stands = live(told)
    ended = rolling_back(told, incident, stored=stored)
    assert live(told).template == stands.template
    assert ended.phase is Phase.ESCALATED
    assert "over 24 hours ago" in ended.ended_why


def test_inside_its_validity_a_change_of_ours_is_undone_once_and_no_more(journey):
    """One of the two things that a writer of the incident database can do."""
    told = journey(PROBE)
    incident = resolved(told)
    told.clock.step(3600)
    rolling_back(told, incident, stored=True)
    assert len(ours(told)) == 2
    back = live(told)
    for stored in (True, False):
        ended = rolling_back(told, incident, stored=stored)
        assert live(told).template == back.template
        assert live(told).generation == back.generation
        assert (
            "-2' exists and says something else" in ended.stuck
        )  # its next plan; told once, and no rival is suspected
    by_hand(told)
    theirs = live(told).template
    rolling_back(told, incident, stored=True)
    assert live(told).template == theirs


def test_a_change_that_was_never_made_is_not_undone(journey):
    """The writer names an operation for it; the platform knows of no stamp."""
    told = journey(PROBE)
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    approved = told.incidents()[0]
    stands = live(told)
    started = effect(told, approved, EffectKind.APPLY, state=EffectState.STARTED, operation="made-up")
    done = execution(told, approved, started, effect(told, approved, EffectKind.ROLL_BACK))
    written(told, approved, phase=Phase.ROLLING_BACK, execution=done, due_at=told.clock.now())
    told.go(60)
    assert live(told).generation == stands.generation


class TestStaged:
    """A new revision beside the old one, then the traffic."""

    def applied(self, told):
        told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
        verifying = told.until(lambda i: i.phase is Phase.VERIFYING, limit_s=300)
        assert verifying.plan.rollout == "staged"
        return verifying

    def shifting(self, told, incident, **changes):
        """Say that the new revision recovered and that the shift is intended."""
        good = incident.verification.with_(verdict=Verdict.RECOVERED, why="made up")
        done = incident.execution.with_effect(effect(told, incident, EffectKind.SHIFT))
        fields = {"phase": Phase.VERIFYING, "verification": good, "execution": done, "due_at": told.clock.now()}
        written(told, incident, **(fields | changes))
        told.go(60)

    def serving(self, told):
        now = live(told)
        return {t.revision or now.latest_ready_revision for t in now.traffic if t.percent}

    def test_what_recovers_gets_the_traffic(self, staged):
        told = staged()
        incident = self.applied(told)
        assert self.serving(told) != {incident.execution.revision_after}
        assert told.until(lambda i: i.ended, limit_s=900).phase is Phase.RESOLVED
        assert self.serving(told) == {incident.execution.revision_after}

    def test_a_revision_that_does_not_answer_gets_no_traffic(self, staged):
        """The verdict is written by somebody else; the executor measures it itself."""
        told = staged(good=False)
        told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
        incident = told.until(lambda i: i.phase is Phase.APPLYING)
        told.go(2)
        told.clock.step(60)  # it is up by now, and nobody has looked
        now = told.clock.now()
        self.shifting(told, incident.with_(verification=Verification(since=now, until=now + timedelta(60))))
        assert incident.execution.revision_after not in self.serving(told)

    def test_a_shift_is_not_made_over_a_persons_work(self, staged):
        """Stored as intended with the etag of now."""
        told = staged()
        incident = self.applied(told)
        by_hand(told)
        theirs = live(told)
        self.shifting(told, incident)
        assert live(told).traffic == theirs.traffic
        assert live(told).template == theirs.template

    def test_a_shift_is_not_made_without_an_intent_of_ours(self, staged):
        """The approval is real, the apply was never begun, and the incident says that it recovered."""
        told = staged()
        told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
        approved = told.incidents()[0]
        stands = live(told)
        now = told.clock.now()
        done = execution(told, approved, effect(told, approved, EffectKind.APPLY, state=EffectState.DONE))
        self.shifting(
            told, approved.with_(verification=Verification(since=now, until=now + timedelta(60)), execution=done)
        )
        assert live(told).traffic == stands.traffic

    def test_a_shift_is_not_made_days_later(self, staged):
        told = staged()
        incident = self.applied(told)
        written(told, incident, phase=Phase.RESOLVED, due_at=None)
        stands = live(told)
        told.clock.step(3 * 86_400)
        self.shifting(told, incident)
        assert live(told).traffic == stands.traffic

    def test_an_in_place_change_is_never_shifted(self, journey):
        told = journey(PROBE)
        incident = resolved(told)
        stands = live(told)
        self.shifting(told, incident)
        assert live(told).traffic == stands.traffic


class TestBegunBeforeThisRule:
    """A change whose intent was carried over from the older state: prior template, traffic, time, and nothing else."""

    def carried_over(self, told, key):
        control = told.installation.control
        kept = control.intent(key)
        less = {"incident": "", "plan_digest": "", "actions": (), "target": None, "etag": "", "revision": ""}
        older = kept.with_(**less, staged=False, prior_config=None, prior_revision=None)
        with control._database.writing() as db:
            db.execute("UPDATE intents SET body = ? WHERE effect = ?", (older.model_dump_json(), key))

    def test_it_is_rolled_back_like_any_other(self, journey):
        told = journey(PROBE)
        told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
        stood = live(told).config
        incident = told.until(lambda i: i.phase is Phase.VERIFYING, limit_s=300)
        assert live(told).config != stood
        self.carried_over(told, incident.execution.effects[0].key)
        rolling_back(told, incident, stored=False)
        assert live(told).config == stood

    def test_it_is_not_applied_any_more(self, journey):
        """Its target was not kept; the plan is made anew and asked about again."""
        told = journey(PROBE)
        told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
        world = told.installation.contexts["on_decision"]
        from agent.stages.decision_to_execution import begin_execution

        begin_execution(world, told.incidents()[0])
        begun = told.incidents()[0]
        self.carried_over(told, begun.execution.effects[0].key)
        told.until(lambda i: i.plan is not None and i.plan.id != begun.plan.id, limit_s=300)
        assert not ours(told)
        assert any("an earlier version of this program" in e.what for e in told.installation.store.timeline(begun.id))
