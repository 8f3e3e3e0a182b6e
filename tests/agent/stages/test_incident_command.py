"""What people do about an incident: recorded first, done once, refused with a way on where it does not go."""

from dataclasses import replace

import pytest

from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Verdict
from agent.core.decision.audit import Soundness, verify
from agent.core.decision.decision import Channel
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.command import MOST_COMMENTS, Command
from agent.core.incident.incident import TAKEN_BACK, Remedy
from agent.core.incident.phase import Phase
from agent.core.plan.action import ForPerson
from agent.core.plan.plan import Rollout
from agent.errors import InputRejected, PolicyRefused, StateConflict
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Change, head_key
from agent.stages import incident_command
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.execution_to_verification import execution_to_verification
from agent.stages.incident_command import CommandRequest, carry_out
from agent.stages.outcome_to_plan import outcome_to_plan, plan_again
from agent.stages.shared.approval import is_automatic
from agent.stages.shared.decision_request import NotRecorded
from agent.stages.shared.outcome import StageOutcome
from agent.stages.undo import undo
from agent.stages.watch_operation import watch_operation
from agent.stages.watch_undo import watch_undo
from tests.agent.stages.conftest import SERVICE
from tests.people import said_by

TASK = {
    "actions": (ForPerson(action="fix_mount_permissions", instruction="Give it access."),),
    "difference": (),
    "rollout": Rollout.BY_PERSON,
}
ANA = Approver(name="Ana", email="ana@example.com", services=(SERVICE,))
OTHER = Approver(name="Ben", email="ben@example.com", services=("other",))


def say(bench, command, text="", **changes):
    word = {"who": "ana", "channel": Channel.CONSOLE, "verified": False, "text": text}
    if command is Command.DONE:  # the form names the plan that its page shows
        word["plan_digest"] = bench.now().plan.digest
    world = replace(bench.executor, owner=Owner.DECIDE)
    return carry_out(world, CommandRequest(incident="inc-a", command=command, **said_by(word | changes)))


def rows(bench, kind):
    return [row for row in bench.control.audit() if row.kind == kind]


def events(bench):
    return [e.what for e in bench.executor.store.timeline("inc-a") if e.kind is not None]


def escalated(bench, **changes):
    """A person has it: nobody answered its plan."""
    now = bench.clock.now()
    asked = bench.asked(**changes)
    moved = asked.move(Phase.EXPIRED, now=now).move(Phase.ESCALATED, now=now, ended_why="2 plans were not answered")
    return bench.put(moved)


def verifying(bench):
    bench.approved()
    bench.run(begin_execution)
    bench.run(call_platform)
    bench.platform.ends("apply", ok=True)
    bench.run(watch_operation, as_tick=True)
    assert bench.now().phase is Phase.VERIFYING
    return bench.now()


def test_who_acknowledges_is_shown_and_recorded_once(bench):
    bench.asked()
    say(bench, Command.ACKNOWLEDGE)
    say(bench, Command.ACKNOWLEDGE, who="ben")
    assert bench.now().acknowledged.who == "ana"
    assert events(bench) == ["acknowledged by ana (not verified)"]
    assert [(row.who, row.body) for row in rows(bench, "incident.acknowledge")] == [
        ("ana", "ana (not verified) through console, incident version 1")
    ]
    assert verify(bench.control.audit()).soundness is Soundness.SOUND


def test_an_incident_is_assigned_to_a_person_by_any_of_their_names(bench):
    bench.under(Policy(approvers=(ANA,)))
    bench.asked()
    for word, name in (("ben", "ben"), ("ANA@example.com", "Ana"), ("me", "ana"), ("nobody", "")):
        assert say(bench, Command.ASSIGN, word).assignee == name
    proved = say(bench, Command.ASSIGN, "me", who="ana@example.com", verified=True)
    assert proved.assignee == "Ana"
    assert len(rows(bench, "incident.assign")) == len(events(bench)) == 5


def test_whom_it_goes_back_to_is_on_record_too(bench):
    """The third row has the words of the first and is another act."""
    bench.asked()
    for name in ("ana", "ben", "ana"):
        say(bench, Command.ASSIGN, name)
    assert [row.body.rpartition(": ")[2] for row in rows(bench, "incident.assign")] == ["ana", "ben", "ana"]
    assert len(events(bench)) == 3


def test_a_comment_is_kept_once_without_secrets(bench):
    bench.executor = replace(
        bench.executor, rules=replace(bench.executor.rules, redact=lambda t: t.replace("s3cret", "***"))
    )
    bench.asked()
    for _ in range(2):  # the answer was lost, and it is sent again
        say(bench, Command.COMMENT, "the key is s3cret")
    say(bench, Command.COMMENT, "another")
    assert bench.now().comments == 2
    assert events(bench) == ["comment by ana (not verified): the key is ***", "comment by ana (not verified): another"]
    assert "s3cret" not in "".join(row.body for row in bench.control.audit())


