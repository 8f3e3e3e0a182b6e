"""What is special about Log Analytics: names never become a query, and a part of an answer is none."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.logs.log_analytics import LogAnalyticsLogs
from agent.errors import DependencyFailed
from tests.contracts.log_analytics_server import WORKSPACE, LogAnalytics

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.fixture
def server():
    made = LogAnalytics()
    made.rows.append((AT, "gemma", "gemma--sre-1", "gemma--sre-1-abc", "hello"))
    yield made
    made.close()


def logs(server, workspace=WORKSPACE):
    return LogAnalyticsLogs(server.client, lambda _: workspace, lambda _, r: r.replace("-sre-", "--sre-"))


def read(found, **more):
    return found.instance_log("gemma", **({"revision": "gemma-sre-1", "instance": None, "until": AT} | more))


def test_a_revision_is_asked_for_by_azures_name(server):
    """And told by ours."""
    found = read(logs(server))
    assert (found.revision, [line.text for line in found.lines]) == ("gemma-sre-1", ["hello"])


def test_lines_that_were_not_read_are_not_counted(server):
    """Of five lines two are read where one is wanted: how many stand behind them is not known."""
    server.rows += [(AT, "gemma", "gemma--sre-1", "gemma--sre-1-abc", f"line {n}") for n in range(4)]
    found = read(logs(server), limit=1)
    assert ([line.text for line in found.lines], found.cut_after, found.cut_lines) == (["hello"], 1, None)


@pytest.mark.parametrize("name", ['x" or true //', "x\n| take 1", "", "ä"])
def test_a_name_that_is_none_of_azures_is_never_part_of_a_query(server, name):
    """Replicas are named by whoever writes the log rows."""
    assert read(logs(server), instance=name or None, revision=name or None) is None
    assert server.queries == []


def test_logs_that_go_elsewhere_are_not_read(server):
    assert read(logs(server, workspace=None)) is None


def test_a_day_is_looked_at_and_no_more(server):
    assert read(logs(server), until=AT + timedelta(days=2)) is None


@pytest.mark.parametrize(
    "fails", [(403, "InsufficientAccessError", "no"), (429, "TooManyRequests", "slow"), (400, "SyntaxError", "odd")]
)
def test_a_refusal_leaves_the_diagnosis_provisional(server, fails):
    """Whatever the reason is, it says it, and the rules go on without the log."""
    server.fails = fails
    with pytest.raises(DependencyFailed, match=fails[1]):
        read(logs(server))


def test_a_part_of_an_answer_is_none(server):
    """A log with holes would look like another failure."""
    server.partial = True
    with pytest.raises(DependencyFailed, match="was not read"):
        read(logs(server))
