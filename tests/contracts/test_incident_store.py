"""What every store of incidents promises."""

from datetime import timedelta, timezone

import pytest

from agent.adapters.store.sqlite.store import SqliteStore
from agent.core.incident.phase import Phase
from agent.errors import InputRejected, StateConflict, StoredOtherwise
from agent.ports.store import Query

HOSTILE = "\x00 ' \" ; DROP TABLE incidents; -- \u202e\U0001f600 \\u0000 {}\r\n" + "x" * 60_000


class TestCommit:
    def test_a_new_incident_is_version_one_and_loads_as_it_was_written(self, store, make):
        written = store.commit(make.change(make.incident(revision="r1", due_at=make.at(5))))
        assert written.version == 1
        assert store.load("inc-a") == written

    def test_each_commit_counts_one_version(self, store, make):
        first = store.commit(make.change())
        second = store.commit(make.change(first.with_(revision="r2")))
        assert (second.version, store.load("inc-a").revision) == (2, "r2")

    def test_another_handle_sees_what_was_committed(self, open_store, make):
        change = make.change(
            signals=(make.signal(),), messages=(make.message(),), events=(make.event("x"),), plan=make.plan()
        )
        written = open_store().commit(change.with_(heads=("live|gemma|",)))
        other = open_store()
        assert other.load("inc-a") == written
        assert other.signals("inc-a") == change.signals
        assert other.outbox("inc-a") == change.messages
        assert other.timeline("inc-a") == change.events
        assert other.plan("p-a-1") == change.plan
        assert other.head("live|gemma|") == "inc-a"

    @pytest.mark.parametrize("read", [0, 1, 3])
    def test_second_writer_loses(self, store, make, read):
        """A writer who read another version gets StateConflict, and nothing of its change can be seen."""
        first = store.commit(make.change())
        store.commit(make.change(first))
        before = everything(store)
        late = make.change(
            make.incident(version=read, revision="late"),
            heads=("late",),
            signals=(make.signal("late"),),
            messages=(make.message("late"),),
            events=(make.event("late", 9999),),
            plan=make.plan("p-late"),
        )
        with pytest.raises(StateConflict, match="version 2 stands"):
            store.commit(late)
        assert everything(store) == before

    def test_an_incident_that_was_never_created_is_not_replaced(self, store, make):
        with pytest.raises(StateConflict, match="there is none"):
            store.commit(make.change(make.incident(version=4)))
        with pytest.raises(InputRejected):
            store.load("inc-a")

    def test_of_many_writers_of_one_version_exactly_one_wins(self, open_store, make):
        store = open_store()
        stores = [open_store() for _ in range(4)]
        incident = store.commit(make.change())
        for number in range(10):
            results = make.together(
                4,
                lambda n, read=incident, number=number: stores[n].commit(
                    make.change(read.with_(revision=f"by-{n}"), events=(make.event(f"{number} by {n}"),))
                ),
            )
            won = [r for r in results if not isinstance(r, Exception)]
            assert len(won) == 1
            assert all(isinstance(r, StateConflict) for r in results if r is not won[0])
            incident = won[0]
            assert store.load("inc-a") == incident
        assert len(store.timeline("inc-a")) == 10

    def test_an_unknown_incident_is_the_senders_mistake(self, store):
        with pytest.raises(InputRejected, match="'inc-none' was not found"):
            store.load("inc-none")

    def test_any_text_comes_back_as_it_was(self, store, make):
        written = store.commit(
            make.change(
                make.incident(ended_why=HOSTILE), signals=(make.signal(text=HOSTILE),), events=(make.event(HOSTILE),)
            )
        )
        assert store.load("inc-a") == written
        assert store.signals("inc-a")[0].text == HOSTILE
        assert store.timeline("inc-a")[0].what == HOSTILE

    def test_times_keep_their_microseconds_and_their_moment(self, store, make):
        """A time with another offset is the same moment after the trip."""
        when = make.at(0.000001).astimezone(timezone(timedelta(hours=5, minutes=30)))
        store.commit(make.change(make.incident(opened_at=when, due_at=when)))
        assert store.load("inc-a").opened_at == when
        assert store.due(when) == ("inc-a",)
        assert store.due(when - timedelta(microseconds=1)) == ()