def test_comments_are_limited_in_length_and_number(bench):
    incident = bench.asked()
    with pytest.raises(InputRejected, match="at most 1000 are kept"):
        say(bench, Command.COMMENT, "x" * 1001)
    bench.put(incident.with_(comments=MOST_COMMENTS))
    with pytest.raises(PolicyRefused, match="no more are kept"):
        say(bench, Command.COMMENT, "one more")


@pytest.mark.parametrize("command", [Command.COMMENT, Command.CLOSE, Command.ROLL_BACK, Command.ASSIGN])
def test_what_needs_words_is_refused_without(bench, command):
    escalated(bench)
    with pytest.raises(InputRejected, match="Hint: "):
        say(bench, command, "  ")


def test_what_is_escalated_is_closed_with_a_reason(bench):
    escalated(bench)
    for _ in range(2):
        closed = say(bench, Command.CLOSE, "the node was replaced")
    assert (closed.phase, closed.ended, closed.due_at) == (Phase.CLOSED, True, None)
    assert closed.ended_why == "ana (not verified) closed it: the node was replaced"
    assert len(rows(bench, "incident.close")) == 1


def test_what_is_closed_waits_for_no_other_plan(bench):
    """One asks for another plan, and another closes the incident before it is made."""
    escalated(bench)
    say(bench, Command.REPLAN)
    closed = say(bench, Command.CLOSE, "never mind", who="ben")
    assert (closed.ended, closed.replan) == (True, None)


def test_what_still_goes_on_is_not_closed(bench):
    bench.asked()
    with pytest.raises(PolicyRefused, match=r"it is ASKED, .* Hint: reject its plan: sre-agent reject p-a-1"):
        say(bench, Command.CLOSE, "enough")
    assert rows(bench, "incident.close") == []


def test_nobody_without_proof_does_anything_elsewhere(bench):
    """Bound elsewhere an unproven name is nobody's; a proven one needs the service."""
    escalated(bench)
    bench.under(Policy(approvers=(ANA, OTHER)))
    bench.executor = replace(bench.executor, local=False)
    for who, verified in (("ana", False), ("eve@example.com", True), ("ben@example.com", True)):
        with pytest.raises(PolicyRefused):
            say(bench, Command.COMMENT, "hello", who=who, verified=verified)
    assert say(bench, Command.COMMENT, "hello", who="ana@example.com", verified=True).comments == 1


def test_who_wrote_meanwhile_does_not_stop_a_command(bench):
    """Another worker's write in between is looked at again; who always loses is told to say it again."""
    bench.asked()
    store, inner = bench.executor.store, bench.executor.store.commit
    losing = [2]

    def commit(change):
        if losing[0]:
            losing[0] -= 1
            raise StateConflict("not written", why="a rival", hint="again")
        return inner(change)

    store.commit = commit
    assert say(bench, Command.ACKNOWLEDGE).acknowledged is not None
    losing[0] = 99
    with pytest.raises(NotRecorded, match="say it again"):
        say(bench, Command.COMMENT, "x")
    assert len(rows(bench, "incident.acknowledge")) == 1


def test_another_plan_is_made_for_who_asks_and_never_one_that_failed(bench):
    """A task that failed does not come again; what nobody answered does, and policy alone never approves it."""
    stuck = escalated(bench)
    say(bench, Command.REPLAN, "the quota is raised")
    asked = bench.now()
    assert (asked.phase, asked.ended, asked.replan.why) == (Phase.ESCALATED, False, "the quota is raised")
    assert bench.executor.store.due(bench.clock.now()) == ("inc-a",)
    assert bench.run(plan_again) is StageOutcome.MOVED
    first = bench.now()
    assert (first.phase, first.replan, first.replanned.who) == (Phase.PLANNED, None, "ana")
    assert not is_automatic(bench.executor, first, first.plan)
    failed = Remedy(
        proposal=first.plan.proposal, cause=first.cause, ended=Verdict.NOT_RECOVERED, at=bench.clock.now(),
        incident="inc-a",
    )  # fmt: skip
    bench.put(stuck.with_(version=first.version, remedies=(failed,), plans_made=first.plans_made))
    seen = {failed.proposal}
    while say(bench, Command.REPLAN) and bench.run(plan_again) is StageOutcome.MOVED:
        again = bench.now()
        assert again.plan.proposal not in seen
        seen.add(again.plan.proposal)
        tried = (*again.remedies, failed.with_(proposal=again.plan.proposal))
        bench.put(stuck.with_(version=again.version, remedies=tried, plans_made=again.plans_made))
    assert (bench.now().phase, bench.now().ended, bench.now().replan) == (Phase.ESCALATED, True, None)
    assert "no other plan: nothing is left" in events(bench)[-1]


