"""What every quarantine promises."""

import pytest

from agent.ports.bus import Delivery, Topic


@pytest.fixture
def quarantine(open_quarantine):
    return open_quarantine()


def delivery(id_="7", data=b"{}", **fields):
    return Delivery(topic=Topic.LOG_EVENTS, message_id=id_, data=data, subscription="log-events", **fields)


def test_failures_are_counted_for_each_message(quarantine):
    assert [quarantine.failed(delivery("7", attempt=n), "no JSON") for n in (1, 2, 3)] == [1, 2, 3]
    assert quarantine.failed(delivery("8"), "no JSON") == 1


def test_messages_without_an_id_are_told_apart_by_their_bodies(quarantine):
    assert quarantine.failed(delivery("", b"a"), "x") == 1
    assert quarantine.failed(delivery("", b"b"), "x") == 1
    assert quarantine.failed(delivery("", b"a"), "x") == 2


def test_two_subscriptions_count_for_themselves(quarantine):
    other = delivery().with_(subscription="second")
    assert [quarantine.failed(d, "x") for d in (delivery(), other)] == [1, 1]


def test_what_is_put_twice_is_kept_once_with_its_first_reason(open_quarantine):
    open_quarantine().put(delivery(), "first")
    again = open_quarantine()
    again.put(delivery(attempt=2), "second")
    (row,) = again.rows()
    assert (row["id"], row["topic"], row["reason"], row["data"]) == ("7", "sre-log-events", "first", "{}")
    assert row["at"] == "2026-11-21T06:00:00+00:00"


def test_rows_come_newest_first_and_no_more_than_asked(quarantine, clock):
    for n in range(4):
        quarantine.put(delivery(str(n)), "x")
        clock.go(1)
    assert [row["id"] for row in quarantine.rows(3)] == ["3", "2", "1"]


def test_any_bytes_can_be_kept_and_given_back(quarantine):
    """A person must be able to send the very same body again."""
    import base64

    quarantine.put(delivery("t", "\u00e9\x00".encode()), "x")
    quarantine.put(delivery("b", b"\xff\x00\xc3"), "x")
    rows = {row["id"]: row for row in quarantine.rows()}
    assert (rows["t"]["encoding"], rows["t"]["data"]) == ("utf-8", "\u00e9\x00")
    assert (rows["b"]["encoding"], base64.b64decode(rows["b"]["data"])) == ("base64", b"\xff\x00\xc3")


def test_secrets_are_taken_out_before_anything_is_kept(quarantine):
    quarantine.put(delivery("s", b"password hunter2", attributes={"k": "hunter2"}), "cannot read hunter2")
    assert "hunter2" not in str(quarantine.rows())
    assert "[secret]" in quarantine.rows()[0]["data"]


def test_a_message_without_a_topic_is_named_by_its_subscription(quarantine):
    quarantine.put(delivery().with_(topic=None), "x")
    assert quarantine.rows()[0]["topic"] == "log-events"


def test_racing_workers_count_every_failure(open_quarantine, make):
    handles = [open_quarantine() for _ in range(4)]
    counts = make.together(4, lambda n: [handles[n].failed(delivery(), "x") for _ in range(5)])
    assert sorted(c for mine in counts for c in mine) == list(range(1, 21))
