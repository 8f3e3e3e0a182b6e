"""A sweep that waits for a person: on record, answered once, by whoever may, and read from the record alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.decision.decision import Channel, Choice, Person
from agent.core.sweep.planning import Known, SweepAsked, SweepPlan, plan_sweep
from agent.core.sweep.sweep import Subject, Sweep
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from agent.ports.control import KillSwitch
from agent.stages.decide_sweep import MOST_ASKED, SweepAnswer, answer_sweep, ask_sweep, asked_sweep, asked_sweeps
from agent.stages.grant_sweep import check_grant
from tests.agent.core.sweep.test_grant import request
from tests.agent.stages.conftest import SERVICE, T0, Bench
from tests.agent.stages.test_grant_sweep import POLICY, TWO

PLAN = plan_sweep(SweepAsked(contexts=(112,), concurrencies=(1, 4), output_tokens=16), Known())


def a_sweep(plan: SweepPlan = PLAN, **changes) -> Sweep:
    asked = request(
        **({"service": SERVICE, "asker": "ada@example.com", "made_at": T0, "verified": True} | changes)
    ).with_(cells=tuple(cell.planned for cell in PLAN.cells))
    subject = Subject(
        service=asked.service,
        endpoint=asked.endpoint,
        model=asked.model,
        served_model=asked.served_model,
        tokenizer="t",
    )
    return Sweep(request=asked, subject=subject, plan=plan)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def where(bench: Bench):
    """An installation whose people are proved, with one sweep that Ada asks for."""
    context = replace(bench.executor, local=False, rules=replace(bench.executor.rules, policy=POLICY))
    assert ask_sweep(context, a_sweep())
    return context


def word(who: str = "bob@example.com", answer: Choice = Choice.APPROVE, *, verified: bool = True) -> SweepAnswer:
    by = Person(who=who, channel=Channel.COMMAND_LINE, verified=verified)
    return SweepAnswer(sweep=a_sweep().request.id, answer=answer, by=by, why="not today")


def test_an_approval_is_signed_and_found_on_record(where) -> None:
    """By the gate of changes; asking again makes no second row."""
    assert not ask_sweep(where, a_sweep())
    given = answer_sweep(where, word()).grant
    check_grant(where, given, a_sweep().request)
    assert asked_sweep(where, a_sweep().request.id).grant == given
    assert [row.kind for row in where.control_store().audit()] == ["sweep.asked", "sweep.granted"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (word("ada@example.com"), "who asks does not approve"),
        (word("cy@example.com"), "does not let 'Cy' decide"),
        (word("eve@example.com"), "names no approver"),
        (word(verified=False), "nothing proves"),
        (word("eve@example.com", Choice.REJECT), "names no approver"),
        (word(answer=Choice.REJECT, verified=False), "nothing proves"),
    ],
    ids=["asker", "other service", "stranger", "unproved", "a stranger's no", "an unproved no"],
)
def test_whoever_may_not_leaves_nothing_on_record(where, said, why) -> None:
    """It waits on."""
    with pytest.raises(PolicyRefused, match=why):
        answer_sweep(where, said)
    assert asked_sweep(where, said.sweep).waits


@pytest.mark.parametrize("first", list(Choice))
def test_the_first_answer_counts(where, first: Choice) -> None:
    """Whoever comes second is told who was faster; a rejection has its reason."""
    answer_sweep(where, word(answer=first))
    for second in Choice:
        with pytest.raises(PolicyRefused, match=r"'bob@example.com' (approved|rejected) it"):
            answer_sweep(where, word(answer=second))
    found = asked_sweep(where, word().sweep)
    assert (found.grant is not None, found.rejected_by, found.why) == (
        (True, "", "") if first is Choice.APPROVE else (False, "bob@example.com", "not today")
    )


def test_two_at_the_same_moment_make_one_answer(where, monkeypatch) -> None:
    """Both looked before the other wrote: the control database lets one through."""
    before = asked_sweep(where, word().sweep)
    first = answer_sweep(where, word()).grant
    monkeypatch.setattr("agent.stages.decide_sweep.asked_sweep", lambda *_: before)
    for who in ("ada@example.com", "bob@example.com"):
        with pytest.raises(PolicyRefused, match=r"'bob@example.com' approved it before"):
            answer_sweep(where, word(who, Choice.REJECT))
    assert answer_sweep(where, word()).grant == first  # the same word again is no other answer
    assert [row.kind for row in where.control_store().audit()] == ["sweep.asked", "sweep.granted"]


def test_one_approval_of_two_leaves_it_waiting_and_is_told(where) -> None:
    """Whoever reads the record sees who approved; either of those who may can still reject it."""
    context = replace(where, rules=replace(where.rules, policy=TWO))
    first = answer_sweep(context, word("dan@example.com"))
    assert (first.waits, first.given, first.needed) == (True, ("dan@example.com",), 2)
    read = asked_sweep(context, word().sweep)
    assert (read.waits, read.given, read.needed) == (True, ("dan@example.com",), 2)
    second = answer_sweep(context, word("eve@example.com"))
    assert second.grant is not None
    assert asked_sweep(context, word().sweep).grant == second.grant


def test_one_approval_of_two_does_not_stand_against_a_rejection(where) -> None:
    context = replace(where, rules=replace(where.rules, policy=TWO))
    answer_sweep(context, word("dan@example.com"))
    assert answer_sweep(context, word("fay@example.com", Choice.REJECT)).rejected_by == "fay@example.com"
    with pytest.raises(PolicyRefused, match="rejected it"):
        answer_sweep(context, word("eve@example.com"))


def test_who_asked_may_take_it_back(where) -> None:
    """Though they may not approve it."""
    assert answer_sweep(where, word("ada@example.com", Choice.REJECT)).rejected_by == "ada@example.com"


def test_an_answer_that_was_not_recorded_may_be_given_again(where, monkeypatch) -> None:
    """The record failed once."""
    control = where.control_store()
    append = control.append

    def fails(**_):
        raise DependencyFailed("not written", why="the disk is full", hint="-")

    monkeypatch.setattr(control, "append", fails)
    with pytest.raises(DependencyFailed):
        answer_sweep(where, word())
    monkeypatch.setattr(control, "append", append)
    assert answer_sweep(where, word()).grant is not None


@pytest.mark.parametrize("first", list(Choice))
def test_whoever_comes_next_finishes_the_answer_of_a_process_that_was_killed(where, bench, monkeypatch, first) -> None:
    """It had the answer claimed, and nothing was on record yet."""
    control = where.control_store()
    append = control.append

    def killed(**_):
        raise SystemExit

    monkeypatch.setattr(control, "append", killed)
    with pytest.raises(SystemExit):
        answer_sweep(where, word(answer=first))
    monkeypatch.setattr(control, "append", append)
    assert asked_sweep(where, word().sweep).waits
    bench.clock.step(60)
    with pytest.raises(PolicyRefused, match=r"'bob@example.com' (approved|rejected) it before"):
        answer_sweep(where, word("ada@example.com", Choice.REJECT))
    found = asked_sweep(where, word().sweep)
    assert (found.grant is not None, found.rejected_by) == (
        (True, "") if first is Choice.APPROVE else (False, "bob@example.com")
    )
    assert [row.at for row in control.audit()][-1] == bench.clock.now()


def test_nothing_is_approved_while_changes_are_stopped_but_a_no_is_taken(where) -> None:
    """The kill switch."""
    where.control_store().set_kill_switch(KillSwitch(on=True, by="ana", why="stop", at=T0))
    with pytest.raises(PolicyRefused, match="the kill switch is on"):
        answer_sweep(where, word())
    assert answer_sweep(where, word(answer=Choice.REJECT)).rejected_by


def test_who_does_not_wait_any_more_has_answered_nothing(where) -> None:
    """Slack gave up: the press is said to be lost, so it must not count later."""
    with pytest.raises(PolicyRefused, match="press again"):
        answer_sweep(where, word(), is_awaited=lambda: False)
    assert asked_sweep(where, word().sweep).waits


def test_after_a_day_nobody_can_answer_it(where, bench) -> None:
    """Nor see it among those that wait."""
    bench.clock.step(timedelta(hours=26).total_seconds())
    assert asked_sweeps(where) == ()
    with pytest.raises(InputRejected, match="in the last 24 hours"):
        answer_sweep(where, word())


def test_a_row_that_shows_another_plan_than_it_asks_for_is_none(where) -> None:
    """Whoever writes such a row gets no page that hides cells."""
    forged = a_sweep(max_minutes=99).with_(plan=PLAN.with_(cells=PLAN.cells[:1]))
    control = where.control_store()
    for body in (forged.model_dump_json(), "{}"):
        control.append(at=T0, kind="sweep.asked", incident=forged.request.id, who="eve", body=body)
    assert [each.sweep for each in asked_sweeps(where)] == [a_sweep()]


def test_sweeps_do_not_pile_up(where) -> None:
    """Who answers them is a person."""
    for number in range(1, MOST_ASKED):
        ask_sweep(where, a_sweep(max_minutes=100 + number))
    with pytest.raises(PolicyRefused, match="50 sweeps wait"):
        ask_sweep(where, a_sweep(max_minutes=99))
    answer_sweep(where, word(answer=Choice.REJECT))
    assert ask_sweep(where, a_sweep(max_minutes=99))