def test_no_other_plan_where_a_newer_incident_stands(bench):
    older = escalated(bench)
    newer = older.with_(id="inc-b", version=0, phase=Phase.OPEN, plan=None)
    bench.executor.store.commit(Change(incident=newer, heads=(head_key("live", SERVICE, None),)))
    with pytest.raises(PolicyRefused, match="inc-b is a newer one"):
        say(bench, Command.REPLAN)


def test_a_task_that_is_done_is_checked_at_once(bench):
    """Nothing but the access changed, so the generation is the same; the service is asked."""
    bench.asked(**TASK)
    say(bench, Command.DONE, "granted it")
    assert bench.now().decision.who == "ana"  # who did it has taken it on
    bench.run(begin_execution)
    bench.good()
    bench.run(execution_to_verification, as_tick=True)
    seen = bench.now().verification
    assert (seen.verdict, seen.latest(Check.HEALTHY_SIGNAL).says) == (Verdict.RECOVERED, "it answers a completion: ok")
    assert len(rows(bench, "incident.done")) == 1


def test_a_task_that_is_done_and_did_not_help_is_not_waited_for_a_day(bench):
    bench.approved(**TASK)
    bench.run(begin_execution)
    say(bench, Command.DONE)
    bench.platform.live = bench.platform.live.with_(ready=False)
    bench.run(execution_to_verification, as_tick=True)
    assert bench.now().verification.verdict is None
    bench.clock.step(601)
    bench.run(execution_to_verification, as_tick=True)
    assert bench.now().verification.verdict is Verdict.INCONCLUSIVE


def test_a_task_that_nothing_here_can_check_is_closed_with_what_was_said(bench):
    bench.approved(**TASK)
    bench.executor = replace(bench.executor, platform_of=lambda _: None)
    bench.tick = replace(bench.tick, platform_of=lambda _: None)
    bench.run(begin_execution)
    say(bench, Command.DONE, "granted it")
    bench.run(execution_to_verification, as_tick=True)
    closed = bench.now()
    assert closed.phase is Phase.CLOSED
    assert closed.ended_why == "ana (not verified) did the task, and nothing here can check it: granted it"


@pytest.mark.parametrize(
    ("shown", "why"),
    [("0" * 16, "what was shown had digest '00000000'"), (None, "does not say which task"), ("", "does not say which")],
    ids=["another plan", "none", "empty"],
)
@pytest.mark.parametrize("stands", ["asked", "escalated"])
def test_a_task_is_done_of_the_plan_that_was_shown(bench, stands, shown, why):
    """Its word approves the plan, and another one may have taken its place since the page was made."""
    before = bench.asked(**TASK) if stands == "asked" else escalated(bench, **TASK)
    with pytest.raises(PolicyRefused, match=why):
        say(bench, Command.DONE, plan_digest=shown)
    assert (bench.now().phase, bench.now().decision, rows(bench, "incident.done")) == (before.phase, None, [])


def test_who_names_a_task_by_its_incident_alone_does_so_elsewhere_than_on_a_page(bench):
    bench.asked(**TASK)
    assert say(bench, Command.DONE, channel=Channel.COMMAND_LINE, plan_digest=None).task_done.who == "ana"


def test_a_change_of_ours_is_no_task(bench):
    bench.asked()
    with pytest.raises(PolicyRefused, match="no task for a person"):
        say(bench, Command.DONE)


# -- roll back ---------------------------------------------------------------------------------------------------------


def test_a_person_rolls_back_what_is_still_verified(bench):
    """The decision is signed for this effect, recorded, and names itself in the intent; the remedy does not come again."""
    incident = verifying(bench)
    for _ in range(2):
        say(bench, Command.ROLL_BACK, "answers are wrong", plan_digest=incident.plan.digest[:12])
    assert bench.now().phase is Phase.ROLLING_BACK
    bench.run(undo)
    bench.run(undo)
    bench.platform.ends("restore", ok=True)
    bench.run(watch_undo, as_tick=True)
    back = bench.now()
    assert (back.phase, bench.platform.live.template) == (Phase.ROLLED_BACK, '{"was":1}')
    intent = bench.control.intent(back.effect(EffectKind.ROLL_BACK).key)
    assert intent.decision == back.roll_back.id != back.decision.id
    assert len(rows(bench, "decision.roll_back")) == 1
    bench.run(outcome_to_plan)
    after = bench.now()
    assert [(r.ended, r.applied, r.restored) for r in after.remedies] == [(TAKEN_BACK, True, True)]
    assert after.plan is None or after.plan.proposal != incident.plan.proposal or after.phase is Phase.ESCALATED


