"""What stands beside the tests: tokens as Google signs them, and the scenes of the console."""

from pathlib import Path

import pytest

from tests import google_tokens
from tests.agent.entrypoints import desk as deciding_desk
from tests.agent.entrypoints.console import scenes

TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tokens():
    return google_tokens


@pytest.fixture(scope="session")
def theatre():
    """The scenes of the console: a world in memory with plans that wait for an answer."""
    return scenes


@pytest.fixture
def key_server(tokens):
    server = tokens.KeyServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def desks():
    """The module that makes a desk, and serves it."""
    return deciding_desk


@pytest.fixture
def desk(desks, theatre, tokens):
    return desks.Desk(theatre, tokens)


@pytest.fixture
def served(desks, desk, key_server):
    """The deciding function of that desk on loopback."""
    made = desks.Served(desk, key_server)
    yield made
    made.close()