class TestSignals:
    def test_a_signal_is_accepted_once(self, store, make):
        assert store.accept(make.signal(), "inc-a").new
        again = store.accept(make.signal(text="another text, the same key"), "inc-b")
        assert not again.new
        assert store.knows("k1") == "inc-a"
        assert store.signals("inc-a") == (make.signal(),)
        assert store.signals("inc-b") == ()

    def test_an_unknown_key_has_no_home(self, store):
        assert store.knows("nobody") is None

    def test_accepting_does_not_touch_the_incident(self, store, make):
        written = store.commit(make.change())
        store.accept(make.signal(), "inc-a")
        assert store.load("inc-a") == written

    def test_a_count_is_never_more_than_there_is(self, store, make):
        """Over accepted and committed signals; exactly so many where the store counts every one."""
        store.commit(make.change(signals=(make.signal("a"), make.signal("b"))))
        told = [store.accept(make.signal("c"), "inc-a"), store.accept(make.signal("d"), "inc-other")]
        store.commit(make.change(store.load("inc-a"), signals=(make.signal("e"),)))
        told.append(store.accept(make.signal("f"), "inc-a"))
        for accepted, there in zip(told, (3, 1, 5), strict=True):
            assert accepted.count is None or accepted.count <= there
            assert accepted.count == there or not isinstance(store, SqliteStore)

    def test_a_storm_is_told_as_it_doubles(self, store, make):
        """Whoever hears the counts of a storm of 600 knows its size within a factor of four, and never too high."""
        heard = 0
        for n in range(600):
            count = store.accept(make.signal(f"k{n}", at=make.at(n)), "inc-a").count
            assert count is None or count <= n + 1
            heard = max(heard, count or 0)
        assert heard >= 150

    def test_the_same_storm_from_many_threads_is_counted_once(self, open_store, make):
        """Every key is new for exactly one of the racers, and where every one is counted each count is told once."""
        stores = [open_store() for _ in range(4)]
        keys = [f"k{n}" for n in range(40)]
        results = make.together(4, lambda n: [stores[n].accept(make.signal(k), "inc-a") for k in keys])
        new = [a.count for accepted in results for a in accepted if a.new]
        assert len(new) == 40
        if isinstance(stores[0], SqliteStore):
            assert sorted(new) == list(range(1, 41))

    def test_a_signal_that_came_in_meanwhile_stops_the_commit(self, store, make):
        written = store.commit(make.change())
        store.accept(make.signal("k9"), "inc-other")
        before = everything(store)
        with pytest.raises(StateConflict, match="stored already"):
            store.commit(
                make.change(written, signals=(make.signal("k8"), make.signal("k9")), events=(make.event("x"),))
            )
        assert everything(store) == before
        assert store.knows("k8") is None
        assert store.accept(make.signal("k8"), "inc-a").count in {1, None}

    def test_one_commit_does_not_store_a_signal_twice(self, store, make):
        with pytest.raises(StateConflict):
            store.commit(make.change(signals=(make.signal("k1"), make.signal("k1"))))
        assert store.knows("k1") is None

    def test_signals_come_by_their_own_time(self, store, make):
        for seconds, key in [(3, "a"), (1, "z"), (2, "m"), (1, "b")]:
            store.accept(make.signal(key, at=make.at(seconds)), "inc-a")
        assert [s.key for s in store.signals("inc-a")] == ["b", "z", "m", "a"]

    @pytest.mark.parametrize(
        ("limit", "keys"),
        [(10, "0123456789"), (9, "012346789"), (4, "0189"), (3, "019"), (1, "0")],
    )
    def test_of_too_many_signals_the_first_and_the_last_half_come(self, store, make, limit, keys):
        for n in range(10):
            store.accept(make.signal(str(n), at=make.at(n)), "inc-a")
        assert "".join(s.key for s in store.signals("inc-a", limit)) == keys


