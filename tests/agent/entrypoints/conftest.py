"""What stands beside the tests: tokens as Google signs them, and the scenes of the console."""

import importlib.util
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]


def _module(name, path):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def tokens():
    return _module("google_tokens", TESTS / "google_tokens.py")


@pytest.fixture(scope="session")
def theatre():
    """The scenes of the console: a world in memory with plans that wait for an answer."""
    return _module("console_scenes", TESTS / "agent" / "entrypoints" / "console" / "scenes.py")


@pytest.fixture
def key_server(tokens):
    server = tokens.KeyServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def desks():
    """The module that makes a desk, and serves it."""
    return _module("deciding_desk", TESTS / "agent" / "entrypoints" / "desk.py")


@pytest.fixture
def desk(desks, theatre, tokens):
    return desks.Desk(theatre, tokens)


@pytest.fixture
def served(desks, desk, key_server):
    """The deciding function of that desk on loopback."""
    made = desks.Served(desk, key_server)
    yield made
    made.close()
