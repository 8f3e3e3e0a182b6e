"""A console with something to show on every page: for pictures, and for what a browser checks."""

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.adapters.bus.dead_letters import SqliteDeadLetters
from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import default_subscriptions
from agent.adapters.bus.quarantine.sqlite import SqliteQuarantine
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.core.change.config_drift import ConfigChange, ServiceRecord
from agent.core.decision.decision import Choice
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.incident import incident_id
from agent.core.plan.action import Difference
from agent.core.plan.lifecycle import absent
from agent.core.service.services import parse_services
from agent.core.service.serving import Serves
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.pages.queue import QueueView
from agent.ports.bus import Delivery, Message, Topic
from agent.ports.control import KillSwitch
from agent.settings import Settings
from agent.stages.decide_sweep import ask_sweep
from tests.agent.entrypoints.console import scenes
from tests.agent.stages.test_decide_sweep import a_sweep

SERVICES = ("gemma4-26b-qat-l4", "gemma4-31b-l4", "qwen3-8b-l4")
POLICY = Policy(
    rules=(
        Rule(services=("gemma4-*",), kinds=("restart",), mode=Mode.AUTOMATIC),
        Rule(services=("gemma4-*", "qwen3-*"), kinds=("set_*",), mode=Mode.PERSON),
    ),
    approvers=(Approver(name="Ada", email="ada@example.com", services=("gemma4-*",)),),
    flags={"max-model-len": "whole 256..131072"},
)
SWEEP = a_sweep(asker="ada", verified=False, service=SERVICES[0], made_at=scenes.START)
SIMILAR = incident_id("live", SERVICES[2], f"{SERVICES[2]}-00005-k2f", 1)
PAGES = {
    "incidents": "/?still=1",
    "search": "/?q=probe+startup&service=gemma4",
    "nothing-found": "/?q=banana",
    "incident-similar": f"/incidents/{SIMILAR}#similar",
    "services": "/services",
    "service": f"/services/{SERVICES[0]}",
    "changes": "/changes?still=1",
    "statistics": "/statistics",
    "queue": "/queue",
    "sweeps": "/sweeps",
    "sweep": f"/sweeps/{SWEEP.request.id}",
    "policy": "/policy",
    "policy-test": f"/policy?service={SERVICES[0]}&change=set_flag&value=max-model-len%3D16384#test",
    "audit": "/audit?verify=1",
    "kill-switch": "/kill-switch",
}
"""The pages of an installation in which much has happened, by name."""


@dataclass(frozen=True)
class Here:
    """What of an installation the page of the queue looks at."""

    queue: EmbeddedBus


class Describing:
    """A platform that has two of the services and not the third."""

    def describe(self, service: str) -> Any:
        live = absent(service, "cloud_run").with_(config=scenes.CONFIG, ready=service != SERVICES[1])
        return live if service != SERVICES[2] else absent(service, "cloud_run")


def every_page(folder: Path, *, stopped: bool = False) -> Any:
    """Return a console that has something to show everywhere; its time stands still."""
    stage = scenes.a_stage(POLICY)
    stage.world = replace(_watching(stage.world), platform_of=lambda _service: Describing())
    _incidents(stage)
    _record(stage)
    if stopped:
        switch = KillSwitch(on=True, by="grace", why="Cloud Run answers nobody in us-central1", at=stage.clock.now())
        stage.world.control_store().set_kill_switch(switch)
    ask_sweep(stage.world, SWEEP)
    queue = _queue(folder, stage)
    settings = Settings(platform="cloud_run:example")
    return make_app(stage.world, settings=settings, operator="ada", queue=queue, queue_age_s=lambda: 42.0)


def _watching(world: Any) -> Any:
    row = {"platform": "cloud_run", "accelerator": "nvidia-l4", "owner": "slack:#llm", "project": "p", "location": "l"}
    models = ("google/gemma-4-26b", "google/gemma-4-31b", "Qwen/Qwen3-8B")
    rows = [row | {"name": name, "model": model} for name, model in zip(SERVICES, models, strict=True)]
    return replace(world, rules=replace(world.rules, services=parse_services({"service": rows})))


def _incidents(stage: Any) -> None:
    down = Serves(at=stage.clock.now(), ready=False)
    first = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(SERVICES[0]), Choice.APPROVE))))
    stage.world.store.commit(_change(first.with_(serves=down)))
    stage.clock.step(3600 * 30)
    stage.escalated(stage.diagnosed(stage.open(SERVICES[2], serves=down)))
    stage.clock.step(3600)
    stage.requested(SERVICES[2])
    stage.clock.step(600)
    stage.waiting(SERVICES[1], diagnosis=scenes.memory_diagnosis(stage.clock.now()), make=scenes.memory_plan)
    stage.clock.step(60)
    record = ServiceRecord(
        service=SERVICES[0],
        state={"flag --max-num-seqs": "32"},
        changes=(
            ConfigChange(
                at=stage.clock.now() - timedelta(hours=2),
                by="eve@example.com",
                rows=(Difference(path="flag --max-num-seqs", before="8", after="32"),),
            ),
        ),
        seen_at=stage.clock.now(),
    )
    stage.world.service_records.keep_service_record(record)


def _change(incident: Any) -> Any:
    from agent.ports.store import Change

    return Change(incident=incident)


def _record(stage: Any) -> None:
    control = stage.world.control_store()
    control.append(at=stage.clock.now(), kind="kill_switch.on", incident="", who="grace", body="a test of the switch")
    control.append(at=stage.clock.now(), kind="kill_switch.off", incident="", who="grace", body="the test is over")


def _queue(folder: Path, stage: Any) -> QueueView:
    database = SqliteDatabase(folder / "sre.sqlite", Kind.STATE)
    bus = EmbeddedBus(database, stage.clock, default_subscriptions())
    bus.publish(Message(id="m-1", topic=Topic.INCIDENTS, data="{}"))
    quarantine = SqliteQuarantine(database, stage.clock, redact=str)
    delivery = Delivery(
        topic=Topic.ALERTS, message_id="7", data=b'{"version": "4", "alerts": "none"}', subscription="sre-alerts-sub"
    )
    quarantine.put(delivery, "'alerts' is no list of alerts, as Alertmanager sends it")
    here: Any = Here(bus)
    return QueueView(quarantine=quarantine, dead_letters=SqliteDeadLetters(database, stage.clock), app=here)
