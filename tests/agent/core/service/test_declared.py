"""The declared state as services.toml says it."""

import pytest

from agent.core.service.declared import Declared
from agent.core.service.services import parse_services
from agent.errors import SettingsRejected

BASE = """
[[service]]
name = "gemma"
platform = "host"
model = "google/gemma"
accelerator = "cpu"
owner = "console"
[service.declared]
"""


def test_a_declared_block_is_read() -> None:
    """Flags are one line as a shell takes it."""
    text = f"""{BASE}flags = "--limit-mm-per-prompt '{{\\"image\\": 0}}' --enforce-eager"\nmax_instances = 2"""
    declared = parse_services(text).services[0].declared
    assert declared is not None
    assert declared.flag_words == ("--limit-mm-per-prompt", '{"image": 0}', "--enforce-eager")
    assert declared.max_instances == 2
    assert Declared().flag_words is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('flags = "--a \'b"', "as a shell takes it"),
        ('flags = "serve model --x 1"', "want flags alone"),
        ("max_instances = -1", "max_instances"),
        ("replicas = 2", "unknown key 'declared.replicas'"),
    ],
)
def test_a_mistake_is_told_when_the_file_is_read(row: str, says: str) -> None:
    """Nobody compares with half a declaration."""
    with pytest.raises(SettingsRejected, match=says):
        parse_services(BASE + row)
