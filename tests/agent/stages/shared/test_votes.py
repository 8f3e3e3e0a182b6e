"""A plan that several people must approve: each counts once, may take it back until then, and the executor counts anew."""

from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.core.decision.decision import Channel, Choice, Decision, HmacReceiptSigner, Vote, sign
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.phase import Phase
from agent.errors import PolicyRefused, StateConflict
from agent.presentation.freeze_text import approvals_text
from agent.stages.ask import approvals_for
from agent.stages.decision_to_execution import begin_execution
from agent.stages.plan_to_decision import NotRecorded
from tests.spans import tracer_into

RULE = Rule(services=("svc",), kinds=("set_concurrency",), mode=Mode.PERSON, approvals=2)
PEOPLE = (
    Approver(name="Ada", slack="U0ADA", email="ada@example.com", webhook="ada-pager", services=("svc",)),
    Approver(name="Ben", slack="U0BEN", services=("svc",)),
    Approver(name="Cyd", email="cyd@example.com", services=("svc",)),
)
TWO = Policy(rules=(RULE,), approvers=PEOPLE)
ADA = {"who": "ada@example.com", "channel": Channel.CONSOLE, "verified": True}
ADA_IN_SLACK = {"who": "U0ADA", "channel": Channel.SLACK, "verified": True}
BEN = {"who": "U0BEN", "channel": Channel.SLACK, "verified": True}
CYD = {"who": "cyd@example.com", "channel": Channel.COMMAND_LINE, "verified": True}


@pytest.fixture
def two(bench):
    """A plan that two people must approve, asked as people see it."""

    def asked(policy=TWO, **plan):
        bench.under(policy)
        incident = bench.asked(**plan)
        shown = approvals_for(bench.executor, incident.plan, bench.clock.now())
        bench.put(incident.with_(approvals=shown))
        return bench

    return asked


def yes(bench, who, **changes):
    return bench.answer("p-a-1", Choice.APPROVE, **(who | changes))


def kinds(bench):
    return [row.kind for row in bench.control.audit()]


def test_the_second_person_makes_the_decision_and_its_receipt_names_both(two):
    bench = two()
    vote = yes(bench, ADA)
    assert isinstance(vote, Vote)
    assert (bench.now().phase, bench.now().decision) == (Phase.ASKED, None)
    assert approvals_text(bench.now().approvals) == "1 of 2 approvals: Ada; needs one more of Ben or Cyd."
    assert bench.now().plan.expires_at == bench.plan().expires_at
    decision = yes(bench, BEN)
    assert isinstance(decision, Decision)
    assert [v.person for v in decision.votes] == ["Ada", "Ben"]
    assert decision.shown == "Ada and Ben"
    assert bench.now().phase is Phase.APPROVED
    assert kinds(bench) == ["vote.approve", "decision.approve"]
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING


def test_the_same_person_counts_once_through_whatever_channel(two):
    bench = two()
    first = yes(bench, ADA)
    assert yes(bench, ADA) == first
    for alias in (
        ADA_IN_SLACK,
        ADA | {"channel": Channel.COMMAND_LINE},
        {"who": "ada-pager", "channel": Channel.WEBHOOK, "verified": True},
    ):
        with pytest.raises(
            PolicyRefused, match=r"'Ada' approved it as 'ada@example.com' through console, and .* is the same person"
        ):
            yes(bench, alias)
    assert bench.now().phase is Phase.ASKED
    assert kinds(bench) == ["vote.approve"]


def test_names_that_nothing_proves_are_one_person(two):
    bench = two()
    yes(bench, {"who": "ana"})
    with pytest.raises(PolicyRefused, match="names that nothing proves count as one person"):
        yes(bench, {"who": "bob"})
    assert isinstance(yes(bench, BEN), Decision)


def test_a_second_approval_after_expiry_says_what_was_missing(two):
    bench = two()
    yes(bench, ADA)
    bench.clock.step(1801)
    with pytest.raises(PolicyRefused, match=r"it expired at 2026-11-21 03:30:00 UTC with 1 of 2 approvals"):
        yes(bench, BEN)
    assert bench.control.ballot(bench.now().plan.digest).standing[0].person == "Ada"


def test_a_second_approval_of_a_changed_plan_is_refused(two):
    bench = two()
    yes(bench, ADA)
    with pytest.raises(PolicyRefused, match="what was shown had digest"):
        yes(bench, BEN, plan_digest="0" * 64)


