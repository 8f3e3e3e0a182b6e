"""What a change takes away, as shares and in one line."""

import pytest

from agent.fit.advice.tradeoff import Tradeoff


def test_the_line_of_the_design():
    """Images, speed, price."""
    found = Tradeoff(
        modalities=("images",), modality_share=0.5, tokens_per_s=(36.2, 5.04), usd_per_h=(1.4209, 1.4209),
        context_tokens=(8192, 8192),
    )  # fmt: skip
    assert found.line == "loses images; 36 -> 5.0 tokens/s; 1.42 -> 1.42 USD/h"
    assert found.losses[0] == 0.86


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (Tradeoff(), "loses nothing"),
        (Tradeoff(tokens_per_s=(5.0, 36.0), context_tokens=(1, 2), users=(1, 4)), "loses nothing"),
        (Tradeoff(context_tokens=(131072, 32640)), "131,072 -> 32,640 tokens of context"),
        (Tradeoff(users=(8, 2)), "8 -> 2 full-length requests at once"),
        (Tradeoff(model=("31B", "26B-A4B"), model_share=0.2), "26B-A4B instead of 31B"),
        (Tradeoff(usd_per_h=(1.42, None)), "loses nothing; 1.42 -> unknown USD/h"),
        (Tradeoff(tokens_per_s=(None, 5.0), context_tokens=(None, 5)), "loses nothing"),
    ],
)
def test_only_what_is_less_is_said(found, line):
    """More, and what nobody knows, is no loss; a price is always said where one is known."""
    assert found.line == line
