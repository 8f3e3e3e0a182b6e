"""A warmed process that forks journeys on a real control plane and has them killed at an effect: one case a line.

The parent opens neither a database nor a connection while it forks; each child opens its own.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import default_subscriptions
from agent.adapters.clock import StoredClock, SystemClock
from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.kubernetes.measure import Meter
from agent.adapters.platform.kubernetes.platform import KubernetesPlatform
from agent.adapters.platform.kubernetes.workload import Workload
from agent.app import build_app
from agent.app.catalogues import read_capacity, read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.app.stores import sqlite_stores
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import handlers, publish_example
from agent.errors import DependencyFailed
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.port_effects import effects
from tests.simulation.kills import ROOT, T0, in_a_child
from tests.simulation.simulated.places import Remembered

LIMIT_S, LOOK_S = 120.0, 0.02
CHANGING = {"platform.apply", "platform.shift", "platform.restore", "control.begin", "control.add_intent"}
assert set(effects()) >= CHANGING
MOVING = {Phase.APPLYING, Phase.ROLLING_BACK}
FITS = []


class Port:
    """A port of which every effect that belongs to a change is told first."""

    def __init__(self, inner, name, around):
        self._inner, self._name, self._around = inner, name, around

    def __getattr__(self, method):
        found, label = getattr(self._inner, method), f"{self._name}.{method}"
        if label == "store.commit":
            return lambda change: self._around(_commit(change), lambda: found(change))
        if label in CHANGING:
            return lambda *args, **more: self._around(label, lambda: found(*args, **more))
        return found


def _commit(change):
    """Return what an incident is stored as while its change is made or undone; empty at any other time."""
    incident = change.incident
    if incident.phase not in MOVING:
        return ""
    stands = ", ".join(f"{e.kind} {e.state}" for e in incident.require_execution().effects)
    return f"store.commit {incident.phase}: {stands}"


class Journey:
    """One process of the service over the files of a folder; its time goes on where the last one's ended.

    Args:
        case: ``folder`` of the state, ``example``, ``kubeconfig``, ``namespace``, ``workload``, ``url`` of the server;
            ``step_s`` goes by between two looks, and nothing while a platform that is ``real`` is at work.
        kill_at: The label and number of the call at which the process ends, and whether before it; None to live.
        opened: Opens the adapter, of case and service.
    """

    def __init__(self, case, kill_at, opened):
        folder, self.kill_at = Path(case["folder"]), kill_at
        self.step_s = case.get("step_s", 5)
        self.real, self.says = case.get("real", False), ""
        self.calls = Counter()
        self.time = folder / "time"
        self.first = not self.time.exists()
        self.example = ROOT / "examples" / case["example"]
        self.clock = SteppedClock(T0 if self.first else datetime.fromisoformat(self.time.read_text()))
        settings = read_settings({}, platform=f"rehearsal:{self.example}", store=f"sqlite:{folder}")
        kept, services = sqlite_stores(settings, with_control=True), read_services(settings)
        self.databases = [kept.store._database, kept.control._database]
        clock = StoredClock(self.clock, kept.store.latest_time)
        self.service = services.services[0].name
        self.platform = Port(opened(case, self.service), "platform", self.around)
        FITS[:] = FITS or [Remembered(read_capacity(services))]
        self.app = build_app(
            settings,
            services=services,
            stores=replace(
                kept,
                store=Port(kept.store, "store", self.around),
                control=Port(kept.control, "control", self.around),
            ),
            clock=clock,
            environment=RuntimeEnvironment(
                platform_of=lambda _: self.platform, logs=open_environment(settings, services, clock).logs
            ),
            bus=EmbeddedBus(self.databases[0], clock, default_subscriptions()),
            capacity=FITS[0],
        )
        self.work = self.app.worker(handlers(self.app), threads=1).run_due

    def around(self, label, call):
        """Count a call, and end the process at the chosen one."""
        if not label:
            return call()
        self.calls[label] += 1
        at, before = self.kill_at or ("", False)
        ends = at == f"{label} #{self.calls[label]}"
        if ends and before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call()
        if ends:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def run(self):
        """Go on until the incident has ended or asks for another plan; say how it stands."""
        self.time.write_text(self.clock.now().isoformat())
        if self.first:
            publish_example(self.app, self.example)
        end = time.monotonic() + LIMIT_S
        while not (done := self._step()):
            stands = [(i.phase, i.execution) for i in self.app.store.incidents(Query())]
            assert time.monotonic() < end, (self.says, stands)
            if self._at_work():
                time.sleep(LOOK_S)
                continue
            self.clock.step(self.step_s)
            self.time.write_text(self.clock.now().isoformat())
        for database in self.databases:
            database.close()
        return done

    def _at_work(self):
        """Whether a platform is waited for whose own time is the machine's, and which does not know yet, or is silent."""
        if not self.real or not any(incident.phase in MOVING for incident in self.app.store.incidents(Query())):
            return False
        with suppress(DependencyFailed):
            live = self.platform.describe(self.service)
            self.says = live.message
            return live.ready is None
        return True

    def _step(self):
        self.work()
        on_tick(self.app.contexts[Owner.TICK])
        self.work()
        (incident,) = self.app.store.incidents(Query()) or (None,)
        if incident is None or not (incident.ended or incident.phase is Phase.ASKED):
            return None
        if not incident.ended and incident.plans_made == 1:
            self._approve(incident.plan.id)
            return None
        return {
            "id": incident.id,
            "phase": incident.phase,
            "remedies": [r.ended for r in incident.remedies],
            "approved": sum(e.phase is Phase.APPROVED for e in self.app.store.timeline(incident.id)),
            "record": sorted([row.kind, row.who] for row in self.app.control.audit()),
            "calls": dict(self.calls),
        }

    def _approve(self, plan):
        word = DecisionRequest(
            plan=plan, answer=Choice.APPROVE, by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False)
        )
        plan_to_decision(self.app.contexts[Owner.DECIDE], word)


def kubernetes(case, service):
    """Return the adapter over the workload of a case, by a connection of its own."""
    workload = Workload(
        service=service,
        namespace=case["namespace"],
        kind="deployment",
        name=case["workload"],
        accelerator="nvidia-l4",
        spare=0,
    )
    client = CompletionClient(id_token=None, monotonic=time.monotonic, timeout_s=5)
    api = KubernetesApi(lambda: connect(kubeconfig=case["kubeconfig"]))
    meter = Meter(lambda _: client, lambda *_: case["url"], SystemClock())
    return KubernetesPlatform({service: workload}, lambda _: api, meter)


def told(case, opened):
    """Run one case: in this process where it lives, otherwise killed in a child and then started again."""
    if case["kill"] is None:
        return Journey(case, None, opened).run()
    if (lived := in_a_child(lambda: Journey(case, case["kill"], opened).run())) is not None:
        return {"broke": lived.get("broke", f"not killed at {case['kill']}")}
    return in_a_child(lambda: Journey(case, None, opened).run())


def main(opened):
    """Answer cases until there are no more; ``opened`` opens the adapter, of case and service."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    for line in sys.stdin:
        print(json.dumps(told(json.loads(line), opened)), flush=True)


if __name__ == "__main__":
    main(kubernetes)
