"""The compiled catalogue, once per run."""

from pathlib import Path

import pytest

from agent.catalogue.load_failures import FailureCatalogue, load_failures
from agent.failures.match.matcher import Matcher, compile_catalogue


@pytest.fixture(scope="session")
def catalogue() -> FailureCatalogue:
    return load_failures()


@pytest.fixture(scope="session")
def matcher(catalogue: FailureCatalogue) -> Matcher:
    return compile_catalogue(catalogue.signatures, catalogue.words)


@pytest.fixture(scope="session")
def samples() -> Path:
    return Path(__file__).parents[2] / "data" / "samples"
