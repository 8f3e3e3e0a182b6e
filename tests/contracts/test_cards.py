"""What every keeper of message references promises."""


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
