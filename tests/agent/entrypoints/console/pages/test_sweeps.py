"""The page of a load measurement: read with its plan, answered from our own form by whoever may."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel
from agent.core.decision.rule import Mode, Rule
from agent.ports.stage_context import Owner
from agent.stages.decide_sweep import ask_sweep, asked_sweep
from tests.agent.stages.conftest import SERVICE
from tests.agent.stages.test_decide_sweep import a_sweep


@pytest.fixture
def asked(stage):
    """One that the operator of this machine asked for on its command line."""
    sweep = a_sweep(asker="ada", verified=False, made_at=stage.world.clock.now())
    ask_sweep(stage.world, sweep)
    return sweep.request


def test_it_is_listed_read_and_approved(stage, browser, asked):
    """On one machine by its operator, as a change; then the page says so and offers nothing more."""
    assert "/sweeps" in browser.get("/").get_data(as_text=True)
    listed = browser.get("/sweeps").get_data(as_text=True)
    assert f'href="/sweeps/{asked.id}"' in listed
    page = browser.get(f"/sweeps/{asked.id}").get_data(as_text=True)
    assert "at most 2 cells, 20 minutes and 1 USD of load" in page
    assert "at most 2 cells, 20 minutes and 1 USD.</p>" in page
    assert "<script" not in page
    done = browser.post(f"/sweeps/{asked.id}/decision", browser.fields(f"/sweeps/{asked.id}")["approve"])
    assert (done.status_code, done.headers["Location"]) == (303, f"/sweeps/{asked.id}")
    found = asked_sweep(stage.world, asked.id).grant
    assert (found.approver, found.channel) == ("ada", Channel.CONSOLE)
    after = browser.get(f"/sweeps/{asked.id}").get_data(as_text=True)
    assert "ada approved it" in after
    assert "<form" not in after


def test_a_no_has_its_reason_escaped(browser, asked):
    fields = browser.fields(f"/sweeps/{asked.id}")["reject"] | {"why": "<b>busy</b>"}
    assert browser.post(f"/sweeps/{asked.id}/decision", fields).status_code == 303
    page = browser.get(f"/sweeps/{asked.id}").get_data(as_text=True)
    assert "ada rejected it: &lt;b&gt;busy&lt;/b&gt;" in page


def test_one_approval_of_two_is_shown_and_somebody_else_is_waited_for(stage, browser_of, asked):
    rule = Rule(services=(SERVICE,), kinds=("sweep",), mode=Mode.PERSON, approvals=2)
    policy = stage.world.rules.policy.with_(rules=(rule,))
    browser = browser_of(replace(stage.world, rules=replace(stage.world.rules, policy=policy)))
    assert "0 of 2 approvals." in browser.get(f"/sweeps/{asked.id}").get_data(as_text=True)
    browser.post(f"/sweeps/{asked.id}/decision", browser.fields(f"/sweeps/{asked.id}")["approve"])
    page = browser.get(f"/sweeps/{asked.id}").get_data(as_text=True)
    assert "1 of 2 approvals: ada." in page
    assert "Needs approval" in page


@pytest.mark.parametrize(
    ("changes", "headers", "status"),
    [
        ({}, {"Origin": "https://evil.example"}, 403),
        ({}, {"Sec-Fetch-Site": "cross-site"}, 403),
        ({"token": "0" * 64}, {}, 403),
        ({"answer": "maybe"}, {}, 403),
    ],
    ids=["origin", "site", "token", "answer"],
)
def test_what_is_not_our_form_answers_nothing(stage, browser, asked, changes, headers, status):
    fields = browser.fields(f"/sweeps/{asked.id}")["approve"] | changes
    assert browser.post(f"/sweeps/{asked.id}/decision", fields, **headers).status_code == status
    assert asked_sweep(stage.world, asked.id).waits


def test_a_token_is_good_for_one_sweep(stage, browser, asked):
    other = a_sweep(asker="ada", verified=False, max_minutes=33, made_at=stage.world.clock.now())
    ask_sweep(stage.world, other)
    fields = browser.fields(f"/sweeps/{asked.id}")["approve"]
    assert browser.post(f"/sweeps/{other.request.id}/decision", fields).status_code == 403


def test_what_an_ai_client_asked_for_is_not_approved_by_its_own_name(stage, browser):
    sweep = a_sweep(asker="ada", verified=False, channel=Channel.MCP, made_at=stage.world.clock.now())
    ask_sweep(stage.world, sweep)
    page = browser.get(f"/sweeps/{sweep.request.id}").get_data(as_text=True)
    assert "who asks does not approve" in page
    assert set(browser.fields(f"/sweeps/{sweep.request.id}")) == {"reject"}


def test_an_unknown_one_is_not_found_and_the_cloud_says_where_to_look(stage, browser, browser_of):
    assert browser.get("/sweeps/sweep-000000000000").status_code == 404
    away = browser_of(replace(stage.world, owner=Owner.TICK))
    assert "Sweeps are answered where they run" in away.get("/sweeps").get_data(as_text=True)
    assert away.get("/sweeps/sweep-000000000000").status_code == 404