class TestHeads:
    def test_a_head_points_at_the_last_incident_that_was_set(self, store, make):
        store.commit(make.change(heads=("one", "two")))
        store.commit(make.change(make.incident("inc-b"), heads=("two", "three")))
        assert [store.head(k) for k in ("one", "two", "three", "four")] == ["inc-a", "inc-b", "inc-b", None]

    @pytest.mark.parametrize("known", [None, "inc-z"], ids=["nothing stood there", "another stood there"])
    def test_who_decided_by_a_head_that_moved_meanwhile_loses(self, store, make, known):
        """Two who saw the same head open two incidents: the second is told to look again, and nothing of it is seen."""
        if known is not None:
            store.commit(make.change(make.incident(known), heads=("one",)))
        seen = {"one": known, "never there": None}
        store.commit(make.change(heads=("one",), seen=seen))
        before = everything(store)
        with pytest.raises(StateConflict, match="opened meanwhile"):
            store.commit(make.change(make.incident("inc-b"), heads=("one",), seen=seen))
        assert everything(store) == before
        assert store.head("never there") is None
        store.commit(make.change(make.incident("inc-b"), heads=("one",), seen={"one": "inc-a"}))
        assert store.head("one") == "inc-b"

    def test_of_many_who_saw_one_head_exactly_one_opens(self, open_store, make):
        stores = [open_store() for _ in range(4)]
        for n in range(5):
            seen = {f"h{n}": None}
            told = make.together(
                4,
                lambda w, n=n, seen=seen: stores[w].commit(
                    make.change(make.incident(f"inc-{n}-{w}"), heads=(f"h{n}",), seen=seen)
                ),
            )
            assert sum(not isinstance(t, Exception) for t in told) == 1
            assert all(isinstance(t, StateConflict) for t in told if isinstance(t, Exception))


class TestOutbox:
    def test_messages_wait_in_order_until_they_are_sent(self, store, make):
        first = store.commit(make.change(messages=(make.message("b"), make.message("a"))))
        store.commit(make.change(first, messages=(make.message("c"),)))
        assert [m.id for m in store.outbox("inc-a")] == ["b", "a", "c"]
        store.sent(("b", "c"))
        store.sent(("b", "never there"))
        assert [m.id for m in store.outbox("inc-a")] == ["a"]
        store.sent(("a",))
        assert store.outbox("inc-a") == ()
        assert store.unsent() == ()

    def test_a_message_keeps_its_topic_body_and_attributes(self, store, make):
        sent = make.message("m", data=HOSTILE, attributes={"trace": "t", "": HOSTILE})
        store.commit(make.change(messages=(sent,)))
        assert store.outbox("inc-a") == (sent,)

    def test_a_message_that_waits_already_is_not_doubled(self, store, make):
        first = store.commit(make.change(messages=(make.message("m"),)))
        store.commit(make.change(first, messages=(make.message("m"),)))
        assert len(store.outbox("inc-a")) == 1

    def test_incidents_with_unsent_messages_come_longest_waiting_first(self, store, make):
        for name in ("inc-c", "inc-a", "inc-b"):
            store.commit(
                make.change(make.incident(name), messages=(make.message(f"{name}.1"), make.message(f"{name}.2")))
            )
        assert store.unsent() == ("inc-c", "inc-a", "inc-b")
        assert store.unsent(2) == ("inc-c", "inc-a")
        store.sent(("inc-c.1",))
        assert store.unsent(1) == ("inc-c",)
        store.sent(("inc-c.2",))
        assert store.unsent() == ("inc-a", "inc-b")


