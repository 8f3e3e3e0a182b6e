"""S3, S5, S6, S7: an approval covers one exact plan, doubt changes nothing, and so many changes are made, no more."""

from datetime import timedelta

import pytest

from agent.core.change.execution import EffectKind, Intent
from agent.core.change.verification import Verdict
from agent.core.decision.decision import Channel, Choice, Person, sign
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetConcurrency, SetFlag
from agent.core.service.serving import Target
from agent.entrypoints.service import handlers
from agent.errors import DependencyFailed, PolicyRefused, StateConflict
from agent.ports.bus import Delivery
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Change
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.counts import some

PROBE = "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"
ASKED = lambda i: i.phase is Phase.ASKED  # noqa: E731
ENDED = lambda i: i.ended  # noqa: E731
ANY = ("set_*", "restart")


def with_world(told, owner, **changes):
    """Give one function another world, as a new deployment would."""
    worlds = dict(told.installation.contexts)
    worlds[owner] = type(worlds[owner])(**(vars(worlds[owner]) | changes))
    told.installation.contexts.update(worlds)
    told.work = told.installation.worker(handlers(told.installation), threads=1).run_due
    return worlds[owner]


def with_policy(told, **changes):
    """Give every function another policy."""
    for owner, world in list(told.installation.contexts.items()):
        known = world.rules
        policy = known.policy.with_(**changes)
        with_world(told, owner, rules=type(known)(**(vars(known) | {"policy": policy})))


def rewritten(told, incident, **changes):
    """Write an incident as somebody could who may write the store of incidents and nothing else."""
    told.installation.store.commit(Change(incident=incident.with_(**changes)))


def approved(told):
    """Approve, and stop before the executor looks."""
    asked = told.until(ASKED)
    told.answer(asked.plan.id)
    return told.installation.store.load(asked.id)


def stamps(told):
    return told.installation.environment.rehearsal.describe(SERVICE).stamps


def intent_of(service, at):
    """An intent of another change."""
    return Intent(
        key=f"e-{service}",
        kind=EffectKind.APPLY,
        incident="inc-x",
        service=service,
        decision=f"d-{service}",
        plan_digest="0" * 64,
        actions=(SetConcurrency(concurrency=1),),
        target=Target(service=service, uid="u", generation=1, digest="d"),
        etag="e",
        revision="r",
        prior_template="{}",
        prior_traffic="[]",
        applied_at=at,
    )


PLAN_CHANGES = {
    "a value": lambda p: p.with_(actions=(SetFlag(name="max-model-len", value="1"),)),
    "an action more": lambda p: p.with_(actions=(*p.actions, SetConcurrency(concurrency=9))),
    "the cause": lambda p: p.with_(cause="other"),
    "a sentence": lambda p: p.with_(undo=p.undo + " "),
    "the cost": lambda p: p.with_(cost_after_usd_per_h=0.01),
    "the expiry": lambda p: p.with_(expires_at=p.expires_at + timedelta(microseconds=1)),
    "the policy": lambda p: p.with_(policy="0" * 64),
    "the prior template": lambda p: p.with_(prior_template="0" * 64),
    "the uid": lambda p: p.with_(target=p.target.with_(uid="other")),
    "the generation": lambda p: p.with_(target=p.target.with_(generation=p.target.generation + 1)),
    "the target's digest": lambda p: p.with_(target=p.target.with_(digest="0" * 64)),
    "the target's service": lambda p: p.with_(target=p.target.with_(service="other")),
    "the id": lambda p: p.with_(id="p-other-1"),
    "the incident": lambda p: p.with_(incident="inc-other"),
    "the run": lambda p: p.with_(run="replay-1"),
}


@pytest.mark.parametrize("change", PLAN_CHANGES.values(), ids=PLAN_CHANGES)
def test_a_plan_changed_after_its_approval_is_not_applied(journey, change):
    told = journey(PROBE)
    incident = approved(told)
    rewritten(told, incident, plan=change(incident.plan))
    told.go(5)
    after = told.installation.store.load(incident.id)
    assert after.phase is not Phase.APPLYING
    assert any("was not applied" in e.what for e in told.installation.store.timeline(incident.id))
    assert not stamps(told)


