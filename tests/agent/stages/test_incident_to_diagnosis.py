"""What is heard after a plan was asked about: it withdraws the plan only where another one would follow."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.logs.cloud_logging import CloudLogs
from agent.app import App, build_app_in_memory
from agent.core.change.config_drift import ConfigChange, ServiceRecord
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Difference, SetConcurrency
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import entry_message, handlers
from agent.ports.platform import Order
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from tests.contracts.cloud_logging_server import LoggingStandIn, audit_entry
from tests.leases import HELD

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PROBE = "gemma4-26b-l4-startup-probe"
PROBE_LINE, REVISION_LINE, SERVICE_LINE = range(3)


class Hearing:
    """An example's service that hears one event after the other, each until its plan is asked about."""

    def __init__(self, example: str, folder: Path) -> None:
        self.clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        settings = read_settings({}, platform=f"rehearsal:{EXAMPLES / example}")
        self.installation: App = build_app_in_memory(settings, clock=self.clock, state=folder)
        self._work = self.installation.worker(handlers(self.installation), threads=1).run_due
        lines = (EXAMPLES / example / "events.jsonl").read_text().splitlines()
        self.events: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def hear(self, number: int) -> Incident:
        """Take one event in and let it settle."""
        self.installation.bus.publish(entry_message(self.events[number]))
        for _ in range(30):
            self._work()
            on_tick(self.installation.contexts[Owner.TICK])
            self.clock.step(1)
        (incident,) = self.installation.store.incidents(Query())
        return incident

    def said(self, incident: Incident) -> list[str]:
        """Return the lines of the timeline."""
        return [event.what for event in self.installation.store.timeline(incident.id)]


@pytest.mark.parametrize("late", [(PROBE_LINE, SERVICE_LINE), (SERVICE_LINE, PROBE_LINE)], ids=["probe first", "last"])
def test_more_evidence_for_the_same_cause_leaves_the_asked_plan_alone(tmp_path: Path, late: tuple[int, ...]) -> None:
    """The probe's own line adds figures: they stand in the diagnosis, and what a person looks at stays what it is."""
    heard = Hearing(PROBE, tmp_path)
    asked = heard.hear(REVISION_LINE)
    assert asked.phase is Phase.ASKED
    now = [heard.hear(number) for number in late][-1]
    assert (now.phase, now.plan, now.plans_made) == (Phase.ASKED, asked.plan, 1)
    assert now.received == now.diagnosed_count == 3
    assert now.diagnosis.fields.keys() > asked.diagnosis.fields.keys()
    assert not [line for line in heard.said(now) if "withdrawn" in line]
    assert len(set(heard.said(now))) == len(heard.said(now))


def test_another_cause_withdraws_the_asked_plan_and_says_which(tmp_path: Path) -> None:
    """The platform's word alone says less than the log that it names: another root cause, another reason for the plan."""
    heard = Hearing(PROBE, tmp_path)
    asked = heard.hear(SERVICE_LINE)
    now = heard.hear(REVISION_LINE)
    assert (now.phase, now.plan.ordinal, now.diagnosis.class_) == (Phase.ASKED, 2, asked.diagnosis.class_)
    (withdrawn,) = [line for line in heard.said(now) if "withdrawn" in line]
    assert withdrawn == f"plan withdrawn, new cause: {now.cause}: {now.diagnosis.root_cause}"


def test_a_service_that_was_changed_meanwhile_gets_the_plan_for_what_stands(tmp_path: Path) -> None:
    """The cause is the same and the actions are, but an approval of the asked plan would be refused."""
    heard = Hearing(PROBE, tmp_path)
    asked = heard.hear(REVISION_LINE)
    rehearsal = heard.installation.environment.rehearsal
    live = rehearsal.describe(asked.service)
    by_hand = (SetConcurrency(concurrency=7),)
    rehearsal.apply(
        Order(
            service=live.service,
            incident="-",
            effect_key="k",
            revision="by-hand-6",
            etag=live.etag,
            actions=by_hand,
            lease_end=HELD,
        )
    )
    now = heard.hear(PROBE_LINE)
    assert (now.phase, now.plan.ordinal) == (Phase.ASKED, 2)
    assert now.plan.target.generation == asked.plan.target.generation + 1
    assert "plan withdrawn, it no longer follows from what is known" in heard.said(now)


def test_who_changed_the_service_is_asked_of_the_audit_log_once(tmp_path: Path) -> None:
    """The diagnosis names the person; further evidence costs no further call of the log's budget."""
    heard = Hearing(PROBE, tmp_path)
    app, at = heard.installation, heard.clock.now() - timedelta(minutes=40)
    (service,) = (s.name for s in app.services.services)
    rows = (Difference(path="flag --max-num-seqs", before="8", after="32"),)
    seen = ServiceRecord(service=service, state={}, changes=(ConfigChange(at=at, rows=rows),), seen_at=at)
    assert app.service_records is not None
    app.service_records.keep_service_record(seen)
    server = LoggingStandIn()
    server.start()
    server.entries.append(audit_entry(at, service=service, by="ada@example.com"))
    log = CloudLogs("p", emulator=f"127.0.0.1:{server.port}")
    app.contexts[Owner.INCIDENT] = replace(app.contexts[Owner.INCIDENT], audit_log=log)
    heard.hear(REVISION_LINE)
    told = heard.hear(PROBE_LINE).require_diagnosis().changes
    server.stop()
    assert [line.partition(" minutes")[0] for line in told] == [
        "--max-num-seqs was raised from 8 to 32 by ada@example.com 40"
    ]
    assert len(server.calls) == 1