class TestDue:
    def test_the_longest_waiting_open_incidents_are_due_first(self, store, make):
        for name, seconds in [("inc-a", 30), ("inc-b", 10), ("inc-c", 20), ("inc-d", 99)]:
            store.commit(make.change(make.incident(name, due_at=make.at(seconds))))
        store.commit(make.change(make.incident("inc-e")))
        assert store.due(make.at(30)) == ("inc-b", "inc-c", "inc-a")
        assert store.due(make.at(30), limit=1) == ("inc-b",)

    def test_an_ended_incident_is_never_due(self, store, make):
        opened = store.commit(make.change(make.incident(due_at=make.at(1))))
        store.commit(make.change(opened.move(Phase.SELF_RECOVERED, now=make.at(2))))
        assert store.due(make.at(9999)) == ()

    def test_what_has_ended_is_due_when_people_are_to_be_told_again(self, store, make):
        opened = store.commit(make.change(make.incident(due_at=make.at(1))))
        ended = opened.with_(phase=Phase.ESCALATED, renotify_at=make.at(900))
        ended = store.commit(make.change(ended))
        assert (store.due(make.at(899)), store.due(make.at(900))) == ((), ("inc-a",))
        store.commit(make.change(ended.with_(renotify_at=None)))
        assert store.due(make.at(9999)) == ()

    def test_the_earlier_of_two_reasons_makes_it_due(self, store, make):
        store.commit(make.change(make.incident(due_at=make.at(20), renotify_at=make.at(10))))
        store.commit(make.change(make.incident("inc-b", due_at=make.at(5), renotify_at=make.at(10))))
        assert (store.due(make.at(5)), store.due(make.at(10))) == (("inc-b",), ("inc-b", "inc-a"))

    def test_a_new_due_time_replaces_the_old_one(self, store, make):
        opened = store.commit(make.change(make.incident(due_at=make.at(1))))
        later = store.commit(make.change(opened.with_(due_at=make.at(50))))
        assert store.due(make.at(2)) == ()
        store.commit(make.change(later.with_(due_at=None)))
        assert store.due(make.at(9999)) == ()


class TestLatestTime:
    def test_an_empty_store_has_no_time(self, store):
        assert store.latest_time() is None

    def test_it_is_the_highest_time_of_our_own_clock(self, store, make):
        first = store.commit(make.change(events=(make.event("x", 100),)))
        assert store.latest_time() == make.at(100)
        store.commit(make.change(first, events=(make.event("x", 50),)))
        assert store.latest_time() == make.at(100)
        store.commit(make.change(make.incident("inc-b", quiet_since=make.at(101.000001))))
        assert store.latest_time() == make.at(101.000001)

    def test_a_lying_source_cannot_move_it(self, store, make):
        """Neither a signal's time, nor a due time in the future, nor a plan's expiry is our clock's word."""
        future = make.at(10**8)
        store.commit(
            make.change(
                make.incident(due_at=future, healthy_at=future), signals=(make.signal(at=future),), plan=make.plan()
            )
        )
        store.accept(make.signal("k2", at=future), "inc-a")
        assert store.latest_time() == make.T0

    def test_a_refused_commit_does_not_move_it(self, store, make):
        store.commit(make.change())
        with pytest.raises(StateConflict):
            store.commit(make.change(events=(make.event("x", 500),)))
        assert store.latest_time() == make.T0


