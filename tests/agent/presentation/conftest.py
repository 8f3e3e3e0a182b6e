"""Incidents in every state, from the scenes of the console's tests."""

import pytest

from tests.agent.entrypoints.console import scenes as theatre
from tests.agent.fit.conftest import ask, catalogue

__all__ = ["ask", "catalogue"]


@pytest.fixture(scope="session")
def scenes():
    return theatre


@pytest.fixture
def stage(scenes):
    return scenes.a_stage()
