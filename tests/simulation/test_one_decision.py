"""S2 and S4: of many deciders one is heard, and a request is used once, across restarts and workers."""

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.store.firestore.control import FirestoreControlStore
from agent.adapters.store.firestore.documents import Documents
from agent.adapters.store.firestore.store import FirestoreStore
from agent.adapters.store.sqlite.cards import SqliteCards
from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.app.catalogues import read_rules
from agent.core.decision.approvals import Approvals
from agent.core.decision.audit import Soundness, verify
from agent.core.decision.decision import Channel, Choice, Decision, HmacReceiptSigner, Person, Vote, check_receipt
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.times import Times
from agent.core.plan.action import Restart
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.services import Services
from agent.core.service.serving import Target
from agent.errors import PolicyRefused, StateConflict
from agent.ports.stage_context import Owner, StageContext
from agent.ports.store import Change
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.counts import tries

ROOT = Path(__file__).resolve().parents[2]
AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
KEY = b"k" * 32
RACERS, ROUNDS, REPLAYS = 50, tries(20, ci=200, soak=200), 1000
PEOPLE = tuple(Approver(name=f"P{n}", slack=f"U0{n:03d}", services=("gemma",)) for n in range(RACERS))
POLICY = Policy(approvers=PEOPLE)
TOGETHER = Policy(
    approvers=PEOPLE,
    rules=(Rule(services=("gemma",), kinds=("restart",), mode=Mode.PERSON, approvals=2),),
)


class Clock:
    def now(self):
        return AT


class NoBus:
    """Orders are not what this is about."""

    def publish(self, message):
        return message.id


def plan_of(number, policy=POLICY):
    return Plan(
        id=f"p-{number}-1",
        incident=f"inc-{number}",
        run="live",
        ordinal=1,
        cause="engine_dead",
        why="a fresh start",
        actions=(Restart(),),
        difference=(),
        target=Target(service="gemma", uid="u", generation=1, digest="d"),
        rollout=Rollout.IN_PLACE,
        risk=Risk.LOW,
        undo="the prior template",
        proof=Proof.NOT_NEEDED,
        if_unanswered="nothing",
        policy=policy.digest,
        asked_by="P0",
        made_at=AT,
        expires_at=AT + timedelta(minutes=30),
    )


def asked(store, number, policy=POLICY):
    plan = plan_of(number, policy)
    incident = Incident(
        id=plan.incident,
        service="gemma",
        platform="cloud_run",
        phase=Phase.ASKED,
        opened_at=AT,
        phase_at=AT,
        quiet_since=AT,
        plan=plan,
        plans_made=1,
        approvals=Approvals(plan=plan.id, needed=2) if policy is TOGETHER else None,
    )
    store.commit(Change(incident=incident, plan=plan))
    return plan


def world_on(folder, policy=POLICY):
    """A process of its own on the files of a folder."""
    return world_of(
        SqliteStore(SqliteDatabase(folder / "s.db", Kind.STATE, busy_s=30)),
        SqliteControlStore(SqliteDatabase(folder / "c.db", Kind.CONTROL, busy_s=30)),
        policy,
    )


def world_in(emulator, project, policy=POLICY):
    """A process of its own on the two databases of a project."""
    state, control = (Documents(project, name, client=emulator.client(project, name)) for name in ("s", "c"))
    return world_of(FirestoreStore(state, SystemClock()), FirestoreControlStore(control), policy)


def world_of(store, control, policy=POLICY):
    return StageContext(
        owner=Owner.DECIDE,
        store=store,
        control=control,
        cards=SqliteCards(InMemoryDatabase(Kind.STATE)),
        bus=NoBus(),
        platform_of=lambda _: None,
        logs=None,
        notifiers={},
        model=None,
        clock=Clock(),
        rules=replace(KNOWN, policy=policy),
        receipt_key=KEY,
    )


KNOWN = read_rules(Services(services=()), POLICY, Times())