DECISION_CHANGES = {
    "another plan": {"plan": "p-x-1"},
    "another digest": {"plan_digest": "0" * 64},
    "a later expiry": {"expires_at": "2027-01-01T00:00:00Z"},
    "another person": {"who": "eve"},
    "another name": {"name": "eve"},
    "verified": {"verified": True},
    "another channel": {"channel": Channel.POLICY},
    "another policy": {"policy": "0" * 64},
    "another way back": {"prior_template": "0" * 64},
    "another target": {"target": Target(service=SERVICE, uid="u", generation=1, digest="d")},
    "no receipt": {"receipt": ""},
    "half a receipt": {"receipt": "00"},
    "a receipt that is no ASCII": {"receipt": "é" * 64},
}


@pytest.mark.parametrize("changes", DECISION_CHANGES.values(), ids=DECISION_CHANGES)
def test_a_decision_changed_after_it_was_signed_moves_nothing(journey, changes):
    told = journey(PROBE)
    incident = approved(told)
    rewritten(told, incident, decision=incident.decision.with_(**changes))
    told.go(5)
    assert not stamps(told)


def test_a_decision_signed_with_another_key_moves_nothing(journey):
    told = journey(PROBE)
    incident = approved(told)
    rewritten(told, incident, decision=sign(incident.decision, b"k" * 32))
    told.go(5)
    assert not stamps(told)


def test_a_forged_intent_is_not_carried_out(journey):
    """Somebody who writes the store of incidents makes up an approval and an intent: nothing is called."""
    told = journey(PROBE)
    incident = approved(told)
    told.installation.contexts[Owner.DECISION].control.set_kill_switch(KillSwitch(on=False))
    from agent.core.change.execution import Effect, Execution, effect_key, revision_name

    live = told.installation.environment.rehearsal.describe(SERVICE)
    evil = incident.plan.with_(actions=(SetFlag(name="max-model-len", value="1"),))
    key = effect_key(incident.id, evil.digest, EffectKind.APPLY)
    effect = Effect(
        key=key,
        kind=EffectKind.APPLY,
        etag=live.etag,
        revision=revision_name(SERVICE, key),
        intended_at=told.clock.now(),
    )
    execution = Execution(
        plan=evil.id,
        effects=(effect,),
        revision_before=None,
        prior_template=live.template,
        prior_traffic="[]",
        prior_ready=True,
    )
    for plan, decision in [
        (evil, incident.decision),
        (evil, sign(incident.decision.with_(plan_digest=evil.digest), b"k" * 32)),
        (evil, None),
        (incident.plan, incident.decision),  # the real plan, and an effect that is not its own
    ]:
        now = told.installation.store.load(incident.id)
        forged = now.with_(plan=plan, decision=decision, execution=execution, phase=Phase.APPLYING)
        told.installation.store.commit(Change(incident=forged))
        told.go(3)
        assert not stamps(told)


def test_a_way_back_that_was_written_over_is_not_taken(journey):
    """What is put back is what the executor kept in the control database, whatever the incident says."""
    told = journey(PROBE)
    asked = told.until(ASKED)
    stood = told.installation.environment.rehearsal.describe(SERVICE).config
    told.answer(asked.plan.id)
    applied = told.until(lambda i: i.phase is Phase.VERIFYING, limit_s=300)
    evil = applied.execution.with_(prior_template=applied.execution.prior_template.replace("max-model-len", "evil"))
    failed = applied.verification.with_(verdict=Verdict.NOT_RECOVERED)  # without it nothing is put back at all
    rewritten(told, applied, execution=evil, verification=failed, phase=Phase.ROLLING_BACK, due_at=told.clock.now())
    told.until(lambda i: i.phase is Phase.ROLLED_BACK or i.plan.id != asked.plan.id, limit_s=900)
    assert told.installation.environment.rehearsal.describe(SERVICE).config == stood


def test_another_policy_after_the_approval_refuses_and_plans_anew(journey):
    told = journey(PROBE)
    incident = approved(told)
    with_policy(told, changes_per_hour=3)
    after = told.until(lambda i: i.plan.id != incident.plan.id and i.phase is Phase.ASKED, limit_s=300)
    assert any("the policy changed" in e.what for e in told.installation.store.timeline(after.id))
    assert not stamps(told)
    told.answer(after.plan.id)
    assert told.until(ENDED, limit_s=900).phase is Phase.RESOLVED


