"""Shared by the tests of the prediction: the bundled catalogue, and a short way to ask."""

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.predict import predict
from tests.agent.fit import observed as asked_as_questions
from tests.outside import shared


@pytest.fixture(scope="session")
def catalogue():
    return load_fit_catalogue()


@pytest.fixture(scope="session")
def ask(catalogue):
    """Names go in, that of a draft model in the flags too, and a prediction comes out."""

    def asked(model, accelerator, flags="", *, vllm=None, count=None, **more):
        parsed = parse_flags(flags)
        if (speculative := parsed.speculative_config) is not None:
            more.setdefault("draft", catalogue.models.find_draft(speculative.model))
        return predict(
            catalogue.models.find(model),
            catalogue.accelerator(accelerator),
            count or parsed.world,
            parsed,
            catalogue.rules(vllm),
            **more,
        )

    return asked


@pytest.fixture(scope="session")
def shared_data():
    """The folder of recorded data beside the project; absent on a stranger's machine."""
    return shared("data")


@pytest.fixture(scope="session")
def observed(shared_data):
    """The module that asks recorded start-ups as questions."""
    return asked_as_questions


@pytest.fixture(scope="session")
def compared(observed, catalogue):
    return [found for row in observed.rows() if (found := observed.compare(row, catalogue)) is not None]
