"""What the tests of the cloud installation share: the repository, its parsed Terraform, filters, and outside data."""

from pathlib import Path

import pytest

from tests import outside
from tests.infra.logging_query import Query

ROOT = Path(__file__).resolve().parents[2]


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
    return Query


@pytest.fixture(scope="session")
def missing():
    return outside.absent
