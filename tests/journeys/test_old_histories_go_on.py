"""R16: what an earlier version stored is loaded, shown, replayed and brought to an end by this one."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.app import build_app_in_memory
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal
from agent.entrypoints.cli.analysis import SteppedClock, analysis
from agent.entrypoints.cli.records import JsonRecord
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import handlers
from agent.ports.stage_context import Owner
from agent.ports.store import Change, head_key
from agent.presentation.terminal_text import lines
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision

ROOT = Path(__file__).resolve().parents[2]
FROZEN = sorted((ROOT / "tests" / "fixtures").glob("v*/*.jsonl"))
NOW = datetime(2026, 11, 21, 3, 5, tzinfo=UTC)


DIGESTS = {
    "gemma4-12b-aca-a100-fp8-kv": "6940925e940ee7c6",
    "gemma4-26b-l4-context-refused": "a7b4a171ea5aa896",
    "gemma4-26b-l4-queue": "db266d1c42261149",
    "gemma4-26b-l4-startup-probe": "92f557516e3f1d5d",
    "gemma4-31b-l4-oom": "3778fdb856f0c58a",
    "gemma4-31b-nvfp4-two-16gb-cards": "ccc0a0cd93c8da76",
    "gemma4-e2b-tpu-v6e-hbm": "2e3b0f17d14df528",
    "vllm-cpu-kv-cache-too-small": "14422e4a8ab28b11",
    "vllm-cpu-worker-killed": "d95fc08383f9977f",
}  # of the plans of version 0.1.0, as it took them
LATER = {"gemma4-12b-ec2-l4-queue"}  # 0.1.0 could not store a container on EC2


def rows(path: Path, kind: str) -> list[Any]:
    every = [json.loads(line) for line in path.read_text().splitlines()]
    return [row[kind] for row in every if kind in row]


def test_there_are_frozen_histories_of_the_first_version() -> None:
    """One for each example that it knew."""
    examples = {p.parent.name for p in (ROOT / "examples").glob("*/expected.json")}
    assert examples - LATER == set(DIGESTS) <= {path.stem for path in FROZEN if path.parent.name == "v0.1.0"}


@pytest.mark.parametrize("path", FROZEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_frozen_incident_is_loaded_and_shown(path: Path) -> None:
    """Every stored value still means something."""
    (incident,) = [Incident.model_validate(row) for row in rows(path, "incident")]
    assert [Signal.model_validate(row) for row in rows(path, "signal")]
    assert [Event.model_validate(row) for row in rows(path, "event")]
    assert incident.plan is not None
    assert incident.plan.id in "\n".join(lines(incident, now=NOW))


@pytest.mark.parametrize("path", FROZEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_an_approval_of_the_old_version_still_covers_its_plan(path: Path) -> None:
    """A field more in a plan, with whatever default, would make every open approval void."""
    (incident,) = [Incident.model_validate(row) for row in rows(path, "incident")]
    assert incident.plan is not None
    assert incident.plan.digest.startswith(DIGESTS[path.stem])


@pytest.mark.parametrize("path", FROZEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_frozen_history_is_replayed_to_the_same_cause(path: Path) -> None:
    """Its signals through today's whole path: one incident of the same class."""
    (incident,) = [Incident.model_validate(row) for row in rows(path, "incident")]
    settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / path.stem}")
    records = [JsonRecord(origin="frozen", line=n, value={"signal": s}) for n, s in enumerate(rows(path, "signal"))]
    with analysis(settings, run="again", now=NOW) as told:
        assert told.feed_all(records, service=incident.service) == ()
        (found,) = told.settle()
    assert found.cause == incident.cause


@pytest.mark.parametrize("path", FROZEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_an_incident_that_waits_can_be_rejected_after_the_upgrade(path: Path, tmp_path: Path) -> None:
    """A plan of the old version is still open, can be answered, and the life goes on to its next step."""
    (incident,) = [Incident.model_validate(row) for row in rows(path, "incident")]
    assert incident.plan is not None
    clock = SteppedClock(incident.phase_at + timedelta(seconds=5))
    settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / path.stem}")
    service = build_app_in_memory(settings, clock=clock, state=tmp_path)
    signals = tuple(Signal.model_validate(row) for row in rows(path, "signal"))
    service.store.commit(
        Change(
            incident=incident.with_(version=0),
            heads=(head_key("live", incident.service, None),),
            signals=signals,
            plan=incident.plan,
        )
    )
    word = DecisionRequest(
        plan=incident.plan.id,
        answer=Choice.REJECT,
        by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
        why="no",
    )
    plan_to_decision(service.contexts[Owner.DECIDE], word)
    work = service.worker(handlers(service), threads=1)
    for _ in range(30):
        work.run_due()
        on_tick(service.contexts[Owner.TICK])
        clock.step(1)
    after = service.store.load(incident.id)
    assert after.phase in {Phase.ASKED, Phase.ESCALATED}
    assert after.phase is Phase.ESCALATED or after.plan.id != incident.plan.id
