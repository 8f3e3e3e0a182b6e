"""Errors become acknowledge, redeliver or quarantine in one place."""

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.entrypoints.pubsub.settle import HANDLED_FAILURES, is_busy, settle
from agent.errors import DependencyFailed, InputRejected, ModelMisbehaved, PolicyRefused, StateConflict
from agent.ports.bus import Delivery, Outcome, Topic

DELIVERY = Delivery(topic=Topic.ALERTS, message_id="m1", data=b"{}")
WHY = {"why": "because", "hint": "look"}


class StoppedClock:
    def now(self):
        return datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def quarantine():
    return SqliteQuarantine(InMemoryDatabase(Kind.STATE), StoppedClock(), redact=lambda text: text)


@pytest.mark.parametrize("kind", [InputRejected, PolicyRefused, ModelMisbehaved])
def test_what_no_delivery_can_help_is_quarantined_at_once(quarantine, kind):
    """With the whole reason, for a person."""
    assert settle(kind("no", **WHY), DELIVERY, quarantine) is Outcome.QUARANTINED
    (row,) = quarantine.rows()
    assert row["reason"] == f"{kind.__name__}: no: because. Hint: look"


@pytest.mark.parametrize(
    "error", [DependencyFailed("no", **WHY), ZeroDivisionError("bug"), RecursionError(), MemoryError()]
)
def test_a_failing_dependency_or_a_bug_is_retried_until_the_fifth_time(quarantine, error):
    """Four retries, then the message is put away so that it cannot block the others."""
    outcomes = [settle(error, DELIVERY, quarantine) for _ in range(HANDLED_FAILURES)]
    assert outcomes == [Outcome.RETRY] * 4 + [Outcome.QUARANTINED]


class TooManyRequests(Exception):
    code = 429


class APITimeoutError(Exception):
    pass


@pytest.mark.parametrize("cause", [TimeoutError(), TooManyRequests(), APITimeoutError(), OSError("x")])
def test_a_time_out_or_a_rate_limit_says_nothing_about_the_message(quarantine, cause):
    """They are retried as long as it takes; another failure of a dependency is counted."""
    error = DependencyFailed("no", **WHY)
    error.__cause__ = cause
    outcomes = {settle(error, DELIVERY, quarantine) for _ in range(20)}
    assert outcomes == (
        {Outcome.RETRY, Outcome.QUARANTINED}
        if isinstance(cause, OSError) and not isinstance(cause, TimeoutError)
        else {Outcome.RETRY}
    )


def test_busy_is_seen_through_a_chain_and_a_ring_of_causes():
    """The reason may stand several causes deep; a ring ends."""
    inner, outer = ValueError(), DependencyFailed("no", **WHY)
    outer.__cause__, inner.__cause__ = inner, TimeoutError()
    assert is_busy(outer)
    inner.__cause__ = outer
    assert not is_busy(outer)


def test_races_that_were_lost_time_and_again_are_no_failure_of_the_message(quarantine):
    """What it came for may not have been done, so it comes again, however often; never counted."""
    for _ in range(10):
        assert settle(StateConflict("no", **WHY), DELIVERY, quarantine) is Outcome.RETRY
    assert quarantine.rows() == ()


@pytest.mark.parametrize("error", [InputRejected("no", **WHY), ZeroDivisionError()])
def test_what_could_not_be_kept_is_not_acknowledged(error):
    """A quarantine that fails never loses a message."""

    class Broken:
        def failed(self, delivery, reason):
            raise DependencyFailed("no", **WHY)

        def put(self, delivery, reason):
            raise DependencyFailed("no", **WHY)

    assert settle(error, DELIVERY, Broken()) is Outcome.RETRY


def test_every_failure_is_in_the_log_with_its_outcome(quarantine):
    """A bug is swallowed for the queue's sake, not for the log's."""
    with capture_logs() as logs:
        settle(ZeroDivisionError("bug"), DELIVERY, quarantine)
    (row,) = logs
    assert (row["event"], row["message"], row["outcome"], row["error"]) == (
        "delivery.failed",
        "m1",
        Outcome.RETRY,
        "bug",
    )