class TestListing:
    @pytest.fixture
    def listed(self, store, make):
        for n, (run, service) in enumerate([("live", "a"), ("live", "b"), ("replay-1", "a"), ("live", "a")]):
            store.commit(make.change(make.incident(f"inc-{n}", run=run, service=service, opened_at=make.at(n))))
        ended = store.load("inc-3").move(Phase.SELF_RECOVERED, now=make.at(9))
        store.commit(make.change(ended))
        return store

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ({}, "3210"),
            ({"run": "live"}, "310"),
            ({"service": "a"}, "320"),
            ({"open_only": True}, "210"),
            ({"run": "live", "service": "a"}, "30"),
            ({"run": "live", "service": "a", "open_only": True}, "0"),
            ({"limit": 2}, "32"),
            ({"run": "nobody"}, ""),
            ({"service": "' OR 1=1 --"}, ""),
        ],
        ids=str,
    )
    def test_a_query_finds_what_it_asks_for_newest_first(self, listed, query, found):
        assert [i.id for i in listed.incidents(Query(**query))] == [f"inc-{n}" for n in found]

    def test_the_next_page_begins_before_the_last_one_shown(self, listed, make):
        assert [i.id for i in listed.incidents(Query(before=make.at(2)))] == ["inc-1", "inc-0"]

    def test_times_of_opening_bound_a_query_together(self, listed, make):
        """From ``since`` on, that moment included, up to ``before``; with every other question beside it."""
        since, before = make.at(1), make.at(3)
        assert [i.id for i in listed.incidents(Query(since=since, before=before))] == ["inc-2", "inc-1"]
        assert [i.id for i in listed.incidents(Query(since=since, service="a", open_only=True))] == ["inc-2"]
        assert listed.incidents(Query(since=make.at(4))) == ()

    def test_two_opened_at_once_are_listed_in_one_order(self, store, make):
        for name in ("inc-b", "inc-c", "inc-a"):
            store.commit(make.change(make.incident(name)))
        assert [i.id for i in store.incidents(Query())] == ["inc-c", "inc-b", "inc-a"]

    def test_what_waits_for_a_person_is_found_until_somebody_takes_it(self, store, make):
        """Escalated or asked, of one service or of all, and neither hides the other."""
        rows = {"asked": Phase.ASKED, "escalated": Phase.ESCALATED, "open": Phase.OPEN, "over": Phase.RESOLVED}
        for n, (name, phase) in enumerate(rows.items()):
            store.commit(make.change(make.incident(name, phase=phase, opened_at=make.at(n))))
        store.commit(make.change(make.incident("replayed", run="replay-1", phase=Phase.ESCALATED)))

        def found(phase, **more):
            return [i.id for i in store.incidents(Query(waits_in=phase, **more))]

        assert (found(Phase.ASKED, limit=1), found(Phase.ESCALATED, limit=1)) == (["asked"], ["escalated"])
        assert found(Phase.ESCALATED, service="gemma", run="live") == ["escalated"]
        assert found(Phase.ESCALATED, service="qwen") == []
        store.commit(make.change(store.load("escalated").with_(assignee="ben")))
        assert found(Phase.ESCALATED) == []
        assert found(Phase.ASKED, open_only=True) == ["asked"]


class TestTimelineAndPlans:
    def test_the_timeline_is_in_the_order_of_the_commits(self, store, make):
        """Not in the order of the clock, which may step."""
        first = store.commit(make.change(events=(make.event("one", 9), make.event("two", 3))))
        second = store.commit(make.change(first))
        for n in range(12):
            second = store.commit(make.change(second, events=(make.event(f"step {n}", -n),)))
        assert [e.what for e in store.timeline("inc-a")] == ["one", "two", *(f"step {n}" for n in range(12))]
        assert store.timeline("inc-b") == ()

    def test_a_plan_is_kept_with_its_digest(self, store, make):
        kept = make.plan(made_at=make.T0.astimezone(timezone(timedelta(hours=2))))
        store.commit(make.change(plan=kept))
        assert store.plan("p-a-1").digest == kept.digest
        assert store.plan("p-none") is None

    def test_a_plan_is_never_changed(self, store, make):
        first = store.commit(make.change(plan=make.plan()))
        with pytest.raises(StoredOtherwise, match="'p-a-1' exists and says something else"):
            store.commit(make.change(first, plan=make.plan(why="a better idea"), events=(make.event("x"),)))
        assert store.plan("p-a-1") == make.plan()
        assert store.timeline("inc-a") == ()
        store.commit(make.change(first, plan=make.plan()))


def everything(store):
    """All that can be seen of a store with a few incidents."""
    incidents = store.incidents(Query())
    return (
        incidents,
        [(store.signals(i.id), store.outbox(i.id), store.timeline(i.id)) for i in incidents],
        [store.head(k) for k in ("late",)],
        [store.knows(k) for k in ("late", "k8")],
        store.plan("p-late"),
        store.latest_time(),
        store.unsent(),
    )
