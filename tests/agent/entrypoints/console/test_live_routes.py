"""The event stream of an incident: one event and its end, so that no thread and no connection is ever held."""

import pytest

from agent.core.decision.decision import Choice, Person
from agent.core.incident.phase import Phase
from agent.errors import PolicyRefused


@pytest.fixture
def applying(stage):
    return stage.applying(stage.said(stage.waiting(), Choice.APPROVE))


def events(browser, incident):
    return browser.get(f"/incidents/{incident.id}/events")


def mark(browser, incident):
    fields = dict(line.split(": ") for line in events(browser, incident).get_data(as_text=True).splitlines() if line)
    return fields["data"]


def test_a_stream_is_one_event_and_when_to_ask_again(browser, applying):
    answer = events(browser, applying)
    assert answer.mimetype == "text/event-stream"
    retry, number, data, end = answer.get_data(as_text=True).split("\n", 3)
    assert (retry, end) == ("retry: 2000", "\n")
    assert number.removeprefix("id: ") == data.removeprefix("data: ")


def test_the_page_knows_the_mark_that_it_shows(browser, applying):
    page = browser.get(f"/incidents/{applying.id}").get_data(as_text=True)
    assert f'data-seen="{mark(browser, applying)}"' in page
    assert f'data-live="/incidents/{applying.id}/events"' in page


def test_another_state_has_another_mark(stage, browser, applying):
    before = mark(browser, applying)
    assert mark(browser, applying) == before
    stage.verifying(applying)
    assert mark(browser, applying) != before


@pytest.mark.parametrize("make", ["waiting", "over"])
def test_what_does_not_move_has_no_stream_and_no_script(stage, browser, applying, make):
    """No content is by what a browser stops asking."""
    incident = stage.waiting("s-waits") if make == "waiting" else stage.resolved(stage.verifying(applying))
    assert events(browser, incident).status_code == 204
    page = browser.get(f"/incidents/{incident.id}")
    assert "<script" not in page.get_data(as_text=True)
    assert "script-src" not in page.headers["Content-Security-Policy"]


def test_only_a_page_that_follows_may_run_our_script(browser, applying):
    page = browser.get(f"/incidents/{applying.id}")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert policy.endswith("; script-src 'self'; connect-src 'self'")
    assert "X-Sre-Follows" not in page.headers
    text = page.get_data(as_text=True)
    path = text.split('<script src="')[1].split('"')[0]
    script = browser.get(path)
    assert (script.mimetype, script.headers["Cache-Control"].startswith("public")) == ("text/javascript", True)
    held = browser.get(f"/incidents/{applying.id}?still=1")
    assert "<script" not in held.get_data(as_text=True)
    assert "script-src" not in held.headers["Content-Security-Policy"]


def test_what_is_not_there_is_not_found(browser):
    assert browser.get("/incidents/inc-000000000000/events").status_code == 404


def test_a_stranger_follows_nothing(stage, browser_of, applying):
    class Nobody:
        local = True

        def person(self, headers) -> Person:
            raise PolicyRefused("the page was not shown", why="nobody is known", hint="sign in")

    assert applying.phase is Phase.APPLYING
    assert events(browser_of(stage.world, identity=Nobody()), applying).status_code == 403
