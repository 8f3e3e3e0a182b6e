"""What a change takes away, as shares and in one line."""

import pytest

from agent.fit.advice.tradeoff import Tradeoff


def test_the_line_of_the_design():
    """Images, speed, price; a price that does not change is said once."""
    found = Tradeoff(
        modalities=("images",), modality_share=0.5, tokens_per_s=(36.2, 5.04), usd_per_h=(1.4209, 1.4209),
        context_tokens=(8192, 8192),
    )  # fmt: skip
    assert found.line == "loses images; 36 -> 5.0 tokens/s; 1.42 USD/h"
    assert found.losses[0] == 0.86


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (Tradeoff(), "loses nothing"),
        (Tradeoff(tokens_per_s=(5.0, 36.0), context_tokens=(1, 2), users=(1, 4)), "loses nothing"),
        (Tradeoff(context_tokens=(131072, 32640)), "131,072 -> 32,640 tokens of context"),
        (Tradeoff(users=(8, 2)), "8 -> 2 full-length requests at once"),
        (Tradeoff(model=("31B", "26B-A4B"), model_share=0.2), "26B-A4B instead of 31B"),
        (Tradeoff(usd_per_h=(1.0465, 1.0512)), "loses nothing; 1.0465 -> 1.0512 USD/h"),
        (Tradeoff(usd_per_h=(1.0465, 1.0712)), "loses nothing; 1.05 -> 1.07 USD/h"),
        (Tradeoff(usd_per_h=(1.42, None)), "loses nothing; 1.42 -> unknown USD/h"),
        (Tradeoff(tokens_per_s=(None, 5.0), context_tokens=(None, 5)), "loses nothing"),
    ],
)
def test_only_what_is_less_is_said(found, line):
    """More, and what nobody knows, is no loss; a price is always said where one is known."""
    assert found.line == line


def test_more_requests_than_the_cache_holds_do_not_lose_nothing():
    """They wait or are preempted; nothing is said where no more are let in, or the cache holds them."""
    more = Tradeoff(let_in=(4, 64), held=3, usd_per_h=(1.42, 1.42))
    waits = "64 requests at once are let in, the KV cache holds 3 of full length: the others wait"
    assert more.line == f"{waits}; 1.42 USD/h"
    assert Tradeoff(let_in=(4, 64), held=3, context_tokens=(8192, 4096)).line.endswith(f"tokens of context; {waits}")
    for calm in ((64, 64), (64, 4), (None, None)):
        assert Tradeoff(let_in=calm, held=3).line == "loses nothing"
    assert Tradeoff(let_in=(4, 64), held=70).line == "loses nothing"
    assert Tradeoff(let_in=(4, 64)).line == "loses nothing"
