"""A report links to the console that runs on this state folder, whatever its port."""

import pytest

from agent.app.console_address import NAME, console_url, note_console
from agent.entrypoints.cli.main import main
from agent.settings import read_settings
from tests.agent.entrypoints.waiting_plan import asked

__all__ = ["asked"]

DEFAULT = "http://127.0.0.1:8080"
NOTED = "http://127.0.0.1:8123"


@pytest.fixture
def store(tmp_path):
    return {"STORE": f"sqlite:{tmp_path}"}


def test_what_the_service_noted_is_read_beside_it(store):
    assert console_url(read_settings(store)) == DEFAULT
    note_console(read_settings(store, public_url=NOTED))
    assert console_url(read_settings(store)) == NOTED


def test_the_address_that_is_set_wins(store):
    note_console(read_settings(store, public_url=NOTED))
    assert console_url(read_settings(store | {"PUBLIC_URL": "https://sre.example.com"})) == "https://sre.example.com"


@pytest.mark.parametrize("bytes_", [b"", b"\n", b"\xff\xfe"], ids=["empty", "blank", "no text"])
def test_a_note_that_says_nothing_is_no_address(store, tmp_path, bytes_):
    (tmp_path / NAME).write_bytes(bytes_)
    assert console_url(read_settings(store)) == DEFAULT


def test_a_report_links_to_that_console(asked, capsys):
    note_console(read_settings(public_url=NOTED))
    assert main(["incidents", "report", asked.id]) == 0
    assert f"{NOTED}/incidents/{asked.id}" in capsys.readouterr().out
