"""The page of changes: what went through the agent, and what did not."""

import re

import pytest

from agent.core.change.config_drift import ConfigChange, ServiceRecord
from agent.core.decision.decision import Choice
from agent.core.plan.action import Difference
from agent.core.service.services import parse_services


def text(browser, query=""):
    response = browser.get(f"/changes{query}")
    assert response.status_code == 200
    return response.get_data(as_text=True)


def test_an_empty_list_names_a_command(browser):
    assert "sre-agent change SERVICE --set-flag" in text(browser)


def test_requests_and_remedies_are_listed_and_incidents_without_a_change_are_not(stage, browser):
    stage.open("quiet")
    stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting("gemma-a"), Choice.APPROVE))))
    stage.clock.step(60)
    stage.requested("gemma-b")
    page = text(browser)
    assert re.findall(r"<b>([\w-]+)</b>", page) == ["gemma-b", "gemma-a"]
    assert "asked for by ada" in page
    assert "approved by maria" in page
    assert "recovered" in page
    assert re.findall(r"<b>([\w-]+)</b>", text(browser, "?service=gemma-a")) == ["gemma-a"]


def test_what_was_changed_without_the_agent_stands_below(stage, browser_of):
    row = {"name": "gemma", "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}
    change = ConfigChange(
        at=stage.clock.now(),
        by="eve@example.com",
        rows=(Difference(path="flag --max-num-seqs", before="8", after="32"),),
    )
    record = ServiceRecord(
        service="gemma", state={}, changes=(change, change.with_(ours=True)), seen_at=stage.clock.now()
    )
    stage.world.service_records.keep_service_record(record)
    from dataclasses import replace

    world = replace(stage.world, rules=replace(stage.world.rules, services=parse_services({"service": [row]})))
    page = text(browser_of(world))
    assert page.count("by eve@example.com") + page.count("eve@") >= 1
    assert page.count("Changed without the agent") == 1
    assert "an approved change of the agent" not in page


@pytest.mark.parametrize("before", ["x", "2026-01-01T00:00:00"])
def test_a_strange_page_is_refused_in_words(browser, before):
    assert browser.get(f"/changes?before={before}").status_code == 400
