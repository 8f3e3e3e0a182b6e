"""What every keeper of message references promises."""

import threading


def claimed(cards, holder, clock, *, incident="inc-a", reference=None, for_s=120):
    return cards.claim_card(incident, "slack", holder, reference=reference, now=clock.now(), for_s=for_s)


def test_the_last_reference_kept_for_a_notifier_stands(open_cards):
    cards = open_cards()
    assert cards.card("inc-a", "slack") is None
    cards.keep_card("inc-a", "slack", "C1:17.1")
    cards.keep_card("inc-a", "webhook", "w")
    cards.keep_card("inc-b", "slack", "C1:18.0")
    cards.keep_card("inc-a", "slack", "C1:19.0")
    again = open_cards()
    kept = {(i, n): again.card(i, n) for i in ("inc-a", "inc-b") for n in ("slack", "webhook")}
    assert kept == {
        ("inc-a", "slack"): "C1:19.0",
        ("inc-a", "webhook"): "w",
        ("inc-b", "slack"): "C1:18.0",
        ("inc-b", "webhook"): None,
    }


def test_one_claims_the_first_message_and_others_wait(open_cards, clock):
    cards, others = open_cards(), open_cards()
    assert claimed(cards, "a", clock)
    assert not claimed(others, "b", clock)
    assert claimed(cards, "a", clock), "asked again it is still theirs: the first answer may have been lost"
    assert claimed(others, "b", clock, incident="inc-b")
    assert others.card("inc-a", "slack") is None, "a claim is no message"


def test_a_change_of_what_stands_is_claimed_by_one_from_where_they_saw_it_stand(open_cards, clock):
    """The other one has to look again: what was to be said may be said by then."""
    cards, others = open_cards(), open_cards()
    cards.keep_card("inc-a", "slack", "C1:17.1")
    assert claimed(cards, "a", clock, reference="C1:17.1")
    assert not claimed(others, "b", clock, reference="C1:17.1")
    assert others.card("inc-a", "slack") == "C1:17.1", "a claim takes no reference away"
    cards.keep_card("inc-a", "slack", "C1:17.2")
    assert not claimed(others, "b", clock, reference="C1:17.1")
    assert claimed(others, "b", clock, reference="C1:17.2")
    others.release_card("inc-a", "slack", "b")
    assert cards.card("inc-a", "slack") == "C1:17.2"
    assert claimed(cards, "a", clock, reference="C1:17.2")


def test_what_stands_is_never_claimed_as_a_first_message(open_cards, clock):
    cards, others = open_cards(), open_cards()
    assert claimed(cards, "a", clock)
    cards.keep_card("inc-a", "slack", "C1:17.1")
    clock.go(3600)
    assert not claimed(others, "b", clock)
    assert not claimed(cards, "a", clock)
    assert others.card("inc-a", "slack") == "C1:17.1"


def test_a_dead_claim_is_taken_over_when_its_time_is_over_and_not_before(open_cards, clock):
    cards, others = open_cards(), open_cards()
    assert claimed(cards, "dead", clock)
    clock.go(119)
    assert not claimed(others, "b", clock)
    clock.go(1)
    assert claimed(others, "b", clock)
    assert not claimed(cards, "c", clock), "its time began anew"
    others.keep_card("inc-a", "slack", "C1:18.0")
    assert cards.card("inc-a", "slack") == "C1:18.0"


def test_a_claim_given_back_is_free_at_once_and_only_its_holder_gives_it_back(open_cards, clock):
    cards, others = open_cards(), open_cards()
    cards.release_card("inc-a", "slack", "a")
    assert claimed(cards, "a", clock)
    others.release_card("inc-a", "slack", "b")
    assert not claimed(others, "b", clock)
    cards.release_card("inc-a", "slack", "a")
    assert claimed(others, "b", clock)
    cards.release_card("inc-a", "slack", "a")
    assert not claimed(cards, "a", clock)
    others.keep_card("inc-a", "slack", "C1:17.1")
    others.release_card("inc-a", "slack", "b")
    assert cards.card("inc-a", "slack") == "C1:17.1"


def test_of_many_who_claim_at_once_one_has_it(open_cards, clock):
    handles = [open_cards() for _ in range(2)]
    for number in range(3):
        begin, won = threading.Barrier(8), []

        def claim(holder, begin=begin, won=won, incident=f"inc-{number}"):
            begin.wait()
            if claimed(handles[holder % 2], f"h{holder}", clock, incident=incident):
                won.append(holder)

        threads = [threading.Thread(target=claim, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