def test_an_approval_that_ran_out_before_the_executor_looked_is_refused(journey):
    told = journey(PROBE)
    incident = approved(told)
    told.clock.step(1801)
    told.go(3)
    assert any("the approval expired" in e.what for e in told.installation.store.timeline(incident.id))
    assert not stamps(told)


def test_what_was_shown_must_be_the_plan(journey):
    told = journey(PROBE)
    plan = told.until(ASKED).plan
    word = DecisionRequest(
        plan=plan.id,
        answer=Choice.APPROVE,
        by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
        plan_digest="0" * 64,
    )
    with pytest.raises(PolicyRefused, match="what was shown had digest '00000000'"):
        plan_to_decision(told.installation.contexts[Owner.DECIDE], word)


class Broken:
    """A control store that fails in one way, and a real one behind it."""

    def __init__(self, real, **answers):
        self._real, self._answers = real, answers

    def __getattr__(self, name):
        if name in self._answers:
            return self._answers[name]
        return getattr(self._real, name)


def failing(*args, **kwargs):
    raise DependencyFailed("the store did not answer", why="down", hint="wait")


def garbage(*args, **kwargs):
    raise ValueError("{")


DOUBTS = {
    "kill switch unreachable": {"kill_switch": failing},
    "kill switch garbage": {"kill_switch": garbage},
    "kill switch answers nothing": {"kill_switch": lambda: None},
    "kill switch answers text": {"kill_switch": lambda: "off"},
    "receipts unreachable": {"begin": failing},
    "receipts garbage": {"begin": lambda *a, **k: None},
    "intents unreachable": {"intent": failing},
    "intents garbage": {"intent": lambda *a, **k: "open"},
    "a lease that is no lease": {"acquire": lambda *a, **k: True},
    "a lease that is held perhaps": {"holds": lambda *a, **k: "perhaps"},
}


@pytest.mark.parametrize("answers", DOUBTS.values(), ids=DOUBTS)
def test_in_doubt_nothing_is_changed(journey, answers):
    """S5: unreachable or garbage, the executor changes nothing; people still see the incident."""
    told = journey(PROBE)
    approved(told)
    world = told.installation.contexts[Owner.DECISION]
    with_world(told, Owner.DECISION, control=Broken(world.control, **answers))
    told.go(20)
    assert not stamps(told)


def test_a_kill_switch_that_answers_late_lets_nothing_begin(journey, monkeypatch):
    """It may have been turned while it was being read."""
    import time as real

    from agent.stages.shared import kill_switch

    told = journey(PROBE)
    world = told.installation.contexts[Owner.DECISION]
    ticks = iter([0.0, 1.5])
    monkeypatch.setattr(kill_switch, "time", type("Slow", (), {"monotonic": lambda: next(ticks)}))
    with pytest.raises(DependencyFailed, match="did not answer within 1 s"):
        kill_switch.kill_switch_reason(world)
    monkeypatch.setattr(kill_switch, "time", real)
    assert kill_switch.kill_switch_message(world) == ""


def test_the_switch_in_the_environment_stops_everything(journey):
    told = journey(PROBE, kill_switch=True)
    plan = told.until(ASKED).plan
    with pytest.raises(PolicyRefused, match="KILL_SWITCH in the environment"):
        told.answer(plan.id)
    with_world(told, Owner.DECIDE, halted=False)  # set for the executor alone
    told.answer(plan.id)
    ended = told.until(ENDED, limit_s=900)
    assert "KILL_SWITCH in the environment" in ended.ended_why
    assert not stamps(told)


class Flipping:
    """A platform that turns the switch at the nth call of anything, and notes what was changed after that."""

    def __init__(self, real, control, at):
        self._real, self._control, self._at = real, control, at
        self.calls, self.flipped, self.changed_after = 0, False, []

    def __getattr__(self, name):
        method = getattr(self._real, name)

        def call(*args, **kwargs):
            on_before = self.flipped
            if name in {"apply", "restore", "shift"} and on_before:
                self.changed_after.append(name)
            done = method(*args, **kwargs)
            self.calls += 1
            if self.calls == self._at:
                self._control.set_kill_switch(KillSwitch(on=True, by="grace", why="now"))
                self.flipped = True
            return done

        return call


