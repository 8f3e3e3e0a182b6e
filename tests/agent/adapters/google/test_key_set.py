"""The keys of an issuer are fetched over real HTTP, kept, and never believed when they are no keys."""

import json
import socket
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.google.key_set import KeySet
from agent.errors import DependencyFailed
from tests.loopback import Loopback

GOOD = json.dumps({"keys": [{"kid": "k1", "kty": "EC", "crv": "P-256", "x": "x", "y": "y"}]}).encode()


class Clock:
    def __init__(self):
        self.at = datetime(2026, 11, 21, tzinfo=UTC)

    def now(self):
        return self.at

    def step(self, **more):
        self.at += timedelta(**more)


class Source(Loopback):
    """A key server on loopback whose answer can be changed."""

    def __init__(self):
        self.status, self.body, self.asked, self.location = 200, GOOD, 0, None
        super().__init__(self._answer, methods=["GET"])
        self.url += "/keys"

    def _answer(self, _):
        self.asked += 1
        return self.status, self.body, {"Location": self.location} if self.location else {}


@pytest.fixture
def source():
    made = Source()
    yield made
    made.close()


def test_a_key_is_fetched_once_and_kept(source):
    keys = KeySet(Clock(), url=source.url, holder="Google")
    assert [keys("k1")["kid"] for _ in range(5)] == ["k1"] * 5
    assert source.asked == 1


def test_unknown_key_ids_do_not_make_us_fetch_at_every_request(source):
    clock = Clock()
    keys = KeySet(clock, url=source.url, holder="Google")
    assert [keys(f"made-up-{n}") for n in range(50)] == [None] * 50
    assert source.asked == 1
    clock.step(seconds=31)
    assert keys("made-up") is None
    assert source.asked == 2


def test_a_new_key_is_found_after_a_rotation(source):
    clock = Clock()
    keys = KeySet(clock, url=source.url, holder="Google")
    keys("k1")
    source.body = GOOD.replace(b"k1", b"k2")
    clock.step(seconds=31)
    assert keys("k2")["kid"] == "k2"
    assert keys("k1") is None


def test_what_is_kept_carries_on_while_the_source_is_down_but_not_for_ever(source):
    clock = Clock()
    keys = KeySet(clock, url=source.url, holder="Google")
    keys("k1")
    source.status = 500
    clock.step(hours=2)
    assert keys("k1")["kid"] == "k1"
    clock.step(hours=30)
    with pytest.raises(DependencyFailed):
        keys("k1")


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b"{]", b'{"keys": []}', b'{"keys": 5}', b'{"keys": [1, {"kid": 2}]}', b"<html>", b" " * 70_000],
    ids=["empty", "no keys", "a list", "no JSON", "none", "no list", "no key ids", "a page", "too long"],
)
def test_what_are_no_keys_is_refused(source, body):
    source.body = body
    with pytest.raises(DependencyFailed):
        KeySet(Clock(), url=source.url, holder="Google")("k1")


def test_a_redirect_is_not_followed(source):
    source.status, source.location = 302, source.url
    with pytest.raises(DependencyFailed, match="302"):
        KeySet(Clock(), url=source.url, holder="Google")("k1")
    assert source.asked == 1


def test_nobody_listening_is_a_typed_failure(source):
    source.close()
    with pytest.raises(DependencyFailed, match="not read"):
        KeySet(Clock(), url=source.url, holder="Google", timeout_s=0.5)("k1")


def test_nobody_waits_for_everybody_else_while_the_source_hangs():
    """Ten ask at once, the source says nothing: each is told so after its own wait, not after the sum of all."""
    waited = []
    with socket.create_server(("127.0.0.1", 0), backlog=32) as silent:
        keys = KeySet(Clock(), url=f"http://127.0.0.1:{silent.getsockname()[1]}", holder="Google", timeout_s=0.3)

        def ask():
            began = time.monotonic()
            with pytest.raises(DependencyFailed):
                keys("k1")
            waited.append(time.monotonic() - began)

        threads = [threading.Thread(target=ask) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(waited) == 10
    assert max(waited) < 2
