"""What a server prints is passed on byte for byte, and never at the cost of the server or of the memory."""

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.entrypoints.monitor.output_relay import BEHIND_BYTES, KEPT_BYTES, OutputRelay
from agent.ports.host import Start, State

AT = datetime(2026, 11, 22, tzinfo=UTC)
BYTES = bytes(range(256)) * 3 + b"no end of line"


def page_of(*marks):
    starts = tuple(Start(revision=m, mark=m, template="{}", began_at=AT) for m in marks)
    return State(service="gemma", uid="u", template="{}", starts=starts)


@pytest.fixture
def relay_of(tmp_path):
    def make(page, write, **more):
        left_out = more.pop("left_out", lambda _count, _log: None)
        return OutputRelay(lambda: page, lambda start: log_of(tmp_path, start.mark), write, left_out=left_out, **more)

    return make


def log_of(folder: Path, mark: str) -> Path:
    return folder / f"{mark}.log"


def test_every_byte_of_every_start_comes_in_order(tmp_path, relay_of):
    log_of(tmp_path, "a").write_bytes(BYTES)
    log_of(tmp_path, "b").write_bytes(b"second")
    got = []
    relay = relay_of(page_of("a", "b"), got.append)
    relay.start()
    relay.finish()
    assert b"".join(got) == BYTES + b"second"


@pytest.mark.parametrize(("newest_too", "told"), [(True, b""), (False, b"second")], ids=["taken over", "started"])
def test_what_was_printed_before_the_watch_is_left_out(tmp_path, relay_of, newest_too, told):
    log_of(tmp_path, "a").write_bytes(BYTES)
    log_of(tmp_path, "b").write_bytes(b"second")
    got, page = [], page_of("a", "b")
    relay = relay_of(page, got.append)
    relay.skip(page, newest_too=newest_too)
    relay.start()
    relay.finish()
    assert b"".join(got) == told


def test_who_is_too_far_behind_is_told_what_was_left_out(tmp_path, relay_of):
    """The middle of such a log is given back to the disk: its bytes would be zeros."""
    with log_of(tmp_path, "a").open("wb") as log:
        log.truncate(BEHIND_BYTES)
        log.seek(0, os.SEEK_END)
        log.write(b"\nlast words")
    got, left = [], []
    relay = relay_of(page_of("a"), got.append, left_out=lambda count, log: left.append((count, log)))
    relay.start()
    relay.finish()
    told = b"".join(got)
    assert told.endswith(b"\nlast words")
    assert len(told) <= KEPT_BYTES
    assert left == [(BEHIND_BYTES + len(b"\nlast words") - len(told), log_of(tmp_path, "a"))]


def test_a_reader_who_takes_nothing_does_not_keep_us(tmp_path, relay_of):
    log_of(tmp_path, "a").write_bytes(BYTES)
    never, left = threading.Event(), []
    relay = relay_of(
        page_of("a"), lambda _data: never.wait() and None, left_out=lambda count, log: left.append((count, log))
    )
    relay.start()
    relay.finish(0.1)
    assert left == [(len(BYTES), log_of(tmp_path, "a"))]
    never.set()


def test_what_cannot_be_said_of_the_end_keeps_nothing_else_from_ending(tmp_path, relay_of):
    log_of(tmp_path, "a").write_bytes(BYTES)
    never = threading.Event()

    def gone(_count, _log):
        raise BrokenPipeError

    relay = relay_of(page_of("a"), lambda _data: never.wait() and None, left_out=gone)
    relay.start()
    relay.finish(0.1)
    never.set()


def test_a_reader_who_has_left_ends_the_passing_on(tmp_path, relay_of):
    log_of(tmp_path, "a").write_bytes(BYTES)
    ours, theirs = os.pipe()
    os.close(ours)
    left = []
    relay = relay_of(
        page_of("a"), lambda data: os.write(theirs, data) and None, left_out=lambda count, _log: left.append(count)
    )
    relay.start()
    relay.finish()
    os.close(theirs)
    assert not relay._thread.is_alive()
    assert left == []  # who has left wants no more


def test_while_a_question_stands_the_output_waits(tmp_path, relay_of):
    log_of(tmp_path, "a").write_bytes(BYTES)
    got, ready = [], threading.Event()
    relay = relay_of(page_of("a"), got.append, ready=ready.is_set)
    relay.start()
    assert got == []
    ready.set()
    relay.finish()
    assert b"".join(got) == BYTES
