"""What every keeper of what was seen of services promises."""

from agent.core.change.config_drift import ConfigChange, Drift, ServiceRecord
from agent.core.plan.action import Difference
from tests.contracts.values import at


def record(service="gemma", **fields):
    rows = (Difference(path="max_instances", before="1", after="2"),)
    made = ServiceRecord(
        service=service,
        revision="gemma-2",
        generation=4,
        state={"flag --enforce-eager": "", "max_instances": "2"},
        approved={"max_instances": "1"},
        changes=(ConfigChange(at=at(0), by="ada@example.com", rows=rows),),
        drift=(Drift(path="max_instances", wanted="1", live="2", against="approved"),),
        drift_since=at(1),
        changed_by="ada@example.com",
        seen_at=at(2),
    )
    return made.with_(**fields)


def test_the_last_record_that_was_kept_stands(open_service_records):
    records = open_service_records()
    assert records.service_record("gemma") is None
    records.keep_service_record(record())
    records.keep_service_record(record("qwen.v2", drift=()))
    assert open_service_records().service_record("gemma") == record()
    later = record(drift=(), drift_since=None, seen_at=at(9))
    records.keep_service_record(later)
    assert open_service_records().service_record("gemma") == later
    assert open_service_records().service_record("qwen.v2") == record("qwen.v2", drift=())
