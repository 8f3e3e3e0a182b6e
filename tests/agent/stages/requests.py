"""Change requests on the bench: one watched service, one person who asks, and the stages that follow."""

from dataclasses import replace

from agent.core.decision.decision import Channel
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.plan.action import SetConcurrency
from agent.core.service.services import parse_services
from agent.ports.stage_context import Owner
from agent.stages.request_change import ChangeAsked, request_change
from tests.agent.stages.conftest import SERVICE, Bench
from tests.people import said_by

WATCHED = parse_services(
    {"service": [{"name": SERVICE, "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}]}
)
ADA = Approver(name="ada", email="ada@example.com", services=(SERVICE,))
BEN = Approver(name="ben", email="ben@example.com", services=(SERVICE,))
POLICY = Policy(
    rules=(
        Rule(services=(SERVICE,), kinds=("restart",), mode=Mode.NEVER),
        Rule(services=(SERVICE,), kinds=("set_concurrency",), mode=Mode.AUTOMATIC),
    ),
    approvers=(ADA, BEN),
    max_concurrency=64,
)


class Asking:
    """A bench on which people ask for changes.

    Args:
        local: Whether it is one machine's own installation.
    """

    def __init__(self, *, local: bool = True, policy: Policy = POLICY) -> None:
        self.bench = Bench()
        rules = replace(self.bench.executor.rules, services=WATCHED, policy=policy)
        self.executor = replace(self.bench.executor, rules=rules, local=local)
        self.decide = replace(self.executor, owner=Owner.DECIDE)
        self.planner = replace(self.executor, owner=Owner.INCIDENT, control=None, receipt_key=None)
        self.tick = replace(self.planner, owner=Owner.TICK)
        self.bench.executor = self.executor
        self.platform, self.clock, self.store = self.bench.platform, self.bench.clock, self.executor.store

    def asked(self, value: int = 2, **changes) -> ChangeAsked:
        """What is asked for: another concurrency, by ada on the command line."""
        fields = {
            "service": SERVICE, "actions": (SetConcurrency(concurrency=value),), "why": "more at once", "who": "ada",
            "channel": Channel.COMMAND_LINE, "verified": False,
        }  # fmt: skip
        return ChangeAsked(**said_by(fields | changes))

    def ask(self, value: int = 2, **changes):
        """Record a request; return its life."""
        return request_change(self.decide, self.asked(value, **changes))

    def load(self, incident):
        """Return it as it is stored."""
        return self.store.load(incident.id)
