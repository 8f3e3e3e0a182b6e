"""A request is signed and recorded once, refused where it can never be, and says what else is open."""

import pytest

from agent.core.change.request import check_request
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import UNDER_WAY, Phase
from agent.core.plan.action import Restart, SetConcurrency, SetFlag
from agent.core.plan.plan import Rollout
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.store import Change, head_key, repeat_head, request_head
from agent.stages.advance import advance
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import (
    PER_HOUR,
    AlreadyOpen,
    RequestLimitReached,
    withdraw_request,
)
from agent.stages.shared.other_changes import yields_to
from tests.agent.stages.conftest import SERVICE
from tests.agent.stages.requests import Asking

ADA = Person(who="ada", channel=Channel.COMMAND_LINE, verified=False)
BEN = ADA.with_(who="ben")


@pytest.fixture
def asking():
    return Asking()


def test_a_request_is_signed_in_the_control_database_and_shown_in_the_other(asking):
    incident = asking.ask()
    held = asking.decide.control.change_request(incident.id)
    check_request(held, asking.decide.receipts())
    assert (incident.phase, incident.request, incident.cause) == (Phase.OPEN, held, "change_requested")
    assert (held.asker, held.channel, held.verified, held.why) == ("ada", Channel.COMMAND_LINE, False, "more at once")
    rows = asking.decide.control.audit()
    assert [(row.kind, row.incident, row.who) for row in rows] == [("request.made", incident.id, "ada")]


def test_it_stands_under_keys_of_its_own(asking):
    """No signal of the service finds it, so no incident is linked to it or takes its place."""
    incident = asking.ask()
    assert asking.store.head(request_head("live", SERVICE)) == incident.id
    assert asking.store.head(repeat_head("live", incident.request.key)) == incident.id
    assert asking.store.head(head_key("live", SERVICE, None)) is None


def test_the_same_request_while_it_is_open_is_the_one_that_is_open(asking):
    first = asking.ask()
    assert asking.ask(why="said again, in other words").id == first.id
    assert len(asking.decide.control.audit()) == 1


def test_the_same_request_after_its_end_is_a_new_one(asking):
    first = asking.ask()
    withdraw_request(asking.decide, first.id, ADA, why="not now")
    advance(asking.planner, first.id)
    assert asking.load(first).phase is Phase.CLOSED
    second = asking.ask()
    assert (second.phase, second.id == first.id) == (Phase.OPEN, False)


def test_another_request_of_the_service_is_told_of_and_may_be_superseded(asking):
    first = asking.ask(2)
    with pytest.raises(AlreadyOpen, match=f"a change request of ada is open on it: {first.id} is OPEN") as told:
        asking.ask(3, who="ben")
    assert "--supersede" in told.value.hint
    second = asking.ask(3, who="ben", supersede=True)
    advance(asking.planner, second.id)
    assert asking.load(first).phase is Phase.WITHDRAWN
    assert f"{second.id} of ben took its place" in asking.load(first).ended_why
    assert asking.load(second).phase is Phase.ASKED
    advance(asking.planner, first.id)
    assert asking.load(first).phase is Phase.CLOSED


def test_an_open_incident_is_told_of_and_its_plan_gives_way(asking):
    incident = asking.bench.asked()
    asking.store.commit(Change(incident=incident, heads=(head_key("live", SERVICE, None),)))
    with pytest.raises(AlreadyOpen, match="an incident is open on it: inc-a is ASKED"):
        asking.ask()
    request = asking.ask(supersede=True)
    advance(asking.planner, request.id)
    assert asking.load(request).phase is Phase.ASKED
    gone = asking.load(incident)
    assert (gone.phase, request.id in asking.store.timeline("inc-a")[-1].what) == (Phase.SUPERSEDED, True)
    advance(asking.planner, "inc-a")
    assert asking.load(incident).phase is Phase.SUPERSEDED  # no plan of it as long as the request is open
    withdraw_request(asking.decide, request.id, ADA, why="no")
    advance(asking.planner, request.id)
    assert asking.load(request).phase is Phase.CLOSED


