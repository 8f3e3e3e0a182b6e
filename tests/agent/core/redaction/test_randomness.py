"""What looks made by chance, and what only names something."""

import pytest

from agent.core.redaction.randomness import is_digest, looks_random


@pytest.mark.parametrize(
    "value", ["x9K2m7Qv4Rt8Lp3W", "aGVsbG8gd29ybGQgMTIz", "k3j5h2g8f7d6s1a9", "qwrtpsdfghjklzxcvb"]
)
def test_chance_is_seen(value):
    assert looks_random(value)


@pytest.mark.parametrize(
    "value",
    [
        *[
            "Gemma4ForConditionalGeneration",
            "kFp8StaticTensorSym",
            "kNvfp4Dynamic",
            "model.layers.0.mlp.experts.w13_weight",
            "2026-11-21T10",
            "float32-bf16",
            "/srv/models/gemma-4-E4B-it",
        ],
        *[
            "5f0b02c75b57c5855da9ae460ce51323ea669d8a",
            "123e4567-e89b-12d3-a456-426614174000",
            "vllm-7d9f8b6c5d-x2k4p",
            "0x7f8a9b0c1d2e",
            "",
        ],
    ],
)
def test_names_are_not_chance(value):
    assert not looks_random(value)


def test_digest_has_a_known_length():
    assert is_digest("ab" * 20)
    assert not is_digest("ab" * 9)
