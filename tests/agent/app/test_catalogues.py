"""What is read once: redaction remembers harmless lines alone, and answers as the redactor does."""

from pathlib import Path

import pytest

from agent.app import catalogues
from agent.app.catalogues import log_project_of, project_of, redact, redactor
from agent.failures.match.matcher import MEMO_CHARS, MEMO_TEXTS
from agent.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
SECRET = "Authorization: Bearer ya29." + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"


@pytest.fixture(autouse=True)
def forgetful():
    catalogues._harmless.cache_clear()


@pytest.mark.parametrize("text", ["Model loading took 19.8 GiB", SECRET, "", "\ud800", "x" * (MEMO_CHARS + 1) + SECRET])
def test_a_text_is_answered_as_the_redactor_answers_it_however_often(text):
    assert [redact(text) for _ in range(3)] == [redactor().redact(text).text] * 3


def test_a_text_with_a_secret_is_never_remembered():
    for _ in range(2):
        assert SECRET not in redact(f"it said {SECRET}")
    assert catalogues._harmless.cache_info().currsize == 0


def test_what_is_remembered_is_bounded():
    for number in range(MEMO_TEXTS + 10):
        redact(f"line {number}")
    redact("x" * (MEMO_CHARS + 1))
    assert catalogues._harmless.cache_info().currsize == MEMO_TEXTS


@pytest.mark.parametrize(
    ("named", "project"),
    [
        ({}, None),
        ({"store": "firestore:state", "bus": "pubsub:bus", "platform": "cloud_run:platform"}, "state"),
        ({"bus": "pubsub:bus", "platform": "cloud_run:platform"}, "bus"),
        ({"platform": "cloud_run:platform"}, "platform"),
    ],
)
def test_the_project_is_that_of_the_store_then_of_the_bus_then_of_the_platform(named, project):
    assert project_of(Settings(**({"platform": "none"} | named))) == project


@pytest.mark.parametrize(
    ("named", "watched", "project"),
    [
        ({"store": "firestore:state", "platform": "cloud_run:serving"}, None, "serving"),
        ({"store": "firestore:state", "platform": "none"}, "infra/services.example.toml", "example-project"),
        ({"store": "firestore:state", "platform": "none"}, None, "state"),
        ({"platform": "none"}, None, None),
    ],
    ids=["of the platform", "of a watched service", "nothing else is known", "nothing is known"],
)
def test_a_replay_looks_where_the_servers_run_and_not_where_the_store_is(named, watched, project):
    services = ROOT / watched if watched is not None else None
    assert log_project_of(Settings(**named, services=services)) == project
