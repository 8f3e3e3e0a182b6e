"""The values of the contracts, for the tests of the buses."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def make():
    """Values to store and send."""
    path = Path(__file__).resolve().parents[3] / "contracts" / "values.py"
    spec = importlib.util.spec_from_file_location("contract_values", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
