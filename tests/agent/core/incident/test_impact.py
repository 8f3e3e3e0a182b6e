"""Impact: what the platform said last decides; the diagnosis alone where it was not asked; doubt is never harmless."""

from datetime import UTC, datetime

import pytest

from agent.core.decision.decision import Choice
from agent.core.incident.impact import SEVERITIES, Impact, Severity, impact_of, severity_of
from agent.core.service.serving import Live, Serves, ServingConfig
from tests.agent.entrypoints.console import scenes

AT = datetime(2026, 6, 8, 14, 31, tzinfo=UTC)


@pytest.fixture
def stage():
    return scenes.a_stage()


def diagnosed(stage, class_, *, platform="cloud_run", **more):
    diagnosis = scenes.probe_diagnosis(AT, class_=class_, **more)
    return stage.diagnosed(stage.open(), diagnosis).with_(platform=platform)


@pytest.mark.parametrize(
    ("serves", "impact"),
    [
        (Serves(at=AT, ready=False), Impact.NOTHING_SERVES),
        (Serves(at=AT, ready=False, older="v1"), Impact.OLDER_REVISION_SERVES),
        (Serves(at=AT, ready=None, older="v1"), Impact.OLDER_REVISION_SERVES),
        (Serves(at=AT, ready=True), Impact.DEGRADED),
        (Serves(at=AT, ready=None), Impact.NOT_KNOWN),
        (None, Impact.NOT_KNOWN),
    ],
)
def test_what_the_platform_said_decides(stage, serves, impact):
    assert impact_of(diagnosed(stage, "startup_probe_failed").with_(serves=serves)) is impact


def test_a_service_of_one_server_has_no_older_revision_that_serves(stage):
    """What the supervisor remembers as ready has ended."""
    incident = diagnosed(stage, "startup_probe_failed", platform="host")
    assert impact_of(incident.with_(serves=Serves(at=AT, ready=False, older="v1"))) is Impact.NOTHING_SERVES


@pytest.mark.parametrize(("alone", "impact"), [(True, Impact.NOTHING_SERVES), (False, Impact.DEGRADED)])
@pytest.mark.parametrize("class_", ["engine_hang", "engine_dead"])
def test_a_health_check_does_not_hide_a_dead_engine_that_is_alone(stage, class_, alone, impact):
    incident = diagnosed(stage, class_).with_(serves=Serves(at=AT, ready=True, alone=alone))
    assert impact_of(incident) is impact


@pytest.mark.parametrize(
    ("class_", "platform", "impact"),
    [
        ("context_length_exceeded", "cloud_run", Impact.DEGRADED),
        ("queue_saturation", "host", Impact.DEGRADED),
        ("gpu_oom_weights", "host", Impact.NOTHING_SERVES),
        ("gpu_oom_weights", "kubernetes", Impact.NOT_KNOWN),
        ("unknown", "host", Impact.NOT_KNOWN),
    ],
)
def test_without_a_look_the_diagnosis_decides(stage, class_, platform, impact):
    assert impact_of(diagnosed(stage, class_, platform=platform)) is impact


def test_a_request_breaks_nothing_and_an_undiagnosed_incident_is_an_error(stage):
    assert severity_of(stage.requested()) is Severity.INFO
    assert severity_of(stage.open()) is Severity.ERROR


def test_records_from_before_it_was_kept_are_read_from_the_last_look_before_the_change(stage):
    incident = stage.applying(stage.said(stage.waiting(), Choice.APPROVE))
    assert impact_of(incident) is Impact.NOTHING_SERVES
    older = incident.execution.with_(served_by_older="v1")
    assert impact_of(incident.with_(execution=older)) is Impact.OLDER_REVISION_SERVES


def test_every_impact_has_a_severity():
    assert set(SEVERITIES) == set(Impact)


@pytest.mark.parametrize(
    ("live", "serves"),
    [
        ({"ready": False, "latest_ready_revision": "a"}, Serves(at=AT, ready=False, older="a")),
        ({"ready": None, "latest_ready_revision": "a"}, Serves(at=AT, ready=None, older="a")),
        ({"ready": True, "latest_ready_revision": "b"}, Serves(at=AT, ready=True)),
        ({"ready": False}, Serves(at=AT, ready=False)),
        (
            {"ready": True, "latest_ready_revision": "a", "config": ServingConfig(max_instances=0)},
            Serves(at=AT, ready=False),
        ),
        (
            {"ready": True, "latest_ready_revision": "b", "config": ServingConfig(max_instances=1)},
            Serves(at=AT, ready=True, alone=True),
        ),
    ],
    ids=["older serves", "older serves while the new one starts", "serves", "nothing", "stopped", "alone"],
)
def test_a_description_says_what_serves(live, serves):
    named = {"service": "s", "platform": "cloud_run", "uid": "u", "generation": 1, "etag": "e", "template": "{}"}
    defaults = {"config": ServingConfig(), "latest_created_revision": "b"}
    assert Live.model_validate(named | defaults | live).serves(AT) == serves
