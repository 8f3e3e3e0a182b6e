"""What is read once: the projects of an installation."""

from pathlib import Path

import pytest

from agent.app.catalogues import log_project_of, project_of
from agent.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


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