@pytest.mark.parametrize("at", some(range(1, 25), one_in=6))
def test_after_the_switch_is_turned_no_effect_starts(journey, at):
    """S6: turned after any call of the platform, from the first look to the last measurement."""
    told = journey(PROBE)
    world = told.installation.contexts[Owner.DECISION]
    flipping = Flipping(told.installation.environment.rehearsal, world.control, at)
    for owner in (Owner.INCIDENT, Owner.DECISION, Owner.TICK):
        with_world(told, owner, platform_of=lambda _: flipping)
    asked = told.until(lambda i: i.phase is Phase.ASKED or i.ended, limit_s=300)
    if flipping.flipped:
        with pytest.raises(PolicyRefused, match="the kill switch is on"):
            told.answer(asked.plan.id)
        return
    told.answer(asked.plan.id)
    told.until(lambda i: i.ended or (ASKED(i) and i.plan.id != asked.plan.id), limit_s=900)
    assert flipping.changed_after == []


def test_policy_decides_alone_only_where_it_says_so_and_signs_by_policy(journey):
    told = journey(PROBE)
    with_policy(told, rules=(Rule(services=("gemma4-*",), kinds=ANY, mode=Mode.AUTOMATIC),))
    ended = told.until(ENDED, limit_s=900)
    assert ended.phase is Phase.RESOLVED
    assert (ended.decision.who, ended.decision.channel, ended.decision.verified) == ("policy", Channel.POLICY, True)
    assert [r.who for r in told.installation.control.audit() if r.kind == "decision.approve"] == ["policy"]


@pytest.mark.parametrize("rules", [(), (Rule(services=("other-*",), kinds=ANY, mode=Mode.AUTOMATIC),)])
def test_an_order_to_decide_alone_decides_nothing_that_policy_does_not(journey, rules):
    """S7 and S14: a forged message cannot make the executor approve; a rule of other services selects nothing."""
    told = journey(PROBE)
    with_policy(told, rules=rules)
    asked = told.until(ASKED)
    from agent.entrypoints.pubsub.handlers import on_order

    order = f'{{"kind":"auto","incident":"{asked.id}"}}'.encode()
    on_order(told.installation.contexts[Owner.DECISION], Delivery(topic=None, message_id="m", data=order))
    told.go(5)
    assert told.installation.store.load(asked.id).phase is Phase.ASKED
    assert not stamps(told)


def test_policy_is_read_by_the_executor_itself(journey):
    """The function that reads logs believes that all is automatic; the executor knows better."""
    told = journey(PROBE)
    everything = (Rule(services=("gemma4-*",), kinds=ANY, mode=Mode.AUTOMATIC),)
    known = told.installation.contexts[Owner.INCIDENT].rules
    lax = type(known)(**(vars(known) | {"policy": known.policy.with_(rules=everything)}))
    with_world(told, Owner.INCIDENT, rules=lax)
    asked = told.until(ASKED)
    told.go(10)
    assert told.installation.store.load(asked.id).phase is Phase.ASKED
    assert not stamps(told)


def test_nobody_may_sign_as_policy_from_outside(journey):
    told = journey(PROBE)
    plan = told.until(ASKED).plan
    word = DecisionRequest(
        plan=plan.id, answer=Choice.APPROVE, by=Person(who="policy", channel=Channel.POLICY, verified=True)
    )
    with pytest.raises(PolicyRefused, match="asks for a person"):
        plan_to_decision(told.installation.contexts[Owner.DECIDE], word)


def word_of(plan, channel, who, *, answer=Choice.APPROVE, verified=True):
    return DecisionRequest(
        plan=plan.id, answer=answer, by=Person(who=who, channel=channel, verified=verified), plan_digest=plan.digest
    )


ADA = Approver(name="Ada", slack="U0ADA", webhook="pager", email="ada@example.com", services=("gemma4-*",))
BEN = Approver(name="Ben", slack="U0BEN", services=("other-*",))
NONE = Approver(name="None", slack="U0NONE")


@pytest.mark.parametrize(
    ("channel", "who", "says"),
    [
        (Channel.SLACK, "U0EVE", "names no approver"),
        (Channel.SLACK, "Ada", "names no approver"),
        (Channel.SLACK, "U0BEN", "does not let 'Ben' decide"),
        (Channel.SLACK, "U0NONE", "does not let 'None' decide"),
        (Channel.WEBHOOK, "U0ADA", "names no approver"),
        (Channel.CONSOLE, "eve@example.com", "names no approver"),
    ],
)
@pytest.mark.parametrize("answer", list(Choice))
def test_a_verified_channel_needs_an_approver_of_the_service(journey, channel, who, says, answer):
    told = journey(PROBE)
    with_policy(told, approvers=(ADA, BEN, NONE))
    plan = told.until(ASKED).plan
    with pytest.raises(PolicyRefused, match=says):
        plan_to_decision(told.installation.contexts[Owner.DECIDE], word_of(plan, channel, who, answer=answer))


