"""The incident page: what broke, how bad it is, whose it is, and how long it took."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Choice
from agent.core.service.services import Service, Services
from agent.core.service.serving import Serves
from tests.agent.entrypoints.console.scenes import another_world

WATCHED = Service(
    name="gemma4-26b-qat-l4",
    platform="cloud_run",
    project="example-project",
    location="us-east4",
    model="google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    accelerator="nvidia-l4",
    owner="slack:#llm",
    rotation="LLM platform, weekly",
    runbook="https://wiki.example.com/gemma?a=1&b=2",
)


@pytest.fixture
def watched(stage, browser_of):
    rules = replace(stage.world.rules, services=Services(services=(WATCHED,)))
    return browser_of(another_world(stage, rules=rules))


def text(browser, incident):
    response = browser.get(f"/incidents/{incident.id}")
    assert response.status_code == 200
    return response.get_data(as_text=True)


def test_the_title_is_the_headline(stage, browser):
    shown = text(browser, stage.waiting())
    assert "<title>gemma4-26b-qat-l4: startup probe failed before the server was ready; one fix is ready" in shown


def test_severity_owner_rotation_and_runbook_stand_at_the_top(stage, watched):
    waiting = stage.waiting(serves=Serves(at=stage.clock.now(), ready=False, older="gemma-00004"))
    shown = text(watched, waiting)
    assert "Severity <strong>Warning</strong>: an older revision serves (gemma-00004)." in shown
    assert "LLM platform, weekly" in shown
    assert 'href="https://wiki.example.com/gemma?a=1&amp;b=2"' in shown


def test_what_is_not_watched_has_no_owner(stage, browser):
    assert "Owner" not in text(browser, stage.waiting())


def test_how_long_it_took_stands_above_the_timeline(stage, browser):
    resolved = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE))))
    shown = text(browser, resolved)
    for label in ("Time to detect", "Time to diagnose", "Time to decide", "Time to recover"):
        assert f"{label} <strong>" in shown
