"""The compiled catalogue, once per run."""

import os
from pathlib import Path

import pytest

from agent.catalogue.load_failures import FailureCatalogue, load_failures
from agent.failures.match import Matcher, compile_catalogue


@pytest.fixture(scope="session")
def catalogue() -> FailureCatalogue:
    return load_failures()


@pytest.fixture(scope="session")
def matcher(catalogue: FailureCatalogue) -> Matcher:
    return compile_catalogue(catalogue.signatures)


@pytest.fixture(scope="session")
def shared_samples() -> Path:
    folder = Path(__file__).parents[4] / "shared" / "data" / "samples"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{folder} is absent")
        pytest.skip("the shared samples stand outside the project and are absent here")
    return folder
