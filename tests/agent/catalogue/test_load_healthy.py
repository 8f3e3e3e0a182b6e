"""Lines of healthy servers are data with a source."""

import pytest

from agent.catalogue.load_healthy import load_healthy
from agent.errors import SettingsRejected


def test_there_are_lines_of_a_start_and_of_serving():
    """Both halves of a healthy life are there."""
    lines = load_healthy()
    assert any("Application startup complete" in line for line in lines)
    assert any("Avg generation throughput" in line for line in lines)


def test_a_file_without_lines_or_source_is_refused(tmp_path):
    """An empty list would let every text be named."""
    for text in ("lines = []\nsource = 'x'", "lines = ['a']"):
        path = tmp_path / "healthy.toml"
        path.write_text(text)
        with pytest.raises(SettingsRejected):
            load_healthy(path)
