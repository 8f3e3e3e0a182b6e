"""Servers that misbehave, and a model port with short patience before them."""

from pathlib import Path

import openai.resources.chat.chat  # noqa: F401 - imported late; a question's fraction of a second is not for that
import pytest

from agent.adapters.model.endpoint import parse_endpoint
from agent.adapters.model.openai_chat import OpenAiChat
from agent.ports.model import Question
from tests import model_server

TESTS = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def servers():
    return model_server


class Ticks:
    """Seconds that pass only when told."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def ticks():
    return Ticks()


@pytest.fixture
def chat(ticks):
    """A model over the given base URLs that waits a fraction of a second where the real one waits twenty."""

    def make(*urls, headers=lambda _: {}, first_token_s=0.25):
        endpoints = [parse_endpoint(url) for url in urls]
        return OpenAiChat(endpoints, headers=headers, clock=ticks, sleep=lambda _: None, first_token_s=first_token_s)

    return make


@pytest.fixture
def question():
    def make(**changes):
        asked = {
            "system": "Answer by the schema.",
            "user": "What broke?",
            "answer_schema": '{"type":"object"}',
            "prompt": "diagnose.v1 000000000000",
            "patient": "gemma",
            "may_wake": True,
            "limit_s": 20,
        }
        return Question(**(asked | changes))

    return make
