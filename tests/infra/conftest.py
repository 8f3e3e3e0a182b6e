"""What the tests of the cloud installation share: the repository, its parsed Terraform, filters, and outside data."""

import importlib.util
import os
from pathlib import Path

import pytest
from tests import outside

ROOT = Path(__file__).resolve().parents[2]


def module(name):
    """Load a plain module that stands beside this file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def shared():
    """The folder of third-party text, read in place."""
    return outside.shared("data")


@pytest.fixture(scope="session")
def query():
    """The evaluator of the Logging query language."""
    return module("logging_query").Query


@pytest.fixture(scope="session")
def missing():
    return outside.absent
