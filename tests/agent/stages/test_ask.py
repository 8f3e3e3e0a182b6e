"""A plan is shown until it expires."""

from dataclasses import replace

import pytest

from agent.core.decision.approvals import Approval, Approvals
from agent.core.decision.decision import Channel, Person
from agent.core.incident.command import Command
from agent.core.incident.phase import EventKind, Phase
from agent.core.incident.renotify import is_unattended
from agent.core.incident.step import Step, due_step
from agent.core.incident.times import Times
from agent.core.intake.signal import LIVE
from agent.entrypoints.pubsub.handlers import on_tick
from agent.errors import StateConflict
from agent.ports.store import Change
from agent.stages.ask import ask, expire, renotify
from agent.stages.incident_command import CommandRequest, carry_out
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome


def test_a_planned_incident_asks_until_its_plan_expires(bench):
    planned = bench.asked().with_(phase=Phase.PLANNED)
    bench.executor.store.commit(Change(incident=planned))
    assert bench.run(ask) is StageOutcome.MOVED
    assert (bench.now().phase, bench.now().due_at) == (Phase.ASKED, planned.plan.expires_at)


def test_nothing_expires_before_its_time(bench):
    bench.asked()
    assert bench.run(expire, as_tick=True) is StageOutcome.WAITING
    bench.clock.step(1800)
    assert bench.run(expire, as_tick=True) is StageOutcome.MOVED
    assert bench.now().phase is Phase.EXPIRED


AFTER_S = 900


def saved(bench, incident):
    return save(bench.tick, incident, "-", now=bench.clock.now(), tell=False, wake=False)


def escalated(bench):
    why = "no plan is left"
    return saved(bench, bench.asked().with_(phase=Phase.ESCALATED, due_at=None, ended_why=why))


def again(bench):
    """The lines of the timeline that told people again."""
    return [e.what for e in bench.tick.store.timeline("inc-a") if e.kind is EventKind.UNACKNOWLEDGED]


def command(bench, kind, text=""):
    word = CommandRequest(
        incident="inc-a", command=kind, by=Person(who="ana", channel=Channel.CONSOLE, verified=False), text=text
    )
    return carry_out(bench.executor, word)


def test_an_escalated_incident_is_told_again_three_times_and_then_no_more(bench):
    escalated(bench)
    for passed in (AFTER_S - 1, 1, *[AFTER_S] * 5):
        bench.clock.step(passed)
        on_tick(bench.tick)
    assert again(bench) == [
        "nobody has acknowledged it for 15 min",
        "nobody has acknowledged it for 15 min",
        "nobody has acknowledged it for 15 min; this is the last reminder",
    ]
    assert bench.tick.store.due(bench.clock.now()) == ()


def test_a_plan_that_nobody_answers_is_told_again_before_it_expires(bench):
    asked = bench.asked()
    saved(bench, asked.with_(due_at=asked.answer_due_at))
    bench.clock.step(AFTER_S)
    on_tick(bench.tick)
    assert (again(bench), bench.now().phase) == (["nobody has answered or acknowledged it for 15 min"], Phase.ASKED)
    bench.clock.step(AFTER_S)
    on_tick(bench.tick)
    assert (len(again(bench)), bench.now().phase) == (1, Phase.EXPIRED)


def test_a_tick_that_finds_nothing_due_writes_nothing(bench):
    escalated(bench)
    for _ in range(5):
        bench.clock.step(60)
        assert on_tick(bench.tick) == {}
    assert bench.now().version == 2


@pytest.mark.parametrize(
    ("kind", "text"),
    [(Command.ACKNOWLEDGE, ""), (Command.ASSIGN, "me"), (Command.REPLAN, "")],
    ids=["acknowledged", "assigned", "another plan asked for"],
)
def test_who_reacts_ends_it(bench, kind, text):
    escalated(bench)
    command(bench, kind, text)
    assert bench.now().renotify_at is None
    bench.clock.step(AFTER_S)
    on_tick(bench.tick)
    assert again(bench) == []


def test_a_comment_alone_does_not_end_it(bench):
    escalated(bench)
    command(bench, Command.COMMENT, "looking at it tomorrow")
    bench.clock.step(AFTER_S)
    on_tick(bench.tick)
    assert len(again(bench)) == 1


def test_a_reaction_that_is_taken_back_begins_the_wait_anew(bench):
    """Not told at once, nor that nobody had reacted in the hours in which somebody had."""
    stored = saved(bench, escalated(bench).with_(assignee="ana"))
    bench.clock.step(3 * 3600)
    saved(bench, stored.with_(assignee=""))
    on_tick(bench.tick)
    assert again(bench) == []
    bench.clock.step(AFTER_S)
    on_tick(bench.tick)
    assert again(bench) == ["nobody has acknowledged it for 15 min"]


def test_votes_on_a_plan_that_is_over_end_nothing(bench):
    """Ada voted, nobody else did, the plan expired: now it waits for anybody."""
    escalated_since = escalated(bench)
    approvals = Approvals(
        plan="p-a-1", needed=2, given=(Approval(name="ada", channel="console", verified=False, at=bench.clock.now()),)
    )
    assert is_unattended(escalated_since.with_(approvals=approvals))
    assert not is_unattended(escalated_since.with_(approvals=approvals, phase=Phase.ASKED))


@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.ESCALATED}))
def test_a_time_that_somebody_else_wrote_holds_nothing_up(bench, phase):
    """Whoever writes the incident database can move no step aside by it, and the tick goes on."""
    stored = bench.put(escalated(bench).with_(phase=phase, assignee="ana", renotify_at=bench.clock.now()))
    assert due_step(stored, bench.clock.now()) is not Step.RENOTIFY
    assert renotify(bench.tick, stored) is StageOutcome.WAITING


def test_two_ticks_at_one_moment_tell_once(bench):
    stored = escalated(bench)
    bench.clock.step(AFTER_S)
    renotify(bench.tick, stored)
    with pytest.raises(StateConflict):
        renotify(bench.tick, stored)
    assert len(again(bench)) == 1


def test_an_outage_of_the_tick_is_not_made_up_for_in_one_go(bench):
    escalated(bench)
    bench.clock.step(AFTER_S * 10)
    on_tick(bench.tick)
    on_tick(bench.tick)
    assert again(bench) == ["nobody has acknowledged it for 2 h 30 min"]


@pytest.mark.parametrize("changes", [{"run": "replay-1"}, {"phase": Phase.RESOLVED}], ids=["a replay", "over"])
def test_nothing_else_is_told_again(bench, changes):
    assert bench.asked().run == LIVE
    stored = saved(bench, bench.now().with_(**{"phase": Phase.ESCALATED, "due_at": None} | changes))
    assert stored.renotify_at is None


def test_zero_times_is_never(bench):
    bench.tick = replace(bench.tick, rules=replace(bench.tick.rules, times=Times(renotify_times=0)))
    assert escalated(bench).renotify_at is None
