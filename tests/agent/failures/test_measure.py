"""Numbers from the log."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.measure import measure


def test_whole_numbers_decimals_thousands_and_words() -> None:
    patterns = {"a": r"a=([\d,]+)", "b_gib": r"b=(-?[\d.]+)", "c": r"c=(\w+)", "d": r"d=(\w+)"}
    assert measure(patterns, ["a=41,328 b=-1.25 c=half"], 0).values == {"a": 41328, "b_gib": -1.25, "c": "half"}


def test_the_decisive_line_comes_before_the_lines_after_it_and_those_before_the_rest() -> None:
    lines = ["n=1", *["-"] * 30, "n=2", "n=3"]
    assert measure({"n": r"n=(\d+)"}, lines, 31).values == {"n": 2}
    assert measure({"n": r"n=(\d+)"}, lines, 15).values == {"n": 1}


def test_a_number_too_long_stays_text() -> None:
    assert measure({"n": r"n=(\d+)"}, ["n=" + "9" * 40], 0).values == {"n": "9" * 40}


def test_a_full_stop_ends_the_sentence_not_the_value() -> None:
    patterns = {"repo": r"at ([\w.-]+/[\w.-]+)", "cc": r"capability ([\d.]+)", "none": r"dots (\.+)"}
    assert measure(patterns, ["at google/gemma-4-31B-it. capability 7.5. dots ..."], 0).values == {
        "repo": "google/gemma-4-31B-it",
        "cc": 7.5,
    }


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("INFO 11-20 10:10:11 [api_server.py:46] starting\nOSError: [Errno 98] Address already in use", None),
        ("ERROR 11-20 10:10:46 [launcher.py:46] OSError: [Errno 98] Address already in use", None),
        ('  File "server.py", line 46\nOSError: [Errno 98] Address already in use (api_server.py:1047)', None),
        ("[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", 8000),
        ("[Errno 98] error while attempting to bind on address ('::', 8123, 0, 0): address already in use", 8123),
        ("Error: listen EADDRINUSE: address already in use :::8001", 8001),
        ("listen tcp 127.0.0.1:8002: bind: address already in use", 8002),
        ("listen tcp :8003: bind: address already in use", 8003),
        ("listen tcp [::1]:8004: bind: address already in use", 8004),
        ("Bind for 0.0.0.0:8005 failed: port is already allocated", 8005),
        ("non-default args: {'port': 8006}\nOSError: [Errno 98] Address already in use", 8006),
        ("vllm serve m --port 8007\nOSError: [Errno 98] Address already in use", 8007),
        ("vllm serve m --port=8008\nOSError: [Errno 98] Address already in use", 8008),
        ("Port 8009 is already in use, trying port 8010: Address already in use", 8009),
        ("http://localhost:8011/health is taken: Address already in use", 8011),
        ("Ports are not available: exposing port TCP 0.0.0.0:8012 -> 0.0.0.0:0", 8012),
        ("OSError: [Errno 98] Address already in use, port=99999", None),
    ],
)
def test_a_port_is_read_where_ports_stand_and_nowhere_else(matcher: Matcher, text: str, port: int | None) -> None:
    found = matcher.classify(text, whole_log=True, platform=None)
    published = "already allocated" in text or "Ports are not available" in text
    signature = "published_port_in_use" if published else "address_in_use"
    assert (found.signature, found.fields.get("port")) == (signature, port)


def test_a_frame_of_a_traceback_is_no_path_that_a_failure_is_about() -> None:
    lines = ['  File "/srv/lib/loader.py", line 7, in read', "OSError: cannot read '/models/a/b.bin'"]
    assert measure({"path": r"['\" ](/[\w./-]+)"}, lines, 0).values == {"path": "/models/a/b.bin"}
    assert measure({"path": r"['\" ](/[\w./-]+)"}, lines[:1], 0).values == {}


def test_each_field_names_the_line_that_it_was_read_from():
    """Near the decisive line, before it, and far from it."""
    lines = ["x=1", *["..."] * 40, "before b=2", "decisive", "after c=3"]
    found = measure({"x": r"x=(\d)", "b": r"b=(\d)", "c": r"c=(\d)", "d": r"d=(\d)"}, lines, 42)
    assert found.lines == {"x": 0, "b": 41, "c": 43}
    assert all(str(found.values[name]) in lines[at] for name, at in found.lines.items())