def test_a_request_that_is_refused_takes_nobodys_plan_away(asking):
    """The incident keeps the plan that people may be about to approve."""
    incident = asking.bench.asked()
    asking.store.commit(Change(incident=incident, heads=(head_key("live", SERVICE, None),)))
    request = asking.ask(supersede=True, target=asking.platform.live.target)
    asking.platform.somebody_else()
    advance(asking.planner, request.id)
    assert asking.load(request).phase is Phase.CLOSED
    assert asking.load(incident).phase is Phase.ASKED


def test_behind_a_change_that_is_under_way_it_waits(asking):
    asking.bench.approved()
    incident = asking.bench.now()
    asking.store.commit(Change(incident=incident, heads=(head_key("live", SERVICE, None),)))
    request = asking.ask(3, target=asking.platform.live.target)
    assert request.request.waits_for == "inc-a"
    for _ in range(3):
        asking.clock.step(60)
        advance(asking.planner, request.id)
    assert asking.load(request) == request  # nothing is written while it waits
    assert request.id in asking.store.due(asking.clock.now())
    ended = asking.bench.now().move(Phase.REFUSED, now=asking.clock.now()).move(Phase.ESCALATED, now=asking.clock.now())
    asking.store.commit(Change(incident=ended))
    asking.platform.somebody_else()  # which was to be expected: the other change came first
    advance(asking.planner, request.id)
    assert asking.load(request).phase is Phase.ASKED


def approved(asking, value):
    """Return a request that was approved and is about to be carried out."""
    request = asking.ask(value)
    advance(asking.planner, request.id)
    approve(asking, request)
    return request


def approve(asking, request):
    plan = asking.load(request).plan
    by = Person(who="ben", channel=Channel.CONSOLE, verified=False)
    plan_to_decision(asking.decide, DecisionRequest(plan=plan.id, answer=Choice.APPROVE, by=by))
    assert asking.load(request).phase is Phase.APPROVED


def taken_back(asking, request):
    withdraw_request(asking.decide, request.id, ADA, why="not now")
    advance(asking.planner, request.id)
    assert asking.load(request).phase is Phase.CLOSED


def test_a_change_that_is_under_way_is_seen_past_a_request_that_was_taken_back(asking):
    """Who waited for it is gone; the next request, and the plan of an incident, wait for it all the same."""
    first = approved(asking, 2)
    taken_back(asking, asking.ask(3))
    assert asking.ask(5).request.waits_for == first.id
    taken_back(asking, asking.load(asking.ask(5)))
    trouble = asking.bench.asked()
    assert getattr(yields_to(asking.planner, trouble), "id", None) == first.id


def test_a_request_whose_successor_was_taken_back_is_still_told_of(asking):
    """The successor had no plan yet, so it took nobody's place."""
    first = approved(asking, 2)
    second = asking.ask(3)
    taken_back(asking, asking.ask(5, supersede=True))
    with pytest.raises(AlreadyOpen, match=f"{second.id} is OPEN"):
        asking.ask(6)
    assert asking.ask(6, supersede=True).request.waits_for == first.id


def test_a_change_of_an_earlier_incident_is_seen_behind_a_newer_one(asking):
    """Two revisions are in trouble; the older one's fix is approved, and the newer incident stands in front."""
    asking.bench.approved()
    older = asking.bench.now()
    fresh = {"version": 0, "phase": Phase.OPEN, "plan": None, "decision": None, "revision": "svc-3"}
    newer = older.with_(id="inc-b", linked_to=older.id, **fresh)
    asking.store.commit(Change(incident=newer, heads=(head_key("live", SERVICE, None),)))
    with pytest.raises(AlreadyOpen, match="an incident is open on it: inc-b is OPEN"):
        asking.ask(3)
    request = asking.ask(3, supersede=True)
    assert (request.request.waits_for, request.request.superseded) == (older.id, ("inc-b",))
    advance(asking.planner, request.id)
    assert asking.load(request).phase is Phase.OPEN


