"""A request gets its plan, or is refused and closed; its life goes through the same gate, and is planned once."""

from dataclasses import replace

import pytest

from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Measurement
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal, Source
from agent.core.plan.action import SetConcurrency, SetScaling
from agent.errors import PolicyRefused
from agent.ports.control import KillSwitch
from agent.ports.store import Change, head_key
from agent.stages.advance import advance
from agent.stages.plan_to_decision import DecisionRequest, auto_approve, plan_to_decision
from agent.stages.preview_change import preview_change
from agent.stages.shared.effects import stored_intent
from agent.stages.signal_to_incident import signal_to_incident
from tests.agent.stages.conftest import SERVICE, Arithmetic
from tests.agent.stages.requests import POLICY, Asking
from tests.people import said_by


@pytest.fixture
def asking():
    return Asking()


def planned(asking, **changes):
    """A request whose plan is asked about."""
    request = asking.ask(**changes)
    advance(asking.planner, request.id)
    return asking.load(request)


def answer(asking, incident, answer=Choice.APPROVE, **changes):
    said = {"who": "ben", "channel": Channel.CONSOLE, "verified": False}
    word = DecisionRequest(plan=incident.plan.id, answer=answer, **said_by(said | changes))
    return plan_to_decision(asking.decide, word)


def applied_and_watched(asking, request, *, good):
    """Let an approved change come up, and measure it."""
    advance(asking.executor, request.id)
    asking.platform.ends("apply", ok=True)
    asking.clock.step(60)
    checks = [Measurement(check=c, good=good, says="-", at=asking.clock.now()) for c in (Check.READY, Check.COMPLETION)]
    asking.platform.measured = tuple(checks)
    for _ in range(4):
        advance(asking.tick, request.id)
        asking.clock.step(700)


def test_a_request_that_is_approved_and_works_is_resolved(asking):
    request = planned(asking)
    assert (request.phase, request.diagnosis, request.model_request) == (Phase.ASKED, None, None)
    answer(asking, request)
    applied_and_watched(asking, request, good=True)
    done = asking.load(request)
    assert (done.phase, done.remedies) == (Phase.RESOLVED, ())
    assert asking.platform.calls == ["apply"]
    assert asking.platform.live.config.concurrency == 2


def test_a_request_that_does_not_work_is_undone_and_closed(asking):
    request = planned(asking)
    answer(asking, request)
    applied_and_watched(asking, request, good=False)
    advance(asking.executor, request.id)
    asking.platform.ends("restore", ok=True)
    advance(asking.tick, request.id)
    advance(asking.planner, request.id)
    done = asking.load(request)
    assert (done.phase, done.plans_made, done.remedies) == (Phase.CLOSED, 1, ())
    assert asking.platform.calls == ["apply", "restore"]


def test_policy_never_applies_a_request_by_itself(asking):
    """The rule says automatic; the request asks a person all the same."""
    request = planned(asking)
    auto_approve(asking.executor, request.id)
    assert asking.load(request).phase is Phase.ASKED
    word = DecisionRequest(
        plan=request.plan.id, answer=Choice.APPROVE, by=Person(who="policy", channel=Channel.POLICY, verified=True)
    )
    with pytest.raises(PolicyRefused, match=r"policy.toml asks for a person"):
        plan_to_decision(asking.executor, word)


@pytest.mark.parametrize(
    ("asked", "approved", "may"),
    [
        ({"who": "ada"}, {"who": "ada"}, True),
        ({"who": "ada", "channel": Channel.MCP}, {"who": "ada"}, False),
        ({"who": "ada", "channel": Channel.MCP}, {"who": "Ada"}, False),
        ({"who": "ada", "channel": Channel.MCP}, {"who": "ben"}, True),
        ({"who": "ada@example.com", "verified": True}, {"who": "ada@example.com", "verified": True}, False),
        ({"who": "ada@example.com", "verified": True}, {"who": "ben@example.com", "verified": True}, True),
    ],
)
def test_who_asks_does_not_approve_but_on_an_own_machine(asking, asked, approved, may):
    request = planned(asking, **asked)
    if may:
        assert answer(asking, request, **approved).answer is Choice.APPROVE
        return
    with pytest.raises(PolicyRefused, match="who asks does not approve"):
        answer(asking, request, **approved)


@pytest.mark.parametrize("how", ["rejected", "expired", "refused at the last look", "moved"])
def test_what_does_not_come_about_is_closed_and_never_planned_again(asking, how):
    target = asking.platform.live.target
    if how == "moved":
        asking.platform.somebody_else()
    request = planned(asking, target=target)
    if how == "rejected":
        answer(asking, request, Choice.REJECT, why="too much")
    elif how == "expired":
        asking.clock.step(1801)
        advance(asking.tick, request.id)
    elif how == "refused at the last look":
        answer(asking, request)
        asking.decide.control.set_kill_switch(KillSwitch(on=True, by="ben", why="stop"))
        advance(asking.executor, request.id)
    advance(asking.planner, request.id)
    done = asking.load(request)
    says = {
        "rejected": "ben rejected it: too much",
        "expired": "nobody answered",
        "moved": "changed since it was asked",
    }
    assert (done.phase, done.plans_made <= 1, done.remedies) == (Phase.CLOSED, True, ())
    assert says.get(how, "kill switch is on") in done.ended_why
    assert asking.platform.calls == []


