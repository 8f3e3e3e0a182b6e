"""The tester of the policy page says what the function that decides says."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.settings import Settings

POLICY = Policy(
    rules=(
        Rule(services=("frozen-*",), kinds=("restart", "set_*"), mode=Mode.NEVER),
        Rule(services=("gemma4-*",), kinds=("restart",), mode=Mode.AUTOMATIC),
        Rule(services=("gemma4-*",), kinds=("set_flag",), mode=Mode.PERSON),
    ),
    approvers=(Approver(name="Ada", email="ada@example.com", services=("gemma4-*",)),),
    flags={"max-model-len": "whole 256..131072"},
)


@pytest.fixture
def stage(scenes):
    return scenes.a_stage(POLICY)


def rows(browser, query):
    page = browser.get(f"/policy?{query}").get_data(as_text=True)
    found = re.findall(r'Check">(\w+)</td><td data-label="Answer"><span[^>]*>(\w+)</span></td><td [^>]*>([^<]*)', page)
    allowed = re.search(r'role="status"><span class="verdict \w+">([\w ]+)<', page)
    return (allowed[1] if allowed else None), {check: (answer, says) for check, answer, says in found}


def test_nothing_is_tested_before_anything_is_asked(browser):
    assert rows(browser, "") == (None, {})


@pytest.mark.parametrize(
    ("query", "allowed", "rule"),
    [
        ("service=gemma4-x&change=restart", "allowed", "rules.1 decides: automatic"),
        ("service=gemma4-x&change=set_flag&value=max-model-len=4096", "allowed", "rules.2 decides: person"),
        ("service=frozen-x&change=restart", "not allowed", "rules.0 decides: never"),
        ("service=other&change=set_env&value=A=b", "not allowed", "no rule matches, so a person decides"),
    ],
)
def test_the_rule_that_decides_is_named(browser, query, allowed, rule):
    said, found = rows(browser, query)
    assert said == allowed
    assert rule in found["rule"][1]


def test_bounds_and_the_kill_switch_count_too(stage, browser):
    said, found = rows(browser, "service=gemma4-x&change=set_flag&value=max-model-len=9999999")
    assert (said, found["bounds"][0]) == ("not allowed", "refused")
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="fire"))
    assert rows(browser, "service=gemma4-x&change=restart")[1]["switch"][0] == "refused"


def test_a_stored_plan_is_tested_as_it_stands(stage, browser):
    incident = stage.waiting("gemma4-x", plan={"policy": POLICY.digest})
    plan = incident.plan
    assert rows(browser, f"plan={plan.id}")[1]["policy"][0] == "ok"
    late = (stage.clock.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    said, found = rows(browser, f"plan={plan.id}&at={late}")
    assert (said, found["plan"][0]) == ("not allowed", "refused")


def test_for_a_reader_without_a_name_the_policy_alone_is_asked(stage, browser_of):
    """Anybody may send the question, and what the service and the control database say costs much."""
    world = replace(stage.world, local=False)
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="fire"))
    query = "service=gemma4-x&change=restart"
    assert rows(browser_of(world), query)[1]["switch"][0] == "refused"
    reader = browser_of(world, settings=Settings(platform="cloud_run:example", bind="0.0.0.0"))
    _, found = rows(reader, query)
    assert "rules.1 decides: automatic" in found["rule"][1]
    assert (found["limits"][0], "switch" in found) == ("unknown", False)


def test_in_the_cloud_what_only_the_control_database_knows_is_unknown(stage, browser_of):
    world = replace(stage.world, control=None, owner=Owner.INTAKE)
    from tests.agent.entrypoints.console.test_control_access import Nothing

    browser = browser_of(world, control=Nothing())
    assert rows(browser, "service=gemma4-x&change=restart")[1]["limits"][0] == "unknown"


@pytest.mark.parametrize(
    "query",
    ["plan=p-none-1", "plan=rq-000000000000", "change=restart", "service=gemma4-x&change=fly", "service=g&change=scale&value=x",
     "service=g&change=restart&at=soon", f"plan={'x' * 300}"],
)  # fmt: skip
def test_what_is_not_understood_is_said_beside_the_form(browser, query):
    page = browser.get(f"/policy?{query}")
    assert page.status_code == 200
    assert 'role="alert"' in page.get_data(as_text=True)
    assert rows(browser, query) == (None, {})
