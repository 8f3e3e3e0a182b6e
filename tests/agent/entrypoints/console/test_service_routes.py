"""The page of services says how each stands and what differs, and wakes nobody for it."""

from dataclasses import replace

import pytest

from agent.core.change.config_drift import Drift, ServiceRecord
from agent.core.plan.lifecycle import absent
from agent.core.service.services import parse_services
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed
from agent.ports.stage_context import Owner

SERVICE = "gemma"
ENTRY = {"name": SERVICE, "platform": "host", "model": "google/gemma", "accelerator": "cpu", "owner": "console"}
CONFIG = ServingConfig(image="vllm:<b>nightly</b>", args=("serve", "google/gemma", "--max-num-seqs", "32"))


class Describing:
    """A platform that can describe a service, and nothing else."""

    def __init__(self, live=None):
        self.live = live

    def describe(self, service):
        if self.live is None:
            raise DependencyFailed("it was not read", why="the platform did not answer", hint="wait")
        return self.live


@pytest.fixture
def console(stage, browser_of):
    """A console over one service, as it is given to be."""

    def make(live=None, *, declared=None, **changes):
        services = parse_services({"service": [ENTRY | ({"declared": declared} if declared else {})]})
        rules = replace(stage.world.rules, services=services)
        return browser_of(replace(stage.world, rules=rules, platform_of=lambda _: Describing(live), **changes))

    return make


def shown(browser, path="/services"):
    page = browser.get(path)
    assert page.status_code == 200
    return page.get_data(as_text=True)


def live(**fields):
    return absent(SERVICE, "host").with_(config=CONFIG, uid="u", etag="e", ready=True, **fields)


def test_a_service_that_differs_from_its_declaration_is_marked(console):
    page = shown(console(live(), declared={"flags": "--max-num-seqs 8"}))
    assert ">ready<" in page
    assert "drift" in page
    assert f'href="/services/{SERVICE}"' in page
    assert "drift" not in shown(console(live(), declared={"flags": "--max-num-seqs 32"}))


def test_its_own_page_says_what_runs_and_the_way_back(console):
    """What came from outside stays text."""
    page = shown(console(live(), declared={"flags": "--max-num-seqs 8"}), f"/services/{SERVICE}")
    assert "--max-num-seqs is 32, declared is 8" in page
    assert "sre-agent change gemma --set-flag max-num-seqs=8" in page
    assert "vllm:&lt;b&gt;nightly" in page


def test_a_platform_that_does_not_answer_is_said_and_the_page_stands(console):
    page = shown(console())
    assert ">unknown<" in page
    assert "the platform did not answer" in page


def test_where_the_console_only_reads_it_shows_what_the_tick_saw(console, stage):
    """In the cloud it describes nothing: it has no right to."""
    rows = (Drift(path="flag --max-num-seqs", wanted="8", live="32", against="approved"),)
    record = ServiceRecord(service=SERVICE, state={"flag --max-num-seqs": "32"}, drift=rows, seen_at=stage.clock.now())
    stage.world.service_records.keep_service_record(record)
    page = shown(console(live(), owner=Owner.INTAKE))
    assert ">unknown<" in page
    assert "drift" in page


def test_the_list_of_incidents_leads_there(browser):
    assert 'href="/services"' in shown(browser, "/")


def test_no_service_is_said(browser):
    assert "No service is watched" in shown(browser)


def test_the_list_of_services_leads_to_what_is_open(stage, browser_of):
    from dataclasses import replace

    from agent.core.service.services import parse_services

    stage.open("gemma-a")
    row = {"name": "gemma-a", "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}
    world = replace(stage.world, rules=replace(stage.world.rules, services=parse_services({"service": [row]})))
    page = browser_of(world).get("/services").get_data(as_text=True)
    assert '<a href="/?service=gemma-a">1 open incident</a>' in page
