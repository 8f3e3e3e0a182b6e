"""Values and a clock for the contracts of stores and buses."""

import threading
from datetime import UTC, datetime, timedelta

from agent.core.change.execution import EffectKind, Intent
from agent.core.change.request import ChangeRequest
from agent.core.decision.decision import Ballot, Channel, Vote
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal, Source
from agent.core.plan.action import Difference, SetFlag
from agent.core.plan.plan import FitSummary, Plan, Risk, Rollout
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.service.serving import EnvVar, ServingConfig, Target
from agent.ports.bus import Message, Topic
from agent.ports.store import Change
from tests.watch import Watch

T0 = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


class FakeClock(Watch):
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        super().__init__(T0)


def incident(id_: str = "inc-a", **fields) -> Incident:
    opened = fields.pop("opened_at", T0)
    whole = {
        "service": "gemma",
        "platform": "cloud_run",
        "phase_at": opened,
        "quiet_since": opened,
        "opened_at": opened,
    }
    return Incident(id=id_, **(whole | fields))


def config() -> ServingConfig:
    return ServingConfig(args=("serve", "/m", "--max-model-len=8192"), env=(EnvVar(name="A", value="\u202e"),))


def request(id_: str = "rq-00000000000a", **fields) -> ChangeRequest:
    whole = {
        "service": "gemma",
        "actions": (SetFlag(name="max-model-len", value="4096"),),
        "why": "\u202e longer",
        "asker": "ada@example.com",
        "channel": Channel.COMMAND_LINE,
        "verified": True,
        "made_at": T0,
        "target": Target(service="gemma", uid="u", generation=5, digest="d"),
    }
    return ChangeRequest(id=id_, **(whole | fields))


def intent(key: str = "e-1", decision: str = "d-1", **fields) -> Intent:
    whole = {
        "kind": EffectKind.APPLY,
        "incident": "inc-a",
        "service": "gemma",
        "plan_digest": "0" * 64,
        "actions": (SetFlag(name="max-model-len", value="4096"),),
        "target": Target(service="gemma", uid="u", generation=5, digest="d"),
        "etag": "etag-5",
        "revision": "gemma-sre-1",
        "prior_template": "{}",
        "prior_traffic": "[]",
        "applied_at": T0,
    }
    return Intent(key=key, decision=decision, **(whole | fields))


def vote(person: str = "Ada", **fields) -> Vote:
    whole = {
        "plan": "p-1",
        "plan_digest": "d" * 64,
        "incident": "inc-a",
        "who": f"{person.lower()}@example.com",
        "name": person,
        "verified": True,
        "channel": Channel.CONSOLE,
        "at": T0,
        "receipt": "r" * 64,
    }
    return Vote(person=person, **(whole | fields))


def ballot(*votes: Vote, digest: str = "d" * 64, plan: str = "p-1") -> Ballot:
    return Ballot(plan=plan, plan_digest=digest, incident="inc-a", votes=votes)


def signal(key: str = "k1", **fields) -> Signal:
    whole = {
        "source": Source.APP_LOG,
        "service": "gemma",
        "platform": "cloud_run",
        "at": T0,
        "text": "CUDA out of memory",
    }
    return Signal(key=key, **(whole | fields))


def message(id_: str = "m1", **fields) -> Message:
    whole = {"topic": Topic.INCIDENTS, "data": '{"kind":"wake"}', "attributes": {"run": "live", "incident": "inc-a"}}
    return Message(id=id_, **(whole | fields))


def event(what: str, seconds: float = 0, phase: Phase = Phase.OPEN) -> Event:
    return Event(at=at(seconds), phase=phase, what=what)


def plan(id_: str = "p-a-1", **fields) -> Plan:
    whole = {
        "incident": "inc-a",
        "run": "live",
        "ordinal": 1,
        "cause": "oom_load",
        "why": "8,192 tokens fit, 32,768 do not",
        "actions": (SetFlag(name="max-model-len", value="8192"),),
        "difference": (Difference(path="flag --max-model-len", before="32768", after="8192"),),
        "target": Target(service="gemma", uid="u1", generation=3, digest="d" * 64),
        "rollout": Rollout.IN_PLACE,
        "fit_after": FitSummary(
            fits=True, reason="fits", sentence="fits", report={"weights_bytes": 2**34, "ranges": [1, 2.5]}
        ),
        "proof": Proof.COMPUTED,
        "proof_figures": (ProofFigure(name="Weights", value="16.00 GiB", source="computed"),),
        "cost_before_usd_per_h": 0.71,
        "risk": Risk.LOW,
        "undo": "the prior template is put back",
        "if_unanswered": "nothing is changed",
        "made_at": T0,
        "expires_at": at(1800),
    }
    return Plan(id=id_, **(whole | fields))


def change(of: Incident | None = None, **fields) -> Change:
    return Change(incident=of or incident(), **fields)


def together(count: int, work) -> list:
    """Run ``work(n)`` in ``count`` threads that begin at the same moment; return what each returned or raised."""
    begin = threading.Barrier(count)
    results: list = [None] * count

    def run(number: int) -> None:
        begin.wait()
        try:
            results[number] = work(number)
        except Exception as error:  # noqa: BLE001 - the caller looks at what was raised
            results[number] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
