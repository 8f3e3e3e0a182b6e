"""The values of the contracts, for the tests of single stores."""

import pytest

from tests.contracts import values


@pytest.fixture(scope="session")
def make():
    """Values to store and send."""
    return values
