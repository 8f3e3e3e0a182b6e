"""What was read from a log is said with its unit behind the number, as people write it."""

import pytest

from agent.core.text.field_labels import field_label, field_text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("load_seconds", "load (s)"),
        ("free_gib", "free (GiB)"),
        ("s", "s"),
        ("decode_tokens_per_s", "decode speed (tokens/s)"),
        ("tokens_per_s", "speed (tokens/s)"),
        ("max_model_len", "max model len"),
        ("", ""),
    ],
)
def test_field_names_show_their_unit(name, said):
    assert field_label(name) == said


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("weights_load_s", 664.24, "weights load 664.24 s"),
        ("tried_gib", 2.0, "tried 2 GiB"),
        ("weights_gib", 15.7255, "weights 15.73 GiB"),
        ("graphs_gib", 0.0042, "graphs 0.0042 GiB"),
        ("free_gib", 0.0, "free 0 GiB"),
        ("decode_tokens_per_s", 61.67, "decode speed 61.67 tokens/s"),
        ("process_bytes", 21_268_922_368, "process 21268922368 bytes"),
        ("max_model_len", 131072, "max model len 131072"),
        ("probe_path", "/health", "probe path /health"),
    ],
)
def test_a_field_is_said_with_its_value(name, value, said):
    assert field_text(name, value) == said
