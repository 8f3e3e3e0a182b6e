"""One service, one plan and the ports in memory: what a stage is tried on alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.logs.file import FileLogs
from agent.app.catalogues import matcher
from agent.app.stores import memory_stores
from agent.core.change.verification import Check, Measurement
from agent.core.decision.decision import Channel, Choice
from agent.core.decision.policy import Mode, Policy, Rule
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.times import Times
from agent.core.plan.action import SetConcurrency, applied, difference
from agent.core.plan.capacity import ContainerFit
from agent.core.plan.plan import FitSummary, Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.services import Services
from agent.core.service.serving import Live, ServingConfig, Traffic
from agent.errors import StateConflict
from agent.ports.platform import Operation, seconds_to_send
from agent.ports.stage_context import Owner, Rules, StageContext
from agent.ports.store import Change
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.people import said_by

SERVICE = "svc"
ACTIONS = (SetConcurrency(concurrency=2),)
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.at = T0

    def now(self):
        return self.at

    def step(self, seconds):
        self.at += timedelta(seconds=seconds)


class Arithmetic:
    """An arithmetic that has computed nothing; the plan touches no memory."""

    def assess(self, _service, _config):
        return FitSummary()

    def container(self, _service, _config):
        return ContainerFit()

    def options(self, _service, _config):
        return ()

    def misses(self, _service, _config):
        return ""

    def takes_away(self, _service, _before, _after, **_prices):
        return ""

    def cost_usd_per_h(self, _service, _config):
        return None

    def decode_tokens_per_s(self, _service, _config):
        return None


class OneService:
    """A platform with one service; it keeps what was called, and what came of it."""

    def __init__(self):
        self.calls = []
        self.made = {}
        self.measured = ()
        self.refusal = None
        self.before_call = lambda: None
        self.live = Live(
            service=SERVICE,
            platform="fake",
            config=ServingConfig(concurrency=4),
            uid="u",
            generation=1,
            etag="e1",
            template='{"was":1}',
            traffic=(Traffic(percent=100),),
            latest_ready_revision="svc-1",
            latest_created_revision="svc-1",
            ready=True,
        )

    def describe(self, _service):
        return self.live

    def validate(self, _order):
        return None

    def find(self, _service, key):
        return self.made.get(key)

    def operation(self, name):
        return next(o for o in self.made.values() if o.name == name)

    def measure(self, _service, _revision):
        return self.measured

    def apply(self, order):
        changed = {"config": applied(self.live.config, order.actions), "template": f'{{"now":"{order.revision}"}}'}
        return self._call("apply", order, order.effect_key, latest_created_revision=order.revision, **changed)

    def shift(self, service, *, revision, etag, effect_key, lease_end):
        shifted = (Traffic(revision=revision, percent=100),)
        return self._call("shift", of_a_shift(service, etag, lease_end), effect_key, traffic=shifted)

    def restore(self, order):
        back = {"config": ServingConfig(concurrency=4), "template": order.template}
        return self._call("restore", order, order.effect_key, latest_created_revision=order.revision, **back)

    def restored(self, _service, *, template, traffic):
        return self.live.template == template and traffic is not None

    def _call(self, kind, order, key, **changes):
        self.before_call()
        seconds_to_send(order.lease_end, order.service)
        self.calls.append(kind)
        if self.refusal is not None:
            raise self.refusal
        if order.etag != self.live.etag:
            raise StateConflict("not called", why="the service changed", hint="look again")
        self.live = self.live.with_(generation=self.live.generation + 1, etag=f"e{self.live.generation + 1}", **changes)
        self.made[key] = Operation(name=f"{kind}-1", done=False, ok=None)
        return self.made[key]

    def ends(self, kind, *, ok, says="done"):
        """Let the operation of that kind end."""
        for key, operation in self.made.items():
            if operation.name == f"{kind}-1":
                self.made[key] = Operation(name=operation.name, done=True, ok=ok, says=says)

    def remains(self, kind, what):
        """Another call of the same order is to be made."""
        for key, operation in self.made.items():
            if operation.name == f"{kind}-1":
                self.made[key] = operation.with_(says=what, remains=what)

    def somebody_else(self):
        """Somebody changes the service by hand."""
        self.live = self.live.with_(
            generation=self.live.generation + 1,
            etag="theirs",
            template='{"theirs":1}',
            config=ServingConfig(concurrency=9),
            latest_created_revision="by-hand",
        )


class of_a_shift:  # noqa: N801 - an order of a shift has no more than this
    def __init__(self, service, etag, lease_end):
        self.service, self.etag, self.lease_end = service, etag, lease_end


class Bench:
    """The ports in memory, and an incident that is led to where a test wants it."""

    def __init__(self):
        self.clock = Clock()
        self.platform = OneService()
        rule = Rule(services=(SERVICE,), kinds=("set_concurrency",), mode=Mode.PERSON)
        rules = Rules(
            matcher=matcher(),
            titles={},
            redact=lambda text: text,
            policy=Policy(rules=(rule,)),
            fits=Arithmetic(),
            times=Times(),
            services=Services(services=()),
            printed={},
        )
        stores = memory_stores(self.clock)
        self.executor = StageContext(
            owner=Owner.DECISION,
            store=stores.store,
            control=stores.control,
            cards=stores.cards,
            bus=stores.open_queue(()),
            platform_of=lambda _service: self.platform,
            logs=FileLogs(lambda _service: ()),
            notifiers={},
            model=None,
            clock=self.clock,
            rules=rules,
            receipt_key=b"k" * 32,
            local=True,
        )
        self.tick = replace(self.executor, owner=Owner.TICK)
        self.control = self.executor.control

    def plan(self, **changes):
        live = self.platform.live
        fields = {
            "id": "p-a-1", "incident": "inc-a", "run": "live", "ordinal": 1, "cause": "latency", "why": "-",
            "actions": ACTIONS, "difference": difference(live.config, applied(live.config, ACTIONS)),
            "target": live.target, "rollout": Rollout.IN_PLACE, "risk": Risk.LOW, "undo": "-", "if_unanswered": "-",
            "proof": Proof.NOT_NEEDED, "policy": self.executor.rules.policy.digest, "made_at": self.clock.now(),
            "expires_at": self.clock.now() + timedelta(minutes=30),
        }  # fmt: skip
        return Plan(**(fields | changes))

    def asked(self, **changes):
        """Return an incident whose plan is asked about."""
        plan = self.plan(**changes)
        now = self.clock.now()
        diagnosis = Diagnosis(
            class_="latency",
            signature=None,
            root_cause="-",
            confidence=1.0,
            certain=True,
            provisional=False,
            log_read=True,
            made_at=now,
        )
        incident = Incident(
            id="inc-a", service=SERVICE, platform="fake", opened_at=now, phase_at=now, quiet_since=now,
            phase=Phase.ASKED, plan=plan, plans_made=1, diagnosis=diagnosis,
        )  # fmt: skip
        return self.executor.store.commit(Change(incident=incident, plan=plan))

    def approved(self, **changes):
        """Return an incident whose plan was approved on this machine."""
        asked = self.asked(**changes)
        self.answer(asked.plan.id, Choice.APPROVE)
        return self.now()

    def answer(self, plan, answer, **changes):
        return self.answer_in(self.executor, plan, answer, **changes)

    def answer_in(self, world, plan, answer, **changes):
        """Answer through the ports of another process."""
        word = {"plan": plan, "answer": answer, "who": "ana", "channel": Channel.CONSOLE, "verified": False}
        return plan_to_decision(world, DecisionRequest(**said_by(word | changes)))

    def under(self, policy):
        """Put another policy in force."""
        self.executor = replace(self.executor, rules=replace(self.executor.rules, policy=policy))
        self.tick = replace(self.executor, owner=Owner.TICK)

    def put(self, incident):
        """Store an incident as if a stage had."""
        return self.executor.store.commit(Change(incident=incident))

    def now(self):
        """Return the incident as it is stored."""
        return self.executor.store.load("inc-a")

    def run(self, stage, *, as_tick=False):
        """Run one stage on what is stored; return what it did."""
        return stage(self.tick if as_tick else self.executor, self.now())

    def good(self):
        """Let the platform measure a service that is ready and answers."""
        at = self.clock.now()
        checks = (Check.READY, Check.COMPLETION)
        self.platform.measured = tuple(Measurement(check=c, good=True, says="ok", at=at) for c in checks)


@pytest.fixture
def bench():
    return Bench()
