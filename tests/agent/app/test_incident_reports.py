"""A report leaves nothing secret behind in any form, and its JSON has the schema that is published."""

import json
from pathlib import Path

import pytest

from agent.app.incident_reports import ReportFormat, incident_report, written
from agent.core.change.config_drift import ServiceRecord
from agent.core.diagnosis.diagnosis import Evidence
from agent.presentation.report.postmortem import Postmortem
from tests.agent.entrypoints.console import scenes

SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "incident-report.schema.json"
SECRET = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"


@pytest.fixture
def draft():
    stage = scenes.a_stage()
    asked = stage.waiting("s-report")
    line = f"\x1b[31mtoken {SECRET[:10]}\x1b[0m{SECRET[10:]} and {SECRET}"
    leaking = asked.diagnosis.with_(evidence=(Evidence(signal="s1", line=line, decisive=True),), unknown=(line,))
    seen = ServiceRecord(
        service=asked.service, seen_at=stage.clock.now(), state={"accelerator": "nvidia-l4", "accelerator_count": "2"}
    )
    timeline = stage.world.store.timeline(asked.id)
    return incident_report(
        asked.with_(diagnosis=leaking), timeline, seen=seen, console_url="https://x.example", now=stage.clock.now()
    )


@pytest.mark.parametrize("form", list(ReportFormat))
def test_no_form_holds_a_secret(draft, form):
    text = written(draft, form)
    assert SECRET not in text
    assert SECRET[10:] not in text


def test_the_accelerators_are_those_that_were_seen(draft):
    assert "2 nvidia-l4" in draft.cost.basis


def test_the_json_reads_back_as_the_draft(draft):
    assert Postmortem.model_validate_json(written(draft, ReportFormat.JSON)) == draft


def test_the_schema_is_the_published_one():
    """Where the form changes on purpose: write `Postmortem.model_json_schema()` into the file again."""
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == Postmortem.model_json_schema(mode="serialization")
