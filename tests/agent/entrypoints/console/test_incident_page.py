"""The incident page: what broke, how bad it is, whose it is, and how long it took."""

import re
from dataclasses import replace

import pytest

from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.core.service.services import Service, Services
from agent.core.service.serving import Serves
from agent.ports.store import Change
from tests.agent.entrypoints.console.scenes import another_world
from tools.console_scenes import PROBE, rehearsal

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


def test_severity_owner_rotation_and_runbook_are_shown(stage, watched):
    waiting = stage.waiting(serves=Serves(at=stage.clock.now(), ready=False, older="gemma-00004"))
    shown = text(watched, waiting)
    assert '<span class="pill severity-warning">Warning</span>' in shown
    assert "<strong>An older revision serves (gemma-00004).</strong>" in shown
    assert "Owner <strong>#llm (slack)</strong>" in shown
    assert "LLM platform, weekly" in shown
    assert 'href="https://wiki.example.com/gemma?a=1&amp;b=2"' in shown


def test_what_is_not_watched_has_no_owner(stage, browser):
    assert "Owner <strong>" not in text(browser, stage.waiting())


def test_how_long_it_took_stands_above_the_timeline(stage, browser):
    resolved = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE))))
    shown = text(browser, resolved)
    for label in ("Time to detect", "Time to diagnose", "Time to decide", "Time to recover"):
        assert f"{label} " in shown


def test_the_log_and_the_revision_of_the_platform_are_linked(stage, watched):
    shown = text(watched, stage.waiting())
    assert 'href="https://console.cloud.google.com/logs/query;query=resource.type%3D%22cloud_run_revision%22' in shown
    assert "/run/detail/us-east4/gemma4-26b-qat-l4/revisions?project=example-project" in shown


def test_a_simulated_platform_has_no_pages_to_link(stage, browser_of):
    rehearsed = Services(services=(WATCHED.with_(scenario="scenario.toml"),))
    browser = browser_of(another_world(stage, rules=replace(stage.world.rules, services=rehearsed)))
    assert "console.cloud.google.com" not in text(browser, stage.waiting())


def test_times_of_a_recording_say_so(stage, browser):
    assert "recorded" not in text(browser, stage.waiting("s-live"))
    replayed = text(browser, stage.waiting("s-replay", run="r1"))
    assert replayed.count('<span class="tag">recorded</span>') >= 3
    assert "Time to detect" not in replayed


def test_the_plan_is_one_card_with_what_it_costs_and_what_policy_asks(stage, browser, scenes):
    waiting = stage.waiting(make=scenes.memory_plan)
    waiting = waiting.with_(plan=waiting.plan.with_(takes_away="loses images; 36 -> 5 tokens/s"))
    stage.world.store.commit(Change(incident=waiting))
    shown = text(browser, waiting)
    card = shown[shown.index('id="plan"') : shown.index("Why this plan")]
    for said in (
        "Trade-off: <strong>loses images; 36 -&gt; 5 tokens/s</strong>",
        "Memory: fits (computed)",
        "Policy: one approval",
        "Memory after the change: Of 21.96 GiB",
        "Approve and apply this change",
        "<summary>Reject</summary>",
    ):
        assert said in card, said


def test_a_key_number_stands_with_its_sum_and_the_line_that_it_was_read_from():
    """Of the example whose probe gave up: the terms add up, and the page names the line of what was measured."""
    with rehearsal(PROBE) as (told, _):
        asked = told.until(lambda i: i.phase is Phase.ASKED)
        page = told.pages().test_client().get(f"/incidents/{asked.id}", base_url="http://127.0.0.1:8080").text
    sum_of = r"may take (\d+) s \(16.4 GB at 24.7 MB/s: (\d+) s; torch.compile: (\d+) s; the rest: (\d+) s;"
    whole, *terms = map(int, re.search(sum_of, page).groups())
    assert whole == sum(terms) == 965
    assert "the log printed weights load 664.24 s in line 14" in page
    assert re.search(r"<dd>664.24 <span class=\"dim\">\(line 14 of the instance&#39;s log\)", page)