def test_a_request_waits_for_the_one_whose_place_it_came_too_late_to_take(asking):
    """It was to take the place of a request that was approved before it had a plan of its own."""
    second = asking.ask(3)
    third = asking.ask(5, supersede=True)
    assert third.request.superseded == (second.id,)
    advance(asking.planner, second.id)
    approve(asking, second)
    advance(asking.planner, third.id)
    assert asking.load(third).phase is Phase.OPEN


@pytest.mark.parametrize("phase", sorted(UNDER_WAY))
def test_from_approved_to_rolling_back_superseding_waits_too(asking, phase):
    """Nobody takes the place of a change that is approved or being made."""
    asking.bench.approved()
    incident = asking.bench.now().with_(phase=phase)
    asking.store.commit(Change(incident=incident, heads=(head_key("live", SERVICE, None),)))
    request = asking.ask(3, supersede=True)
    assert (request.request.waits_for, request.request.superseded) == ("inc-a", ())
    advance(asking.planner, request.id)
    assert (asking.load(request).phase, asking.bench.now().phase) == (Phase.OPEN, phase)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"service": "svd"}, InputRejected, "did you mean 'svc'"),
        (
            {"actions": (SetConcurrency(concurrency=2), SetConcurrency(concurrency=3))},
            InputRejected,
            "set_concurrency has two values",
        ),
        ({"why": "  "}, InputRejected, "needs a reason"),
        ({"why": "x" * 1001}, InputRejected, "needs a reason of 1 to 1000 characters"),
        ({"actions": (Restart(),)}, PolicyRefused, "policy.toml never allows restart"),
        ({"actions": (SetFlag(name="api-key", value="x"),)}, PolicyRefused, "not on the allow-list"),
        ({"actions": (SetConcurrency(concurrency=65),)}, PolicyRefused, "above the limit of 64"),
        ({"who": "eve@example.com", "verified": True}, PolicyRefused, "policy.toml does not name 'eve@example.com'"),
        ({"who": "a" * 321}, InputRejected, "the name of who asks has 321 characters"),
        ({"channel": Channel.WEBHOOK}, PolicyRefused, "nothing proves that 'ada' is who it says"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_can_never_be_is_refused_and_nothing_is_recorded(asking, changes, error, says):
    with pytest.raises(error, match=says):
        asking.ask(**changes)
    assert asking.decide.control.audit() == ()
    assert asking.store.head(request_head("live", SERVICE)) is None


def test_in_the_cloud_a_name_that_nobody_proved_asks_for_nothing():
    with pytest.raises(PolicyRefused, match="nothing proves"):
        Asking(local=False).ask()


def test_secrets_are_taken_out_of_the_reason(asking):
    from dataclasses import replace

    rules = replace(asking.decide.rules, redact=lambda text: text.replace("hunter2", "***"))
    asking.decide = replace(asking.decide, rules=rules)
    assert asking.ask(why="the key is hunter2").request.why == "the key is ***"


def test_one_person_is_limited_and_others_are_not(asking):
    for number in range(PER_HOUR):
        asking.ask(number + 5, supersede=True)
    with pytest.raises(RequestLimitReached, match=f"'ada' asked for {PER_HOUR} changes in this hour"):
        asking.ask(40, supersede=True)
    assert asking.ask(40, who="ben", supersede=True).phase is Phase.OPEN
    asking.clock.step(3600)
    assert asking.ask(41, supersede=True).phase is Phase.OPEN


def test_who_asked_takes_it_back_and_nobody_else(asking):
    request = asking.ask()
    with pytest.raises(PolicyRefused, match="'ada' asked for it, not 'ben'"):
        withdraw_request(asking.decide, request.id, BEN, why="no")
    withdraw_request(asking.decide, request.id, ADA, why="no")
    again = withdraw_request(asking.decide, request.id, ADA, why="said again")
    assert again == asking.load(request)
    with pytest.raises(PolicyRefused, match="'ada' asked for it, not 'ben'"):
        withdraw_request(asking.decide, request.id, BEN, why="no")
    rows = asking.decide.control.audit()
    said = [("request.withdraw", "ada", "no"), ("request.withdrawn", "ada", "no")]
    assert [(row.kind, row.who, row.body) for row in rows[1:]] == said


def test_a_withdrawal_that_loses_against_an_approval_is_not_on_record(asking, monkeypatch):
    """Somebody approves between the look and the write: the record has that it was said, not that it came about."""
    request = asking.ask()
    advance(asking.planner, request.id)
    plan, commit = asking.load(request).plan, asking.store.commit

    def approved_first(change):
        monkeypatch.setattr(asking.store, "commit", commit)
        word = DecisionRequest(
            plan=plan.id, answer=Choice.APPROVE, by=Person(who="ben", channel=Channel.COMMAND_LINE, verified=False)
        )
        plan_to_decision(asking.decide, word)
        return commit(change)

    monkeypatch.setattr(asking.store, "commit", approved_first)
    with pytest.raises(PolicyRefused, match="it is APPROVED"):
        withdraw_request(asking.decide, request.id, ADA, why="no")
    assert [row.kind for row in asking.decide.control.audit()] == [
        "request.made",
        "request.withdraw",
        "decision.approve",
    ]


@pytest.mark.parametrize("closed", [False, True], ids=["at-once", "after-it-was-closed"])
def test_a_withdrawal_whose_writer_died_before_the_record_is_finished_by_saying_it_again(asking, monkeypatch, closed):
    """The record has what was said; who heard no answer says it again, and the reason that was given first stays."""
    request, control = asking.ask(), asking.decide.control
    append = control.append

    def dies(**row):
        if row["kind"] == "request.withdraw":
            return append(**row)
        raise DependencyFailed("the record was not written", why="it died here", hint="say it again")

    monkeypatch.setattr(control, "append", dies)
    with pytest.raises(DependencyFailed):
        withdraw_request(asking.decide, request.id, ADA, why="not now")
    monkeypatch.setattr(control, "append", append)
    if closed:
        advance(asking.planner, request.id)
        assert asking.load(request).phase is Phase.CLOSED
    for _ in range(2):
        withdraw_request(asking.decide, request.id, ADA, why="said again")
    rows = [(row.kind, row.who, row.body) for row in control.audit()]
    assert rows[1:] == [("request.withdraw", "ada", "not now"), ("request.withdrawn", "ada", "not now")]


def test_a_request_that_another_replaced_was_not_taken_back_by_its_asker(asking):
    first = asking.ask(2)
    second = asking.ask(3, who="ben", supersede=True)
    advance(asking.planner, second.id)
    with pytest.raises(PolicyRefused, match="it is WITHDRAWN"):
        withdraw_request(asking.decide, first.id, ADA, why="no")


def test_an_incident_is_no_request_that_could_be_taken_back(asking):
    asking.bench.asked()
    with pytest.raises(InputRejected, match="no change request"):
        withdraw_request(asking.decide, "inc-a", ADA, why="no")


def test_a_writer_that_died_between_the_two_databases_is_finished_by_the_next(asking, monkeypatch):
    """The signed request stands and its life does not: asking again goes on from there, and counts once."""
    commit = asking.store.commit

    def dies(change):
        raise StateConflict("not written", why="it died here", hint="ask again")

    monkeypatch.setattr(asking.store, "commit", dies)
    with pytest.raises(StateConflict):
        asking.ask()
    monkeypatch.setattr(asking.store, "commit", commit)
    incident = asking.ask(why="again")
    assert incident.request.why == "more at once"
    assert len(asking.decide.control.audit()) == 1


def test_what_fails_on_the_way_is_asked_about_in_place(asking):
    """The plan of the request says how it comes up, like any other."""
    request = asking.ask()
    advance(asking.planner, request.id)
    plan = asking.load(request).plan
    assert (plan.cause, plan.asked_by, plan.rollout) == ("change_requested", "ada", Rollout.IN_PLACE)
    assert plan.if_unanswered == "If nobody answers, nothing is changed and the request is closed."