def test_asking_for_what_is_so_already_does_nothing(asking):
    request = asking.ask(4)
    advance(asking.planner, request.id)
    done = asking.load(request)
    assert (done.phase, done.plan) == (Phase.CLOSED, None)
    assert done.ended_why.startswith("the service is already as you want it")


def forge(asking, incident, **changes):
    """Write the incident database, as who has only that could."""
    asking.store.commit(Change(incident=incident.with_(**changes)))
    return asking.load(incident)


FORGED = {
    "another asker": lambda i: {"request": i.request.with_(asker="eve")},
    "no request any more": lambda i: {"request": None},
    "other actions": lambda i: {"request": i.request.with_(actions=(SetConcurrency(concurrency=9),))},
    "a plan of another asker": lambda i: {"plan": i.plan.with_(asked_by=None)},
    "a plan of other actions": lambda i: {"plan": i.plan.with_(actions=(SetConcurrency(concurrency=9),))},
}


@pytest.mark.parametrize("name", FORGED)
def test_who_writes_only_the_incident_database_makes_no_request_act(asking, name):
    """Before the approval it is refused there; after it, by the executor."""
    before = planned(asking)
    forged = forge(asking, before, **FORGED[name](before))
    if "plan" not in FORGED[name](before):
        with pytest.raises(PolicyRefused, match="the request is not the one that was signed"):
            answer(asking, forged)
    after = planned(asking, who="ben", value=3, supersede=True)
    answer(asking, after, who="ada")
    forge(asking, asking.load(after), **FORGED[name](asking.load(after)))
    advance(asking.executor, after.id)
    assert asking.platform.calls == []
    assert asking.load(after).phase is Phase.REFUSED


def test_a_request_that_nobody_signed_cannot_be_approved(asking):
    real = planned(asking)
    made_up = real.with_(id="rq-0123456789ab", version=0, request=real.request.with_(id="rq-0123456789ab"))
    plan = real.plan.with_(id="p-rq-0123456789ab-1", incident=made_up.id)
    asking.store.commit(Change(incident=made_up.with_(plan=plan), plan=plan))
    with pytest.raises(PolicyRefused, match="holds no such request"):
        answer(asking, asking.store.load(made_up.id))


def a_signal(asking, revision, text="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB."):
    signal = Signal(
        key=f"k-{revision}-{asking.clock.now():%H%M%S}", run="live", service=SERVICE, platform="host", revision=revision,
        source=Source.APP_LOG, severity="ERROR", at=asking.clock.now(), text=text,
    )  # fmt: skip
    signal_to_incident(asking.tick, signal)
    return asking.store.knows(signal.key)


def test_only_its_own_revision_joins_a_request_and_nothing_after_its_end(asking):
    request = planned(asking)
    assert a_signal(asking, "svc-1") != request.id  # before the change it is a trouble like any other
    answer(asking, request)
    advance(asking.executor, request.id)
    ours = stored_intent(asking.executor, asking.load(request), EffectKind.APPLY).revision
    assert a_signal(asking, ours) == request.id
    trouble = asking.store.load(asking.store.head(head_key("live", SERVICE, None)))
    assert trouble.request is None
    ended = asking.load(request).with_(phase=Phase.CLOSED, phase_at=asking.clock.now(), due_at=None)
    asking.store.commit(Change(incident=ended))
    asking.clock.step(5)
    late = asking.store.load(a_signal(asking, ours))
    assert (late.request, late.linked_to, late.episode) == (None, trouble.id, 1)


def test_a_dry_run_shows_the_plan_and_stores_nothing(asking):
    shown = preview_change(asking.planner, asking.asked())
    assert [(d.path, d.before, d.after) for d in shown.plan.difference] == [("concurrency", "4", "2")]
    assert (shown.approvers, shown.self_approval) == (("ben",), True)
    assert asking.decide.control.audit() == ()
    assert asking.store.unsent() == ()
    cloud = Asking(local=False)
    assert preview_change(cloud.planner, cloud.asked()).self_approval is False


class Priced(Arithmetic):
    """An hour of an instance costs one dollar."""

    def cost_usd_per_h(self, _service, _config):
        return 1.0


def test_a_request_over_budget_is_refused_before_anybody_is_asked():
    """Nobody is asked about what policy would refuse; the dry run says the same."""
    asking = Asking(policy=POLICY.with_(budget_usd_per_h=2))
    asking.planner = replace(asking.planner, rules=replace(asking.planner.rules, fits=Priced()))
    over = "all watched services would cost 3.00 USD/h with it, and the budget is 2.00 USD/h"
    most = (SetScaling(min_instances=0, max_instances=3),)
    request = planned(asking, actions=most)
    assert (request.phase, request.plan) == (Phase.CLOSED, None)
    assert over in request.ended_why
    with pytest.raises(PolicyRefused, match=over) as refused:
        preview_change(asking.planner, asking.asked(actions=most))
    assert refused.value.exit_code == 1
    assert planned(asking, actions=(SetScaling(min_instances=0, max_instances=2),)).phase is Phase.ASKED