def test_a_change_of_the_policy_voids_the_votes(two):
    """Also one of a freeze window: it is part of the policy."""
    bench = two()
    yes(bench, ADA)
    bench.under(TWO.with_(changes_per_hour=3))
    with pytest.raises(PolicyRefused, match="so it and its approvals are void"):
        yes(bench, BEN)
    assert bench.now().phase is Phase.ASKED


def test_a_rejection_is_the_one_decision_whatever_was_approved(two):
    bench = two()
    yes(bench, ADA)
    rejected = bench.answer("p-a-1", Choice.REJECT, why="not tonight", **CYD)
    assert (rejected.answer, bench.now().phase) == (Choice.REJECT, Phase.REJECTED)
    with pytest.raises(StateConflict, match="Cyd said reject"):
        yes(bench, BEN)
    with pytest.raises(StateConflict, match="the plan is decided: reject"):
        yes(bench, ADA, withdraw=True)


def test_an_approval_can_be_taken_back_until_the_last_one(two):
    bench = two()
    yes(bench, ADA)
    bench.clock.step(60)
    gone = yes(bench, ADA_IN_SLACK, withdraw=True, why="wrong service")
    assert gone.withdrawn_at == bench.clock.now()
    assert gone.is_signed(HmacReceiptSigner(b"k" * 32))
    assert approvals_text(bench.now().approvals) == "0 of 2 approvals; needs 2 of Ada, Ben or Cyd."
    assert isinstance(yes(bench, BEN), Vote)
    assert isinstance(yes(bench, ADA_IN_SLACK), Decision)
    assert kinds(bench) == ["vote.approve", "vote.withdraw", "vote.approve", "decision.approve"]
    with pytest.raises(StateConflict, match="the plan is decided: approve"):
        yes(bench, BEN, withdraw=True)


def test_a_withdrawal_is_a_span_of_its_incident_as_the_approval_was(two):
    """Whoever reads the trace sees why the plan went on waiting; a second withdrawal of the same is answered, not new."""
    bench, sent = two(), InMemorySpanExporter()
    bench.executor = replace(bench.executor, tracer=tracer_into(sent))
    yes(bench, ADA)
    yes(bench, ADA, withdraw=True)
    spans = [s for s in sent.get_finished_spans() if s.name == "plan_to_decision"]
    assert [s.attributes["sre_agent.answer"] for s in spans] == ["approve", "withdraw"]
    assert {s.attributes["sre_agent.channel"] for s in spans} == {"console"}
    assert len({s.context.trace_id for s in spans}) == 1


def test_a_withdrawal_that_a_dead_writer_cast_is_on_record_once_it_is_said_again(two):
    """It ended between the vote and the record; whoever heard no answer says the same, and hears that it counts."""
    bench = two()
    yes(bench, ADA)
    control = bench.executor.control
    dying = replace(bench.executor, control=Ends(control))
    with pytest.raises(KeyboardInterrupt):
        bench.answer_in(dying, "p-a-1", Choice.APPROVE, withdraw=True, **ADA)
    assert kinds(bench) == ["vote.approve"]
    gone = yes(bench, ADA, withdraw=True)
    assert gone == yes(bench, ADA, withdraw=True)
    assert control.ballot(bench.now().plan.digest).votes == (gone,)
    assert approvals_text(bench.now().approvals) == "0 of 2 approvals; needs 2 of Ada, Ben or Cyd."
    assert kinds(bench) == ["vote.approve", "vote.withdraw"]


class Ends:
    """A control store whose user dies before it writes a row."""

    def __init__(self, control):
        self._control = control

    def __getattr__(self, name):
        return getattr(self._control, name)

    def append(self, **_):
        raise KeyboardInterrupt


def test_nobody_takes_back_what_they_have_not_given(two):
    bench = two()
    yes(bench, ADA)
    with pytest.raises(PolicyRefused, match="'U0BEN' has given none that stands"):
        yes(bench, BEN, withdraw=True)
    assert [v.person for v in bench.control.ballot(bench.now().plan.digest).standing] == ["Ada"]


def test_who_asked_is_none_of_the_two(two):
    bench = two(asked_by="ada@example.com")
    for alias in (ADA, ADA_IN_SLACK):
        with pytest.raises(PolicyRefused, match="asked for it, and who asks does not approve"):
            yes(bench, alias)
    yes(bench, BEN)
    assert isinstance(yes(bench, CYD), Decision)


def test_a_rule_may_let_the_asker_be_one_of_them(two):
    rule = RULE.with_(self_approve=True)
    bench = two(TWO.with_(rules=(rule,)), asked_by="ada@example.com")
    yes(bench, ADA)
    assert isinstance(yes(bench, BEN), Decision)
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.APPLYING