FORGED = {
    "of somebody else": (lambda d, _: d.with_(by=d.by.with_(who="eve")), "not signed by the deciding function"),
    "of another change": (lambda d, key: d.with_(effect="e", receipt="").signed(key), "about another change"),
    "of nobody": (lambda *_: None, "nobody decided to roll it back"),
}


@pytest.mark.parametrize(("forge", "why"), FORGED.values(), ids=FORGED)
def test_a_roll_back_that_nobody_signed_is_not_made(bench, forge, why):
    """Who writes the incident database can give the order, and no decision with it."""
    verifying(bench)
    signed = say(bench, Command.ROLL_BACK, "why").roll_back
    bench.put(bench.now().with_(roll_back=forge(signed, bench.executor.receipts())))
    bench.run(undo)
    assert (bench.now().phase, bench.platform.calls) == (Phase.ESCALATED, ["apply"])
    assert why in bench.now().ended_why


def test_the_kill_switch_stops_a_roll_back_before_it_is_decided(bench):
    verifying(bench)
    bench.control.set_kill_switch(KillSwitch(on=True, by="ben"))
    with pytest.raises(PolicyRefused, match="the kill switch is on"):
        say(bench, Command.ROLL_BACK, "why")
    assert (bench.now().phase, rows(bench, "decision.roll_back")) == (Phase.VERIFYING, [])


def test_a_change_of_yesterday_is_not_rolled_back(bench):
    verifying(bench)
    bench.clock.step(86_401)
    with pytest.raises(PolicyRefused, match="over 24 hours ago"):
        say(bench, Command.ROLL_BACK, "why")


def test_a_roll_back_is_of_the_plan_that_was_shown(bench):
    verifying(bench)
    with pytest.raises(PolicyRefused, match="what was shown had digest"):
        say(bench, Command.ROLL_BACK, "why", plan_digest="0" * 12)


def test_who_was_second_finishes_the_first_decision(bench):
    """A worker died between the record and the incident: whoever says it next carries the first decision out."""
    incident = verifying(bench)
    first = say(bench, Command.ROLL_BACK, "mine").roll_back
    bench.put(bench.now().with_(phase=Phase.VERIFYING, roll_back=None, execution=incident.execution))
    say(bench, Command.ROLL_BACK, "theirs", who="ben")
    assert bench.now().roll_back == first
    assert len(rows(bench, "decision.roll_back")) == 1


def test_policy_that_never_allows_a_change_lets_it_be_rolled_back(bench):
    """It only takes away what was approved before."""
    verifying(bench)
    bench.under(Policy(rules=(Rule(services=(SERVICE,), kinds=("set_concurrency",), mode=Mode.NEVER),)))
    assert say(bench, Command.ROLL_BACK, "why").phase is Phase.ROLLING_BACK


def test_after_a_person_rolled_it_back_policy_alone_approves_nothing(bench):
    """Whoever took a change back looks at the next one; what an earlier incident saw taken back is no reason."""
    bench.under(Policy(rules=(Rule(services=(SERVICE,), kinds=("set_concurrency",), mode=Mode.AUTOMATIC),)))
    asked = bench.asked()
    assert is_automatic(bench.executor, asked, asked.plan)
    back = Remedy(proposal="other", cause="latency", ended=TAKEN_BACK, at=bench.clock.now(), incident="inc-a")
    for remedy, automatic in ((back, False), (back.with_(incident="inc-earlier"), True)):
        assert is_automatic(bench.executor, asked.with_(remedies=(remedy,)), asked.plan) is automatic


def test_a_task_that_was_planned_anew_right_after_its_approval_is_not_marked(bench, monkeypatch):
    """What policy refused and another worker planned anew is nobody's doing; who says so is told to look again."""
    asked = bench.asked(**TASK)
    other = asked.plan.with_(id="p-other-2")
    decide = incident_command.plan_to_decision

    def decided_and_planned_anew(context, word):
        decide(context, word)
        now = context.store.load("inc-a")
        context.store.commit(Change(incident=now.with_(plan=other)))

    monkeypatch.setattr(incident_command, "plan_to_decision", decided_and_planned_anew)
    with pytest.raises((PolicyRefused, InputRejected, StateConflict)):
        say(bench, Command.DONE, "granted it", plan_digest=asked.plan.digest)
    assert bench.now().plan.id == "p-other-2"
    assert bench.now().task_done is None
