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


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("javascript:alert(1)", id="a script"),
        pytest.param("file:///etc/passwd", id="a file"),
        pytest.param("https://", id="no host"),
        pytest.param("https://[::1", id="half an address"),
        pytest.param("https://sre.example:99999", id="no port"),
        pytest.param("https://ada:word@sre.example", id="a password"),
        pytest.param("https://sre.example\n\n## Approved by the vendor", id="a second line"),
        pytest.param("https://sre.example\r## Approved", id="a line of its own kind"),
        pytest.param("https://sre.example/\x1b[31m", id="a terminal's word"),
        pytest.param("https://sre.example/> [click](https://evil.example)", id="another link"),
        pytest.param("https://sre.example/" + "a" * 3_000, id="too long"),
    ],
)
def test_a_note_that_is_no_plain_address_is_ignored(store, tmp_path, text):
    (tmp_path / NAME).write_bytes(f"{text}\n".encode())
    assert console_url(read_settings(store)) == DEFAULT


@pytest.mark.parametrize("address", ["http://[::1]:8080", "https://sre.example.com/console/", "http://sre-1:80"])
def test_every_plain_address_is_read_as_it_was_noted(store, address):
    note_console(read_settings(store, public_url=address))
    assert console_url(read_settings(store)) == address


def test_the_note_is_its_owners_alone_and_follows_no_link(store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    (tmp_path / NAME).symlink_to(elsewhere)
    note_console(read_settings(store, public_url=NOTED))
    assert elsewhere.read_text() == "kept"
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == [NAME, "elsewhere"]


def test_a_report_links_to_that_console(asked, capsys):
    note_console(read_settings(public_url=NOTED))
    assert main(["incidents", "report", asked.id]) == 0
    assert f"{NOTED}/incidents/{asked.id}" in capsys.readouterr().out