@dataclass
class Race:
    """Racers who answer one plan after the other, all of them at once, approve and reject mixed by a seed."""

    worlds: list
    racers: int
    rounds: int
    policy: Policy = POLICY
    rejections: float = 0.5  # of all answers

    def run(self):
        self.plans = [asked(self.worlds[0].store, n, self.policy) for n in range(self.rounds)]
        chance = random.Random(4)
        weights = [1 - self.rejections, self.rejections]
        self.answers = [chance.choices(list(Choice), weights, k=self.racers) for _ in self.plans]
        self.told = [[None] * self.racers for _ in self.plans]
        self.line = threading.Barrier(self.racers)
        with ThreadPoolExecutor(self.racers) as pool:
            racing = [pool.submit(self._racer, n) for n in range(self.racers)]
        broke = [race.exception() for race in racing if race.exception() is not None]
        for error in sorted(broke, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
            raise error

    def _racer(self, racer):
        try:
            self._answer_all(racer)
        finally:
            if self.told[-1][racer] is None:  # it broke, and nobody may wait for it
                self.line.abort()

    def _answer_all(self, racer):
        for number, plan in enumerate(self.plans):
            self.line.wait()
            word = DecisionRequest(
                plan=plan.id,
                answer=self.answers[number][racer],
                by=Person(who=f"U0{racer:03d}", channel=Channel.SLACK, verified=True),
                plan_digest=plan.digest,
            )
            try:
                self.told[number][racer] = plan_to_decision(self.worlds[racer % len(self.worlds)], word)
            except (StateConflict, PolicyRefused) as error:
                self.told[number][racer] = error

    def check(self):
        """One decision each, signed and stored; every loser was told who won; who asked has won with no yes."""
        for number, plan in enumerate(self.plans):
            won = [t for t in self.told[number] if isinstance(t, Decision)]
            assert len(won) == 1, (plan.id, self.told[number])
            held = self.worlds[0].store.load(plan.incident)
            assert held.decision == won[0]
            assert held.phase is (Phase.APPROVED if won[0].answer is Choice.APPROVE else Phase.REJECTED)
            check_receipt(held.decision, plan, KEY)
            assert (won[0].who, won[0].answer) != ("U0000", Choice.APPROVE)
            for racer, lost in enumerate(self.told[number]):
                if isinstance(lost, Decision):
                    continue
                asker = racer == 0 and self.answers[number][0] is Choice.APPROVE
                named = f"{won[0].shown} said {won[0].answer}" in str(lost)
                assert named or (asker and "who asks does not approve" in str(lost)), str(lost)
        rows = self.worlds[0].control.audit(10**6)
        assert verify(rows).soundness is Soundness.SOUND
        assert sorted(r.incident for r in rows) == sorted(plan.incident for plan in self.plans)


def test_of_fifty_deciders_exactly_one_is_heard_each_time(tmp_path):
    """Two workers on SQLite."""
    race = Race([world_on(tmp_path) for _ in range(2)], RACERS, ROUNDS)
    race.run()
    race.check()


@pytest.mark.journey
@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_of_four_deciders_on_firestore_exactly_one_is_heard_ten_times(firestore_emulator, firestore_project):
    """Four workers, each with connections of its own, on Google's emulator."""
    race = Race([world_in(firestore_emulator, firestore_project) for _ in range(4)], 4, 10)
    race.run()
    race.check()


class RaceOfTwo(Race):
    """The same where two people must approve: who was first among them is told that one more is needed."""

    def check(self):
        """One decision each; an approval is two different people's; every loser was told who won."""
        approved = rejected = 0
        for number, plan in enumerate(self.plans):
            held = self.worlds[0].store.load(plan.incident).decision
            told, answers = self.told[number], self.answers[number]
            if held is None:  # one yes and no more, beside the asker's own and no rejection
                assert answers.count(Choice.REJECT) == 0, told
                assert sum(isinstance(one, Vote) for one in told) <= 1
                continue
            check_receipt(held, plan, KEY)
            rejected += held.answer is Choice.REJECT
            if held.answer is Choice.APPROVE:
                approved += 1
                assert len({vote.person for vote in held.votes}) == 2
                assert all(vote.is_signed(HmacReceiptSigner(KEY)) for vote in held.votes)
                assert "P0" not in {vote.person for vote in held.votes}
            heard = {f"P{racer}": one for racer, one in enumerate(told) if isinstance(one, Decision)}
            assert heard, told
            assert all(one == held for one in heard.values()), told
            # who voted first looks at the claim once more after the write, and may find the decision with that vote
            assert len(heard) == 1 or set(heard) <= {vote.person for vote in held.votes}, told
            assert sum(isinstance(one, Vote) for one in told) <= 1, told
            for racer, lost in enumerate(told):
                asker = racer == 0 and answers[0] is Choice.APPROVE and "who asks does not approve" in str(lost)
                named = f"{held.shown} said {held.answer}" in str(lost)
                assert isinstance(lost, Decision | Vote) or named or asker, str(lost)
        rows = self.worlds[0].control.audit(10**6)
        assert verify(rows).soundness is Soundness.SOUND
        decided = [row.incident for row in rows if row.kind.startswith("decision.")]
        assert len(decided) == len(set(decided))
        assert approved
        assert rejected


def test_of_fifty_deciders_two_approve_together_or_one_rejects(tmp_path):
    """S4 with two approvers, two workers on SQLite."""
    race = RaceOfTwo([world_on(tmp_path, TOGETHER) for _ in range(2)], RACERS, max(ROUNDS // 4, 20), TOGETHER, 0.04)
    race.run()
    race.check()


@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_of_four_deciders_on_firestore_two_approve_together_or_one_rejects(firestore_emulator, firestore_project):
    """Four workers, each with connections of its own, on Google's emulator."""
    worlds = [world_in(firestore_emulator, firestore_project, TOGETHER) for _ in range(4)]
    race = RaceOfTwo(worlds, 4, 20, TOGETHER, 0.2)
    race.run()
    race.check()


CHILD = """
import sys
from datetime import datetime, timedelta
from pathlib import Path
from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
control = SqliteControlStore(SqliteDatabase(Path(sys.argv[1]), Kind.CONTROL, busy_s=30))
at = datetime.fromisoformat(sys.argv[2])
print(sum(control.use_once(f"slack:{n}", at=at, until=at + timedelta(minutes=5)) for n in range(int(sys.argv[3]))))
"""


def test_a_thousand_requests_are_each_used_once_across_two_workers_and_a_restart(tmp_path):
    """Two processes at once, then a third that starts afresh: 1,000 uses and not one more."""
    path = tmp_path / "c.db"
    SqliteDatabase(path, Kind.CONTROL).close()
    words = [sys.executable, "-c", CHILD, str(path), AT.isoformat(), str(REPLAYS)]
    both = [subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    firsts = [int(child.communicate(timeout=120)[0]) for child in both]
    assert sum(firsts) == REPLAYS
    again = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert int(again.stdout) == 0


@pytest.mark.parametrize("n", range(3))
def test_the_same_answer_of_the_same_person_is_no_second_decision(tmp_path, n):
    world = world_on(tmp_path)
    plan = asked(world.store, n)
    word = DecisionRequest(
        plan=plan.id,
        answer=Choice.APPROVE,
        by=Person(who="U0001", channel=Channel.SLACK, verified=True),
        plan_digest=plan.digest,
    )
    assert plan_to_decision(world, word) == plan_to_decision(world_on(tmp_path), word)
    assert len(world.control.audit()) == 1


def test_a_decision_that_a_dead_writer_claimed_is_on_record_once_it_counts(tmp_path):
    """It ended between its claim and the record: whoever comes next finishes both, and nothing counts unrecorded."""
    world = world_on(tmp_path)
    plan = asked(world.store, 1)
    word = DecisionRequest(
        plan=plan.id,
        answer=Choice.APPROVE,
        by=Person(who="U0001", channel=Channel.SLACK, verified=True),
        plan_digest=plan.digest,
    )
    dying = world_on(tmp_path)
    dying.control.append = ends
    with pytest.raises(KeyboardInterrupt):
        plan_to_decision(dying, word)
    with pytest.raises(StateConflict, match="P1 said approve"):
        plan_to_decision(world, replace(word, by=word.by.with_(who="U0002"), answer=Choice.REJECT))
    assert world.store.load(plan.incident).phase is Phase.APPROVED
    assert [(r.kind, r.who) for r in world.control.audit()] == [("decision.approve", "U0001")]


def ends(**_):
    raise KeyboardInterrupt