@pytest.mark.parametrize(
    ("channel", "who"), [(Channel.SLACK, "U0ADA"), (Channel.WEBHOOK, "pager"), (Channel.CONSOLE, "Ada@example.com")]
)
def test_an_approver_is_heard_through_every_channel_that_proves_them(journey, channel, who):
    told = journey(PROBE)
    with_policy(told, approvers=(ADA,))
    plan = told.until(ASKED).plan
    decided = plan_to_decision(told.installation.contexts[Owner.DECIDE], word_of(plan, channel, who))
    assert decided.shown == "Ada"
    assert told.until(ENDED, limit_s=900).phase is Phase.RESOLVED


@pytest.mark.parametrize("asked_by", ["Ada", "U0ADA", "ada@example.com", "pager"])
def test_who_asks_does_not_approve_under_any_of_their_names(journey, asked_by):
    told = journey(PROBE)
    with_policy(told, approvers=(ADA,))
    incident = told.until(ASKED)
    plan = incident.plan.with_(asked_by=asked_by)
    from agent.stages.shared.approval import refusal_of_decider

    world = told.installation.contexts[Owner.DECIDE]
    ada = Person(who="U0ADA", channel=Channel.SLACK, verified=True)
    assert "who asks does not approve" in refusal_of_decider(world, plan, answer=Choice.APPROVE, person=ada)
    assert refusal_of_decider(world, plan, answer=Choice.REJECT, person=ada) == ""


@pytest.mark.parametrize("channel", [Channel.COMMAND_LINE, Channel.CONSOLE])
def test_an_unproven_word_counts_on_ones_own_machine_only(journey, channel):
    told = journey(PROBE)
    plan = told.until(ASKED).plan
    away = with_world(told, Owner.DECIDE, local=False)
    with pytest.raises(PolicyRefused, match="nothing proves"):
        plan_to_decision(away, word_of(plan, channel, "ada", verified=False))
    home = with_world(told, Owner.DECIDE, local=True)
    with pytest.raises(PolicyRefused, match="nothing proves"):
        plan_to_decision(home, word_of(plan, Channel.SLACK, "U0ADA", verified=False))
    assert plan_to_decision(home, word_of(plan, channel, "ada", verified=False)).who == "ada"


def test_what_is_never_allowed_cannot_be_approved(journey):
    told = journey(PROBE)
    plan = told.until(ASKED).plan
    with_policy(told, rules=(Rule(services=("gemma4-*",), kinds=ANY, mode=Mode.NEVER),))
    with pytest.raises(PolicyRefused, match="never allows"):
        told.answer(plan.id)


def test_a_full_hour_makes_an_approved_plan_wait_and_then_go_on(journey):
    told = journey(PROBE)
    for n in range(4):
        control = told.installation.control
        at = told.clock.now() + timedelta(seconds=300)
        control.begin(intent_of(f"s{n}", at))
    incident = approved(told)
    told.go(60)
    waiting = told.installation.store.load(incident.id)
    assert waiting.phase is Phase.APPROVED
    assert not stamps(told)
    assert "waits until" in told.installation.store.timeline(incident.id)[-1].what


def test_losing_to_a_person_is_no_failure_of_the_policy(journey):
    told = journey(PROBE)
    asked = told.until(ASKED)
    told.answer(asked.plan.id, Choice.REJECT, why="no")
    with pytest.raises(StateConflict):
        told.answer(asked.plan.id)


def test_the_empty_policy_changes_nothing(journey):
    """S7: no flag, no variable, no selector: no plan of ours, and nothing is applied."""
    told = journey(PROBE)
    for owner, world in list(told.installation.contexts.items()):
        known = type(world.rules)(**(vars(world.rules) | {"policy": Policy()}))
        with_world(told, owner, rules=known)
    asked = told.until(ASKED)
    kinds = {a.kind for a in asked.plan.actions}
    assert not kinds & {"set_flag", "set_env"}
