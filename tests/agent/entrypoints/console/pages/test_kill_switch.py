"""The page of the kill switch: turned by who may, with a reason, and loud on every page while it is on."""

import re
from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel, Person
from agent.core.decision.policy import Approver, Policy
from agent.entrypoints.console.control_access import ControlHere
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.control import KillSwitch
from agent.settings import Settings
from tests.agent.entrypoints.console.conftest import Browser


def fields(browser: Browser) -> dict[str, str]:
    page = browser.get("/kill-switch").get_data(as_text=True)
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def turn(browser: Browser, **typed: str):
    return browser.post("/kill-switch", fields(browser) | {"why": "it burns"} | typed)


def switch(stage) -> KillSwitch:
    return stage.world.control.kill_switch()


def test_on_and_off_again_with_a_reason_each_in_the_record(stage, browser):
    assert turn(browser).headers["Location"] == "/kill-switch"
    assert (switch(stage).on, switch(stage).by, switch(stage).why) == (True, "ada", "it burns")
    page = browser.get("/kill-switch").get_data(as_text=True)
    assert "No change is made, whatever is approved" in page
    assert turn(browser, why="the fire is out").status_code == 303
    assert not switch(stage).on
    rows = [(row.kind, row.who, row.body) for row in stage.world.control.audit()]
    assert rows == [("kill_switch.on", "ada", "it burns"), ("kill_switch.off", "ada", "the fire is out")]


@pytest.mark.parametrize("path", ["/", "/services", "/policy", "/kill-switch", "/nothing-here"])
def test_it_is_loud_on_every_page(stage, browser, path):
    assert 'class="stop"' not in browser.get(path).get_data(as_text=True)
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="fire"))
    assert "The kill switch is on (by grace: fire)" in browser.get(path).get_data(as_text=True)


def test_without_a_reason_nothing_is_turned(stage, browser):
    answer = turn(browser, why=" ")
    assert (answer.status_code, "It needs a reason" in answer.get_data(as_text=True)) == (400, True)
    assert not switch(stage).on


@pytest.mark.parametrize(
    ("headers", "typed"),
    [({"Origin": "http://evil.example"}, {}), ({"Sec-Fetch-Site": "cross-site"}, {}), ({}, {"token": "0" * 64})],
    ids=["another origin", "another site", "no token of ours"],
)
def test_another_page_turns_nothing(stage, browser, headers, typed):
    assert browser.post("/kill-switch", fields(browser) | {"why": "x"} | typed, **headers).status_code == 403
    assert not switch(stage).on


def test_a_page_from_before_does_not_lift_what_was_stopped_since(stage, browser):
    """Grace stopped changes for another reason after the page was shown; its form allows only the earlier stop to end."""
    turn(browser)
    shown = fields(browser)
    stage.clock.step(60)
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="another fire", at=stage.clock.now()))
    assert browser.post("/kill-switch", shown | {"why": "out"}).status_code == 403
    assert switch(stage).by == "grace"


def test_secrets_in_a_reason_are_not_kept(stage, browser):
    turn(browser, why="token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH leaked")
    assert "hf_abcdef" not in switch(stage).why


def test_a_switch_that_cannot_be_read_says_so(stage, browser_of):
    class Silent:
        def __getattr__(self, name: str):
            raise DependencyFailed("nothing was read", why="the disk is gone", hint="look at it")

    page = browser_of(replace(stage.world, control=Silent())).get("/kill-switch").get_data(as_text=True)
    assert "Nobody says how the kill switch stands" in page
    assert ("Turn the kill switch on" in page, "Turn the kill switch off" in page) == (True, False)


class Unread(ControlHere):
    """A control database that is written in time and never read in time."""

    asked = 0

    def kill_switch(self) -> KillSwitch:
        Unread.asked += 1
        raise DependencyFailed("nothing was read", why="`decide` did not answer", hint="wait")

    def message(self) -> str:
        Unread.asked += 1
        return "whether the kill switch is on is not known here: `decide` did not answer"


def test_changes_are_stopped_also_where_nobody_says_how_the_switch_stands(stage, browser_of):
    browser = browser_of(stage.world, control=Unread(stage.world))
    assert turn(browser).status_code == 303
    assert (switch(stage).on, switch(stage).why) == (True, "it burns")


def test_changes_are_not_allowed_again_where_nobody_says_why_they_were_stopped(stage, browser, browser_of):
    turn(browser)
    shown = fields(browser)
    unread = browser_of(stage.world, control=Unread(stage.world))
    unread.client.set_cookie("sre-console", browser.client.get_cookie("sre-console", domain="127.0.0.1").value)
    assert unread.post("/kill-switch", shown | {"why": "out"}).status_code == 503
    assert switch(stage).on


def test_a_page_for_nobody_asks_nobody_how_it_stands(stage, browser_of):
    """Behind the proxy whoever is not signed in gets a page that says so, and `decide` is not asked for it."""
    settings = Settings(platform="cloud_run:example", public_url="https://sre.example.com")
    unread = Unread(replace(stage.world, local=False))
    browser = browser_of(stage.world, settings=settings, identity=Stranger(), form_key=b"k" * 32, control=unread)
    before = Unread.asked
    assert browser.get("/kill-switch").status_code == 403
    assert Unread.asked == before


class Stranger:
    """An identity that no header proves."""

    local = False

    def person(self, headers):
        raise PolicyRefused("you are not signed in", why="no assertion", hint="sign in")


class Known:
    """An identity that a header proves."""

    local = False

    def __init__(self, name: str) -> None:
        self._person = Person(who=name, channel=Channel.CONSOLE, verified=True)

    def person(self, headers):
        return self._person


@pytest.mark.parametrize(("who", "may"), [("ada@example.com", True), ("eve@example.com", False)])
def test_a_verified_person_must_be_an_approver(scenes, browser_of, who, may):
    stage = scenes.a_stage(Policy(approvers=(Approver(name="Ada", email="ada@example.com", services=("gemma4-*",)),)))
    settings = Settings(platform="cloud_run:example", public_url="https://sre.example.com")
    browser = browser_of(replace(stage.world, local=False), settings=settings, identity=Known(who), form_key=b"k" * 32)
    page = browser.get("/kill-switch").get_data(as_text=True)
    assert ("<form" in page, "names no approver" in page) == (may, not may)
    own = {"Origin": "https://sre.example.com"}
    browser.post("/kill-switch", fields(browser) | {"turn": "on", "why": "fire"}, **own)
    assert switch(stage).on is may


def test_who_only_reads_cannot_turn_it(stage, browser_of):
    settings = Settings(platform="cloud_run:example", bind="0.0.0.0")
    world = replace(stage.world, local=False)
    page = browser_of(world, settings=settings).get("/kill-switch").get_data(as_text=True)
    assert "does not prove who you are" in page
    assert "<form" not in page
