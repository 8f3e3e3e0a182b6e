"""A freeze window stops approvals and what was approved before it, to the second; never a roll-back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.core.change.execution import EffectKind
from agent.core.change.verification import Verdict, Verification
from agent.core.decision.decision import Channel, Choice
from agent.core.decision.freeze import Freeze
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.phase import Phase
from agent.errors import PolicyRefused
from agent.presentation.freeze_text import freeze_lines, reminded_text
from agent.stages.ask import ask, remind
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution, next_slot_at
from agent.stages.plan_to_decision import auto_approve
from agent.stages.shared.approval import is_automatic
from agent.stages.shared.outcome import StageOutcome
from agent.stages.undo import undo

RULE = Rule(services=("svc",), kinds=("set_concurrency",), mode=Mode.PERSON)
ADA = Approver(name="Ada", email="ada@example.com", services=("svc",))
BEN = Approver(name="Ben", slack="U0BEN", services=("svc",))
BY_ADA = {"who": "ada@example.com", "channel": Channel.CONSOLE, "verified": True}
BY_BEN = {"who": "U0BEN", "channel": Channel.SLACK, "verified": True}
SECOND = timedelta(seconds=1)


def policy(stops="approvals", *, weekly="Sat 04:15 - Sat 05:00", zone="Europe/Berlin", **fields):
    """By default frozen from 03:15 to 04:00 UTC of the day of the bench, 2026-11-21."""
    window = Freeze(
        name="night",
        weekly=(weekly,),
        zone=zone,
        stops=stops,
        reason="nobody is there",
        owner="Cyd",
        break_glass=fields.pop("break_glass", "leads"),
    )
    people = {"approvers": (ADA, BEN), "groups": {"leads": ("Ada",)}, "rules": (RULE,), "freezes": (window,)}
    return Policy(**(people | fields))


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_last_second_before_counts_and_the_first_within_does_not(bench):
    bench.under(policy())
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:15") - SECOND
    assert bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    assert bench.now().phase is Phase.APPROVED


def test_within_the_window_nobody_approves_and_everybody_may_reject(bench):
    bench.under(policy())
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:15")
    for who in (BY_ADA, BY_BEN, {}):
        with pytest.raises(PolicyRefused) as caught:
            bench.answer("p-a-1", Choice.APPROVE, **who)
        assert caught.value.why == (
            "the freeze window night, Sat 2026-11-21 04:15 to Sat 2026-11-21 05:00 Europe/Berlin: "
            "nobody is there (owner Cyd; leads may break the glass), stops it"
        )
        assert "--break-glass --why TEXT" in caught.value.hint
    bench.answer("p-a-1", Choice.REJECT, why="later", **BY_BEN)
    assert bench.now().phase is Phase.REJECTED


def test_the_first_second_after_the_window_counts_again(bench):
    bench.under(policy())
    bench.clock.at = utc("2026-11-21 03:50")
    bench.asked()
    bench.clock.at = utc("2026-11-21 04:00") - SECOND
    with pytest.raises(PolicyRefused, match="the freeze window night"):
        bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    bench.clock.step(1)
    bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    assert bench.now().phase is Phase.APPROVED


# 2026-03-29 and 2026-10-25: the clocks of Berlin are set at 01:00 UTC, in the hour before the window begins.
@pytest.mark.parametrize(
    ("begins", "weekly"),
    [("2026-03-29 02:00", "Sun 04:00 - Sun 05:00"), ("2026-10-25 03:00", "Sun 04:00 - Sun 05:00")],
    ids=["set forward", "set back"],
)
def test_the_boundary_is_right_on_the_night_the_clocks_are_set(bench, begins, weekly):
    """Asked in the hour before, refused from the first second on, and applied until the last second before."""
    bench.under(policy(weekly=weekly))
    bench.clock.at = utc(begins) - timedelta(minutes=20)
    bench.asked()
    bench.clock.at = utc(begins)
    with pytest.raises(PolicyRefused, match="the freeze window night"):
        bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    bench.clock.at = utc(begins) - SECOND
    bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING


@pytest.mark.parametrize("step", ["begin", "call"])
def test_what_was_approved_before_does_not_begin_within(bench, step):
    """Neither the intent nor the call of the platform, by the clock of the executor."""
    bench.under(policy())
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:15") - SECOND
    bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    if step == "call":
        begin_execution(bench.executor, bench.now())
        assert bench.now().phase is Phase.APPLYING
    bench.clock.step(1)
    (begin_execution if step == "begin" else call_platform)(bench.executor, bench.now())
    assert bench.platform.calls == []
    if step == "begin":
        assert (bench.now().phase, "the freeze window night" in bench.now().ended_why) == (Phase.REFUSED, True)
    else:
        assert "the freeze window night" in bench.now().effect(EffectKind.APPLY).message


def test_a_roll_back_is_never_frozen(bench):
    bench.under(policy())
    bench.approved(asked_by=None)
    begin_execution(bench.executor, bench.now())
    call_platform(bench.executor, bench.now())
    assert bench.platform.calls == ["apply"]
    bench.clock.at = utc("2026-11-21 03:30")
    failed = Verification(since=bench.clock.now(), until=bench.clock.now(), verdict=Verdict.NOT_RECOVERED)
    verifying = bench.now().move(Phase.VERIFYING, now=bench.clock.now(), verification=failed)
    bench.put(verifying.move(Phase.ROLLING_BACK, now=bench.clock.now()))
    undo(bench.executor, bench.now())
    undo(bench.executor, bench.now())
    assert bench.platform.calls == ["apply", "restore"]


def test_a_member_of_the_group_breaks_the_glass_with_a_reason_and_the_audit_says_so(bench):
    bench.under(policy())
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:20")
    with pytest.raises(PolicyRefused, match="for a reason only"):
        bench.answer("p-a-1", Choice.APPROVE, break_glass=True, **BY_ADA)
    with pytest.raises(PolicyRefused, match="'Ben' may not break its glass, only leads may"):
        bench.answer("p-a-1", Choice.APPROVE, break_glass=True, why="users wait", **BY_BEN)
    with pytest.raises(PolicyRefused, match="'ana' may not break its glass"):
        bench.answer("p-a-1", Choice.APPROVE, break_glass=True, why="users wait")
    made = bench.answer("p-a-1", Choice.APPROVE, break_glass=True, why="users wait", **BY_ADA)
    assert made.breaks == ("night",)
    rows = [(row.kind, row.who, row.body) for row in bench.control.audit()]
    assert rows[0] == ("freeze.break_glass", "ada@example.com", "night: users wait")
    assert [kind for kind, _, _ in rows] == ["freeze.break_glass", "decision.approve"]
    assert "in spite of the freeze window night: users wait" in bench.executor.store.timeline("inc-a")[-1].what
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING


def test_nobody_breaks_a_glass_that_names_no_group(bench):
    bench.under(policy(break_glass=""))
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:20")
    with pytest.raises(PolicyRefused, match="nobody may"):
        bench.answer("p-a-1", Choice.APPROVE, break_glass=True, why="users wait", **BY_ADA)


def test_one_of_two_who_approve_breaks_the_glass_for_both(bench):
    bench.under(policy(rules=(RULE.with_(approvals=2),)))
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:20")
    bench.answer("p-a-1", Choice.APPROVE, break_glass=True, why="users wait", **BY_ADA)
    made = bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    assert (made.breaks, bench.now().phase) == (("night",), Phase.APPROVED)
    assert [row.kind for row in bench.control.audit()] == ["vote.approve", "freeze.break_glass", "decision.approve"]


def test_who_approved_before_the_window_breaks_its_glass_afterwards(bench):
    """The same person says it again with the reason; said twice it is one vote, and one line of the record."""
    bench.under(policy(rules=(RULE.with_(approvals=2),)))
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:10")
    bench.answer("p-a-1", Choice.APPROVE, **BY_ADA)
    bench.clock.at = utc("2026-11-21 03:20")
    with pytest.raises(PolicyRefused, match="for a reason only"):
        bench.answer("p-a-1", Choice.APPROVE, break_glass=True, **BY_ADA)
    again = [bench.answer("p-a-1", Choice.APPROVE, break_glass=True, why="users wait", **BY_ADA) for _ in range(2)]
    assert [vote.breaks for vote in again] == [("night",), ("night",)]
    made = bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    assert ([v.person for v in made.votes], made.breaks) == (["Ada", "Ben"], ("night",))
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING
    rows = [(row.kind, row.body) for row in bench.control.audit()]
    assert [kind for kind, _ in rows] == ["vote.approve", "vote.approve", "freeze.break_glass", "decision.approve"]
    assert rows[2][1] == "night: users wait"


@pytest.mark.parametrize(
    ("stops", "asked_by", "approved", "automatic"),
    [
        ("automatic", None, True, False),
        ("automatic", "eve@example.com", True, False),
        ("non_emergency", None, True, True),
        ("non_emergency", "eve@example.com", False, False),
        ("approvals", None, False, False),
        ("approvals", "eve@example.com", False, False),
    ],
)
def test_each_kind_of_window_stops_what_it_says(bench, stops, asked_by, approved, automatic):
    """An emergency is a plan that fixes an incident; what somebody asked for is none."""
    alone = RULE.with_(mode=Mode.AUTOMATIC)
    bench.under(policy(stops, rules=(alone,)))
    bench.clock.at = utc("2026-11-21 03:20")
    incident = bench.asked(asked_by=asked_by)
    assert is_automatic(bench.executor, incident, incident.plan) is automatic
    did = auto_approve(bench.executor, incident.id)
    assert did is (StageOutcome.MOVED if automatic else StageOutcome.WAITING)
    if automatic:
        return
    if approved:
        assert bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)
    else:
        with pytest.raises(PolicyRefused, match="the freeze window night"):
            bench.answer("p-a-1", Choice.APPROVE, **BY_BEN)


def planned(bench, **plan):
    asked = bench.asked(**plan)
    return bench.put(asked.with_(phase=Phase.PLANNED))


def test_windows_are_shown_before_anybody_presses(bench):
    """Those of the time in which the plan can be answered, also where they begin later."""
    bench.under(policy())
    ask(bench.executor, planned(bench))
    assert freeze_lines(bench.now().approvals, bench.clock.now()) == (
        (
            "Freeze window to come: night, Sat 2026-11-21 04:15 to Sat 2026-11-21 05:00 Europe/Berlin: nobody is there "
            "(owner Cyd; leads may break the glass). In it, no change is applied."
        ),
    )
    bench.clock.at = utc("2026-11-21 03:15")
    assert freeze_lines(bench.now().approvals, bench.clock.now())[0].startswith("Freeze window now: night")


def test_where_nobody_answers_the_next_group_is_told_once(bench):
    rule = RULE.with_(groups=("leads", "others"), escalate_after_min=5)
    bench.under(policy(rules=(rule,), groups={"leads": ("Ada",), "others": ("Ben",)}, freezes=()))
    ask(bench.executor, planned(bench))
    due = bench.clock.now() + timedelta(minutes=5)
    assert bench.now().due_at == due
    bench.clock.at = due - SECOND
    assert bench.run(remind, as_tick=True) is StageOutcome.WAITING
    bench.clock.at = due
    assert bench.run(remind, as_tick=True) is StageOutcome.MOVED
    assert reminded_text(bench.now().approvals) == "Nobody answered, so others (Ben) was told."
    assert bench.now().due_at == bench.now().plan.expires_at
    assert bench.run(remind, as_tick=True) is StageOutcome.WAITING
    assert [e.what for e in bench.executor.store.timeline("inc-a")][-1] == "nobody answered; told others (Ben)"


def test_a_limit_of_a_group_makes_the_next_change_wait(bench):
    from agent.core.decision.rule import ServiceLimit

    limit = ServiceLimit(name="g", services=("svc*",), changes_per_hour=1, change_window_s=7200)
    bench.under(policy(freezes=(), limits=(limit,)))
    bench.approved()
    begin_execution(bench.executor, bench.now())
    began = bench.clock.now()
    bench.clock.step(60)
    assert next_slot_at(bench.executor, "svc", bench.clock.now()) == began + timedelta(hours=2)
    assert next_slot_at(bench.executor, "svc2", bench.clock.now()) == began + timedelta(hours=1)
    assert next_slot_at(bench.executor, "other", bench.clock.now()) is None


class MovedForward:
    """A clock that the incident database put so many seconds ahead of the machine's."""

    def __init__(self, clock, by_s):
        self.clock, self.by_s = clock, by_s

    def now(self):
        return self.clock.now() + timedelta(seconds=self.by_s)

    def behind_s(self):
        return self.by_s


def test_a_time_moved_past_a_window_ends_no_window(bench):
    """Whoever writes the incident database moves the stored time; the machine's still says that it is night."""
    bench.under(policy(stops="automatic", rules=(RULE.with_(mode=Mode.AUTOMATIC),)))
    bench.asked()
    bench.clock.at = utc("2026-11-21 03:30")
    moved = replace(bench.executor, clock=MovedForward(bench.clock, 3600))
    incident = bench.now()
    assert not is_automatic(moved, incident, incident.plan)
    bench.clock.at = utc("2026-11-21 04:30")
    assert is_automatic(moved, incident, incident.plan)


def test_a_time_moved_forward_frees_no_limit(bench):
    bench.under(policy(freezes=()))
    bench.approved()
    begin_execution(bench.executor, bench.now())
    began = bench.clock.now()
    bench.clock.step(60)
    moved = replace(bench.executor, clock=MovedForward(bench.clock, 86_400))
    assert next_slot_at(moved, "svc", moved.clock.now()) == began + timedelta(seconds=900)