def test_only_members_of_the_groups_count(two):
    rule = RULE.with_(groups=("leads",))
    bench = two(TWO.with_(rules=(rule,), groups={"leads": ("Ada", "Cyd")}))
    with pytest.raises(PolicyRefused, match="asks for a member of 'leads', and 'Ben' is none"):
        yes(bench, BEN)
    with pytest.raises(PolicyRefused, match="nothing proves that 'ana' is one"):
        yes(bench, {"who": "ana"})
    yes(bench, ADA)
    yes(bench, CYD)
    assert bench.now().phase is Phase.APPROVED


def test_a_vote_for_which_nobody_waits_any_more_is_not_recorded(two):
    bench = two()
    with pytest.raises(NotRecorded, match="longer than the caller waits"):
        yes(bench, ADA, is_awaited=lambda: False)
    assert bench.control.ballot(bench.now().plan.digest) is None


FORGERIES = {
    "one vote twice": lambda votes: (votes[0], votes[0]),
    "one alone": lambda votes: votes[:1],
    "none": lambda votes: (),
    "an alias": lambda votes: (votes[0], votes[0].with_(who="U0ADA", channel=Channel.SLACK, person="Adah")),
    "somebody else's name": lambda votes: (
        votes[0],
        votes[1].with_(person="Cyd", who="cyd@example.com", channel=Channel.CONSOLE),
    ),
    "another plan's": lambda votes: (votes[0], votes[1].with_(plan_digest="0" * 64)),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_the_executor_counts_the_votes_itself(two, forge):
    """Even a decision that is signed is refused where its votes are not those of two people on record."""
    bench = two()
    yes(bench, ADA)
    made = yes(bench, BEN)
    forged = sign(made.with_(votes=forge(made.votes), receipt=""), b"k" * 32)
    bench.put(bench.now().with_(decision=forged))
    begin_execution(bench.executor, bench.now())
    assert bench.now().phase is Phase.REFUSED
    assert "of 2 people approved it" in bench.now().ended_why or "is not on record" in bench.now().ended_why
    assert bench.platform.calls == []


def test_the_executor_refuses_who_is_no_approver_any_more(two):
    """The digest of the policy differs too, so that is what it says first; with the same digest it is the list."""
    bench = two()
    yes(bench, ADA)
    yes(bench, BEN)
    gone = TWO.with_(approvers=(PEOPLE[0], PEOPLE[1].with_(services=()), PEOPLE[2]))
    bench.under(gone)
    begin_execution(bench.executor, bench.now())
    assert (bench.now().phase, "the policy changed" in bench.now().ended_why) == (Phase.REFUSED, True)


def test_a_dead_voter_is_finished_by_whoever_comes_next(two):
    """It ended between its vote, which made the decision, and the record."""
    bench = two()
    yes(bench, ADA)
    dying = replace(bench.executor, store=Dying(bench.executor.store))
    with pytest.raises(KeyboardInterrupt):
        bench.answer_in(dying, "p-a-1", Choice.APPROVE, **BEN)
    assert bench.now().phase is Phase.ASKED
    with pytest.raises(StateConflict, match="Ada and Ben said approve"):
        yes(bench, CYD)
    assert bench.now().phase is Phase.APPROVED


class Dying:
    """A store whose process ends at its first write."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        return getattr(self.store, name)

    def commit(self, _change):
        raise KeyboardInterrupt


EVE = {"who": "U0EVE", "channel": Channel.SLACK, "verified": True}


def test_whom_the_policy_does_not_name_takes_no_unproven_approval_back(two):
    """A member of the channel is proved to be somebody, and is still not the operator of this machine."""
    bench = two()
    yes(bench, {"who": "ana"})
    with pytest.raises(PolicyRefused, match="names no approver with the Slack user id 'U0EVE'"):
        yes(bench, EVE, withdraw=True)
    assert len(bench.control.ballot(bench.now().plan.digest).standing) == 1
    assert yes(bench, {"who": "ana"}, withdraw=True).withdrawn_at is not None


@pytest.mark.parametrize("phase", [Phase.EXPIRED, Phase.SUPERSEDED])
def test_an_approval_of_a_plan_that_is_gone_is_not_taken_back(two, phase):
    bench = two()
    yes(bench, ADA)
    bench.put(bench.now().move(phase, now=bench.clock.now()))
    with pytest.raises(PolicyRefused, match=f"count for nothing any more, the incident is {phase}"):
        yes(bench, ADA, withdraw=True)
    assert kinds(bench) == ["vote.approve"]
