"""Recorded and documented payloads by name; INDEX.json beside them says what of each is published."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "data"


@pytest.fixture
def sample():
    """Return a function that loads a fresh copy of a sample."""

    def load(name):
        return json.loads((DATA / "samples" / f"{name}.json").read_text())

    return load
