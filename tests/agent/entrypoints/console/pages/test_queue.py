"""The page of the queue: dead letters delivered again by who may, once, with a row in the record."""

import re
import shlex
import subprocess
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.adapters.bus.dead_letters import SqliteDeadLetters
from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.entrypoints.console.pages.queue import QueueView, command_to_publish
from agent.ports.bus import DeadLetter, Delivery, Topic
from agent.settings import Settings
from tests.agent.adapters.bus.test_dead_letters import Queue


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path)


class Here:
    """What of an installation the page looks at."""

    def __init__(self, queue):
        self.queue = queue.bus


@pytest.fixture
def browser(stage, browser_of, queue):
    view = QueueView(
        quarantine=queue.quarantine, dead_letters=SqliteDeadLetters(queue.database, queue.clock), app=Here(queue)
    )
    return browser_of(stage.world, queue=view)


def text(browser):
    return browser.get("/queue").get_data(as_text=True)


def fields(browser):
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text(browser)))


def test_an_empty_queue_says_so(browser):
    page = text(browser)
    assert "0 messages wait" in page
    assert "<p>None.</p>" in page


def test_a_dead_letter_is_shown_and_delivered_again_once_with_a_row_in_the_record(stage, browser, queue):
    queue.put_aside(b'{"x": "<script>"}', incident="inc-7")
    page = text(browser)
    assert "It cannot be read" in page
    assert "<script>" not in page
    form = fields(browser)
    assert browser.post("/queue/redelivery", form).headers["Location"] == "/queue"
    again = browser.post("/queue/redelivery", form)
    assert (again.status_code, "since the page was shown" in again.get_data(as_text=True)) == (409, True)
    assert len(queue.pulled()) == 1
    (row,) = stage.world.control.audit()
    assert (row.kind, row.who, row.incident) == ("dead_letter.redelivery", "ada", "inc-7")
    assert "It cannot be read" not in text(browser)


def test_another_page_delivers_nothing(browser, queue):
    queue.put_aside()
    form = fields(browser)
    assert browser.post("/queue/redelivery", form, Origin="http://evil.example").status_code == 403
    assert browser.post("/queue/redelivery", form | {"key": "q:other"}).status_code == 403
    assert queue.pulled() == []


def test_who_only_reads_delivers_nothing(stage, browser_of, queue):
    queue.put_aside()
    view = QueueView(quarantine=queue.quarantine, dead_letters=queue.letters, app=Here(queue))
    reader = browser_of(replace(stage.world, local=False), queue=view)
    page = text(reader)
    assert "You cannot deliver them again here" in page
    assert "<form method" not in page


def test_in_the_cloud_the_page_reads_and_names_the_commands(stage, browser_of):
    quarantine = SqliteQuarantine(InMemoryDatabase(Kind.STATE), stage.clock, redact=str)
    delivery = Delivery(topic=Topic.INCIDENTS, message_id="1", data=b"{}", attributes={"incident": "inc-1"})
    quarantine.put(delivery, "it cannot be read")
    page = text(browser_of(stage.world, queue=QueueView(quarantine=quarantine)))
    assert "gcloud pubsub subscriptions pull sre-dead-letter-pull" in page
    assert "gcloud pubsub topics publish sre-incidents" in page
    assert "<form method" not in page


def test_the_command_to_copy_runs_nothing_that_a_message_says():
    letter = DeadLetter(
        key="1", topic=Topic.INCIDENTS, at=datetime(2026, 6, 8, tzinfo=UTC), reason="bad", data="{}", kept_because="so",
        attributes={"incident": 'x"$(touch gone)`id`\'; id; \''},
    )  # fmt: skip
    words = shlex.split(command_to_publish(letter), posix=True)
    assert words[-1] == "--attribute=incident=" + letter.attributes["incident"]
    assert words[:6] == ["gcloud", "pubsub", "topics", "publish", "sre-incidents", "--message=$(cat body.json)"]
    spaced = subprocess.run(
        ["sh", "-c", command_to_publish(letter).replace("gcloud", "printf '%s\\n'", 1).replace("$(cat body.json)", "")],
        capture_output=True, text=True, check=True, timeout=10,
    )  # fmt: skip
    assert spaced.stdout.splitlines()[-1] == "--attribute=incident=" + letter.attributes["incident"]


def test_a_reader_without_a_name_sees_why_and_not_what(stage, browser_of, queue):
    queue.put_aside(b'{"prompt": "private"}', incident="inc-7")
    view = QueueView(quarantine=queue.quarantine, dead_letters=queue.letters, app=Here(queue))
    settings = Settings(platform="cloud_run:example", bind="0.0.0.0")
    page = text(browser_of(replace(stage.world, local=False), settings=settings, queue=view))
    assert "It cannot be read" in page
    assert "private" not in page
    assert "not shown to a reader without a name" in page


def test_a_console_without_a_queue_says_so(stage, browser_of):
    assert "does not see the queue" in text(browser_of(stage.world))
