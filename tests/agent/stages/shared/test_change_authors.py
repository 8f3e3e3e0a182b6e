"""Who changed a service is taken from Cloud Audit Logs where they can be read, on their own wire; else as it was seen."""

from datetime import UTC, datetime, timedelta

import grpc
import pytest

from agent.adapters.logs.cloud_logging import CloudLogs
from agent.core.change.config_drift import ConfigChange, ServiceRecord
from agent.core.plan.action import Difference
from agent.stages.shared.change_authors import with_audited_authors
from tests.contracts.cloud_logging_server import LoggingStandIn, audit_entry

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
ROWS = (Difference(path="flag --max-num-seqs", before="8", after="32"),)


def ago(minutes, seconds=0):
    return NOW - timedelta(minutes=minutes, seconds=seconds)


@pytest.fixture
def server():
    made = LoggingStandIn()
    made.start()
    yield made
    made.stop()


def authors(server, *changes):
    record = ServiceRecord(service="gemma", state={}, changes=changes, seen_at=NOW)
    log = CloudLogs("p", emulator=f"127.0.0.1:{server.port}")
    return [change.by for change in with_audited_authors(record, log, NOW).changes]


def change(minutes, by="", **more):
    return ConfigChange(at=ago(minutes), by=by, rows=ROWS, **more)


def test_everybody_behind_a_change_is_named(server):
    """Two people within the minute between two looks; the platform itself names only the last."""
    server.entries += [
        audit_entry(ago(40, 50), service="gemma", by="ben@example.com"),
        audit_entry(ago(40), service="gemma", by="ada@example.com"),
        audit_entry(ago(40), service="other", by="eve@example.com"),
        audit_entry(ago(40, 10), service="gemma", by="eve@example.com", code=7),
        audit_entry(
            ago(40, 5), service="gemma", by="eve@example.com", method="google.cloud.run.v2.Services.GetService"
        ),
        audit_entry(ago(90), service="gemma", by="eve@example.com"),
    ]
    assert authors(server, change(40, "ada@example.com")) == ["ben@example.com and ada@example.com"]


def test_what_it_does_not_name_stays_as_it_was_seen(server):
    server.entries.append(audit_entry(ago(5), service="gemma", by="ada@example.com"))
    assert authors(server, change(40), change(20, ours=True), change(5)) == ["", "", "ada@example.com"]


def test_without_the_right_to_read_it_nothing_is_lost(server):
    server.failure = (grpc.StatusCode.PERMISSION_DENIED, "logging.logEntries.list denied")
    assert authors(server, change(40, "ada@example.com")) == ["ada@example.com"]


def test_nothing_is_asked_where_nothing_was_changed_lately(server):
    assert authors(server, change(2000, "ada@example.com"), change(5, ours=True)) == ["ada@example.com", ""]
    assert server.calls == []
    assert with_audited_authors(None, None, NOW) is None
