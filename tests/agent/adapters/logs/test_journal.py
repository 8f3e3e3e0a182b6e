"""Which start of a unit its log is of."""

from datetime import UTC, datetime, timedelta

from agent.adapters.logs.journal import Entry, Journal, JournalLogs

AT = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def entry(seconds, start, text):
    return Entry(at_us=int((AT + timedelta(seconds=seconds)).timestamp() * 1_000_000), start=start, text=text)


def log(*entries, ended=False, reached=True, instance=None, until=60):
    journal = Journal(instance="i-1", entries=entries, reached=reached, ended=ended)
    read = JournalLogs(lambda service, at, limit: journal)
    return read.instance_log("gemma", revision=None, instance=instance, until=AT + timedelta(seconds=until))


def lines(found):
    return [line.text for line in found.lines]


FIRST, SECOND = entry(0, "a", "first"), entry(30, "b", "second")


def test_the_start_that_ended_is_told_while_the_next_one_is_young():
    """Systemd restarted it; the trouble is of the start before."""
    assert lines(log(FIRST, SECOND)) == ["first"]
    assert lines(log(FIRST, SECOND, ended=True)) == ["second"]
    assert lines(log(FIRST, SECOND, until=30 + 601)) == ["second"]


def test_what_the_kernel_said_of_that_time_belongs_to_it():
    """An Xid explains the end; one of another time does not."""
    xid, later = entry(2, "", "NVRM: Xid 79"), entry(20, "", "NVRM: Xid 31")
    assert lines(log(FIRST, xid, later, SECOND)) == ["first", "NVRM: Xid 79"]


def test_a_log_is_complete_where_its_beginning_was_read():
    """Or where lines of an earlier start stand before it."""
    assert log(FIRST, reached=True).complete
    assert not log(FIRST, reached=False).complete
    assert log(FIRST, SECOND, reached=False, ended=True).complete


def test_the_log_of_another_machine_is_none():
    """It is gone with that machine; a name that is no instance's is not compared."""
    assert log(FIRST, instance="i-2") is None
    assert log(FIRST, instance="i-1") is not None
    assert log() is None
