"""What every control store promises: one decision, one use, one holder, and a record of it."""

from datetime import timedelta, timezone

import pytest

from agent.core.decision.audit import Soundness, verify
from agent.ports.control import CastOutcome, CastResult, GroupRate, KillSwitch, RateLimit, ReceiptUse


class TestClaims:
    def test_the_first_decision_of_a_plan_stays(self, control):
        assert control.claim("inc-a", "p-1", "yes") == "yes"
        assert control.claim("inc-a", "p-1", "no") == "yes"
        assert control.claim("inc-a", "p-1", "yes") == "yes"
        assert control.claim("inc-a", "p-2", "no") == "no"

    def test_of_many_deciders_exactly_one_is_recorded(self, open_control, make):
        """Every racer is told the same winner, and the winner is one of them."""
        handles = [open_control() for _ in range(5)]
        for plan in range(20):
            told = make.together(10, lambda n, plan=plan: handles[n % 5].claim("inc", f"p-{plan}", f"d-{n}"))
            assert len(set(told)) == 1
            assert told[0] in {f"d-{n}" for n in range(10)}


class TestRequests:
    def test_the_first_request_of_an_id_stays(self, control, make):
        first = make.request(why="first")
        assert control.change_request(first.id) is None
        assert control.add_request(first) == first
        assert control.add_request(make.request(why="second")) == first
        assert control.change_request(first.id) == first

    def test_of_many_who_record_one_request_one_is_recorded(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        told = make.together(8, lambda n: handles[n % 4].add_request(make.request(why=f"w-{n}")))
        assert len({request.why for request in told}) == 1


class TestBallots:
    def test_votes_are_kept_and_replaced_as_they_were_seen(self, open_control, make):
        control, other = open_control(), open_control()
        assert control.ballot("d" * 64) is None
        one = make.ballot(make.vote("Ada", why='"\u202e\\'))
        assert control.cast(one, before=None).outcome is CastOutcome.CAST
        assert other.ballot("d" * 64) == one
        two = one.with_vote(make.vote("Ben"))
        assert other.cast(two, before=one).outcome is CastOutcome.CAST
        assert control.ballot("d" * 64) == two
        assert control.ballot("e" * 64) is None

    def test_who_saw_other_votes_records_nothing(self, control, make):
        """Not one more vote, and not the decision that they would have made."""
        one, two = make.ballot(make.vote("Ada")), make.ballot(make.vote("Ben"))
        control.cast(one, before=None)
        assert control.cast(two, before=None, decision="yes").outcome is CastOutcome.STALE
        assert control.cast(one.with_vote(make.vote("Cyd")), before=two, decision="yes").outcome is CastOutcome.STALE
        assert control.ballot("d" * 64) == one
        assert control.claim("inc-a", "p-1", "no") == "no"

    def test_the_last_vote_makes_the_decision_in_one_transaction(self, open_control, make):
        control = open_control()
        one = make.ballot(make.vote("Ada"))
        control.cast(one, before=None)
        two = one.with_vote(make.vote("Ben"))
        assert control.cast(two, before=one, decision="yes") == CastResult(outcome=CastOutcome.CAST, decision="yes")
        assert open_control().claim("inc-a", "p-1", "no") == "yes"
        again = control.cast(two, before=two, decision="yes again")
        assert again == CastResult(outcome=CastOutcome.DECIDED, decision="yes")

    def test_after_a_rejection_no_vote_is_added_or_taken_back(self, open_control, make):
        control = open_control()
        one = make.ballot(make.vote("Ada"))
        control.cast(one, before=None)
        open_control().claim("inc-a", "p-1", "no")
        two = one.with_vote(make.vote("Ben"))
        assert control.cast(two, before=one, decision="yes") == CastResult(outcome=CastOutcome.DECIDED, decision="no")
        back = one.with_vote(make.vote("Ada", withdrawn_at=make.at(1)))
        assert control.cast(back, before=one).outcome is CastOutcome.DECIDED
        assert control.ballot("d" * 64) == one

    def test_of_racing_voters_each_round_exactly_one_is_recorded(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        for n in range(10):
            digest = f"{n:064d}"

            def work(w, n=n, digest=digest):
                mine = make.ballot(make.vote(f"V{w}"), digest=digest, plan=f"p-{n}")
                return handles[w].cast(mine, before=None, decision=f"d-{w}").outcome

            told = make.together(4, work)
            assert told.count(CastOutcome.CAST) == 1, told
            (winner,) = [w for w, outcome in enumerate(told) if outcome is CastOutcome.CAST]
            assert handles[0].claim("inc-a", f"p-{n}", "late") == f"d-{winner}"
            assert [v.person for v in handles[0].ballot(digest).votes] == [f"V{winner}"]

    def test_a_withdrawal_and_the_last_vote_cannot_both_win(self, open_control, make):
        """Either the vote is gone and there is no decision, or the decision stands with both votes."""
        handles = [open_control() for _ in range(2)]
        for n in range(10):
            digest, plan = f"{n:064d}", f"p-{n}"
            one = make.ballot(make.vote("Ada"), digest=digest, plan=plan)
            handles[0].cast(one, before=None)
            back = one.with_vote(make.vote("Ada", withdrawn_at=make.at(1)))
            both = one.with_vote(make.vote("Ben"))
            casts = [
                lambda back=back, one=one: handles[0].cast(back, before=one),
                lambda both=both, one=one: handles[1].cast(both, before=one, decision="yes"),
            ]
            told = make.together(2, lambda w, casts=casts: casts[w]().outcome)
            assert told.count(CastOutcome.CAST) == 1, told
            decided = handles[0].claim("inc-a", plan, "late") == "yes"
            assert decided is (told[1] is CastOutcome.CAST)
            assert handles[0].ballot(digest) == (both if decided else back)


class TestReceipts:
    def test_a_receipt_starts_one_effect_however_often_it_is_tried(self, control, make):
        begun = [control.begin(make.intent(service="gemma", applied_at=make.at(n))) for n in range(3)]
        assert [b.use for b in begun] == [ReceiptUse.OURS] * 3
        assert control.begin(make.intent("e-2", "d-1", applied_at=make.at(9))).use is ReceiptUse.SPENT
        assert control.limits("gemma", make.T0).all_changes == (make.T0,)

    def test_one_racer_gets_the_receipt(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        for n in range(10):
            begun = make.together(4, lambda w, n=n: handles[w].begin(make.intent(f"e-{n}-{w}", f"d-{n}")))
            won = [b.use for b in begun]
            assert won.count(ReceiptUse.OURS) == 1
            assert won.count(ReceiptUse.SPENT) == 3

    def test_a_limit_of_a_group_counts_the_changes_of_its_services_alone(self, control, make):
        limit = RateLimit(window_s=1, per_hour=9, groups=(GroupRate(services=("prod-*",), per_hour=2),))
        uses = []
        for n, service in enumerate(["prod-a", "dev", "prod-b", "prod-c"]):
            intent = make.intent(f"e-{n}", f"d-{n}", service=service, applied_at=make.at(10 * n))
            uses.append(control.begin(intent, rate_limit=limit).use)
        assert uses == [ReceiptUse.OURS, ReceiptUse.OURS, ReceiptUse.OURS, ReceiptUse.RATE_LIMITED]
        late = make.intent("e-9", "d-9", service="prod-c", applied_at=make.at(3601))
        assert control.begin(late, rate_limit=limit).use is ReceiptUse.OURS

    def test_limits_tell_the_changes_of_the_service_and_of_all(self, control, make):
        for n, service in enumerate(["a", "b", "a"]):
            control.begin(make.intent(f"e-{n}", f"d-{n}", service=service, applied_at=make.at(n)))
        limits = control.limits("a", make.at(0))
        assert limits.service_changes == (make.at(0), make.at(2))
        assert limits.all_changes == (make.at(0), make.at(1), make.at(2))
        assert limits.services == ("a", "b", "a")
        assert control.limits("a", make.at(0.5)).service_changes == (make.at(2),)
        assert control.limits("c", make.at(0)).service_changes == ()


class TestBegunChanges:
    """What a change may cost together with others is checked outside the database; so it says who began meanwhile."""

    def test_it_tells_the_open_intents_of_late_changes_and_the_count_of_all(self, open_control, make):
        control = open_control()
        assert (control.begun(make.T0).count, control.begun(make.T0).intents) == (0, ())
        intents = [make.intent(f"e-{n}", f"d-{n}", service=f"s{n}", applied_at=make.at(n)) for n in range(4)]
        for intent in intents:
            control.begin(intent)
        control.close_intent("e-2", "refused")
        control.add_intent(make.intent("u-1", "d-1", kind="roll_back", applied_at=make.at(9)))
        begun = open_control().begun(make.at(1))
        assert (begun.count, begun.intents) == (4, (intents[1], intents[3]))

    def test_who_did_not_see_what_began_since_does_not_begin(self, control, make):
        seen = control.begun(make.T0).count
        control.begin(make.intent("e-1", "d-1"))
        late = make.intent("e-2", "d-2", service="other")
        stale = control.begin(late, begun_before=seen)
        assert (stale.use, stale.intent) == (ReceiptUse.STALE, None)
        assert control.intent("e-2") is None
        assert control.limits("other", make.T0).service_changes == ()
        assert control.begin(late, begun_before=control.begun(make.T0).count).use is ReceiptUse.OURS
        assert control.begin(late, begun_before=seen).use is ReceiptUse.OURS

    def test_of_racers_who_saw_the_same_changes_one_begins(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        for n in range(5):
            seen = handles[0].begun(make.T0).count

            def work(w, n=n, seen=seen):
                intent = make.intent(f"e-{n}-{w}", f"d-{n}-{w}", service=f"s{w}")
                return handles[w].begin(intent, begun_before=seen).use

            told = make.together(4, work)
            assert sorted(told) == [ReceiptUse.OURS] + [ReceiptUse.STALE] * 3


class TestIntents:
    def test_a_retry_gets_the_intent_that_was_stored_first_byte_by_byte(self, open_control, make):
        """Whatever it brings: the etag that was read once is never read again."""
        template = '{"b": 1.0, "a": "\u202e \\u0000"}  \r\n'
        first = make.intent(prior_template=template, prior_config=make.config())
        assert open_control().begin(first).intent == first
        control = open_control()
        assert control.begin(make.intent(etag="etag-6", applied_at=make.at(60))).intent == first
        assert control.intent("e-1") == first
        assert control.intent("e-2") is None

    def test_what_is_spent_or_finds_no_room_stores_none(self, control, make):
        control.begin(make.intent())
        assert control.begin(make.intent("e-2", "d-1")).intent is None
        assert (
            control.begin(make.intent("e-3", "d-3"), rate_limit=RateLimit(window_s=900, per_hour=9)).use
            is ReceiptUse.RATE_LIMITED
        )
        assert control.intent("e-2") is None
        assert control.intent("e-3") is None

    def test_a_closed_one_is_kept_with_its_first_reason_and_never_begun_again(self, open_control, make):
        control = open_control()
        control.begin(make.intent())
        control.close_intent("e-1", "the target changed")
        open_control().close_intent("e-1", "another reason")
        assert open_control().intent("e-1").closed == "the target changed"
        again = open_control().begin(make.intent(etag="etag-6"))
        assert (again.use, again.intent) == (ReceiptUse.CLOSED, None)

    def test_what_was_closed_before_it_was_stored_is_never_stored(self, open_control, make):
        """A worker that slept over the refusal comes too late; nothing is counted either."""
        control = open_control()
        control.close_intent("e-1", "refused")
        assert open_control().begin(make.intent()).use is ReceiptUse.CLOSED
        assert control.limits("gemma", make.T0).all_changes == ()
        assert control.add_intent(make.intent()) is None

    def test_a_further_effect_keeps_its_first_intent_and_counts_for_no_limit(self, open_control, make):
        control = open_control()
        control.begin(make.intent())
        undo = make.intent("e-1-undo", kind="roll_back", etag="etag-6")
        assert control.add_intent(undo) == undo
        assert open_control().add_intent(undo.with_(etag="etag-7")) == undo
        assert control.intent("e-1-undo") == undo
        assert control.limits("gemma", make.T0).all_changes == (make.T0,)
        control.close_intent("e-1-undo", "too late")
        assert open_control().add_intent(undo) is None
        assert not control.intent("e-1").closed

    def test_racers_who_store_a_further_effect_get_one_intent(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        for n in range(5):
            stored = make.together(4, lambda w, n=n: handles[w].add_intent(make.intent(f"u-{n}", etag=f"etag-{w}")))
            assert len({s.etag for s in stored}) == 1


class TestRoom:
    ROOM = RateLimit(window_s=900, per_hour=4)

    @pytest.fixture(autouse=True)
    def values(self, make):
        self.make = make

    def use(self, control, n, service, at, rate_limit=ROOM):
        intent = self.make.intent(f"e-{n}", f"d-{n}", service=service, applied_at=at)
        return control.begin(intent, rate_limit=rate_limit).use

    def test_one_change_of_a_service_per_window(self, control, make):
        assert self.use(control, 1, "a", make.at(0)) is ReceiptUse.OURS
        assert self.use(control, 2, "a", make.at(899)) is ReceiptUse.RATE_LIMITED
        assert self.use(control, 3, "b", make.at(899)) is ReceiptUse.OURS
        assert self.use(control, 2, "a", make.at(900)) is ReceiptUse.OURS

    def test_so_many_an_hour_over_all_services(self, control, make):
        told = [self.use(control, n, f"s{n}", make.at(n)) for n in range(6)]
        assert told == [ReceiptUse.OURS] * 4 + [ReceiptUse.RATE_LIMITED] * 2
        assert self.use(control, 9, "s9", make.at(3599)) is ReceiptUse.RATE_LIMITED
        assert self.use(control, 9, "s9", make.at(3600)) is ReceiptUse.OURS
        assert self.use(control, 10, "s10", make.at(3600)) is ReceiptUse.RATE_LIMITED

    def test_what_found_no_room_is_not_counted_and_may_come_again(self, control, make):
        self.use(control, 1, "a", make.at(0))
        for _ in range(3):
            assert self.use(control, 2, "a", make.at(1)) is ReceiptUse.RATE_LIMITED
        assert control.limits("a", make.at(0)).all_changes == (make.T0,)

    def test_the_same_effect_again_needs_no_room(self, control, make):
        self.use(control, 1, "a", make.at(0))
        assert self.use(control, 1, "a", make.at(1)) is ReceiptUse.OURS
        assert self.use(control, 1, "a", make.at(1), rate_limit=RateLimit(window_s=900, per_hour=0)) is ReceiptUse.OURS

    def test_a_change_that_a_fast_clock_put_into_the_future_counts(self, control, make):
        self.use(control, 1, "a", make.at(600))
        assert self.use(control, 2, "a", make.at(0)) is ReceiptUse.RATE_LIMITED

    def test_a_time_that_was_moved_forward_makes_no_change_old(self, control, make):
        """The time of an intent comes from the incident database as well; whoever writes that frees no change by it."""
        here = RateLimit(window_s=900, per_hour=2, not_after=make.at(60))
        assert self.use(control, 1, "a", make.at(0)) is ReceiptUse.OURS
        assert self.use(control, 2, "a", make.at(86_400), rate_limit=here) is ReceiptUse.RATE_LIMITED
        assert self.use(control, 3, "b", make.at(86_400), rate_limit=here) is ReceiptUse.OURS
        assert self.use(control, 4, "c", make.at(86_400), rate_limit=here) is ReceiptUse.RATE_LIMITED

    def test_no_changes_an_hour_means_none(self, control, make):
        assert (
            self.use(control, 1, "a", make.at(0), rate_limit=RateLimit(window_s=1, per_hour=0))
            is ReceiptUse.RATE_LIMITED
        )

    def test_racing_executors_get_no_more_than_the_limits(self, open_control, make):
        """Sixteen executors at once, each with a receipt of its own: four start over all, one of a service."""
        handles = [open_control() for _ in range(4)]
        for turn in range(5):
            at = make.at(turn * 9000)
            told = make.together(16, lambda n, at=at, turn=turn: self.use(handles[n % 4], f"{turn}-{n}", f"s{n}", at))
            assert told.count(ReceiptUse.OURS) == 4
            at = make.at(turn * 9000 + 4000)
            told = make.together(16, lambda n, at=at, turn=turn: self.use(handles[n % 4], f"{turn}+{n}", "one", at))
            assert told.count(ReceiptUse.OURS) == 1


class TestOnce:
    def test_a_name_is_used_once_by_whichever_handle(self, open_control, make):
        one, other = open_control(), open_control()
        assert one.use_once("slack:a", at=make.at(0), until=make.at(300))
        assert not other.use_once("slack:a", at=make.at(1), until=make.at(301))
        assert other.use_once("slack:b", at=make.at(1), until=make.at(301))

    def test_it_is_still_used_right_after_its_end(self, control, make):
        """A clock that steps back ten minutes must not find it unused."""
        control.use_once("a", at=make.at(0), until=make.at(300))
        control.use_once("b", at=make.at(900), until=make.at(1200))
        assert not control.use_once("a", at=make.at(299), until=make.at(599))

    def test_a_use_that_came_to_nothing_is_given_back(self, control, make):
        control.use_once("a", at=make.at(0), until=make.at(300))
        control.give_back("a")
        control.give_back("never used")
        assert control.use_once("a", at=make.at(1), until=make.at(301))

    def test_one_racer_uses_it(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        for n in range(10):
            won = make.together(8, lambda w, n=n: handles[w % 4].use_once(f"n{n}", at=make.T0, until=make.at(300)))
            assert won.count(True) == 1


class TestKillSwitch:
    def test_it_is_off_until_somebody_turns_it_on(self, control):
        assert control.kill_switch() == KillSwitch(on=False)

    def test_every_handle_sees_it_at_once_with_who_and_why(self, open_control, make):
        one, other = open_control(), open_control()
        on = KillSwitch(on=True, by="ana", why="too many changes", at=make.T0)
        one.set_kill_switch(on)
        assert other.kill_switch() == on
        other.set_kill_switch(KillSwitch(on=False, by="ben", at=make.at(1)))
        assert not one.kill_switch().on


class TestLeases:
    def test_one_holds_it_until_it_ends(self, control, make):
        lease = control.acquire("inc-a", "w1", for_s=120, now=make.at(0))
        assert lease.until == make.at(120)
        assert control.acquire("inc-a", "w2", for_s=120, now=make.at(119.9)) is None
        assert control.holds(lease, make.at(119.9))
        assert not control.holds(lease, make.at(120))
        assert control.acquire("inc-a", "w2", for_s=120, now=make.at(120)).token > lease.token
        assert control.acquire("inc-b", "w2", for_s=120, now=make.at(120))

    def test_the_holder_renews_under_its_token(self, control, make):
        first = control.acquire("x", "w1", for_s=100, now=make.at(0))
        again = control.acquire("x", "w1", for_s=100, now=make.at(50))
        assert (again.token, again.until) == (first.token, make.at(150))
        assert control.holds(first, make.at(120))

    def test_a_paused_worker_is_fenced_when_it_wakes(self, control, make):
        """Its lease ended and another took it: even when that one gave it back, the old token is worth nothing."""
        paused = control.acquire("x", "w1", for_s=10, now=make.at(0))
        taken = control.acquire("x", "w2", for_s=10, now=make.at(11))
        assert not control.holds(paused, make.at(12))
        assert not control.holds(paused, make.at(5))
        control.release(paused)
        assert control.holds(taken, make.at(12))
        control.release(taken)
        assert not control.holds(taken, make.at(12))
        assert not control.holds(paused, make.at(5))

    def test_even_the_same_holder_gets_a_new_token_after_the_end(self, control, make):
        """A thread of the same name that slept over the end cannot be told from one that did not."""
        slept = control.acquire("x", "w1", for_s=10, now=make.at(0))
        fresh = control.acquire("x", "w1", for_s=10, now=make.at(10))
        assert fresh.token > slept.token
        assert not control.holds(slept, make.at(11))

    def test_tokens_grow_with_every_holder(self, control, make):
        tokens = []
        for n in range(5):
            lease = control.acquire("x", f"w{n}", for_s=10, now=make.at(n))
            tokens.append(lease.token)
            control.release(lease)
        assert tokens == sorted(set(tokens))

    @pytest.mark.parametrize("step_s", [600, -600], ids=["ahead", "behind"])
    def test_clocks_that_lie_never_make_two_holders(self, control, make, step_s):
        """Two workers, one of them ten minutes off: at no moment does each believe in its lease."""
        mine = control.acquire("x", "right", for_s=120, now=make.at(0))
        theirs = control.acquire("x", "wrong", for_s=120, now=make.at(1 + step_s))
        for seconds in (1, 60, 119, 121):
            held = [
                control.holds(mine, make.at(seconds)),
                theirs is not None and control.holds(theirs, make.at(seconds + step_s)),
            ]
            assert held.count(True) <= 1

    def test_a_clock_that_stepped_back_does_not_make_a_lease_live_longer(self, control, make):
        control.acquire("other", "w9", for_s=1, now=make.at(1000))
        lease = control.acquire("x", "w1", for_s=120, now=make.at(400))
        assert lease.until == make.at(1120)
        assert not control.holds(lease, make.at(1120))

    def test_one_racer_gets_a_free_lease(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        for n in range(10):
            got = make.together(4, lambda w, n=n: handles[w].acquire(f"l{n}", f"w{w}", for_s=9, now=make.T0))
            assert sum(lease is not None for lease in got) == 1

    def test_nobody_holds_what_was_never_taken(self, control, make):
        lease = control.acquire("x", "w1", for_s=9, now=make.T0)
        assert not control.holds(lease.with_(name="y"), make.T0)
        assert not control.holds(lease.with_(token=lease.token + 1), make.T0)
        assert not control.holds(lease.with_(holder="w2"), make.T0)


class TestRecord:
    def test_rows_are_numbered_and_chained(self, open_control, make):
        written = []
        for n in range(6):
            row = open_control().append(
                at=make.at(-n), kind="effect.apply", incident="inc-a", who="ana", body=f"{n} \u202e'"
            )
            written.append(row)
        control = open_control()
        rows = control.audit()
        assert rows == tuple(written)
        assert [r.number for r in rows] == [1, 2, 3, 4, 5, 6]
        assert verify(rows).soundness is Soundness.SOUND
        assert control.audit(2) == rows[-2:]
        assert control.audit(2, before=5) == rows[2:4]
        assert control.audit(9, before=3) == rows[:2]
        assert control.audit(before=1) == ()

    def test_a_time_with_another_offset_keeps_the_chain(self, control, make):
        east = timezone(timedelta(hours=9))
        control.append(at=make.at(0.000001).astimezone(east), kind="k", incident="i", who="w", body="b")
        assert verify(control.audit()).soundness is Soundness.SOUND

    def test_racing_writers_make_one_chain(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        make.together(
            4,
            lambda n: [
                handles[n].append(at=make.T0, kind="k", incident="i", who=f"w{n}", body=str(i)) for i in range(8)
            ],
        )
        rows = handles[0].audit()
        assert len(rows) == 32
        assert verify(rows).soundness is Soundness.SOUND

    def test_what_is_written_once_leaves_no_second_row_however_often_it_is_tried(self, open_control, make):
        """A try after a lost answer and a rival that does the same find the row; other words are another row."""
        words = {"kind": "effect.apply", "incident": "inc-a", "who": "on_decision", "body": "e1 rev-1", "once": True}
        first = open_control().append(at=make.T0, **words)
        assert open_control().append(at=make.at(5), **words) == first
        control = open_control()
        control.append(at=make.T0, **(words | {"kind": "effect.roll_back"}))
        control.append(at=make.T0, **(words | {"incident": "inc-b"}))
        control.append(at=make.T0, **(words | {"body": "e2 rev-2"}))
        control.append(at=make.T0, **words)
        assert len(control.audit()) == 4
        assert verify(control.audit()).soundness is Soundness.SOUND

    def test_racers_who_write_once_leave_one_row(self, open_control, make):
        handles = [open_control() for _ in range(4)]
        words = {"at": make.T0, "kind": "effect.apply", "incident": "i", "who": "w", "once": True}
        for n in range(5):
            rows = make.together(4, lambda w, n=n: handles[w].append(body=str(n), **words))
            assert len(set(rows)) == 1
        assert len(handles[0].audit()) == 5

    def test_what_is_not_written_once_may_be_said_again(self, control, make):
        """The switch is turned on, off, and on again for the same reason."""
        for kind in ("kill_switch.on", "kill_switch.off", "kill_switch.on"):
            control.append(at=make.T0, kind=kind, incident="", who="ada", body="why")
        assert len(control.audit()) == 3
